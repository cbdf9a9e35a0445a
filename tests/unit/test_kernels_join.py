"""Boxes and circles that change with each call, against a comparison of every one with every point."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.geometry import circles, join
from st_common.geometry.circles import CircleIndex, points_in_circles
from st_common.geometry.join import points_in_boxes
from st_common.geometry.space import GLOBE, PLANE

INF = float("inf")
GEOD = Geod(ellps="WGS84")
ON_LATTICE = st.integers(-4, 4).map(
    float
)  # so that borders and corners are hit all the time
ANYWHERE = st.floats(allow_nan=True, allow_infinity=True)
COORDINATE = st.one_of(
    ON_LATTICE, ON_LATTICE, st.floats(-5, 5), st.floats(-1e7, 1e7), ANYWHERE
)
BOXES = st.lists(st.tuples(COORDINATE, COORDINATE, COORDINATE, COORDINATE), max_size=40)
POINTS = st.lists(st.tuples(COORDINATE, COORDINATE), max_size=40)


@pytest.fixture(
    params=[0, join._FEW_PAIRS],
    ids=["by a grid", "one by one"],
    scope="module",
    autouse=True,
)
def few_pairs(request):
    before = join._FEW_PAIRS, circles._FEW_PAIRS
    join._FEW_PAIRS = circles._FEW_PAIRS = request.param
    yield
    join._FEW_PAIRS, circles._FEW_PAIRS = before


def columns(rows, width):
    return np.array(rows, np.float64).reshape(-1, width).T.copy()


def in_boxes(points, boxes):
    box, point = points_in_boxes(columns(boxes, 4), *columns(points, 2))
    assert box.dtype == point.dtype == np.int64
    assert (np.diff(box) >= 0).all()
    return sorted(zip(box.tolist(), point.tolist(), strict=True))


def every_pair(points, boxes):
    return [
        (j, i)
        for j, (minx, miny, maxx, maxy) in enumerate(boxes)
        for i, (x, y) in enumerate(points)
        if minx <= x <= maxx and miny <= y <= maxy
    ]


@pytest.mark.spec("G4")
@given(POINTS, BOXES)
def test_points_in_boxes_are_exactly_the_pairs_of_brute_force(points, boxes):
    assert in_boxes(points, boxes) == every_pair(points, boxes)


@given(
    POINTS,
    st.lists(
        st.tuples(ON_LATTICE, ON_LATTICE, st.sampled_from([0.0, 0.5, 1, 9, 900])),
        max_size=40,
    ),
)
def test_boxes_of_mixed_sizes_and_degenerate_ones_are_exact(points, squares):
    boxes = [(x, y, x + side, y + side) for x, y, side in squares]
    assert in_boxes(points, boxes) == every_pair(points, boxes)


@pytest.mark.parametrize(
    "box",
    [(-INF, -INF, INF, INF), (-1e308, -1e308, 1e308, 1e308), (0, 0, 0, 0)],
    ids=str,
)
def test_boxes_without_end_and_without_extent(box):
    points = [(0, 0), (INF, -INF), (-1e308, 1e308), (5e-324, 0), (0, math.nan)]
    assert in_boxes(points, [box]) == every_pair(points, [box])


def test_many_boxes_and_points_go_through_in_pieces():
    random = np.random.default_rng(7)
    x, y = random.uniform(0, 100, (2, 3_000))
    x[:500], y[:500] = 50.0, 50.0
    centre, half = random.uniform(0, 100, (2, 900)), random.uniform(0, 30, 900)
    boxes = np.concatenate([centre - half, centre + half])
    box, point = points_in_boxes(boxes, x, y)
    inside = (
        (x >= boxes[0][:, None])
        & (x <= boxes[2][:, None])
        & (y >= boxes[1][:, None])
        & (y <= boxes[3][:, None])
    )
    assert (
        len(box)
        == len(set(zip(box.tolist(), point.tolist(), strict=True)))
        == inside.sum()
    )
    assert inside[box, point].all()


RADIUS = st.one_of(st.sampled_from([0.0, 1.0, 5.0, INF, math.nan]), st.floats(0, 12))
CENTRE = COORDINATE.filter(lambda value: not math.isinf(value))  # plans refuse others
CIRCLES = st.lists(st.tuples(CENTRE, CENTRE, RADIUS), max_size=30)


@pytest.mark.spec("G4")
@given(POINTS, CIRCLES)
def test_planar_circles_hold_what_is_within_the_squared_radius(points, circles):
    expected = [
        (j, i)
        for j, (cx, cy, r) in enumerate(circles)
        for i, (x, y) in enumerate(points)
        if (x - cx) * (x - cx) + (y - cy) * (y - cy) <= r * r
    ]
    assert found_circles(points, circles, space=PLANE) == expected


def found_circles(points, circles, *, space):
    """The pairs of both ways to ask, which are the same."""
    (cx, cy, radius), (x, y) = columns(circles, 3), columns(points, 2)
    circle, point = points_in_circles(cx, cy, radius, x, y, space=space)
    assert (np.diff(circle) >= 0).all()
    pairs = sorted(zip(circle.tolist(), point.tolist(), strict=True))
    point, circle = CircleIndex(cx, cy, radius, space=space).probe(x, y)
    asked = list(zip(point.tolist(), circle.tolist(), strict=True))
    assert asked == sorted((i, j) for j, i in pairs)
    assert len(set(asked)) == len(asked)
    return pairs


LATITUDE = st.one_of(
    st.floats(-90, 90), st.sampled_from([-90.0, 90.0, 89.9999, -89.99, 0.0])
)
LONGITUDE = st.one_of(
    st.floats(-180, 180), st.sampled_from([-180.0, 180.0, 179.9999, -179.99, 0.0])
)
PLACES = st.lists(st.tuples(LONGITUDE, LATITUDE), min_size=1, max_size=12)
METRES = st.one_of(st.floats(0, 20_000), st.floats(0, 19_000_000), st.just(INF))


@pytest.mark.spec("G4")
@given(
    st.lists(st.tuples(LONGITUDE, LATITUDE, METRES), min_size=1, max_size=12),
    PLACES,
    st.data(),
)
def test_circles_on_the_globe_are_geodesic_across_180_degrees_and_poles(
    circles, points, data
):
    for lon, lat, radius in circles[:6]:  # points where it matters: near the border
        share = data.draw(st.sampled_from([0.5, 0.998, 1.002]))
        if radius < 19_000_000:
            points.append(
                GEOD.fwd(lon, lat, data.draw(st.floats(0, 360)), radius * share)[:2]
            )
    found = set(found_circles(points, circles, space=GLOBE))
    for j, (lon, lat, radius) in enumerate(circles):
        for i, (x, y) in enumerate(points):
            metres = GEOD.inv(lon, lat, x, y)[2]
            if metres < radius * 0.9995 - 1e-6 or radius == INF:
                assert (j, i) in found
            elif metres > radius * 1.0005 + 1e-6:
                assert (j, i) not in found


def test_what_is_no_distance_away_lies_in_a_circle_without_a_radius():
    points = [(4e-48, 0.0), (0.0, -1e-18), (1e-9, 0.0)]
    both = [(0, 0), (0, 1)]
    assert found_circles(points, [(0.0, 0.0, 0.0)], space=GLOBE) == both


def test_a_place_at_180_degrees_has_two_names_and_a_pole_any_longitude():
    points = [(180.0, 10.0), (-180.0, 10.0), (179.9, 10.0), (-45.0, 90.0), (0.0, 90.0)]
    circles = [
        (180.0, 10.0, 1.0),
        (-179.95, 10.0, 6_000.0),
        (100.0, 90.0, 0.001),
        (60.0, 89.9, 20_000.0),
    ]
    expected = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 3), (2, 4), (3, 3), (3, 4)]
    assert found_circles(points, circles, space=GLOBE) == expected


def test_nothing_is_in_no_circles_and_opposite_places_are_half_a_turn_away():
    assert (
        found_circles([], [(0, 0, 1)], space=GLOBE)
        == found_circles([(0, 0)], [], space=PLANE)
        == []
    )
    assert found_circles(
        [(180, 0), (179, 0)], [(0, 0, 20_000_000), (0, 0, 20_004_000)], space=GLOBE
    ) == [
        (0, 1),
        (1, 0),
        (1, 1),
    ]


def test_boxes_too_narrow_for_any_number_of_cells_are_no_overflow():
    points = np.linspace(0.0, 8.0, 200)
    boxes = np.stack([points, points, points + 2.2e-308, points + 2.2e-308])
    boxes[:, ::2] = np.array([[0.0], [0.0], [2.2e-308], [2.2e-308]])
    box, point = points_in_boxes(boxes, points, points)
    inside = (boxes[:2, :, None] <= points) & (points <= boxes[2:, :, None])
    assert (box.tolist(), point.tolist()) == tuple(
        part.tolist() for part in np.nonzero(inside.all(axis=0))
    )
