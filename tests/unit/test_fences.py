"""Geofences: who enters, exits, dwells and crosses, by examples whose answers are found on paper."""

from dataclasses import replace

import pytest
import shapely

from st_common.query.fence import Debounce, Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.regions.registry import Area, Box, Circle, Union
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.laws import run_steps, told
from tests.kit.oracle import Rules
from tests.kit.oracle_rows import Feature
from tests.kit.strategies import Case, Segmentation

BOX = Box(minx=0, miny=0, maxx=10, maxy=10)
ALL = ("enter", "exit", "inside", "outside", "cross")


def fence(*events, inside=BOX, where=None, **options):
    plan = Plan(
        stream="cars",
        inside=inside,
        where=where,
        fence=Fence(events=events, **options),
    )
    return register("f", plan)


def play(*rows, cuts=None, restarts=(), shards=1, **rules):
    """The changes as `row @second sign object cause =value`, the rows in one batch each or cut as told."""
    rows = log(*rows)
    case = Case(rows=tuple(rows), layers={}, rules=Rules(**rules))
    cuts = tuple(range(1, len(rows))) if cuts is None else cuts
    segmentation = Segmentation(cuts=cuts, batches=())
    found, _, order = run_steps(case, segmentation, restarts=restarts, shards=shards)
    changes = []
    for change in told(found, order):
        at, _, _, _, name, _, sign, cause, event_us, _, value, *_ = change
        text = f"{at} @{event_us / 1e6:g} {'-=+'[sign + 1]}{name} {cause}"
        changes.append(text if value is None else f"{text} ={value:g}")
    return sorted(changes, key=_row_and_time)


def _row_and_time(line):
    row, time, *_ = line.split()
    return int(row), float(time.removeprefix("@"))


def drive(*places, name="a", start=1):
    return [fix(name, start + n, x, 5.0) for n, x in enumerate(places)]


@pytest.mark.spec("X3")
def test_an_object_enters_and_exits_and_the_exit_tells_how_long_it_was_inside():
    assert play(fence("enter", "exit"), *drive(-5, 5, 6, 15)) == [
        "2 @2 +a enter",
        "4 @4 -a leave =2",
    ]


@pytest.mark.spec("X3", "X12")
def test_or_of_regions_has_the_borders_of_its_parts():
    """From the box it is 1 to the circle: whoever is between is near to both, and crosses neither by staying."""
    both = Union(parts=(BOX, Circle(x=16, y=5, radius_m=5)))
    told_of = play(
        fence("enter", "exit", "cross", inside=both, hysteresis_m=2.0),
        *drive(-9, 5, 10.5, 20, 22.5, 24, -9),
    )
    assert told_of == ["2 @2 +a enter", "6 @6 -a leave =4", "7 @7 =a cross"]


@pytest.mark.spec("X3")
def test_one_of_the_two_alone_is_told_without_a_sign():
    assert play(fence("exit"), *drive(-5, 5, 15)) == ["3 @3 =a leave =1"]
    assert play(fence("enter"), *drive(-5, 5, 15)) == ["2 @2 =a enter"]


@pytest.mark.spec("X3")
def test_further_fixes_are_told_where_they_are_asked_for():
    assert play(fence(*ALL), *drive(-5, 5, 6, 15, 20)) == [
        "1 @1 =a outside",
        "2 @2 +a enter",
        "3 @3 =a inside",
        "4 @4 -a leave =2",
        "4 @4 =a outside",
        "5 @5 =a outside",
    ]


@pytest.mark.spec("X3")
def test_who_drives_through_between_two_fixes_crosses():
    rows = [fence("enter", "exit", "cross"), *drive(-5, 15, 5, 15, -5)]
    assert play(*rows) == [
        "2 @2 =a cross",
        "3 @3 +a enter",
        "4 @4 -a leave =1",
        "5 @5 =a cross",
    ]
    assert play(fence("cross", max_gap_s=1.0), *drive(-5, 15)) == ["2 @2 =a cross"]
    assert play(fence("cross", max_gap_s=0.5), *drive(-5, 15)) == []


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    "region",
    [
        Circle(x=5, y=5, radius_m=1),
        Area(wkt="POLYGON ((4 4, 6 4, 6 6, 4 6, 4 4))"),
    ],
)
def test_circles_and_polygons_are_crossed_and_passed_by(region):
    past = [fix("b", 1, -5, 7.5), fix("b", 2, 15, 7.5)]
    rows = [fence("cross", inside=region), *drive(-5, 15), *past]
    assert play(*rows) == ["2 @2 =a cross"]


@pytest.mark.spec("X3")
@pytest.mark.parametrize("cuts", [None, ()])
def test_a_crossing_counts_after_enough_fixes_in_a_row(cuts):
    rules = {"enter_after": Debounce(fixes=2), "exit_after": Debounce(fixes=2)}
    rows = [fence("enter", "exit", **rules), *drive(5, 5, 15, 5, 15, 15, 5)]
    assert play(*rows, cuts=cuts) == ["2 @2 +a enter", "6 @6 -a leave =4"]


@pytest.mark.spec("X3")
@pytest.mark.parametrize("cuts", [None, ()])
def test_a_crossing_counts_after_fixes_that_are_long_enough_apart(cuts):
    rules = {"enter_after": Debounce(seconds=2), "exit_after": Debounce(seconds=1)}
    rows = [fence("enter", "exit", **rules), *drive(5, 15, 5, 5, 5, 15, 15)]
    assert play(*rows, cuts=cuts) == ["5 @5 +a enter", "7 @7 -a leave =2"]


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    "region",
    [
        BOX,
        Circle(x=5, y=5, radius_m=5),
        Area(wkt="POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"),
    ],
)
def test_who_is_near_to_the_border_does_not_leave(region):
    rows = [fence("enter", "exit", inside=region, hysteresis_m=3.0)]
    rows += drive(12, 5, 12, 13, 13.5, 12)
    assert play(*rows) == ["2 @2 +a enter", "5 @5 -a leave =3"]


@pytest.mark.spec("X3")
@pytest.mark.parametrize("cuts", [None, ()])
def test_a_visit_dwells_by_the_clock_without_a_fix_of_its_own_once(cuts):
    rows = [fence("enter", "exit", "dwell", dwell_s=3), *drive(5)]
    rows += [fix("b", 4, 50, 50), fix("b", 4.5, 50, 50), fix("b", 9, 50, 50)]
    rows += [fix("a", 9.5, 6, 5), fix("a", 10, 15, 5)]
    assert play(*rows, cuts=cuts) == [
        "1 @1 +a enter",
        "3 @4 =a dwell =3",
        "6 @10 -a leave =9",
    ]


@pytest.mark.spec("X3")
def test_who_left_in_time_does_not_dwell():
    assert play(fence("dwell", dwell_s=3), *drive(5, 5, 15, 15, 15, 15)) == []
    assert play(fence("dwell", dwell_s=3), *drive(5, 5, 5, 15, 15)) == []
    assert play(fence("dwell", dwell_s=3), *drive(5, 5, 5, 5, 15)) == [
        "5 @4 =a dwell =3"
    ]


@pytest.mark.spec("X3")
def test_a_clock_row_makes_it_dwell():
    rows = [fence("dwell", dwell_s=3), *drive(5), clock(4), clock(4.1)]
    assert play(*rows) == ["3 @4 =a dwell =3"]


@pytest.mark.spec("X3")
def test_who_is_gone_or_silent_ends_a_visit_with_that_cause():
    assert play(fence("enter", "exit"), *drive(5), gone("a", 3)) == [
        "1 @1 +a enter",
        "2 @3 -a gone =2",
    ]
    rows = [fence("enter", "exit"), *drive(5), fix("b", 4, 50, 50)]
    assert play(*rows, silence_us=2_000_000) == [
        "1 @1 +a enter",
        "2 @3 -a expired =2",
    ]


@pytest.mark.spec("X3")
def test_who_is_there_at_registration_is_inside_without_entering():
    rows = [*drive(5), fence("enter", "exit", "dwell", dwell_s=2), *drive(5, start=2)]
    rows += [fix("b", 4, 50, 50), *drive(15, start=5)]
    assert play(*rows) == [
        "1 @1 +a registered",
        "3 @3 =a dwell =2",
        "4 @5 -a leave =4",
    ]


@pytest.mark.spec("X3")
def test_a_fence_that_is_dropped_or_replaced_ends_its_visits():
    plan = Plan(stream="cars", inside=BOX, fence=Fence(events=("enter", "exit")))
    again = register("f", plan, op="replace", version=2)
    rows = [fence("enter", "exit"), *drive(5, 5), again, *drive(5, start=3), drop("f")]
    assert play(*rows) == [
        "1 @1 +a enter",
        "3 @2 -a replaced =1",
        "3 @2 +a registered",
        "5 @3 -a dropped =2",
    ]


def replaced(before, after, *rows):
    """What a fence in the place of another tells; both around the same box unless they say where."""
    first, second = (
        Plan(stream="cars", **{"inside": BOX, **one}) for one in (before, after)
    )
    again = register("f", second, op="replace", version=2)
    return play(register("f", first), *rows[0], again, *rows[1])


STEADY = Fence(
    events=("enter", "exit", "dwell"), dwell_s=4, exit_after=Debounce(fixes=2)
)


@pytest.mark.spec("X3", "X4")
def test_a_fence_at_the_same_border_keeps_the_visits_of_the_one_before():
    patient = replace(STEADY, exit_after=Debounce(fixes=3), hysteresis_m=1.0)
    rows = drive(5, 15), [*drive(15, start=3), *drive(15, 15, 15, start=6)]
    assert replaced({"fence": STEADY}, {"fence": patient}, *rows) == [
        "1 @1 +a enter",
        "3 @2 -a replaced =1",
        "3 @2 +a registered",
        "5 @5 =a dwell =4",
        "5 @6 -a leave =5",
    ]


@pytest.mark.spec("X3", "X4")
@pytest.mark.parametrize(
    "after",
    [
        {"fence": replace(STEADY, restart=True)},
        {"fence": replace(STEADY, dwell_s=5)},
        {"fence": STEADY, "where": "x < 99"},
        {"fence": STEADY, "inside": Box(minx=0, miny=0, maxx=10, maxy=11)},
    ],
)
def test_a_fence_begins_anew_at_another_border_or_where_it_says_so(after):
    rows = drive(5, 5), drive(5, start=3)
    found = replaced(
        {"fence": STEADY},
        after,
        *rows,
    )
    assert found == ["1 @1 +a enter", "3 @2 -a replaced =1", "3 @2 +a registered"]
    far = [fix("b", 5.5, 50, 50)]
    told = replaced({"fence": STEADY}, after, rows[0], far)
    assert not [line for line in told if "dwell" in line]
    assert "4 @5 =a dwell =4" in replaced(
        {"fence": STEADY}, {"fence": STEADY}, rows[0], far
    )


@pytest.mark.spec("X3")
def test_a_condition_belongs_to_the_region():
    rows = [fence("enter", "exit", "cross", where="x < 8", hysteresis_m=5.0)]
    rows += drive(5, 9, 5, -1, -6, 20, -6)
    assert play(*rows) == [
        "1 @1 +a enter",
        "2 @2 -a leave =1",
        "3 @3 +a enter",
        "5 @5 -a leave =2",
        "7 @7 =a cross",
    ]


@pytest.mark.spec("X3")
def test_with_lateness_fixes_count_in_the_order_of_their_times():
    rows = [fence("enter", "exit", "dwell", dwell_s=3), fix("a", 1, 5, 5)]
    rows += [fix("a", 5, 5, 5), fix("a", 3, 15, 5), fix("a", 20, 5, 5), end()]
    assert play(*rows, lateness_us=5_000_000) == [
        "4 @1 +a enter",
        "4 @3 -a leave =2",
        "4 @5 +a enter",
        "4 @8 =a dwell =3",
    ]


@pytest.mark.spec("X3")
def test_a_parked_car_whose_fixes_scatter_fires_nothing_with_hysteresis():
    scatter = [9, 11, 9.5, 10.4, 9.2, 12, 9, 10.9, 9.8]
    plain = play(fence("enter", "exit"), *drive(*scatter))
    steady = play(fence("enter", "exit", hysteresis_m=3.0), *drive(*scatter))
    assert (len(plain), len(steady)) == (9, 1)


def feature(fid, wkt):
    return Feature(fid=fid, kind="forest", geometry=shapely.from_wkt(wkt))


@pytest.mark.spec("X3")
def test_features_of_a_layer_are_fences_each_for_itself():
    features = [
        feature("left", "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"),
        feature("right", "POLYGON ((20 0, 30 0, 30 10, 20 10, 20 0))"),
    ]
    join = LayerJoin(layer="woods", predicate="intersects")
    events = Fence(events=("enter", "exit", "cross"), hysteresis_m=2.0)
    plan = Plan(stream="cars", join=join, fence=events)
    start = register("f", plan, layer_version=0)
    rows = log(start, *drive(5, 11, 13, 25, -5, 35))
    case = Case(rows=tuple(rows), layers={("woods", 0): features}, rules=Rules())
    cuts = tuple(range(1, len(rows)))
    found, _, order = run_steps(case, Segmentation(cuts=cuts, batches=()))
    lines = sorted(
        f"{at} {'-=+'[sign + 1]}{partner} {cause}"
        for at, _, _, _, _, partner, sign, cause, *_ in told(found, order)
    )
    assert lines == [
        "1 +left enter",
        "3 -left leave",
        "4 +right enter",
        "5 -right leave",
        "5 =left cross",
        "6 =left cross",
        "6 =right cross",
    ]
