"""CREATE OR REPLACE AREA: queries that name an area go over to its new region, and tell who leaves and comes by it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.checks.verify import verify
from st_common.checks.why import why
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.errors import LogError
from st_common.log.log import Log
from st_common.query import commit
from st_common.query.area_store import HomeAreas, areas
from st_common.query.fence import Debounce, Fence
from st_common.query.lookup import history, queries, version_of
from st_common.query.plan import Plan
from st_common.query.problem import TextError
from st_common.query.registry import carry_out, drop, suspend
from st_common.query.text import parse
from st_common.regions.registry import Area, Box, MovingCircle
from tests.kit.by_hand import fix, log, register
from tests.kit.log_writer import bare_log
from tests.kit.telling import by_both

T0 = round(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp())
STREAMS = {
    name: StreamSettings(
        name=name,
        format="csv",
        columns=Columns(object="id", event_ts="t", x="x", y="y"),
        crs="planar",
        time_unit="s",
        max_ahead_s=None,
        engine="local",
    )
    for name in ("taxis", "ships")
}
pytestmark = pytest.mark.spec("X4", "P4")

OLD, NEW = (
    Box(minx=0, miny=0, maxx=10, maxy=10),
    Box(minx=5, miny=0, maxx=15, maxy=10),
)
FIRST = "CREATE AREA Depot AS (0, 0, 10, 10)"
THEN = "CREATE OR REPLACE AREA depot AS (5, 0, 15, 10)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def do(home: Home, text: str):
    said = parse(text, areas=HomeAreas(home))
    return carry_out(home, STREAMS, said, owner="ada", now_us=7)


def insides(home: Home) -> dict[str, object]:
    return {row.name: row.plan.inside for row in queries(home) if row.plan}


def test_queries_that_name_an_area_follow_in_their_version(home: Home):
    do(home, f"{FIRST}; REGISTER QUERY a AS SELECT * FROM taxis INSIDE DEPOT")
    do(home, "REGISTER QUERY b AS SELECT * FROM ships INSIDE depot DETECT ENTER")
    do(home, "REGISTER QUERY c AS SELECT * FROM taxis INSIDE (0, 0, 10, 10)")
    done = do(home, THEN)
    assert [(row.op, row.name, row.version) for row in done.rows] == [
        ("follow", "a", 1),
        ("follow", "b", 1),
    ]
    assert (done.created, done.replaced) == ((), ("Depot",))
    assert insides(home) == {"a": NEW, "b": NEW, "c": OLD}
    assert [(one.name, one.region) for one in areas(home)] == [("Depot", NEW)]
    assert version_of(home, "a", 1).plan.inside == NEW
    assert [row.op for row in history(home, "a")] == ["register", "follow"]
    do(home, "REPLACE QUERY a AS SELECT * FROM taxis INSIDE depot KNN (1, 0, 0)")
    assert [row.version for row in queries(home)] == [2, 1, 1]


def test_an_area_that_is_new_or_stays_as_it_is_changes_no_query(home: Home):
    assert do(home, FIRST.replace("CREATE", "CREATE OR REPLACE")).rows == ()
    do(home, "REGISTER QUERY a AS SELECT * FROM taxis INSIDE depot")
    assert do(home, "CREATE OR REPLACE AREA depot AS (10, 10, 0, 0)").rows == ()


@pytest.mark.spec("X12")
def test_who_has_a_frozen_area_does_not_follow(home: Home):
    frozen = "REGISTER QUERY a AS SELECT * FROM taxis INSIDE FROZEN DEPOT"
    do(home, f"{FIRST}; {frozen}; CREATE AREA frozen AS (1, 1, 2, 2)")
    do(home, "REGISTER QUERY b AS SELECT * FROM taxis INSIDE (depot AND NOT frozen)")
    do(home, "REGISTER QUERY c AS SELECT * FROM taxis INSIDE frozen")
    done = do(home, f"{THEN}; CREATE OR REPLACE AREA Frozen AS (3, 3, 4, 4)")
    assert {row.name for row in done.rows} == {"b", "c"}
    assert insides(home)["a"] == OLD
    with pytest.raises(TextError, match="unknown area 'depo'"):
        do(home, "REGISTER QUERY d AS SELECT * FROM taxis INSIDE FROZEN depo")


def test_a_frozen_area_goes_with_no_layer():
    class Known:
        def named(self, _name: str):
            return Area(wkt="POLYGON ((0 0, 0 1, 1 1, 0 0))", layer="parks", fid="p1")

    (said,) = parse(
        "REGISTER QUERY a AS SELECT * FROM s INSIDE FROZEN p", areas=Known()
    )
    assert (said.plan.inside.layer, said.plan.inside.fid) == (None, None)
    assert said.areas == ()


def test_who_has_the_region_of_a_dropped_area_keeps_it(home: Home):
    do(home, f"{FIRST}; REGISTER QUERY a AS SELECT * FROM taxis INSIDE depot")
    do(home, "DROP AREA depot; CREATE AREA depot AS (1, 1, 2, 2)")
    assert do(home, THEN).rows == ()
    assert insides(home) == {"a": OLD}


def test_dropped_and_failed_queries_do_not_follow(home: Home):
    do(home, f"{FIRST}; REGISTER QUERY a AS SELECT * FROM taxis INSIDE depot")
    do(home, "REGISTER QUERY b AS SELECT * FROM taxis INSIDE depot")
    drop(home, "a")
    suspend(home, [("b", 1, "it raises")])
    assert do(home, THEN).rows == ()


def test_a_query_that_follows_after_a_failure_row_of_its_version_stays_failed(
    home: Home,
):
    do(home, f"{FIRST}; REGISTER QUERY b AS SELECT * FROM taxis INSIDE depot")
    do(home, THEN)
    suspend(home, [("b", 1, "it raises")])
    assert [(row.state, row.plan.inside) for row in queries(home)] == [("failed", NEW)]


@pytest.mark.parametrize(
    ("query", "area"),
    [
        ("SELECT * FROM taxis [RANGE BY depot RATTR SPACE]", "(5, 0, 15, 10)"),
        (
            "SELECT * FROM taxis INSIDE depot EMIT CHANGES WITH VALID UNTIL",
            "(5, 0, 15, 10)",
        ),
        ("SELECT * FROM taxis INSIDE depot", "('M', 'car7', 500 m)"),
    ],
)
def test_what_cannot_go_on_over_another_region_begins_anew(
    home: Home, query: str, area: str
):
    do(home, f"{FIRST}; REGISTER QUERY a AS {query}")
    done = do(home, f"CREATE OR REPLACE AREA depot AS {area}")
    assert [(row.op, row.version) for row in done.rows] == [("replace", 2)]
    plan = queries(home)[0].plan
    region = plan.inside if plan.frame is None else plan.frame.regions[0]
    assert region == (
        NEW if "5, 0" in area else MovingCircle(focal="car7", radius_m=500)
    )


def test_a_region_that_a_query_cannot_have_is_refused_and_nothing_changes(home: Home):
    do(
        home,
        f"{FIRST}; REGISTER QUERY a AS SELECT * FROM taxis INSIDE depot WINDOW 5 s",
    )
    do(home, "REGISTER QUERY b AS SELECT * FROM taxis INSIDE depot")
    with pytest.raises(TextError, match="query 'a' cannot follow: WINDOW"):
        do(home, "CREATE OR REPLACE AREA depot AS ('M', 'car7', 500 m)")
    assert insides(home) == {"a": OLD, "b": OLD}
    assert [one.region for one in areas(home)] == [OLD]


@pytest.mark.spec("X12")
def test_a_part_of_and_or_not_follows_its_area_and_the_rest_stays(home: Home):
    areas = f"{FIRST}; CREATE AREA shed AS (4, 4, 6, 6); CREATE AREA yard AS (depot AND NOT shed)"
    do(home, f"{areas}; REGISTER QUERY a AS SELECT * FROM taxis NOT INSIDE yard")
    asked = "INSIDE (CIRCLE (1, 2, 3 m) OR (depot AND NOT shed))"
    do(home, f"REGISTER QUERY b AS SELECT * FROM taxis {asked} DETECT ENTER")
    before = insides(home)
    assert [(row.op, row.name) for row in do(home, THEN).rows] == [("follow", "b")]
    after = insides(home)
    assert after["a"] == before["a"]  # yard has the region that depot had
    (said,) = parse(
        "REGISTER QUERY b AS SELECT * FROM taxis"
        " INSIDE (CIRCLE (1, 2, 3 m) OR ((5, 0, 15, 10) AND NOT (4, 4, 6, 6)))"
    )
    assert after["b"] == said.plan.inside


@pytest.mark.spec("X12")
def test_what_a_fence_excludes_is_refused(home: Home):
    option = "DETECT EXIT WITH (hysteresis = 5 m)"
    do(
        home,
        f"{FIRST}; REGISTER QUERY a AS SELECT * FROM taxis INSIDE depot {option}",
    )
    before = insides(home)
    says = "query 'a' cannot follow: .*hysteresis and AND"
    with pytest.raises(TextError, match=says):
        do(home, "CREATE OR REPLACE AREA depot AS (NOT (0, 0, 1, 1))")
    assert insides(home) == before


@pytest.mark.spec("X12")
def test_a_part_that_goes_with_an_object_from_now_on_begins_the_query_anew(home: Home):
    region = "(depot AND NOT (0, 0, 1, 1))"
    do(home, f"{FIRST}; REGISTER QUERY a AS SELECT * FROM taxis INSIDE {region}")
    moves = do(home, "CREATE OR REPLACE AREA depot AS ('M', 'car7', 500 m)")
    assert [(row.op, row.version) for row in moves.rows] == [("replace", 2)]
    assert insides(home)["a"].focals == ("car7",)
    on = do(home, "CREATE OR REPLACE AREA depot AS ('M', 'car8', 500 m)")
    assert [(row.op, row.version) for row in on.rows] == [("follow", 2)]
    assert insides(home)["a"].focals == ("car8",)
    back = do(home, "CREATE OR REPLACE AREA depot AS (5, 5, 6, 6)")
    assert [(row.op, row.version) for row in back.rows] == [("replace", 3)]


def test_statements_of_one_text_follow_each_other(home: Home):
    asked = "REGISTER QUERY a AS SELECT * FROM taxis INSIDE depot"
    done = do(home, f"{FIRST}; {asked}; {THEN}; {asked.replace(' a ', ' b ')}")
    assert [row.op for row in done.rows] == ["register", "follow", "register"]
    assert insides(home) == {"a": NEW, "b": NEW}


@pytest.mark.parametrize("number", [1, 2])
def test_a_writer_that_dies_half_way_leaves_all_or_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int
):
    do(home, f"{FIRST}; REGISTER QUERY a AS SELECT * FROM taxis INSIDE depot")
    do(home, "REGISTER QUERY b AS SELECT * FROM ships INSIDE depot")
    calls, real = 0, Log.append

    def append(self: Log, payload: bytes, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return real(self, payload, **options)

    with monkeypatch.context() as dying:
        dying.setattr(Log, "append", append)
        with pytest.raises(KeyboardInterrupt):
            do(home, THEN)
    assert [one.region for one in areas(home)] == [NEW]
    assert insides(home) == {"a": NEW, "b": NEW}
    assert not commit.unfinished(home)


def at(*rows: tuple[str, int, float]) -> bytes:
    lines = [f"{name},{T0 + second},{x},5" for name, second, x in rows]
    return "\n".join(["id,t,x,y", *lines]).encode()


@pytest.fixture
def judged(home: Home) -> Home:
    """Cars at 3, 7 and 13 when the area goes from 0 .. 10 to 5 .. 15; then the one at 13 goes to 20."""
    do(home, FIRST)
    do(
        home,
        "REGISTER QUERY now AS SELECT * FROM taxis INSIDE depot;"
        "REGISTER QUERY many AS SELECT COUNT(*) FROM taxis INSIDE depot;"
        "REGISTER QUERY lately AS SELECT * FROM taxis INSIDE depot WINDOW 1 hour;"
        "REGISTER QUERY near AS SELECT * FROM taxis INSIDE depot KNN (2, 0, 5);"
        "REGISTER QUERY part AS SELECT * FROM taxis INSIDE (depot AND NOT (6, 0, 8, 10));"
        "REGISTER QUERY off AS SELECT * FROM taxis NOT INSIDE depot;"
        "REGISTER QUERY gate AS SELECT * FROM taxis INSIDE depot DETECT ENTER, EXIT, DWELL 8 s",
    )
    engine = LocalEngine(home, STREAMS["taxis"])
    log = bare_log(home.log("taxis"))
    log.append(at(("c3", 0, 3), ("c7", 1, 7), ("c13", 2, 13)), arrival_us=0)
    while engine.batch():
        pass
    do(home, THEN)
    log.append(at(("c13", 6, 20), ("c3", 12, 3)), arrival_us=0)
    while engine.batch():
        pass
    engine.close()
    archive = Archive(home, STREAMS["taxis"])
    while archive.batch():
        pass
    return home


def lines(home: Home, query: str) -> list[str]:
    signs = {1: "+", -1: "-", 0: "0"}
    rows = stream_changes(home, "taxis", query).to_pylist()
    return [
        f"{row['event_ts'].second} {signs[row['sign']]}{row['object']} {row['cause']}"
        for row in rows
    ]


@pytest.mark.spec("X3")
def test_who_is_no_longer_in_the_area_leaves_and_who_is_now_comes(judged: Home):
    assert lines(judged, "now") == [
        *("0 +c3 enter", "1 +c7 enter", "2 +c13 area", "2 -c3 area", "6 -c13 leave")
    ]
    assert lines(judged, "gate") == [
        *("0 +c3 enter", "1 +c7 enter", "2 +c13 area", "2 -c3 area", "6 -c13 leave"),
        "9 0c7 dwell",
    ]
    assert "2 -c3 area" in lines(judged, "near")
    assert lines(judged, "part") == [
        *("0 +c3 enter", "2 +c13 area", "2 -c3 area", "6 -c13 leave")
    ]
    assert lines(judged, "off") == [
        *("2 +c13 enter", "2 -c13 area", "2 +c3 area", "6 +c13 enter")
    ]
    for each in verify(judged, STREAMS["taxis"]):
        assert each.holds, each
    assert answer(judged, "now")["object"].to_pylist() == ["c7"]


@pytest.mark.spec("X5")
def test_why_says_that_the_area_is_another_one(judged: Home):
    gone = why(judged, "now", "c3", stream=STREAMS["taxis"])
    assert "the area that version 1 of now names became another region" in gone.sentence
    assert "c3 now does not satisfy it" in gone.sentence
    assert gone.registered.plan.inside == NEW
    before = datetime.fromtimestamp(T0, tz=UTC)
    came = why(judged, "now", "c3", at=before, stream=STREAMS["taxis"])
    assert came.registered.plan.inside == OLD


def followed(plan: Plan, version: int = 1):
    return register("f", plan, op="follow", version=version)


@pytest.mark.spec("X3")
def test_near_to_the_new_region_is_near_only_where_the_condition_holds():
    def fence(region: Box) -> Plan:
        asked = Fence(
            events=("enter", "exit"), hysteresis_m=3, exit_after=Debounce(fixes=9)
        )
        return Plan(stream="cars", inside=region, where="kind = 'taxi'", fence=asked)

    rows = [register("f", fence(OLD))]
    rows += [fix("a", 1, 3, 5, kind="taxi"), fix("b", 1, 3, 5, kind="taxi")]
    rows += [fix("b", 2, 3, 5, kind="bus"), followed(fence(NEW))]
    told = [(one.object, one.sign, one.cause) for one in by_both(log(*rows))]
    assert told == [("a", 1, "enter"), ("b", 1, "enter"), ("b", -1, "area")]


def test_a_row_about_a_version_that_is_no_more_means_nothing():
    old, new = (Plan(stream="cars", inside=region) for region in (OLD, NEW))
    again = register("f", old, op="replace", version=2)
    rows = [register("f", old), fix("a", 1, 3, 5), again, followed(new, version=1)]
    told = [(one.sign, one.cause) for one in by_both(log(*rows))]
    assert told == [(1, "enter"), (-1, "replaced"), (1, "registered")]


def test_two_areas_one_after_the_other_are_told_each_for_itself():
    far = Box(minx=90, miny=0, maxx=99, maxy=10)
    plans = [Plan(stream="cars", inside=region) for region in (OLD, far, OLD)]
    rows = [register("f", plans[0]), fix("a", 1, 3, 5), *map(followed, plans[1:])]
    told = [(one.position, one.sign, one.cause) for one in by_both(log(*rows))]
    assert told == [(1, 1, "enter"), (2, -1, "area"), (3, 1, "area")]


def test_a_row_that_says_more_than_another_area_is_an_error():
    plans = [
        Plan(stream="cars", inside=OLD, where=where)
        for where in (None, "kind = 'taxi'")
    ]
    with pytest.raises(LogError, match="gives query 'f' more than another region"):
        by_both(log(register("f", plans[0]), fix("a", 1, 3, 5), followed(plans[1])))
