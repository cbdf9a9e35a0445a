"""Fences on regions that go with an object: who came near, stayed and left, by examples found on paper."""

from dataclasses import replace

import pytest

from st_common.query.fence import Debounce, Fence
from st_common.query.plan import Plan
from st_common.regions.registry import MovingBox, MovingCircle
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.laws import run_steps, told, told_by_oracle
from tests.kit.oracle import Rules, changes
from tests.kit.strategies import Case, Segmentation

CIRCLE = MovingCircle(focal="t", radius_m=10)
BOX = MovingBox(focal="t", width=20, height=20)


def fence(*events, inside=CIRCLE, where=None, **options):
    plan = Plan(
        stream="cars", inside=inside, where=where, fence=Fence(events=events, **options)
    )
    return register("f", plan)


def play(*rows, restarts=(), shards=1, **rules):
    """What the engine tells, row by row of the log; brute force and one batch for all rows tell the same."""
    case = Case(rows=tuple(log(*rows)), layers={}, rules=Rules(**rules))
    each = tuple(range(1, len(case.rows)))
    found = _told(case, each, restarts, shards)
    assert found == _told(case, (), (), 1)
    by_force = told_by_oracle(changes(case.rows, rules=case.rules))
    assert found == _lines(by_force)
    return found


def _told(case, cuts, restarts, shards):
    segmentation = Segmentation(cuts=cuts, batches=())
    found, _, order = run_steps(case, segmentation, restarts=restarts, shards=shards)
    return _lines(told(found, order))


def _lines(found):
    """Changes as `row @second sign object cause =value`."""
    lines = []
    for change in found:
        at, _, _, _, name, _, sign, cause, event_us, _, value, *_ = change
        text = f"{at} @{event_us / 1e6:g} {'-=+'[sign + 1]}{name} {cause}"
        lines.append(text if value is None else f"{text} ={value:g}")
    return sorted(lines, key=_row_and_time)


def _row_and_time(line):
    row, time, *_ = line.split()
    return int(row), float(time.removeprefix("@"))


def truck(*places, start=1, name="t"):
    """A fix of the focal object each second."""
    return [fix(name, start + n, x, 0.0) for n, x in enumerate(places)]


PARKED = fix("a", 0.5, 0, 0)


@pytest.mark.spec("X3")
@pytest.mark.parametrize("inside", [CIRCLE, BOX])
def test_a_region_that_passes_over_a_parked_car_enters_and_exits_it(inside):
    rows = [fence("enter", "exit", inside=inside), PARKED, *truck(-20, -5, 5, 20, 30)]
    assert play(*rows) == ["4 @2 +a enter", "6 @4 -a leave =2"]


@pytest.mark.spec("X3")
def test_an_object_that_drives_into_the_region_enters_it_too():
    rows = [fence("enter", "exit"), fix("t", 1, 0, 0), fix("a", 2, 30, 0)]
    rows += [fix("a", 3, 5, 0), fix("a", 5, 30, 0), fix("b", 6, 90, 0)]
    assert play(*rows) == ["4 @3 +a enter", "5 @5 -a leave =2"]


@pytest.mark.spec("X3")
def test_one_of_the_two_alone_is_told_without_a_sign():
    rows = [PARKED, *truck(-20, -5, 5, 20, 30)]
    assert play(fence("exit"), *rows) == ["6 @4 =a leave =2"]
    assert play(fence("enter"), *rows) == ["4 @2 =a enter"]


@pytest.mark.spec("X3")
def test_who_stays_in_is_told_at_each_tick_that_judges_it_anew():
    """Not at those of others: `b` is far from both."""
    rows = [fence("inside"), PARKED, *truck(-20, -5)]
    rows += [fix("b", 3.5, 90, 0), fix("t", 4.5, 5, 0), fix("a", 5.5, 1, 0)]
    rows += [fix("b", 7, 90, 0)]
    assert play(*rows) == ["6 @5 =a inside", "7 @6 =a inside"]


@pytest.mark.spec("X3")
@pytest.mark.parametrize("inside", [CIRCLE, BOX])
def test_who_is_near_to_the_region_does_not_leave(inside):
    steady = fence("enter", "exit", inside=inside, hysteresis_m=5.0)
    assert play(steady, PARKED, *truck(-12, 5, 12, 14, 15, 16, 30)) == [
        "4 @2 +a enter",
        "8 @6 -a leave =4",
    ]


@pytest.mark.spec("X3")
def test_a_corner_of_a_rectangle_is_as_far_away_as_it_is():
    """Seen from `t`, `a` is 3 to the side and 4 up from the corner: 5 away."""
    rows = [fix("a", 0.5, 0, 0), *truck(0, 0)]
    away = [fix("t", 3, 13, 14), fix("t", 4, 13, 14.5), fix("t", 5, 40, 0)]
    steady = fence("enter", "exit", inside=BOX, hysteresis_m=5.0)
    assert play(steady, *rows, *away) == ["3 @1 +a enter", "6 @4 -a leave =3"]


@pytest.mark.spec("X3")
def test_a_condition_belongs_to_the_region():
    rows = [fence("enter", "exit", where="free", hysteresis_m=5.0)]
    rows += [fix("a", 0.5, 0, 0, free=True), *truck(0, 12)]
    rows += [fix("a", 3, 0, 0, free=False), fix("t", 5, 0, 0)]
    assert play(*rows) == ["3 @1 +a enter", "5 @3 -a leave =2"]


@pytest.mark.spec("X3")
def test_a_crossing_counts_after_ticks_that_are_long_enough_apart():
    after = {"enter_after": Debounce(seconds=2), "exit_after": Debounce(seconds=1)}
    rows = [PARKED, *truck(5, 20, 5, 5, 5, 20, 20, 20)]
    assert play(fence("enter", "exit", **after), *rows) == [
        "7 @5 +a enter",
        "9 @7 -a leave =2",
    ]


@pytest.mark.spec("X3")
def test_a_visit_dwells_by_the_clock_without_a_fix_of_its_own_once():
    rows = [fence("enter", "exit", "dwell", dwell_s=3), PARKED, *truck(5)]
    rows += [clock(4), clock(4.1), clock(8), *truck(5, 30, 30, start=9)]
    assert play(*rows) == [
        "3 @1 +a enter",
        "4 @4 =a dwell =3",
        "8 @10 -a leave =9",
    ]


@pytest.mark.spec("X3")
def test_dwell_is_told_for_the_first_tick_at_which_the_visit_is_long_enough():
    rows = [fence("dwell", dwell_s=1.5), PARKED, *truck(5), clock(2.9), clock(3.1)]
    assert play(*rows) == ["4 @3 =a dwell =2"]


@pytest.mark.spec("X3")
def test_who_left_in_time_does_not_dwell():
    stays = fence("dwell", dwell_s=3)
    assert play(stays, PARKED, *truck(5, 5, 5, 30, 30)) == []
    assert play(stays, PARKED, *truck(5, 5, 5, 5, 30)) == ["6 @4 =a dwell =3"]


@pytest.mark.spec("X3")
def test_the_end_of_either_object_ends_a_visit_with_its_cause():
    both = fence("enter", "exit")
    entered = "3 @1 +a enter"
    rows = [both, PARKED, *truck(5)]
    late = fix("b", 9, 90, 0)
    assert play(*rows, gone("t", 3), late) == [entered, "4 @3 -a gone =2"]
    assert play(*rows, gone("a", 3), late) == [entered, "4 @3 -a gone =2"]
    assert play(*rows, fix("t", 2.5, 5, 0), late, end(), silence_us=3_000_000) == [
        entered,
        "4 @4 -a expired =3",
    ]


@pytest.mark.spec("X3")
def test_who_is_there_at_registration_is_inside_without_entering():
    rows = [PARKED, *truck(5), fence("enter", "exit", "dwell", dwell_s=2)]
    rows += truck(5, 5, 5, 30, 30, start=2)
    assert play(*rows) == [
        "2 @1 +a registered",
        "5 @3 =a dwell =2",
        "7 @5 -a leave =4",
    ]


@pytest.mark.spec("X3", "X4")
def test_a_fence_in_the_place_of_another_keeps_its_visits():
    fences = [Fence(events=("enter", "exit", "dwell"), dwell_s=4)]
    fences.append(replace(fences[0], hysteresis_m=15.0))
    plans = [Plan(stream="cars", inside=CIRCLE, fence=one) for one in fences]
    again = register("f", plans[1], op="replace", version=2)
    rows = [register("f", plans[0]), PARKED, *truck(5, 5), again, *truck(20, start=3)]
    rows += [*truck(20, 20, 20, 40, 40, start=4), drop("f")]
    assert play(*rows) == [
        "3 @1 +a enter",
        "4 @2 -a replaced =1",
        "4 @2 +a registered",
        "8 @5 =a dwell =4",
        "10 @7 -a leave =6",
    ]


@pytest.mark.spec("X3", "X4")
def test_around_another_object_who_is_no_longer_near_leaves():
    plan = Plan(stream="cars", inside=CIRCLE, fence=Fence(events=("enter", "exit")))
    moved = replace(plan, inside=replace(CIRCLE, focal="u"))
    rows = [register("f", plan), PARKED, fix("b", 0.6, 50, 0), fix("u", 0.7, 50, 0)]
    rows += [*truck(5, 5), register("f", moved, op="follow"), fix("u", 3, 0, 0)]
    assert play(*rows, end()) == [
        "5 @1 +a enter",
        "6 @2 -a area =1",
        "6 @2 +b area",
        "8 @3 +a enter",
        "8 @3 -b leave =1",
        "8 @3 +t enter",
    ]


@pytest.mark.spec("X3", "X6", "P1")
def test_restarts_and_shards_change_nothing():
    rows = [fence("enter", "exit", "dwell", dwell_s=2, hysteresis_m=5.0), PARKED]
    rows += truck(-20, -5, 5, 5, 5, 12, 30, 30)
    alone = play(*rows)
    assert alone == play(*rows, restarts=range(1, 9), shards=3)
    assert len(alone) == 3


@pytest.mark.spec("X3")
def test_two_that_stop_and_go_fire_nothing_with_hysteresis():
    """A convoy whose distance scatters around the border by noise of receivers."""
    scatter = truck(-9, -11, -9.5, -10.4, -9.2, -12, -9, -10.9, -9.8, -9)
    plain = play(fence("enter", "exit"), PARKED, *scatter)
    steady = play(fence("enter", "exit", hysteresis_m=3.0), PARKED, *scatter)
    assert (len(plain), len(steady)) == (9, 1)


@pytest.mark.spec("X3")
def test_the_example_of_the_page_is_what_is_told():
    around = MovingCircle(focal="20000589", radius_m=200)
    asked = {"hysteresis_m": 50.0, "enter_after": Debounce(seconds=10)}
    rows = [fence("enter", "exit", "dwell", inside=around, dwell_s=120, **asked)]
    rows += [fix("20000589", 0, 0, 0), fix("7", 0, 180, 0), fix("7", 5, 150, 0)]
    moves = [fix("20000589", 15, -10, 0), fix("20000589", 60, -90, 0)]
    later = [fix("20000589", 180, -150, 0), clock(181)]
    assert play(*rows, *moves, clock(136), *later) == [
        "5 @15 +7 enter",
        "6 @135 =7 dwell =120",
        "8 @180 -7 leave =165",
    ]
