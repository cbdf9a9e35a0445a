"""What the reference says of ways and of windows along them, against answers found by hand."""

from dataclasses import replace

import numpy as np

from st_common.query.frame import Extent, Frame, Sliding
from st_common.reference.columns import objects
from st_common.reference.metric import Metric
from st_common.reference.sliding import in_windows, newest, standing
from st_common.reference.travelled import Ways, numbers, speeds, ways_um

PLANE = Metric(is_flat=True)
KM = 1_000_000_000
LAST_20_EVERY_10_KM = Sliding(
    range=Extent(by="space", amount=20_000.0), slide=Extent(by="space", amount=10_000.0)
)


def driven(*, new_stays=(), **ways_km):
    """Fixes of objects a minute apart that have come so far, in kilometres."""
    ids = objects([name for name, way in ways_km.items() for _ in way])
    number = numbers(ids)
    begins = (number == 1) | np.isin(np.arange(len(ids)), new_stays)
    return Ways(
        ids=ids,
        event_us=number * 60_000_000,
        tick=number * 60_000_000,
        begins=begins,
        number=number,
        way_um=np.array([km for way in ways_km.values() for km in way]) * KM,
    )


def way_m(ids, x, *, begins=(), min_step_m=0.0, by=PLANE):
    at = np.arange(len(x))
    way = ways_um(
        objects(list(ids)),
        np.array(x, float),
        np.zeros(len(x)),
        np.isin(at, begins),
        min_step_m=min_step_m,
        by=by,
    )
    return [one / 1e6 for one in way.tolist()]


def test_each_object_has_a_way_of_its_own():
    assert way_m("aaabb", [0, 3, 1, 100, 107]) == [0, 3, 5, 0, 7]
    assert way_m("", []) == []


def test_no_way_leads_to_the_first_fix_of_another_stay():
    assert way_m("aaaa", [0, 3, 50, 51], begins=[2]) == [0, 3, 3, 4]


def test_short_steps_add_up_until_one_counts_from_where_the_last_did():
    x = [0, 4, 8, 9, 100, 104, 106]
    assert way_m("aaaabbb", x, min_step_m=6) == [0, 0, 8, 8, 0, 0, 6]
    assert way_m("aaaabbb", x, min_step_m=6, begins=[1]) == [0, 0, 0, 0, 0, 0, 6]


def test_on_degrees_ways_are_geodesics():
    globe = Metric(is_flat=False)
    assert way_m("ab", [179.5, -179.5], by=globe) == [0, 0]
    ((_, way),) = [way_m("aa", [179.5, -179.5], by=globe)]
    assert abs(way - 111_319.491) < 0.001  # a degree of the equator


def test_the_drawing_in_the_module_is_what_it_says():
    ways, ticks = driven(a=[0, 8, 13, 21, 34]), np.empty(0, np.int64)
    frame = Frame(sliding=(LAST_20_EVERY_10_KM,))
    held = in_windows(frame, ways, ticks, doubts=False)
    assert (
        held.sure.tolist() == held.maybe.tolist() == [False] * 2 + [True] * 2 + [False]
    )
    at_13 = ways.take(np.arange(3))
    stands = standing(LAST_20_EVERY_10_KM, frame, at_13, ticks)
    assert (stands.low[0], stands.up[0], stands.last[0]) == (-10 * KM, 10 * KM, 2)


def test_a_fix_that_is_in_a_window_by_a_hair_is_in_doubt_where_ways_are():
    """At 30 km: 10.001 km is inside by a metre, and 29.9 km by a hundred; a ten-thousandth of 30 km is three metres."""
    metres = np.array([0, 10_001, 15_000, 29_900, 30_100])
    ways = replace(driven(a=[0] * 5), way_um=metres * 1_000_000)
    frame = Frame(sliding=(LAST_20_EVERY_10_KM,))
    held = in_windows(frame, ways, np.empty(0, np.int64), doubts=True)
    assert held.sure.tolist() == [False, False, True, True, False]
    assert held.maybe.tolist() == [False, True, True, True, False]


def test_the_newest_of_each_object_are_kept():
    ways = driven(a=[0, 1, 2], b=[0, 1])
    among = np.array([True, False, True, True, True])
    kept = newest(ways, among, 1)
    assert kept.tolist() == [False, False, True, False, True]


def test_a_speed_is_that_of_the_legs_whose_ends_are_both_there():
    ways = driven(new_stays=[3], a=[0, 6, 12, 12, 18], b=[5])
    frame = Frame(sliding=(LAST_20_EVERY_10_KM,))
    assert speeds(frame, ways) == {"a": 100.0, "b": None}  # 18 km in 3 minutes
    without = ways.take(np.array([0, 2, 3]))
    assert speeds(frame, without) == {"a": None}
    assert speeds(frame, ways.take(np.array([], int))) == {}


def test_with_a_window_of_time_a_speed_is_by_its_range():
    frame = Frame(sliding=(Sliding(range=Extent(by="time", amount=600.0)),))
    assert speeds(frame, driven(a=[0, 6, 12])) == {"a": 20.0}
