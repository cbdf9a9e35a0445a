"""Windows along the way of an object, against contents found by hand: told by brute force, and by the step itself.

A car starts at BASE and has a fix each minute; x is in metres. What is expected are minutes since BASE and metres per
second, written down or by plain arithmetic. Ticks are seconds.
"""

import json
from dataclasses import replace

import pytest
import shapely

from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.plan import Aggregate, LayerJoin, Plan
from st_common.regions.registry import Box
from tests.kit.by_hand import (
    clock,
    drop,
    end,
    fix,
    gone,
    layer,
    lines,
    log,
    register,
)
from tests.kit.laws import run_steps
from tests.kit.oracle import Feature, Rules, time_of
from tests.kit.strategies import Case, Segmentation
from tests.kit.telling import by_brute_force, by_steps

BASE, KM, MIN = 7200, 1000.0, 60.0
SPEED = Aggregate(function="avgspd")


@pytest.fixture(params=(by_brute_force, by_steps), ids=("oracle", "step"))
def tell(request):
    return lambda rows, layers=None, **rules: request.param(
        rows, Rules(**rules), layers
    )


def space(range_km, slide_km=None, **more):
    return framed(
        sliding(("space", range_km * KM), slide_km and ("space", slide_km * KM)), **more
    )


def sliding(wide, slide=None):
    return Sliding(
        range=Extent(by=wide[0], amount=wide[1]),
        slide=slide and Extent(by=slide[0], amount=slide[1]),
    )


def framed(*windows, regions=(), full=False, min_step_m=0.0, origin_s=0.0, **more):
    frame = Frame(
        sliding=windows,
        regions=regions,
        full=full,
        min_step_m=min_step_m,
        origin_s=origin_s,
    )
    return Plan(stream="s", frame=frame, **more)


def at(name, minute, x, **attributes):
    return fix(name, BASE + minute * MIN, x, **attributes)


def slowing(minute):
    """60 km/h for the first 40 km, then 30 km/h: at 80 km after two hours."""
    return minute * KM if minute <= 40 else 40 * KM + (minute - 40) * KM / 2


def trip(way, minutes, plan, name="car"):
    return log(
        register("q", plan),
        *(at(name, minute, way(minute)) for minute in range(minutes + 1)),
        end(),
    )


def minute_of(event_us):
    return (event_us / 1e6 - BASE) / MIN


def contents(found, name="car"):
    """The minutes of the rows of an object after each tick at which they changed, as first..last and how many."""
    held, out = set(), {}
    for change in found:
        if change.sign and change.object == name:
            assert change.fix_us == time_of(change.partner)
            (held.add if change.sign > 0 else held.remove)(minute_of(change.fix_us))
            out[minute_of(change.event_us)] = sorted(held)
    return {
        tick: (rows[0], rows[-1], len(rows)) if rows else ()
        for tick, rows in out.items()
    }


def whole(first, last):
    return (first, last, last - first + 1)


def speeds(found, sign=1):
    """What is told of the average speed, in metres per second."""
    return [
        (minute_of(c.event_us), None if c.value is None else round(c.value, 6))
        for c in found
        if c.sign == sign
    ]


@pytest.mark.spec("W4")
def test_a_step_of_exactly_the_least_length_counts(tell):
    found = contents(tell(trip(lambda minute: minute * KM, 5, space(2, min_step_m=KM))))
    assert found[5] == (3, 5, 3)
    found = contents(
        tell(trip(lambda minute: minute * KM, 5, space(2, min_step_m=KM + 1)))
    )
    assert found[5] == (2, 5, 4)


@pytest.mark.spec("W4", "W1")
def test_a_car_at_60_then_30_km_h_the_last_50_km_each_10_km(tell):
    assert contents(tell(trip(slowing, 120, space(50, 10)))) == {
        10: whole(0, 10),
        20: whole(0, 20),
        30: whole(0, 30),
        40: whole(0, 40),
        60: whole(0, 60),  # 0 to 50 km: the fix at 0 is on the bound
        80: whole(10, 80),
        100: whole(20, 100),
        120: whole(30, 120),
    }


@pytest.mark.spec("W4")
def test_the_drawing_in_the_operator_is_what_it_does(tell):
    ways_km = [0, 8, 13, 21, 34]
    rows = tell(trip(lambda minute: ways_km[minute] * KM, 4, space(20, 10)))
    told = {}
    for change in rows:
        fix_name = "abcde"[int(minute_of(change.fix_us))]
        sign = "+" if change.sign > 0 else "-"
        told.setdefault(minute_of(change.event_us), set()).add(sign + fix_name)
    assert told == {2: {"+a", "+b"}, 3: {"+c"}, 4: {"+d", "-a", "-b"}}


@pytest.mark.spec("W4", "W7", "W8", "W6")
def test_its_average_speed_is_the_way_over_the_time_that_it_took(tell):
    found = tell(trip(slowing, 120, space(50, 10, aggregate=SPEED, emit="rstream")))
    assert speeds(found) == [
        (10, 16.666667),
        (60, 13.888889),  # 10 km in 10 minutes; 50 km in 60
        (80, 11.904762),
        (100, 10.416667),
        (120, 9.259259),  # 50 km in 70, 80, 90 minutes
    ]
    assert speeds(found, -1) == [
        (60, 16.666667),
        (80, 13.888889),
        (100, 11.904762),
        (120, 10.416667),
    ]
    assert speeds(found, 0) == [(20, 16.666667), (30, 16.666667), (40, 16.666667)]


@pytest.mark.spec("W5", "W7", "W8")
def test_the_time_window_of_the_first_query_on_the_same_way(tell):
    hour = sliding(("time", 60 * MIN), ("time", 10 * MIN))
    assert contents(tell(trip(slowing, 120, framed(hour)))) == {
        0: whole(0, 0),
        **{ten: whole(max(ten - 60, 0), ten) for ten in range(10, 121, 10)},
    }
    found = tell(trip(slowing, 120, framed(hour, aggregate=SPEED)))
    assert speeds(found) == [
        (0, None),
        (10, 2.777778),
        (20, 5.555556),
        (30, 8.333333),
        (40, 11.111111),  # 10, 20, 30, 40 km in an hour
        (50, 12.5),
        (60, 13.888889),
        (70, 12.5),
        (80, 11.111111),
        (90, 9.722222),  # 45, 50, 45, 40, 35 km
        (100, 8.333333),  # 30 km, and so on to the end
    ]


@pytest.mark.spec("W4")
def test_a_stop_of_an_hour_slides_no_window_and_counts_as_time(tell):
    def stopping(minute):
        return min(minute, 25) * KM + max(minute - 85, 0) * KM

    assert contents(tell(trip(stopping, 120, space(50, 10)))) == {
        10: whole(0, 10),
        20: whole(0, 20),
        90: whole(0, 90),
        100: whole(0, 100),
        110: whole(0, 110),
        120: whole(10, 120),
    }
    assert speeds(tell(trip(stopping, 120, space(50, 10, aggregate=SPEED)))) == [
        (10, 16.666667),
        (90, 5.555556),
        (100, 6.666667),
        (110, 7.575758),  # 30 km in 90 minutes, 40 in 100, 50 in 110
    ]


@pytest.mark.spec("W4")
def test_a_jump_over_several_slides_makes_one_window_the_last(tell):
    def jumping(minute):
        return minute * KM if minute <= 5 else (34 + minute) * KM

    assert contents(tell(trip(jumping, 26, space(50, 10)))) == {
        6: whole(0, 6),
        16: whole(0, 16),
        26: whole(6, 26),  # 40, 50, 60 km
    }
    assert speeds(tell(trip(jumping, 6, space(50, 10, aggregate=SPEED)))) == [
        (6, 111.111111)
    ]  # 40 km in 6 minutes


@pytest.mark.spec("W4")
def test_a_range_that_is_no_multiple_of_its_slide(tell):
    assert contents(tell(trip(lambda minute: minute * KM, 60, space(25, 10)))) == {
        10: whole(0, 10),
        20: whole(0, 20),
        30: whole(5, 30),
        40: whole(15, 40),
        50: whole(25, 50),
        60: whole(35, 60),
    }


@pytest.mark.spec("W4", "W2")
def test_two_cars_have_windows_of_their_own_as_if_each_had_its_own_stream(tell):
    fixes = [at("car", minute, minute * KM) for minute in range(21)]
    fixes += [
        at("van", minute + 0.5, 900 * KM - 2 * KM * minute) for minute in range(11)
    ]
    fixes.sort(key=lambda row: row.event_us)
    found = tell(log(register("q", space(10, 10)), *fixes, end()))
    assert contents(found) == {10: whole(0, 10), 20: whole(10, 20)}
    assert contents(found, "van") == {5.5: (0.5, 5.5, 6), 10.5: (5.5, 10.5, 6)}


@pytest.mark.spec("W4")
def test_a_fix_on_a_bound_is_in_both_windows_and_one_a_micrometre_further_in_one(tell):
    rows = log(
        register("q", space(10, 10)),
        at("car", 0, 0),
        at("car", 1, 10 * KM),
        at("car", 2, 20 * KM),
        at("van", 2, 0),
        at("van", 3, 10_000.000001),
        at("van", 4, 20 * KM),
        end(),
    )
    found = tell(rows)
    assert contents(found) == {1: (0, 1, 2), 2: (1, 2, 2)}
    assert contents(found, "van") == {3: (2, 2, 1), 4: (3, 4, 2)}


@pytest.mark.spec("W3", "W8", "W6")
def test_the_trajectory_in_a_region_stays_when_the_ship_has_left_it(tell):
    sea = Box(minx=0, miny=-5, maxx=10, maxy=5)
    plan = framed(regions=(sea,), where="object <> 'a'", emit="rstream")
    rows = log(
        register("q", plan),
        fix("o", 1, 5, 0),
        fix("a", 1.5, 5, 0),
        fix("o", 2.5, 10, 5),
        fix("o", 3.5, 11, 0),
        fix("o", 4.5, 7, 0),
        end(),
    )
    found = [
        (
            c.position,
            c.event_us / 1e6,
            c.sign,
            c.object,
            c.fix_us / 1e6,
            json.loads(c.fields),
        )
        for c in tell(rows)
    ]
    one, two, four = (
        (1, {"x": 5, "y": 0}),
        (2.5, {"x": 10, "y": 5}),
        (4.5, {"x": 7, "y": 0}),
    )
    assert found == [
        (2, 1, 1, "o", *one),
        (4, 3, 1, "o", *two),
        (4, 3, 0, "o", *one),  # (5) is outside: nothing is told
        (6, 4.5, 1, "o", *four),
        (6, 4.5, 0, "o", *one),
        (6, 4.5, 0, "o", *two),
    ]


@pytest.mark.spec("W2")
def test_the_last_50_km_every_10_minutes(tell):
    plan = framed(sliding(("space", 50 * KM), ("time", 10 * MIN)))
    assert contents(tell(trip(slowing, 120, plan))) == {
        0: whole(0, 0),
        10: whole(0, 10),
        20: whole(0, 20),
        30: whole(0, 30),
        40: whole(0, 40),
        50: whole(0, 50),
        60: whole(0, 60),
        70: whole(5, 70),
        80: whole(10, 80),
        90: whole(15, 90),
        100: whole(20, 100),
        110: whole(25, 110),
        120: whole(30, 120),  # at 110 minutes it has come 75 km
    }


@pytest.mark.spec("W2")
def test_the_last_hour_every_5_km(tell):
    plan = framed(sliding(("time", 60 * MIN), ("space", 5 * KM)))
    found = tell(trip(slowing, 87, plan))
    assert contents(found) == {
        **{km: whole(0, km) for km in range(5, 41, 5)},
        50: whole(0, 50),
        60: whole(0, 60),
        70: whole(10, 70),
        80: whole(20, 80),
    }
    assert speeds(
        tell(trip(slowing, 87, framed(*plan.frame.sliding, aggregate=SPEED)))
    )[-2:] == [
        (70, 12.5),
        (80, 11.111111),  # 45 and 40 km in the hour of the window
    ]


@pytest.mark.spec("W2")
def test_windows_of_rows_with_a_slide_and_without(tell):
    walk = lambda minute: 7.0 * minute
    assert contents(tell(trip(walk, 4, framed(sliding(("rows", 3)))))) == {
        0: whole(0, 0),
        1: whole(0, 1),
        2: whole(0, 2),
        3: whole(1, 3),
        4: whole(2, 4),
    }
    assert contents(tell(trip(walk, 6, framed(sliding(("rows", 4), ("rows", 2)))))) == {
        1: whole(0, 1),
        3: whole(0, 3),
        5: whole(2, 5),
    }


@pytest.mark.spec("W4", "W5")
def test_without_a_slide_a_window_follows_every_fix_and_time_goes_on_by_itself(tell):
    walk = lambda minute: 100.0 * minute
    assert contents(tell(trip(walk, 4, space(0.2)))) == {
        0: whole(0, 0),
        1: whole(0, 1),
        2: whole(0, 2),
        3: whole(1, 3),
        4: whole(2, 4),
    }
    plan = framed(sliding(("time", 90.0)))
    rows = log(
        register("q", plan),
        at("car", 0, 0),
        at("car", 1, 1),
        clock(BASE + 92),
        clock(BASE + 152),
    )
    assert contents(tell(rows)) == {
        0: (0, 0, 1),
        1: (0, 1, 2),
        91 / 60: (1, 1, 1),
        151 / 60: (),
    }


@pytest.mark.spec("W2")
def test_several_windows_hold_what_is_in_all_of_them(tell):
    plan = framed(
        sliding(("space", 50 * KM), ("space", 10 * KM)),
        sliding(("time", 30 * MIN), ("time", 10 * MIN)),
    )
    assert contents(tell(trip(slowing, 80, plan))) == {
        10: whole(0, 10),
        20: whole(0, 20),
        30: whole(0, 30),
        40: whole(10, 40),
        50: whole(20, 40),  # the last slide of space was at 40 km
        60: whole(30, 60),
        70: whole(40, 60),
        80: whole(50, 80),
    }


@pytest.mark.spec("W4")
def test_jitter_of_a_parked_car_is_no_way_with_a_minimum_step(tell):
    jitter = lambda minute: 3.0 * (minute % 2)
    assert contents(tell(trip(jitter, 4, space(1, 0.006)))) == {
        2: whole(0, 2),
        4: whole(0, 4),
    }
    assert tell(trip(jitter, 4, space(1, 0.006, min_step_m=3.000001))) == []
    assert contents(tell(trip(jitter, 4, space(1, 0.006, min_step_m=3.0)))) == {
        2: whole(0, 2),
        4: whole(0, 4),
    }
    creep = lambda minute: 4.0 * minute
    assert contents(tell(trip(creep, 6, space(1, 0.012, min_step_m=10)))) == {
        3: whole(0, 3),
        6: whole(0, 6),
    }


@pytest.mark.spec("W4", "W5")
def test_only_full_ranges(tell):
    assert contents(tell(trip(slowing, 80, space(50, 10, full=True)))) == {
        60: whole(0, 60),
        80: whole(10, 80),
    }
    hour = sliding(("time", 60 * MIN), ("time", 10 * MIN))
    assert contents(tell(trip(slowing, 70, framed(hour, full=True)))) == {
        60: whole(0, 60),
        70: whole(10, 70),
    }
    rows = sliding(("rows", 4), ("rows", 2))
    assert contents(tell(trip(slowing, 5, framed(rows, full=True)))) == {
        3: whole(0, 3),
        5: whole(2, 5),
    }


@pytest.mark.spec("W5")
def test_windows_of_time_close_also_for_a_car_that_is_silent_and_slide_from_their_origin(
    tell,
):
    plan = framed(
        sliding(("time", 20 * MIN), ("time", 10 * MIN)), origin_s=BASE - 7 * MIN
    )
    rows = [
        register("q", plan),
        at("car", 1, 0),
        at("car", 2, 1),
        at("car", 13, 2),
        clock(BASE + 24 * MIN),
    ]
    found = tell(log(*rows, clock(BASE + 60 * MIN)))
    assert contents(
        found
    ) == {  # slides at 3, 13, 23, 33; at the first fix the slide is behind it
        3: (1, 2, 2),
        13: (1, 13, 3),
        23: (13, 13, 1),
        43: (),
    }
    assert {change.cause for change in found if change.sign < 0} == {"aged"}


@pytest.mark.spec("W4", "X2")
def test_who_is_gone_or_expired_leaves_with_all_rows_and_begins_anew(tell):
    rows = log(
        register(
            "q",
            framed(
                sliding(("rows", 5)), regions=(Box(minx=0, miny=0, maxx=99, maxy=0),)
            ),
        ),
        register("far", space(1, 0.01)),
        fix("a", 1, 0),
        fix("a", 2, 10),
        fix("b", 2.5, 0),
        gone("a", 3),
        fix("b", 4, 10),
        fix("a", 5, 10),
        fix("b", 6, 20),
        clock(20),
    )
    found = tell(rows, silence_us=10_000_000)
    ends = [
        (c.query, c.object, c.event_us / 1e6, c.fix_us / 1e6, c.cause)
        for c in found
        if c.sign < 0
    ]
    assert ends == [
        ("q", "a", 3, 1, "gone"),
        ("q", "a", 3, 2, "gone"),
        ("far", "a", 3, 1, "gone"),
        ("far", "a", 3, 2, "gone"),
        ("q", "a", 15, 5, "expired"),
        ("q", "b", 16, 2.5, "expired"),
        ("q", "b", 16, 4, "expired"),
        ("q", "b", 16, 6, "expired"),
        ("far", "b", 16, 2.5, "expired"),
        ("far", "b", 16, 4, "expired"),
        ("far", "b", 16, 6, "expired"),
    ]
    assert [
        c.fix_us / 1e6
        for c in found
        if c.sign > 0 and (c.query, c.object) == ("q", "a")
    ] == [1, 2, 5]


@pytest.mark.spec("W4", "X4")
def test_ways_count_from_the_registration_and_rows_leave_with_the_query(tell):
    rows = log(
        fix("car", 1, 0),
        fix("car", 2, 95),
        register("q", space(1, 0.01)),
        fix("car", 3, 100),
        fix("car", 4, 109),
        fix("car", 5, 110),
        clock(7),
        drop("q"),
    )
    found = tell(rows)
    told = [
        (c.position, c.sign, c.event_us / 1e6, c.fix_us / 1e6, c.cause) for c in found
    ]
    assert told == [(6, 1, 5, second, "enter") for second in (3, 4, 5)] + [
        (7, -1, 7, second, "dropped") for second in (3, 4, 5)
    ]


@pytest.mark.spec("W4")
def test_the_newest_rows_are_kept_and_what_was_cut_is_counted():
    rows = trip(lambda minute: 10.0 * minute, 5, space(100))
    assert (
        contents(by_brute_force(rows, Rules(window_rows=3)))
        == contents(by_steps(rows, Rules(window_rows=3)))
        == {
            0: whole(0, 0),
            1: whole(0, 1),
            2: whole(0, 2),
            3: whole(1, 3),
            4: whole(2, 4),
            5: whole(3, 5),
        }
    )
    case = Case(rows=tuple(rows), layers={}, rules=Rules(window_rows=3))
    assert run_steps(case, Segmentation(cuts=(), batches=()), shards=3)[1].cut == 3


@pytest.mark.spec("W2", "W7", "G9")
def test_the_average_speed_over_the_last_20_m_of_taxis_that_are_inside_now(tell):
    centre = Box(minx=0, miny=0, maxx=25, maxy=0)
    plan = space(0.02, 0.01, where="kind = 'taxi'", inside=centre, aggregate=SPEED)
    taxi, bus = {"kind": "taxi"}, {"kind": "bus"}
    rows = log(
        register("q", plan),
        fix("t", 1, 0, **taxi),
        fix("b", 1, 0, **bus),
        fix("t", 2, 10, **taxi),
        fix("b", 2, 10, **bus),
        fix("t", 7, 20, **taxi),
        fix("t", 8, 30, **taxi),
        fix("t", 10, 20, **taxi),
        end(),
    )
    assert lines(tell(rows)) == [
        "5 @2 q +t enter =10",  # 10 m in 1 s
        "6 @7 q -t value =10",
        "6 @7 q +t value =3.33333",  # 20 m in 6 s
        "7 @8 q -t leave =3.33333",
        "8 @10 q +t enter =6.66667",  # 30 m out and 10 m back: the last 20 m in 3 s
    ]


@pytest.mark.spec("W2", "G9")
def test_aggregates_count_rows_of_all_objects_in_their_windows(tell):
    plan = framed(
        sliding(("rows", 2)), aggregate=Aggregate(function="count", group="kind")
    )
    total = framed(sliding(("rows", 2)), aggregate=Aggregate(function="count"))
    bus, taxi = {"kind": "bus"}, {"kind": "taxi"}
    rows = log(
        register("q", plan),
        register("all", total),
        fix("a", 1, **bus),
        fix("b", 1, **bus),
        fix("a", 2, **taxi),
        fix("a", 3, **taxi),
        gone("a", 4),
        end(),
    )
    assert lines(tell(rows)) == [
        "4 @1 all +* enter =2",
        "4 @1 q +bus enter =2",
        "5 @2 all -* value =2",
        "5 @2 all +* value =3",
        "5 @2 q +taxi enter =1",
        "6 @3 q -bus value =2",
        "6 @3 q +bus value =1",
        "6 @3 q -taxi value =1",
        "6 @3 q +taxi value =2",
    ]


@pytest.mark.spec("W2", "W5", "X1")
@pytest.mark.parametrize(("every", "at_once"), [(1, 1), (1, 9), (9, 1)])
def test_a_slide_that_passed_before_a_late_fix_is_not_made_up_for_at_it(every, at_once):
    """Slides are at 3.5, 7, .. 28 and 31.5; the fix of 29 comes at tick 30, so the window takes it in at 32."""
    plan = framed(sliding(("rows", 1), ("time", 3.5)), where="object <> 'a'")
    rows = log(
        register("q", plan), fix("b", 1), fix("a", 30), fix("b", 29), fix("a", 40)
    )
    wanted = [(1, 1, "enter", 1), (32, -1, "aged", 1), (32, 1, "enter", 29)]
    for found in (
        by_brute_force(rows, Rules()),
        by_steps(rows, Rules(), every=every, at_once=at_once),
    ):
        assert [
            (c.event_us / 1e6, c.sign, c.cause, c.fix_us / 1e6) for c in found
        ] == wanted


@pytest.mark.spec("W5", "X1")
def test_a_window_becomes_full_at_a_tick_of_its_query_whatever_other_queries_do():
    """Ten seconds lie behind the car at 11, but the query has no tick there: the next is where its first fix is old."""
    rows = [fix("car", 1), fix("car", 10), clock(40)]
    queries = [
        register("q", framed(sliding(("time", 10.0)), full=True)),
        register("other", framed(sliding(("time", 3.0), ("time", 1.0)))),
    ]
    for registered in (queries[:1], queries):
        whole = log(*registered, *rows)
        for found in (
            by_brute_force(whole, Rules()),
            by_steps(whole, Rules(), shards=1),
        ):
            told = [
                (c.event_us / 1e6, c.sign, c.fix_us / 1e6)
                for c in found
                if c.query == "q"
            ]
            assert told == [(12, 1, 10), (21, -1, 10)]


@pytest.mark.spec("W2", "X4")
def test_a_layer_that_is_loaded_anew_says_at_once_who_counts(tell):
    park = Feature("w1", "park", shapely.box(-1.0, -1.0, 3 * KM, 1.0), {})
    road = Feature("w2", "park", shapely.box(100 * KM, 0.0, 101 * KM, 1.0), {})
    joined = {"join": LayerJoin(layer="parks", predicate="intersects")}
    rows = log(
        register("speed", space(50, 1, aggregate=SPEED, **joined), layer_version=0),
        register("fixes", space(50, 1, **joined), layer_version=0),
        *(at("car", minute, minute * KM) for minute in range(3)),
        clock(BASE + 2 * MIN + 1),
        layer("parks", 1),
        layer("parks", 2),
        at("car", 3, 3 * KM),
        end(),
    )
    found = tell(
        rows, layers={("parks", 0): [park], ("parks", 1): [road], ("parks", 2): [park]}
    )
    told = [
        (c.position, c.query, c.sign, c.cause) for c in found if c.position in (6, 7)
    ]
    assert sorted(told) == sorted(
        [
            (at_row, "fixes", sign, "layer")
            for at_row, sign in ((6, -1), (7, 1))
            for _ in range(3)
        ]
        + [(6, "speed", -1, "layer"), (7, "speed", 1, "layer")]
    )
    assert [c.value for c in found if c.query == "speed" and c.position in (6, 7)] == [
        KM / MIN,
        KM / MIN,
    ]


@pytest.mark.spec("W2", "X4")
@pytest.mark.parametrize("wide", [("rows", 3), ("time", 5.0)])
def test_a_layer_that_is_loaded_anew_behind_an_end_mark_says_at_once_who_counts(
    tell, wide
):
    """The end mark cuts the last tick short, so the last fix is in the result though the clock is not past it."""
    park = Feature("w1", "park", shapely.box(-1.0, -1.0, 3.0, 1.0), {})
    road = Feature("w2", "park", shapely.box(100.0, 0.0, 101.0, 1.0), {})
    plan = framed(sliding(wide), join=LayerJoin(layer="parks", predicate="intersects"))
    rows = log(
        register("q", plan, layer_version=0),
        fix("car", 1, 0),
        fix("car", 2.5, 1),
        end(),
        layer("parks", 1),
        layer("parks", 2),
    )
    found = tell(
        rows, layers={("parks", 0): [park], ("parks", 1): [road], ("parks", 2): [park]}
    )
    told = [
        (c.position, c.sign, c.fix_us / 1e6, c.cause)
        for c in found
        if c.cause == "layer"
    ]
    assert told == [
        (at_row, sign, second, "layer")
        for at_row, sign in ((4, -1), (5, 1))
        for second in (1, 2.5)
    ]


@pytest.mark.spec("W3")
def test_a_fix_is_a_row_when_it_is_in_all_regions(tell):
    plan = framed(
        regions=(
            Box(minx=0, miny=0, maxx=10, maxy=9),
            Box(minx=5, miny=0, maxx=20, maxy=9),
        )
    )
    rows = log(
        register("q", plan),
        fix("car", 1, 2),
        fix("car", 2, 7),
        fix("car", 3, 12),
        end(),
    )
    assert [(c.sign, c.fix_us / 1e6) for c in tell(rows)] == [(1, 2)]


@pytest.mark.spec("W2", "P8")
@pytest.mark.parametrize("names", ["abc", "ac"])
def test_a_frame_about_one_object_tells_of_it_alone_also_when_it_never_comes(
    tell, names
):
    last = framed(sliding(("rows", 2)))
    queries = [
        register("b", replace(last, where="object = 'b'")),
        register("all", last),
    ]
    fixes = [fix(name, second) for second in (1, 2, 3) for name in names]
    found = tell(log(*queries, *fixes, end()))
    told = [(c.object, c.sign, c.fix_us / 1e6) for c in found if c.query == "b"]
    assert (
        told
        == [("b", 1, 1), ("b", 1, 2), ("b", -1, 1), ("b", 1, 3)][: 4 * ("b" in names)]
    )
    assert len([c for c in found if c.query == "all"]) == 4 * len(names)


@pytest.mark.spec("W7")
def test_a_speed_is_over_legs_whose_ends_follow_each_other(tell):
    """The fix of 4 is no row, so there is no leg over it."""
    plan = framed(sliding(("rows", 9)), aggregate=SPEED, where="kind = 'taxi'")
    taxi, bus = {"kind": "taxi"}, {"kind": "bus"}
    rows = log(
        register("q", plan),
        fix("car", 3, 0, **taxi),
        fix("car", 4, 5, **bus),
        fix("car", 5, 7, **taxi),
        fix("car", 6, 10, **taxi),
        end(),
    )
    assert [c.value for c in tell(rows) if c.sign >= 0] == [None, 3]


@pytest.mark.spec("W7")
def test_numbers_of_two_objects_that_happen_to_follow_make_no_leg(tell):
    """At 4 the car has the fixes 1 and 2, the van 3 and 4: no way leads from the one to the other."""
    rows = log(
        register("q", framed(sliding(("rows", 2)), aggregate=SPEED)),
        fix("car", 1, 0),
        fix("van", 1, 1000),
        fix("van", 2, 1000),
        fix("van", 3, 1001),
        fix("van", 4, 1003),
        fix("car", 4, 6),
        end(),
    )
    assert {c.object: c.value for c in tell(rows) if c.sign >= 0} == {
        "car": 2,
        "van": 2,
    }


@pytest.mark.spec("W7", "P1")
def test_no_way_leads_over_the_time_in_which_an_object_was_gone():
    rows = log(
        register("q", framed(sliding(("rows", 9)), aggregate=SPEED)),
        fix("car", 1, 0),
        fix("car", 2, 10),
        gone("car", 3),
        fix("car", 4, 500),
        fix("car", 5, 520),
        end(),
    )
    for every in (1, 2, 9):
        for found in (
            by_brute_force(rows, Rules()),
            by_steps(rows, Rules(), every=every, at_once=1),
        ):
            assert speeds(found)[-1][1] == 15  # 10 m and 20 m, each in a second


@pytest.mark.spec("W4")
def test_what_windows_have_left_behind_is_not_counted_as_cut():
    rows = log(
        register("q", framed(sliding(("rows", 1)))),
        *(fix("car", second) for second in range(1, 5)),
        end(),
    )
    case = Case(rows=tuple(rows), layers={}, rules=Rules(window_rows=1))
    assert run_steps(case, Segmentation(cuts=(), batches=()))[1].cut == 0


@pytest.mark.spec("W5", "W8", "X1")
@pytest.mark.parametrize("every", [1, 9])
def test_a_window_that_the_clock_moved_over_the_same_fixes_has_moved_also_for_the_next_batch(
    every,
):
    """It moves at 10 and at 20; at 26 another car reports, and nothing is told again of the first one."""
    plan = framed(sliding(("rows", 3), ("time", 10.0)), emit="rstream")
    rows = log(
        register("q", plan), fix("a", 1), clock(5), clock(25), fix("b", 26), clock(29)
    )
    for found in (
        by_brute_force(rows, Rules()),
        by_steps(rows, Rules(), every=every, at_once=1),
    ):
        assert [(c.event_us / 1e6, c.sign, c.object) for c in found] == [
            (1, 1, "a"),
            (10, 0, "a"),
            (20, 0, "a"),
            (26, 1, "b"),
        ]


@pytest.mark.spec("W2", "G9", "X1")
@pytest.mark.parametrize("every", [1, 9])
def test_fixes_of_an_object_that_counts_again_come_back_also_in_another_batch(every):
    plan = framed(sliding(("rows", 3)), inside=Box(minx=0, miny=0, maxx=5, maxy=5))
    rows = log(
        register("q", plan),
        fix("a", 1, 1),
        fix("a", 2, 9),
        clock(4),
        fix("a", 5, 1),
        clock(7),
    )
    wanted = [(1, 1, 1), (2, -1, 1), (5, 1, 1), (5, 1, 2), (5, 1, 5)]
    cut = Segmentation(
        cuts=tuple(range(every, len(rows), every)), batches=(1,) * len(rows)
    )
    stored, _, _ = run_steps(
        Case(rows=tuple(rows), layers={}, rules=Rules()), cut, through_bytes=True
    )
    assert [row["fix_ts"].timestamp() for row in stored.to_pylist()] == [
        second for _, _, second in wanted
    ]
    for found in (
        by_brute_force(rows, Rules()),
        by_steps(rows, Rules(), every=every, at_once=1),
    ):
        assert [(c.event_us / 1e6, c.sign, c.fix_us / 1e6) for c in found] == wanted


@pytest.mark.spec("W3", "S1")
@pytest.mark.parametrize(("last", "leaves"), [(7.25, False), (7.75, True), (8.0, True)])
def test_a_row_that_is_too_old_when_an_end_mark_comes_leaves_then(tell, last, leaves):
    """The tick that the end mark cuts short is before the next multiple, at which the row would leave else."""
    rows = log(
        register("q", framed(sliding(("time", 1.0)))),
        fix("early", 6.25),
        fix("last", last),
        end(),
    )
    told = [(c.position, c.event_us / 1e6, c.object, c.sign) for c in tell(rows)]
    aged = [(3, last, "early", -1)] * leaves
    assert told == [(2, 7, "early", 1), *aged, (3, last, "last", 1)]


@pytest.mark.spec("W6", "W2")
def test_the_end_of_an_object_tells_anew_what_a_window_without_a_slide_holds(tell):
    rows = log(
        register("q", framed(sliding(("rows", 2)), emit="rstream")),
        fix("o", 1, 0),
        fix("o", 2, 1),
        gone("o", 3),
        end(),
    )
    told = [
        (c.event_us / 1e6, c.sign, time_of(c.partner) / 1e6)
        for c in tell(rows)
        if c.sign >= 0
    ]
    assert told == [(1, 1, 1), (2, 1, 2), (2, 0, 1), (3, 0, 1), (3, 0, 2)]


@pytest.mark.spec("W5")
def test_a_window_that_slides_by_fixes_does_not_move_before_its_fix(tell):
    # The other window slides by time: it catches up to second 8, when the fix behind that is known but not judged.
    plan = framed(
        sliding(("time", 3.0), ("time", 1.0)), sliding(("time", 3.0), ("rows", 2))
    )
    rows = log(
        register("q", plan),
        fix("car", BASE + 4.000002, 4.5),
        fix("car", BASE + 8.000001, 2.5),
        clock(BASE + 9.5),
    )
    found = tell(rows, silence_us=1)
    assert [(one.event_us / 1e6 - BASE, one.cause) for one in found] == [(9, "enter")]
