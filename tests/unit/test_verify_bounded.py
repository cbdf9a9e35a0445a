"""`verify` looks at what it is asked to, goes on where it was cut off, and no query ends it (SPEC X1)."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.checks import verify as verifying
from st_common.cli import app
from st_common.config.home import Home
from st_common.contracts import load_contract
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("X1")

CONF = """
[streams.grid]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
QUERIES = """
REGISTER QUERY west AS SELECT * FROM grid INSIDE (0, 0, 5, 5);
REGISTER QUERY west_counted AS SELECT COUNT(*) FROM grid INSIDE (0, 0, 5, 5);
REGISTER QUERY east AS SELECT * FROM grid INSIDE (5, 0, 11, 5);
REGISTER QUERY gate AS SELECT * FROM grid INSIDE (3, 0, 6, 5) DETECT ENTER, EXIT
"""
ALL = {"west", "west_counted", "east", "gate"}


def fairway(root: Path, *args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["--home", str(root), *args], prog_name="fairway")
    assert done.exit_code == code, done.output
    return done.output


def arrive(root: Path, first: int, count: int) -> None:
    log = bare_log(Home(root).log("grid"))
    for step in range(first, first + count):
        fixes = [f"o{n},{step},{(step * (n + 3)) % 11},1" for n in range(7)]
        log.append("\n".join(["id,t,x,y", *fixes, ""]).encode(), arrival_us=step)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    (root / "conf").mkdir(parents=True)
    (root / "conf" / "streams.toml").write_text(CONF)
    (root / "q.sql").write_text(QUERIES)
    fairway(root, "query", "register", str(root / "q.sql"))
    arrive(root, 0, 30)
    fairway(root, "run", "grid", "--until-idle")
    return root


def named(said: str) -> set[str]:
    """The queries that lines are about."""
    return {line.split(":")[0] for line in said.splitlines()} & ALL


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that are evaluated by brute force, one after the other."""
    names: list[str] = []
    real = verifying._verified

    def noted(query, *rest):
        names.append(query.name)
        return real(query, *rest)

    monkeypatch.setattr(verifying, "_verified", noted)
    return names


def failing(monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    """One query raises when it is evaluated."""
    real = verifying._verified

    def raising(query, *rest):
        if query.name == name:
            raise error
        return real(query, *rest)

    monkeypatch.setattr(verifying, "_verified", raising)


def test_a_query_that_cannot_be_evaluated_is_named_and_the_others_go_on(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    failing(monkeypatch, "east", ValueError("no such thing\nas this"))
    said = fairway(root, "verify", code=1)
    (line,) = [line for line in said.splitlines() if line.startswith("east:")]
    assert "NOT CHECKED, it cannot be evaluated: no such thing" in line
    assert named(said) == ALL
    assert "holds" in "".join(
        line for line in said.splitlines() if line.startswith("gate:")
    )
    records = [
        json.loads(line)
        for line in fairway(root, "verify", "--json", code=1).splitlines()
    ]
    assert [one["query"] for one in records if one.get("failed")] == ["east"]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (("--queries", "west*"), {"west", "west_counted"}),
        (("--queries", "east, ga?e"), {"east", "gate"}),
        (("east",), {"east"}),
        ((), ALL),
    ],
    ids=["star", "two", "one", "all"],
)
def test_queries_are_chosen_by_names_and_patterns(root: Path, asked, names):
    assert named(fairway(root, "verify", *asked)) == names


@pytest.mark.parametrize(
    "asked",
    [("--queries", "nobody*"), ("nobody",), ("east", "--queries", "west")],
    ids=["pattern", "name", "both"],
)
def test_a_name_that_no_query_has_is_an_error(root: Path, asked):
    assert fairway(root, "verify", *asked, code=2).startswith("error:")


def test_a_sample_is_said_and_can_be_taken_once_more(root: Path):
    said = fairway(root, "verify", "--sample", "2")
    assert "2 of 4 queries, --seed " in said
    seed = said.split("--seed ")[1].split()[0]
    assert len(named(said)) == 2
    again = fairway(root, "verify", "--sample", "2", "--seed", seed)
    assert named(again) == named(said)
    samples = [
        frozenset(named(fairway(root, "verify", "--sample", "1", "--seed", str(n))))
        for n in range(8)
    ]
    assert len(set(samples)) > 1
    assert named(fairway(root, "verify", "--sample", "9")) == ALL


def test_a_run_that_was_cut_off_goes_on(
    root: Path, checked: list[str], monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        failing(broken, "east", KeyboardInterrupt())
        CliRunner().invoke(app, ["--home", str(root), "verify"])
    assert checked == ["west", "west_counted"]  # as they were registered
    said = fairway(root, "verify", "--resume")
    assert checked == ["west", "west_counted", "east", "gate"]
    assert "2 queries were verified before" in said
    assert named(said) == ALL
    assert "WRONG" not in said


def test_more_of_the_log_changes_nothing_of_what_was_verified(
    root: Path, checked: list[str]
):
    before = fairway(root, "verify", "--queries", "*", "--resume")
    arrive(root, 30, 5)
    fairway(root, "run", "grid", "--until-idle")
    checked.clear()
    again = fairway(root, "verify", "--queries", "*", "--resume")
    assert checked == []
    lines = [line for line in before.splitlines() if line.split(":")[0] in ALL]
    assert lines == [line for line in again.splitlines() if line.split(":")[0] in ALL]
    fairway(root, "verify", "--queries", "*")
    assert {*checked} == ALL


def test_what_was_verified_and_changed_since_is_verified_anew(
    root: Path, checked: list[str]
):
    fairway(root, "verify", "--queries", "*", "--resume")
    table = root / "tables" / "changes" / "grid"
    rows = tables.read(table)
    end = tables.committed(table, "engine")
    kept = rows.slice(0, len(rows) - 3)
    tables.replace(table, kept, load_contract("changes"))
    assert tables.committed(table, "engine") == end
    checked.clear()
    said = fairway(root, "verify", "--queries", "*", "--resume", code=3)
    assert {*checked} == ALL
    assert "has changed: verified anew" in said
    assert "WRONG" in said


def test_a_query_that_was_registered_since_is_verified(root: Path, checked: list[str]):
    fairway(root, "verify", "--queries", "*", "--resume")
    text = "REGISTER QUERY north AS SELECT * FROM grid INSIDE (0, 0, 9, 9)"
    fairway(root, "query", "register", "--text", text)
    fairway(root, "run", "grid", "--until-idle")
    checked.clear()
    said = fairway(root, "verify", "--queries", "*")
    assert "north: " in said
    assert "north" in checked


@pytest.mark.parametrize("query", ["west", "gate"])
def test_what_was_told_before_since_is_not_looked_at(root: Path, query: str):
    table = root / "tables" / "changes" / "grid"
    rows = tables.read(table).sort_by([("position", "ascending"), ("seq", "ascending")])
    moved = rows.to_pandas()
    places = moved.index[(moved["query"] == query) & moved["x"].notna()]
    middle = int(moved["position"].iloc[len(moved) // 2])
    first = places[0]
    assert moved.loc[first, "position"] < middle
    moved.loc[first, "x"] += 100
    schema = rows.schema
    tables.replace(
        table,
        pa.Table.from_pandas(moved, schema, preserve_index=False),
        load_contract("changes"),
    )
    assert "WRONG" in fairway(root, "verify", query, code=3)
    said = fairway(root, "verify", query, "--since", str(middle))
    assert "holds" in said


def test_of_a_whole_run_since_bounds_the_log_too(root: Path):
    said = fairway(root, "verify", "--since", "20.0")
    assert "WRONG" not in said
    (log,) = [line for line in said.splitlines() if line.startswith("grid: log:")]
    assert "11 segments" in log
    assert "segments before 20" in log
