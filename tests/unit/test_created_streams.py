"""CREATE STREAM: the rows of a query are a stream by one statement, with its settings, its query and what feeds it."""

import json
from pathlib import Path

import pytest

from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from st_common.delivery.feeders import feed, feeders_of
from st_common.delivery.settings import wanted
from st_common.engine.run import run
from st_common.errors import ConfigError
from st_common.log.control import write_end
from st_common.query.area_store import HomeAreas
from st_common.query.commit import registry_file
from st_common.query.created_streams import FILE, known_streams
from st_common.query.problem import TextError
from st_common.query.registry import carry_out
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
attributes = { kind = "string" }
"""
NEAR = "INSIDE (0, 0, 50, 50)"
FIXES = """id,t,x,y,kind,gone
a,1,5,1,bus,false
b,1,10,1,taxi,false
a,3,25,1,bus,false
b,3,90,1,taxi,false
a,5,45,1,bus,false
b,6,12,1,taxi,false
a,7,70,1,bus,false
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    return Home(tmp_path)


def streams(home: Home):
    return known_streams(home, home.root / "conf")


def carried_out(home: Home, text: str):
    return carry_out(
        home, streams(home), parse(text, areas=HomeAreas(home)), owner="me"
    )


def driven(home: Home) -> None:
    """Runs the cars, and then each created stream on what its query told."""
    log = bare_log(home.log("cars"))
    log.append(FIXES.encode(), arrival_us=0)
    write_end(log, arrival_us=0)
    run(home, streams(home)["cars"], until_idle=True)
    for stream in feeders_of(streams(home)).values():
        feed(home, stream, streams(home), until_idle=True)
        summary = run(home, stream, until_idle=True)
        assert (summary.rejects, summary.late, summary.double) == (0, 0, 0)


def shown(home: Home, stream: str, query: str) -> list[tuple]:
    """The changes of a query in their order: sign, object, what is shown."""
    changes = stream_changes(home, stream).to_pylist()
    mine = [one for one in changes if one["query"] == query]
    mine.sort(key=lambda one: (one["position"], one["seq"]))
    return [(one["sign"], one["object"], json.loads(one["fields"])) for one in mine]


@pytest.mark.spec("W6", "W7", "W8", "X12")
@pytest.mark.parametrize(
    ("window", "rows"),
    [
        (  # Q1: the way by the whole length of a window of time
            "[RANGE '4 seconds', SLIDE '2 seconds']",
            [(5, None), (25, 5), (45, 5)],
        ),
        (  # Q3: the way in the window by the time that it took; at 60 m one fix is in it
            "[RANGE BY '20 m' RATTR SPACE, SLIDE BY '20 m' SATTR SPACE]",
            [(25, 10), (45, 10), (45, None)],
        ),
    ],
)
def test_the_speeds_of_the_windows_paper_feed_a_stream_as_they_are_printed(
    home: Home, window: str, rows: list
):
    carried_out(
        home,
        f"CREATE STREAM v AS SELECT RSTREAM (AVGSPD(R)) FROM R = cars {window} WHERE R.object = 'a'; "
        "REGISTER QUERY copy AS SELECT x, avgspd FROM v EMIT EVERY",
    )
    driven(home)
    told = [row for row in shown(home, "v", "copy") if row[0] >= 0]
    assert [(row["x"], row["avgspd"]) for _, _, row in told] == rows
    assert {name for _, name, _ in told} == {"a"}


@pytest.mark.spec("W6", "X12")
@pytest.mark.parametrize(
    ("select", "ask"),
    [
        (f"SELECT kind FROM cars {NEAR}", "COUNT(*)"),
        (f"SELECT * FROM cars {NEAR} EMIT EVERY", "COUNT(*)"),
        ("SELECT * FROM cars KNN (1, 0, 0)", "COUNT(*)"),
        ("SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 60 m)", "COUNT(*)"),
        ("SELECT object, MAX(x) AS top FROM cars GROUP BY object", "COUNT(top)"),
        ("SELECT object, COUNT(*) FROM cars GROUP BY object", "COUNT(count)"),
        (
            "SELECT kind, COUNT(*) AS n, AVG(x) AS x, AVG(y) AS y FROM cars GROUP BY kind",
            "SUM(n)",
        ),
    ],
)
def test_rows_have_their_place_and_the_stream_has_the_rows_of_the_answer(
    home: Home, select: str, ask: str
):
    carried_out(
        home,
        f"CREATE STREAM rows AS {select}; REGISTER QUERY counted AS SELECT {ask} FROM rows",
    )
    driven(home)
    rows, counted = answer(home, "rows"), answer(home, "counted")
    of_rows = [json.loads(text).get("n", 1) for text in rows["fields"].to_pylist()]
    assert counted["value"].to_pylist() == [sum(of_rows)]
    assert sum(of_rows) > 0


@pytest.mark.spec("W6")
def test_what_has_no_place_or_a_name_that_is_taken_is_refused_where_it_stands(
    home: Home,
):
    carried_out(home, f"CREATE STREAM near AS SELECT * FROM cars {NEAR}")
    carried_out(home, "REGISTER QUERY far AS SELECT * FROM cars")
    before = registry_file(home, FILE).read_bytes()
    wrong = {
        "CREATE STREAM c AS SELECT COUNT(*) FROM cars": (27, "have no place.*AVG"),
        "CREATE STREAM c AS SELECT DISTINCT kind FROM cars": (36, "have no place"),
        "CREATE STREAM c AS SELECT kind || 'x' FROM cars": (27, "name it by AS"),
        "CREATE STREAM c AS SELECT kind AS sign FROM cars": (27, "its_sign"),
        "CREATE STREAM c AS SELECT kind AS segment FROM cars": (27, "AS"),
        "CREATE STREAM near AS SELECT * FROM cars": (15, "'near' exists already"),
        "CREATE STREAM cars AS SELECT * FROM cars": (15, "'cars' exists already"),
        'CREATE STREAM "a b" AS SELECT * FROM cars': (15, "no name for a stream"),
        "CREATE STREAM c AS SELECT * FROM c": (34, "unknown stream 'c'"),
        "REGISTER QUERY q AS SELECT * FROM far": (35, "far is a query; CREATE STREAM"),
        "REGISTER QUERY q AS SELECT * FROM cars c JOIN far f ON ST_DWithin(c, f, 5 m)": (
            47,
            "unknown layer 'far' .far is a query; a query joins layers",
        ),
        "DROP STREAM cars": (13, "stands in the settings"),
        "DROP STREAM nearby": (13, "did you mean near"),
        "REGISTER QUERY q AS SELECT * FROM near; DROP STREAM near": (53, "query 'q'"),
    }
    for text, (column, message) in wrong.items():
        with pytest.raises(TextError, match=message) as caught:
            carried_out(home, text)
        assert caught.value.problems[0].column == column, text
    assert registry_file(home, FILE).read_bytes() == before


@pytest.mark.spec("W6", "S2")
def test_a_stream_that_was_dropped_is_none_and_may_be_made_anew(home: Home):
    made = f"CREATE STREAM IF NOT EXISTS near AS SELECT * FROM cars {NEAR}"
    first = carried_out(home, made)
    assert (first.streams_created, len(first.rows)) == (("near",), 1)
    again = carried_out(home, made)
    assert (again.did_something, len(again.notices)) == (False, 1)
    dropped = carried_out(home, "DROP STREAM near; DROP STREAM IF EXISTS near")
    assert (dropped.streams_dropped, [row.op for row in dropped.rows]) == (
        ("near",),
        ["drop"],
    )
    assert set(streams(home)) == {"cars"}
    other = carried_out(
        home, "CREATE STREAM near AS SELECT * FROM cars KNN (1, 0, 0); DROP STREAM near"
    )
    assert not set(streams(home)) - {"cars"}
    assert [row.version for row in other.rows] == [2, 2]


@pytest.mark.spec("W6", "S1")
def test_what_feeds_a_stream_runs_when_the_stream_does(home: Home):
    conf = home.root / "conf"
    (conf / "streams.toml").write_text(f"{CONF}running = true\n")
    carried_out(home, f"CREATE STREAM near AS SELECT * FROM cars {NEAR}")
    assert wanted(conf, streams(home)) == {"feed-near": True}
    assert streams(home)["near"].running
    (conf / "deliveries.toml").write_text(
        '[deliveries.feed-near]\nstream = "cars"\nto = "file"\npath = "x"\n'
    )
    with pytest.raises(ConfigError, match="called as the one that feeds"):
        wanted(conf, streams(home))


@pytest.mark.spec("W6")
def test_a_stream_of_the_settings_that_is_called_as_a_created_one_is_wrong(home: Home):
    carried_out(home, f"CREATE STREAM near AS SELECT * FROM cars {NEAR}")
    conf = home.root / "conf" / "streams.toml"
    conf.write_text(CONF + CONF.replace("streams.cars", "streams.near"))
    known = streams(home)
    assert set(known) == {"cars"}
    assert "stands in the settings" in str(known.broken["near"])
