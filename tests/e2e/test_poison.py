"""One query that cannot be judged never stops a stream: registered, run and dropped as a user does it (SPEC S3)."""

import errno
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.cli import app
from st_common.config.home import Home
from st_common.layers.stored import INDEXES
from st_common.log.log import Log
from st_common.operations.alerts import Alert, read_alerts
from st_common.operators.expressions.filters import FILTERS
from tests.kit.log_writer import bare_log

CONF = """
[streams.taxis]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { state = "string", n = "long" }
"""
LEAST = -(2**63)
GOOD = "REGISTER QUERY good AS SELECT * FROM taxis INSIDE (0, 0, 10, 10) WHERE n < 5;"
FIRST = b"id,t,x,y,state,n\n1,1,5,5,1,1\n2,1,5,5,2,2\n"
LATER = f"id,t,x,y,state,n\nabc,2,5,5,free,{LEAST}\n1,3,5,5,,1\n3,4,5,5,1,{2**63 - 1}\n".encode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF, encoding="utf-8")
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path)


def fairway(*args: str, code: int = 0):
    done = CliRunner().invoke(app, list(args), prog_name="fairway")
    assert done.exit_code == code, f"{args}: {done.output}{done.stderr}"
    return done


def answers(home: Home, query: str) -> list[str]:
    return answer(home, query)["object"].to_pylist()


def errors_of(home: Home) -> list[Alert]:
    return [alert for alert in read_alerts(home) if alert.level == "error"]


def append(home: Home, payload: bytes, at: int) -> None:
    bare_log(home.log("taxis")).append(payload, arrival_us=at * 1_000_000)


@pytest.mark.spec("S3")
@pytest.mark.parametrize(
    ("where", "members"),
    [
        ("n*10 IN (10,20)", ["1", "2"]),
        ("CAST(object AS INT) IN (1,2)", ["1", "2"]),
        ("ABS(n) IN (1,2)", ["1", "2"]),
        ("CAST(state AS INT) IN (1,2)", ["2", "3"]),
        ("n*10 = 10 AND CAST(object AS INT) BETWEEN 1 AND 2", ["1"]),
    ],
)
def test_a_condition_that_has_no_value_for_a_fix_is_not_true_for_it_and_nothing_stops(
    home, where, members
):
    fairway(
        "query",
        "register",
        "--text",
        f"{GOOD} REGISTER QUERY bad AS SELECT * FROM taxis WHERE {where};",
    )
    append(home, FIRST, 2)
    fairway("run", "taxis", "--until-idle")
    append(home, LATER, 5)
    fairway("run", "taxis", "--until-idle")
    assert sorted(answers(home, "bad")) == members
    assert sorted(answers(home, "good")) == ["1", "2", "abc"]
    fairway("query", "drop", "bad")
    fairway("run", "taxis", "--until-idle")
    told = stream_changes(home, "taxis", "bad").to_pylist()
    assert [(row["object"], row["cause"]) for row in told[-len(members) :]] == [
        (name, "dropped") for name in members
    ]


def settings_with(home: Home, attributes: str) -> None:
    text = CONF.replace('{ state = "string", n = "long" }', attributes)
    (home.root / "conf" / "streams.toml").write_text(text, encoding="utf-8")


@pytest.mark.spec("S3")
def test_a_query_that_cannot_be_judged_any_more_fails_alone_and_can_be_replaced(home):
    bad = "REGISTER QUERY bad AS SELECT * FROM taxis WHERE state = '1';"
    fairway("query", "register", "--text", f"{GOOD} {bad}")
    append(home, FIRST, 2)
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "bad") == ["1"]
    settings_with(home, '{ n = "long" }')
    (home.root / "later.csv").write_bytes(b"id,t,x,y,n\nabc,2,5,5,1\n")
    fairway("replay", "taxis", "later.csv")
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "bad") == []
    assert sorted(answers(home, "good")) == ["1", "2", "abc"]
    (last,) = [
        row
        for row in stream_changes(home, "taxis", "bad").to_pylist()
        if row["cause"] == "failed"
    ]
    assert (last["object"], last["sign"]) == ("1", -1)
    listed = fairway("query", "list")
    assert [line.split()[:5] for line in listed.stdout.splitlines()[1:]] == [
        ["bad", "1", "taxis", "root", "failed"],
        ["good", "1", "taxis", "root", "registered"],
    ]
    assert "query bad failed: state = '1' cannot be evaluated" in listed.stderr
    assert "state" in fairway("query", "show", "bad").stdout.splitlines()[-1]
    (alert,) = errors_of(home)
    assert (alert.stream, alert.level) == ("taxis", "error")
    assert "query bad (version 1) is judged no more: state = '1'" in alert.text
    assert "bad could not be judged any more" in fairway("why", "bad", "1").stdout
    assert "WRONG" not in fairway("verify", "good").stdout
    end = Log(home.log("taxis")).end()
    fairway("run", "taxis", "--until-idle")
    assert Log(home.log("taxis")).end() == end, (
        "what is known already is not said again"
    )
    fairway(
        "query",
        "register",
        "--text",
        "REPLACE QUERY bad AS SELECT * FROM taxis WHERE n = 2;",
    )
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "bad") == ["2"]


class Picky:
    """A filter that somebody wrote: it knows no object `abc`."""

    def filter_fixes(self, fixes, _value):
        if "abc" in fixes.objects().to_pylist():
            raise KeyError("abc")
        return np.ones(len(fixes), bool)

    def filter_pairs(self, fixes, _features, value):
        return self.filter_fixes(fixes, value)


@pytest.mark.spec("S3", "B11")
def test_a_filter_that_raises_suspends_its_query_and_the_rows_that_it_can_judge_are_right_until_then(
    home, monkeypatch
):
    monkeypatch.setitem(FILTERS, "wkt", Picky())
    bad = (
        "REGISTER QUERY bad AS SELECT * FROM taxis USING filter('wkt', 'POINT (1 1)');"
    )
    fairway("query", "register", "--text", f"{GOOD} {bad}")
    append(home, FIRST, 2)
    append(home, LATER, 5)
    fairway("run", "taxis", "--until-idle")
    told = stream_changes(home, "taxis", "bad").to_pylist()
    assert [(row["object"], row["cause"]) for row in told] == [
        ("1", "enter"),
        ("2", "enter"),
        ("3", "enter"),
        ("1", "failed"),
        ("2", "failed"),
        ("3", "failed"),
    ]
    assert sorted(answers(home, "good")) == ["1", "2", "abc"]
    assert (
        "filter wkt with 'POINT (1 1)' fails: KeyError: 'abc'"
        in fairway("query", "list").stderr
    )


FEATURES = """{"type": "FeatureCollection", "features": [
{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [5, 5]}}]}"""
JOINED = "REGISTER QUERY bad AS SELECT * FROM taxis JOIN stops ON ST_DWithin(taxis, stops, 3 m);"


def with_a_layer(home: Home, *appended: bytes) -> list[Path]:
    """A home with a layer that two queries do not share, and fixes; gives the files of the layer."""
    source = home.root / "stops.geojson"
    source.write_text(FEATURES, encoding="utf-8")
    shutil.copy(Path(__file__).parents[2] / "conf" / "layers.toml", home.root / "conf")
    fairway("layer", "load", "stops", str(source), "--crs", "planar")
    fairway("query", "register", "--text", f"{GOOD} {JOINED}")
    for number, payload in enumerate(appended):
        append(home, payload, 2 + number)
    return sorted(home.table("layers", "stops").rglob("*.parquet"))


@pytest.mark.spec("S3", "X4")
def test_a_layer_that_is_damaged_suspends_the_queries_that_join_it(home):
    for file in with_a_layer(home, FIRST, LATER):
        file.write_bytes(file.read_bytes()[:100])
    INDEXES.clear()  # as in a new process
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "bad") == []
    assert sorted(answers(home, "good")) == ["1", "2", "abc"]
    assert "version 1 of layer stops cannot be read" in fairway("query", "list").stderr


@pytest.mark.spec("S3", "X6")
def test_a_layer_that_cannot_be_read_just_now_stops_the_stream_and_nothing_is_made_permanent(
    home, monkeypatch
):
    with_a_layer(home, FIRST)
    INDEXES.clear()  # as in a new process

    def refused(*args, **options):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("st_common.layers.stored.tables.read", refused)
        fairway("run", "taxis", "--until-idle", code=75)
    fairway("run", "taxis", "--until-idle")
    assert sorted(answers(home, "bad")) == ["1", "2"]
    assert errors_of(home) == []
