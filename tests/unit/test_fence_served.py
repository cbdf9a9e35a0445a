"""What people and programs see of fences: changes, answers, why, verify, the audit, feeds (SPEC X3, X5)."""

from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.checks.audit import audit
from st_common.checks.verify import verify
from st_common.checks.why import why
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

CONTRACTS = Path(__file__).resolve().parents[2] / "data_contracts"
T0 = round(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp())
CONF = """
[streams.trucks]
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
QUERIES = """
REGISTER QUERY depot AS SELECT * FROM trucks INSIDE (0, 0, 10, 10) DETECT ENTER, EXIT, DWELL 1 min, CROSS;
REGISTER QUERY steady AS SELECT * FROM trucks INSIDE (0, 0, 10, 10) DETECT ENTER, EXIT WITH (hysteresis = 2 m);
REGISTER QUERY leaving AS SELECT * FROM trucks INSIDE (0, 0, 10, 10) DETECT EXIT;
"""
FIXES = (
    ("t1", 0, 5, 5),
    ("t2", 10, 5, 5),
    ("t1", 30, 11, 5),
    ("t1", 40, 5, 5),
    ("t3", 50, -5, 5),
    ("t3", 55, 15, 5),
    ("t2", 90, 6, 5),
    ("t2", 100, 20, 5),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home in which all of FIXES was judged by QUERIES."""
    root = tmp_path_factory.mktemp("home")
    (root / "conf").mkdir()
    (root / "conf" / "streams.toml").write_text(CONF)
    home, streams = Home(root), load_streams(root / "conf")
    register(home, streams, parse(QUERIES), owner="ada")
    stream = streams["trucks"]
    engine, archive = LocalEngine(home, stream), Archive(home, stream)
    lines = [f"{name},{T0 + at},{x},{y}" for name, at, x, y in FIXES]
    bare_log(home.log("trucks")).append(
        "\n".join(["id,t,x,y", *lines]).encode(), arrival_us=0
    )
    while engine.batch():
        pass
    engine.close()
    while archive.batch():
        pass
    return home


@pytest.fixture
def stream(home):
    return load_streams(home.root / "conf")["trucks"]


def told(home, query):
    rows = stream_changes(home, "trucks", query).to_pylist()
    seconds = [round(row["event_ts"].timestamp()) - T0 for row in rows]
    return [
        (row["sign"], row["object"], row["cause"], at, row["value"])
        for row, at in zip(rows, seconds, strict=True)
    ]


@pytest.mark.spec("X3")
def test_the_table_of_changes_has_every_event(home):
    assert told(home, "depot") == [
        (1, "t1", "enter", 0, None),
        (1, "t2", "enter", 10, None),
        (-1, "t1", "leave", 30, 30.0),
        (1, "t1", "enter", 40, None),
        (0, "t3", "cross", 55, None),
        (0, "t2", "dwell", 70, 60.0),
        (-1, "t2", "leave", 100, 90.0),
    ]
    assert told(home, "steady")[2:] == [(-1, "t2", "leave", 100, 90.0)]
    assert told(home, "leaving") == [
        (0, "t1", "leave", 30, 30.0),
        (0, "t2", "leave", 100, 90.0),
    ]


@pytest.mark.spec("X3", "X1")
def test_the_answer_is_who_is_in_now(home):
    found = {
        query: answer(home, query)["object"].to_pylist()
        for query in ("depot", "steady", "leaving")
    }
    assert found == {"depot": ["t1"], "steady": ["t1"], "leaving": []}


@pytest.mark.spec("X3", "X5")
@pytest.mark.parametrize(
    ("query", "name", "says"),
    [
        ("depot", "t1", "t1 came in: its fix of 2026-05-01 12:00:40 UTC at (5, 5)"),
        ("depot", "t2", "t2 went out after 90 s inside: its fix of"),
        ("depot", "t3", "the straight line between them passes there"),
        ("steady", "t2", "was more than 2 m away from it"),
    ],
)
def test_why_says_what_happened_at_the_border(home, stream, query, name, says):
    assert says in why(home, query, name, stream=stream).sentence


@pytest.mark.spec("X3", "X5")
def test_why_says_how_long_somebody_has_been_inside(home, stream):
    at = datetime.fromtimestamp(T0 + 75, UTC)
    found = why(home, "depot", "t2", at=at, stream=stream)
    assert (
        "t2 has been inside for 1 minute at 2026-05-01 12:01:10 UTC" in found.sentence
    )
    assert found.tick is None


@pytest.mark.spec("X1", "X3")
def test_verify_finds_who_is_in_and_all_that_was_told(home, stream):
    found = [
        (one.query, one.members, one.holds, one.checked, one.unchecked)
        for one in verify(home, stream)
    ]
    assert found == [
        ("depot", 1, True, True, ""),
        ("steady", 1, True, True, ""),
        ("leaving", 0, True, True, ""),
    ]


@pytest.mark.spec("X3", "S2")
def test_the_audit_finds_that_events_fold(home, stream):
    (folds,) = [one for one in audit(home, stream) if one.what.startswith("folds")]
    assert folds.what == "folds of 4 members: 0 or 1 at every place"


def test_the_command_says_that_all_events_hold(home, monkeypatch):
    monkeypatch.setenv("FAIRWAY_HOME", str(home.root))
    result = CliRunner().invoke(app, ["verify"], prog_name="fairway")
    lines = dict(line.partition(": ")[::2] for line in result.stdout.splitlines())
    assert lines["depot"].endswith(": holds")
    assert lines["steady"].endswith(": holds")
    assert result.exit_code == 0


@pytest.mark.spec("X3")
def test_events_without_an_answer_keep_to_the_contract_of_changes(home):
    contract = yaml.safe_load((CONTRACTS / "changes.odcs.yaml").read_text())
    rules = {rule["name"]: rule["query"] for rule in contract["schema"][0]["quality"]}
    told = pa.concat_tables(
        stream_changes(home, "trucks", query) for query in ("depot", "leaving")
    )
    assert 0 in told["sign"].to_pylist()
    rule = rules["sign_fits_cause"].replace("${table}", "told")
    assert duckdb.sql(rule).fetchall() == [(0,)]
