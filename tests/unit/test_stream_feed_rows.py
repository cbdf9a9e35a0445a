"""The rows of any query feed another stream: there the answer is the query's, with places, columns, times and ends."""

import json
import random
from pathlib import Path

import pytest

from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.delivery.stream_feed import StreamFeed
from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.log.control import write_end
from st_common.query.area_store import HomeAreas
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
silence_s = 40
attributes = { kind = "string" }

[streams.rows]
format = "ndjson"
columns = { object = "row", event_ts = "event_ts", x = "x", y = "y", gone = "gone" }
crs = "planar"
time_unit = "us"
max_ahead_s = "off"
attributes = { kind = "string", cause = "string"%s }
"""
NEAR = "INSIDE (0, 0, 50, 50)"
QUERIES = {
    "every fix of who is in": f"SELECT x, y, kind FROM cars {NEAR} EMIT EVERY",
    "pairs": "SELECT a.x AS x, a.y AS y, a.kind AS kind FROM cars a JOIN cars b ON ST_DWithin(a, b, 30 m) EMIT EVERY",
    "neighbours": "SELECT x, y, kind FROM cars KNN (2, 25, 25) EMIT EVERY",
    "a window of fixes": "SELECT x, y, kind FROM cars [ROWS 3, SLIDE 2]",
    "groups": f"SELECT kind, COUNT(*) AS n, AVG(x) AS x, AVG(y) AS y, MAX(x) AS top FROM cars {NEAR} GROUP BY kind",
    "groups of a window": "SELECT kind, COUNT(*) AS n, MIN(x) AS x, MAX(y) AS y "
    "FROM cars [RANGE '20 s', SLIDE '5 s'] GROUP BY kind",
    "each object's window": "SELECT object, COUNT(*) AS n, MAX(speed_mps) AS top, LAST(kind) AS kind, "
    "LAST(x) AS x, LAST(y) AS y FROM cars [RANGE '20 s', SLIDE '5 s'] GROUP BY object",
    "the speeds of the windows' paper": "SELECT AVGSPD(R) AS v, LAST(kind) AS kind, LAST(x) AS x, "
    "LAST(y) AS y FROM R = cars [RANGE BY '90 m' RATTR SPACE, SLIDE BY '30 m' SATTR SPACE]",
    "groups of groups": "SELECT kind, COUNT(*) AS n, SUM(px) AS x, AVG(py) AS y "
    "FROM (SELECT x AS px, y AS py, kind FROM cars KNN (3, 0, 0)) r GROUP BY kind",
    "rows of rows": "SELECT * FROM (SELECT x, y, kind FROM cars KNN (5, 0, 0)) r WHERE r.kind = 'bus'",
}


def home_of(tmp_path: Path, attributes: str = "") -> Home:
    """A home whose stream `rows` has these attributes too."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF % attributes)
    return Home(tmp_path)


def carried_out(home: Home, text: str) -> None:
    settings = load_streams(home.root / "conf")
    carry_out(home, settings, parse(text, areas=HomeAreas(home)), owner="me")


def driven(home: Home, fixes: list[str], *, end: bool = False) -> None:
    log = bare_log(home.log("cars"))
    body = "\n".join(("id,t,x,y,kind,gone", *fixes, "")).encode()
    log.append(body, arrival_us=0)
    if end:
        write_end(log, arrival_us=0)


def ran(home: Home, stream: str):
    return run(home, load_streams(home.root / "conf")[stream], until_idle=True)


def fed(home: Home, query: str) -> list[dict]:
    """Feeds what is new, and gives all records that are there."""
    settings = load_streams(home.root / "conf")["rows"]
    StreamFeed(home, query, settings, clock=lambda: 7).run()
    log = bare_log(home.log("rows"))
    lines = (
        line
        for one in log.segments(0)
        if not one.control
        for line in log.read(one).splitlines()
    )
    return [json.loads(line) for line in lines]


def fixes(seed: int) -> list[list[str]]:
    """Two parts of a course of six cars that come near, leave, change their kind and end."""
    chance = random.Random(seed)
    lines = []
    for second in range(50):
        for car in chance.sample("abcdef", 2):
            x, y = chance.randint(0, 80), chance.randint(0, 80)
            kind, gone = chance.choice(("bus", "taxi")), chance.random() < 0.05
            lines.append(f"{car},{second},{x},{y},{kind},{str(gone).lower()}")
    return [lines[:60], lines[60:]]


def rows_of(home: Home, stream: str, query: str, names: list[str]) -> dict[str, list]:
    """The rows that are there by their names, with the values that were told of each last."""
    shown: dict[str, list] = {}
    changes = stream_changes(home, stream).to_pylist()
    changes.sort(key=lambda one: (one["position"], one["seq"]))
    for one in changes:
        name = one["object"]
        if one["partner"] is not None:
            name = json.dumps([name, one["partner"]], separators=(",", ":"))
        if one["query"] == query and one["sign"] < 0:
            del shown[name]
        elif one["query"] == query:
            values = json.loads(one["fields"])
            shown[name] = [values[each] for each in names]
    return shown


@pytest.mark.spec("W6", "X12")
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_answer_on_the_fed_stream_is_that_of_the_query(tmp_path: Path, query: str):
    more = {"n": "long", "top": "double", "v": "double"}
    more = {name: kind for name, kind in more.items() if f"AS {name}" in query}
    home = home_of(tmp_path, "".join(f', {one} = "{more[one]}"' for one in more))
    names = ["x", "y", "kind", *more]
    copy = f"SELECT {', '.join(names)} FROM rows EMIT EVERY"
    carried_out(home, f"REGISTER QUERY q AS {query}; REGISTER QUERY copy AS {copy}")
    sizes = []
    for part in fixes(7):
        driven(home, part)
        ran(home, "cars")
        fed(home, "q")
        summary = ran(home, "rows")
        assert (summary.rejects, summary.double, summary.late) == (0, 0, 0)
        expected = rows_of(home, "cars", "q", names)
        sizes.append(len(expected))
        assert rows_of(home, "rows", "copy", names) == expected
        assert len(answer(home, "q")) == len(answer(home, "copy")) == len(expected)
    assert max(sizes) > 0


@pytest.mark.spec("W6", "X3")
@pytest.mark.parametrize(
    ("query", "causes"),
    [
        (f"{NEAR} DETECT ENTER, EXIT, DWELL 5 s", {"enter", "leave", "gone", "dwell"}),
        (f"{NEAR} FOR 2 s EMIT EVERY", {"started", "ended", "gone", "ongoing"}),
    ],
)
def test_events_are_records_with_their_places(tmp_path: Path, query: str, causes: set):
    home = home_of(tmp_path)
    carried_out(
        home,
        f"REGISTER QUERY q AS SELECT kind FROM cars {query}; "
        "REGISTER QUERY told AS SELECT cause, x, y FROM rows EMIT EVERY",
    )
    for part in fixes(3):
        driven(home, part)
    ran(home, "cars")
    records = fed(home, "q")
    told = stream_changes(home, "cars").to_pylist()
    assert [(one["object"], one["cause"], one["sign"]) for one in records] == [
        (one["object"], one["cause"], one["sign"]) for one in told
    ]
    assert causes <= {one["cause"] for one in records}
    placed = [(one["x"], one["y"]) for one in records]
    assert placed == [
        (fields["x"], fields["y"])
        for fields in (json.loads(one["fields"]) for one in told)
    ]


@pytest.mark.spec("W6")
def test_a_group_without_rows_has_no_place_and_having_leaves_it_out(tmp_path: Path):
    home = home_of(tmp_path, ', n = "long"')
    conf = home.root / "conf" / "streams.toml"
    conf.write_text(conf.read_text().replace('kind = "string", cause', "cause"))
    values = f"SELECT COUNT(*) AS n, AVG(x) AS x, AVG(y) AS y FROM cars {NEAR}"
    carried_out(
        home,
        f"REGISTER QUERY q AS {values}; REGISTER QUERY some AS {values} HAVING n > 0",
    )
    driven(home, ["a,1,5,1,,false", "a,2,70,1,,false", "a,3,6,1,,false"], end=True)
    ran(home, "cars")
    with pytest.raises(QueryError, match=r"has no place.*HAVING"):
        fed(home, "q")
    records = [one for one in fed(home, "some") if one["query"] == "some"]
    assert [(one["event_ts"], one["gone"]) for one in records] == [
        (1_000_000, False),
        (2_000_000, True),
        (3_000_000, False),
    ]


@pytest.mark.spec("W6")
def test_a_new_value_is_one_record_and_of_dstream_the_old_one(tmp_path: Path):
    home = home_of(tmp_path, ', n = "long"')
    values = "kind, COUNT(*) AS n, MAX(x) AS x, MAX(y) AS y"
    carried_out(
        home,
        f"REGISTER QUERY q AS SELECT {values} FROM cars GROUP BY kind; "
        f"REGISTER QUERY old AS SELECT DSTREAM ({values}) FROM cars GROUP BY kind",
    )
    driven(
        home, ["a,1,5,1,bus,false", "b,2,6,1,bus,false", "b,3,6,1,bus,true"], end=True
    )
    ran(home, "cars")
    shown = [(one["n"], one["x"], one["gone"]) for one in fed(home, "q")]
    assert shown == [(1, 5, False), (2, 6, False), (1, 5, False)]
    olds = [one for one in fed(home, "old") if one["query"] == "old"]
    assert [(one["n"], one["x"], one["gone"]) for one in olds] == [
        (1, 5, True),
        (2, 6, True),
    ]


@pytest.mark.spec("W6", "W7", "W8")
@pytest.mark.parametrize(
    ("window", "told"),
    [
        (  # Q1: the way in the window by its whole length
            "[RANGE '4 seconds', SLIDE '2 seconds']",
            [(0, 0, None), (2, 20, 5), (4, 40, 10), (6, 50, 7.5), (8, 60, 5)],
        ),
        (  # Q3: the last 20 m by the time that they took, at each 10 m
            "[RANGE BY '20 m' RATTR SPACE, SLIDE BY '10 m' SATTR SPACE]",
            [
                *((1, 10, 10), (2, 20, 10), (3, 30, 10), (4, 40, 10)),
                *((6, 50, 20 / 3), (8, 60, 5)),
            ],
        ),
    ],
    ids=("Q1", "Q3"),
)
def test_the_average_speeds_of_the_windows_paper_feed_a_stream(
    tmp_path: Path, window: str, told: list
):
    home = home_of(tmp_path, ', v = "double"')
    speeds = "AvgSpd(R) AS v, LAST(R.kind) AS kind, LAST(R.x) AS x, LAST(R.y) AS y"
    carried_out(
        home,
        f"REGISTER QUERY q AS SELECT RStream ({speeds}) FROM R=cars {window} WHERE R.kind=mycar; "
        "REGISTER QUERY slow AS SELECT v FROM rows WHERE v < 8 EMIT EVERY",
    )
    ways = [0, 10, 20, 30, 40, 45, 50, 55, 60]
    driven(
        home,
        [f"a,{second},{x},0,mycar,false" for second, x in enumerate(ways)]
        + [f"b,{second},{3 * x},0,other,false" for second, x in enumerate(ways)],
        end=True,
    )
    ran(home, "cars")
    records = [one for one in fed(home, "q") if one["x"] is not None]
    assert [(one["event_ts"] / 1e6, one["x"], one["v"]) for one in records] == [
        (at, x, None if v is None else pytest.approx(v)) for at, x, v in told
    ]
    ran(home, "rows")
    assert rows_of(home, "rows", "slow", ["v"]) == {"a": [5]}
