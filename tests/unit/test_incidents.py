"""Incidents: what starts, goes on and ends, by examples whose answers are found on paper (SPEC X8)."""

import json

import pytest
import shapely

from st_common.query.text import parse
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle import Rules
from tests.kit.oracle_rows import Feature
from tests.kit.strategies import Case, Segmentation

FAST = "SELECT * FROM cars WHERE x > 50"


def asks(text, name="q", **options):
    (statement,) = parse(f"REGISTER QUERY {name} AS {text}")
    return register(name, statement.plan, **options)


def changes(*rows, cuts=None, shards=1, layers=None, restarts=(), **rules):
    """All that is told in its order, the rows in one batch each or cut as told."""
    rows = log(*rows)
    case = Case(rows=tuple(rows), layers=layers or {}, rules=Rules(**rules))
    cuts = tuple(range(1, len(rows))) if cuts is None else cuts
    segmentation = Segmentation(cuts=cuts, batches=())
    found, _, order = run_steps(case, segmentation, restarts=restarts, shards=shards)
    told = sorted(found.to_pylist(), key=lambda row: (row["position"], row["seq"]))
    return [{**row, "position": order[row["position"]]} for row in told]


def play(*rows, **options):
    """The changes as `row @second sign object cause =value`."""
    return [_line(row) for row in changes(*rows, **options)]


def _line(row):
    partner, sign = row["partner"], "-=+"[row["sign"] + 1]
    who = row["object"] + (f"/{partner}" if partner else "")
    at = f"{row['position']} @{row['event_ts'].timestamp():g}"
    return f"{at} {sign}{who} {row['cause']} ={row['value']:g}"


def fields(*rows, **options):
    return [json.loads(row["fields"]) for row in changes(*rows, **options)]


def drive(*speeds, name="a", start=1):
    """A fix each second whose x is the speed."""
    return [fix(name, start + n, float(x), 5.0) for n, x in enumerate(speeds)]


BATCHES = pytest.mark.parametrize("cuts", [None, (), (1, 4, 5)])


@pytest.mark.spec("X8")
@BATCHES
def test_an_incident_begins_with_the_first_fix_and_is_told_by_the_one_that_confirms_it(
    cuts,
):
    rows = [asks(f"{FAST} FOR 2 s"), *drive(10, 60, 60, 60, 60, 20, 60)]
    assert play(*rows, cuts=cuts) == ["4 @4 +a started =2", "6 @6 -a ended =4"]


@pytest.mark.spec("X8")
@BATCHES
def test_what_does_not_hold_for_long_enough_is_none(cuts):
    rows = [asks(f"{FAST} FOR 2 s"), *drive(60, 60, 20, 60, 60, 20)]
    assert play(*rows, cuts=cuts) == []
    assert play(asks(f"{FAST} FOR 3 fixes"), *drive(60, 60, 20, 60, 60)) == []


@pytest.mark.spec("X8")
@BATCHES
def test_until_ends_what_the_condition_began(cuts):
    rows = [asks(f"{FAST} FOR 2 fixes UNTIL x < 40"), *drive(60, 45, 60, 60, 45, 60)]
    rows += drive(45, 30, 60, start=7)
    assert play(*rows, cuts=cuts) == ["4 @4 +a started =1", "8 @8 -a ended =5"]


@pytest.mark.spec("X8")
def test_a_fix_that_begins_and_ends_one_ends_it():
    rows = [asks(f"{FAST} FOR 1 fix UNTIL y > 7"), *drive(60)]
    rows += [fix("a", 2, 70, 9), fix("a", 3, 70, 9), fix("a", 4, 70, 5)]
    assert play(*rows) == [
        "1 @1 +a started =0",
        "2 @2 -a ended =1",
        "4 @4 +a started =0",
    ]


@pytest.mark.spec("X8")
@BATCHES
def test_each_further_fix_or_one_in_each_interval_tells_that_it_goes_on(cuts):
    speeds = drive(60, 60, 60, 60, 60, 60, 20)
    each = play(asks(f"{FAST} FOR 1 s EMIT EVERY"), *speeds, cuts=cuts)
    assert [line.split()[2] for line in each] == ["+a", *["=a"] * 4, "-a"]
    some = play(asks(f"{FAST} FOR 1 s EMIT EVERY 2 s"), *speeds, cuts=cuts)
    assert some == [
        "2 @2 +a started =1",
        "3 @3 =a ongoing =2",
        "5 @5 =a ongoing =4",
        "7 @7 -a ended =6",
    ]


@pytest.mark.spec("X8")
@BATCHES
def test_a_gap_ends_an_incident_at_the_last_fix_before_it(cuts):
    rows = [asks(f"{FAST} FOR 1 s WITH (max_gap = 3 s)"), *drive(60, 60)]
    rows += [*drive(60, name="b", start=7), *drive(60, 60, start=8)]
    assert play(*rows, cuts=cuts) == [
        "2 @2 +a started =1",
        "3 @2 -a gap =1",
        "5 @9 +a started =1",
    ]


@pytest.mark.spec("X8")
def test_a_gap_of_just_that_length_ends_nothing():
    rows = [
        asks(f"{FAST} FOR 4 s WITH (max_gap = 3 s)"),
        *drive(60),
        *drive(60, start=4),
    ]
    rows += drive(60, start=7)
    assert play(*rows) == ["3 @7 +a started =6"]


@pytest.mark.spec("X8")
def test_the_clock_alone_ends_an_incident_by_its_gap():
    rows = [asks(f"{FAST} FOR 1 s WITH (max_gap = 3 s)"), *drive(60, 60), clock(5)]
    assert play(*rows) == ["2 @2 +a started =1"]
    assert play(*rows, clock(5.1))[1:] == ["4 @2 -a gap =1"]


@pytest.mark.spec("X8")
def test_who_is_gone_or_silent_ends_an_incident_with_that_cause():
    rows = [asks(f"{FAST} FOR 1 s"), *drive(60, 60)]
    assert play(*rows, gone("a", 4))[1:] == ["3 @4 -a gone =3"]
    other = fix("b", 9, 0, 0)
    assert play(*rows, other, silence_us=3_000_000)[1:] == ["3 @5 -a expired =4"]


@pytest.mark.spec("X8")
@BATCHES
@pytest.mark.parametrize(
    ("asked", "worst"), [("MAX(y)", [7.0, 9.0]), ("MIN(-y)", [-7.0, -9.0])]
)
def test_the_worst_value_is_that_of_its_own_fixes(cuts, asked, worst):
    rows = [asks(f"SELECT {asked} AS worst FROM cars WHERE x > 50 FOR 1 s UNTIL x < 9")]
    course = [(60, 99), (20, 99), (60, 7), (60, 2), (20, 9), (60, 4), (0, 99), (60, 1)]
    rows += [fix("a", n, *place) for n, place in enumerate(course, start=1)]
    found = fields(*rows, cuts=cuts)
    assert [one["worst"] for one in found] == worst
    assert {one["started"] for one in found} == {"1970-01-01 00:00:03"}


@pytest.mark.spec("X8")
def test_a_value_that_is_null_is_no_worst_one():
    rows = [asks("SELECT MAX(elapsed_s) AS worst FROM cars WHERE x > 50 FOR 2 fixes")]
    found = fields(*rows, *drive(60), *drive(60, 60, 0, start=4))
    assert [one["worst"] for one in found] == [3.0, 3.0]
    rows = [asks("SELECT MAX(elapsed_s) AS worst FROM cars WHERE x > 50 FOR 1 fix")]
    assert fields(*rows, *drive(60))[0]["worst"] is None


@pytest.mark.spec("X8")
@BATCHES
def test_every_row_says_which_incident_it_is_of_and_where_the_object_was(cuts):
    rows = [
        asks("SELECT x * 2 AS twice FROM cars WHERE x > 50 FOR 1 s"),
        *drive(60, 61),
    ]
    started, ended = fields(*rows, *drive(10, start=3), cuts=cuts)
    begun = "1970-01-01 00:00:01"
    assert started == {"twice": 122.0, "x": 61.0, "y": 5.0, "started": begun}
    assert ended == {"twice": 20.0, "x": 10.0, "y": 5.0, "started": begun}


@pytest.mark.spec("X8")
def test_a_region_belongs_to_the_condition_and_not_to_what_ends_it():
    inside = "SELECT * FROM cars INSIDE (0, 0, 100, 10)"
    rows = [*drive(60, 60), fix("a", 3, 60, 20), fix("a", 4, 20, 20)]
    assert play(asks(f"{inside} WHERE x > 50 FOR 1 s"), *rows)[1:] == [
        "3 @3 -a ended =2"
    ]
    until = asks(f"{inside} WHERE x > 50 FOR 1 s UNTIL x < 40")
    assert play(until, *rows)[1:] == ["4 @4 -a ended =3"]
    assert play(asks(f"{inside} FOR 1 s"), *rows)[1:] == ["3 @3 -a ended =2"]


@pytest.mark.spec("X8")
def test_features_of_a_layer_have_incidents_each_for_itself():
    squares = {"left": (0, 60), "right": (50, 100)}
    woods = [
        Feature(fid=fid, kind="forest", geometry=shapely.box(low, 0, high, 10))
        for fid, (low, high) in squares.items()
    ]
    text = "SELECT * FROM cars JOIN woods ON ST_Intersects(cars, woods) FOR 2 s"
    rows = [asks(text, layer_version=0), *drive(10, 55, 55, 70, 70)]
    assert play(*rows, layers={("woods", 0): woods}) == [
        "3 @3 +a/left started =2",
        "4 @4 -a/left ended =3",
        "4 @4 +a/right started =2",
    ]


@pytest.mark.spec("X8")
def test_a_query_knows_no_fix_from_before_it():
    rows = [*drive(60, 60), asks(f"{FAST} FOR 1 s"), *drive(60, 60, start=3)]
    assert play(*rows) == ["4 @4 +a started =1"]


@pytest.mark.spec("X8")
def test_an_incident_ends_with_its_query():
    rows = [asks(f"{FAST} FOR 1 s"), *drive(60, 60)]
    assert play(*rows, drop("q"))[1:] == ["3 @2 -a dropped =1"]
    other = asks(f"{FAST} AND y > 1 FOR 1 s", op="replace", version=2)
    assert play(*rows, other, *drive(60, 60, start=3))[1:] == [
        "3 @2 -a replaced =1",
        "5 @4 +a started =1",
    ]


@pytest.mark.spec("X8")
def test_with_lateness_fixes_count_in_the_order_of_their_times():
    rows = [asks(f"{FAST} FOR 2 s"), fix("a", 1, 60), fix("a", 3, 60), fix("a", 2, 0)]
    assert play(*rows, end(), lateness_us=5_000_000) == []
    assert play(*rows) == ["2 @3 +a started =2"]


@pytest.mark.spec("X8")
def test_fixes_that_are_taken_at_one_row_are_told_in_their_order():
    text = f"{FAST} FOR 1 fix WITH (max_gap = 2 s)"
    rows = [asks(text), fix("a", 1, 60), fix("a", 9, 60), fix("b", 30), end()]
    assert play(*rows, lateness_us=10_000_000) == [
        "3 @1 +a started =0",
        "3 @1 -a gap =0",
        "3 @9 +a started =0",
        "3 @9 -a gap =0",
    ]


@pytest.mark.spec("X8")
@BATCHES
def test_the_example_of_the_page_is_what_is_told(cuts):
    """docs/query-language.md, FOR and UNTIL; a fix's x is its speed."""
    text = "SELECT MAX(x) AS top FROM cars WHERE x > 50 FOR 1 min UNTIL x < 40"
    course = [(0, 55), (30, 45), (60, 52), (90, 61), (120, 58), (180, 45), (240, 66)]
    course += [(330, 51), (360, 38)]
    rows = [asks(f"{text} EMIT EVERY 2 min"), *(fix("a", *one) for one in course)]
    told = changes(*rows, cuts=cuts)
    assert [
        (row["event_ts"].timestamp(), row["cause"], row["sign"], row["value"])
        for row in told
    ] == [
        (120, "started", 1, 60),
        (180, "ongoing", 0, 120),
        (330, "ongoing", 0, 270),
        (360, "ended", -1, 300),
    ]
    worst = [json.loads(row["fields"])["top"] for row in told]
    assert worst == [61, 61, 66, 66]
