"""Both spaces keep the same laws: how near places are is judged alike by every method, and nothing is overlooked."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.state.settings import Settings

GEOD = Geod(ellps="WGS84")
LONGITUDE = st.one_of(st.floats(-180, 180), st.sampled_from([-180.0, 180.0, 179.999]))
LATITUDE = st.one_of(st.floats(-90, 90), st.sampled_from([-90.0, 90.0, 89.9999, 0.0]))
ON_GLOBE = st.tuples(LONGITUDE, LATITUDE)
NUMBER = st.one_of(st.floats(-1e7, 1e7), st.integers(-5, 5).map(float))
IN_PLANE = st.tuples(NUMBER, NUMBER)
SPACES = [PLANE, GLOBE]


def places(space, *, near=False):
    """Pairs of places; near ones are some metres or units from each other, so that borders lie between them."""
    at = IN_PLANE if space is PLANE else ON_GLOBE
    far = st.tuples(at, at)
    step = 1.0 if space is PLANE else 1e-5
    size = st.tuples(*[st.integers(-300, 300).map(lambda n: n * step)] * 2)
    close = st.tuples(at, size).map(lambda one: (one[0], moved(space, *one)))
    return close if near else st.one_of(far, close)


def moved(space, place, size):
    x, y = place[0] + size[0], place[1] + size[1]
    if space is PLANE:
        return x, y
    return (x + 180) % 360 - 180, min(max(y, -90.0), 90.0)


def arrays(*numbers):
    return tuple(np.array([number]) for number in numbers)


def exact(space, a, b):
    """What the distance is, by who shares no code with it."""
    if space is GLOBE:
        return GEOD.inv(*a, *b)[2]
    way = [Fraction(b[n]) - Fraction(a[n]) for n in (0, 1)]
    return math.sqrt(way[0] ** 2 + way[1] ** 2)


def drawn(data, space, *, near=False):
    a, b = data.draw(places(space, near=near))
    return a, b, arrays(*a, *b)


@pytest.mark.parametrize("space", SPACES)
@given(data=st.data())
def test_distances_and_ranks_are_measured_exactly(space, data):
    a, b, pair = drawn(data, space)
    expected = exact(space, a, b)
    assert space.distance(*pair)[0] == pytest.approx(expected, rel=1e-9, abs=1e-6)
    measured = space.measure(space.rank(*pair))[0]
    assert measured == pytest.approx(expected, rel=1e-9, abs=1e-3)
    about = space.measure(space.rank_about(*pair))[0]
    assert about == pytest.approx(expected, rel=0.005, abs=1e-3)


@pytest.mark.parametrize("space", SPACES)
@given(data=st.data())
def test_ranks_order_places_as_distances_do(space, data):
    a, b, pair = drawn(data, space)
    _, c = data.draw(places(space))
    other = arrays(*a, *c)
    if space.rank(*pair)[0] < space.rank(*other)[0]:
        assert exact(space, a, b) <= exact(space, a, c) * (1 + 1e-12) + 1e-9
    if exact(space, a, b) < exact(space, a, c) * (1 - 1e-9) - 2e-3:
        assert space.rank(*pair)[0] < space.rank(*other)[0]


@pytest.mark.parametrize("space", SPACES)
@given(data=st.data(), share=st.floats(0.9, 1.1))
def test_who_is_within_a_radius_is_so_by_his_distance(space, data, share):
    a, b, pair = drawn(data, space, near=True)
    far = exact(space, a, b)
    radius = far * share
    assume(abs(far - radius) > far * 1e-9 + 1e-6)
    assert space.is_within(*pair, np.array([radius]))[0] == (far <= radius)


@pytest.mark.parametrize("space", SPACES)
@given(data=st.data())
def test_limits_that_are_sure_leave_nobody_out(space, data):
    a, b, pair = drawn(data, space)
    rank, about = space.rank(*pair), space.rank_about(*pair)
    assert space.is_within(*pair, space.radius_of(rank))[0]
    assert about[0] <= space.surely(rank)[0]
    assert about[0] <= space.surely(about)[0]
    chord = np.linalg.norm(space.vectors(*pair[:2]) - space.vectors(*pair[2:]), axis=-1)
    assert rank[0] <= space.rank_of_chord(chord)[0]
    x, y = np.array([[a[0], b[0]]]), np.array([[a[1], b[1]]])
    both = space.squared_chords(x, y)
    assert both.shape == (1, 2, 2)
    assert rank[0] <= space.rank_of_chord(np.sqrt(both))[0, 0, 1]


@pytest.mark.parametrize("space", SPACES)
@given(data=st.data())
def test_a_distance_reaches_everything_within_it(space, data):
    _, b, pair = drawn(data, space)
    far = space.measure(space.rank(*pair)) * space.growth + space.rounding
    across, along = space.reach(pair[1], far)
    way = space.shortest(pair[2] - pair[0])
    assert abs(way[0]) <= across[0]
    assert abs(b[1] - pair[1][0]) <= along[0]
    for limit in (0.0, 5.0):  # one for all
        assert space.reach(np.zeros(3), limit)[0].shape == (3,)


@pytest.mark.parametrize("space", SPACES)
@given(data=st.data())
def test_near_places_are_as_far_as_the_scale_says(space, data):
    a, _, _ = drawn(data, space)
    assume(space is PLANE or abs(a[1]) <= 85)
    b = moved(space, a, (0.003, 0.002))
    x1, y1, x2, y2 = arrays(*a, *b)
    across, along = space.scale(y1)
    flat = np.hypot(space.shortest(x2 - x1) * across, (y2 - y1) * along)
    assert flat[0] == pytest.approx(exact(space, a, b), rel=0.005)


HALF = st.one_of(st.floats(0, 200), st.sampled_from([0.0, 90.0, 180.0]))


@pytest.mark.parametrize("space", SPACES)
@given(data=st.data(), half=HALF)
def test_a_box_goes_on_behind_the_edge_and_holds_nobody_twice(space, data, half):
    a, b, _ = drawn(data, space)
    west, east = arrays(a[0] - half, a[0] + half)
    boxes = np.array([[west[0], -90.0, east[0], 90.0]])
    parts, owner = space.wrap(boxes)
    x = np.array([b[0]])
    holds = ((parts[:, 0] <= x) & (x <= parts[:, 2])).sum()
    assert holds == space.is_between(x, west, east)[0]
    assert owner.tolist() == [0] * len(parts)
    clear = abs(abs(space.shortest(b[0] - a[0])) - half) > 1e-9 * (1 + abs(a[0]))
    if clear:
        assert holds == (abs(space.shortest(b[0] - a[0])) <= half)


@pytest.mark.parametrize(("west", "east", "x"), [(0, 180, -180), (-180, 0, 180)])
def test_a_box_that_ends_at_180_holds_who_is_there_by_the_other_number(west, east, x):
    parts, _ = GLOBE.wrap(np.array([[west, -1.0, east, 1.0]], float))
    assert GLOBE.is_between(*arrays(float(x), float(west), float(east)))[0]
    assert ((parts[:, 0] <= x) & (x <= parts[:, 2])).sum() == 1


@pytest.mark.parametrize("space", SPACES)
@given(data=st.data())
def test_the_shortest_way_is_a_way(space, data):
    a, b, _ = drawn(data, space)
    way = np.array([b[0] - a[0]])
    short = space.shortest(way)
    turns = (way - short)[0] / 360
    assert turns == round(turns)
    assert space is PLANE or abs(short[0]) <= 180
    assert abs(way[0]) > 180 or short[0] == way[0]


def test_only_coordinates_are_contained():
    x = np.array([0.0, 180.0, 180.5, 0.0, np.nan, np.inf])
    y = np.array([0.0, -90.0, 0.0, 91.0, 0.0, 0.0])
    assert GLOBE.contains(x, y).tolist() == [True, True, False, False, False, False]
    assert PLANE.contains(x, y).tolist() == [True, True, True, True, False, False]


def test_who_reaches_over_the_edge_is_told_where_there_is_one():
    x = np.array([179.0, -179.5, 10.0, np.nan])
    assert GLOBE.reaching_across(x, 0.75).tolist() == [1]
    assert GLOBE.reaching_across(x, np.array([2.0, 0.1, 175.0, 1.0])).tolist() == [0, 2]
    assert not len(PLANE.reaching_across(x, 1000.0))


def test_a_degree_of_longitude_is_never_nothing():
    across, along = GLOBE.scale(np.array([90.0, -90.0, 0.0]))
    assert (across > 0).all()
    assert across[2] == pytest.approx(111_319.5, rel=1e-6)
    assert along[2] == pytest.approx(110_574.3, rel=1e-6)


@pytest.mark.parametrize("space", SPACES)
def test_nowhere_is_near_to_nothing(space):
    nowhere, here = np.array([np.nan]), np.array([1.0])
    pair = nowhere, nowhere, here, here
    assert np.isnan(space.distance(*pair)).all()
    assert np.isnan(space.rank(*pair)).all()
    assert np.isnan(space.shortest(nowhere)).all()
    assert not space.is_within(*pair, np.array([np.inf])).any()
    assert not space.contains(nowhere, here).any()


@pytest.mark.parametrize("space", SPACES)
def test_there_is_one_of_each_space_wherever_it_is_sent(space):
    assert pickle.loads(pickle.dumps(space)) is space
    assert copy.deepcopy(space) is space
    sent = pickle.loads(pickle.dumps(Settings(space=space)))
    assert sent == Settings(space=space)
    assert sent.space is space
    assert repr(space) in {"PLANE", "GLOBE"}
