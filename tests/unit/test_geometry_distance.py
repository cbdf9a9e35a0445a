"""Distances on WGS 84 against pyproj's geodesics, and nearness against dense points along every segment."""

import itertools
import math

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.geometry.apart import distances
from st_common.geometry.circles import points_in_circles
from st_common.geometry.distance import (
    metres_about,
    metres_between,
    metres_per_degree,
    reach_degrees,
    within_metres,
)
from st_common.geometry.enlarged import grown
from st_common.geometry.near import near, outlines
from st_common.geometry.space import GLOBE, PLANE
from tests.kit.effort import tries

GEOD = Geod(ellps="WGS84")
LATITUDE = st.floats(-85, 85)
LONGITUDE = st.floats(-170, 170)


def geodesic(x1, y1, x2, y2):
    return GEOD.inv(x1, y1, x2, y2)[2]


def vincenty(x1, y1, x2, y2):
    """The distance by Vincenty's iteration, one pair at a time; it does not converge for points nearly opposite."""
    a, f = 6_378_137.0, 1 / 298.257223563
    b, turn = a * (1 - f), math.radians(x2 - x1)
    u1, u2 = (math.atan((1 - f) * math.tan(math.radians(y))) for y in (y1, y2))
    wide = turn
    for _ in range(200):
        sine = math.hypot(
            math.cos(u2) * math.sin(wide),
            math.cos(u1) * math.sin(u2) - math.sin(u1) * math.cos(u2) * math.cos(wide),
        )
        if sine == 0:
            return 0.0
        cosine = math.sin(u1) * math.sin(u2) + math.cos(u1) * math.cos(u2) * math.cos(
            wide
        )
        arc, azimuth = (
            math.atan2(sine, cosine),
            math.cos(u1) * math.cos(u2) * math.sin(wide) / sine,
        )
        square = 1 - azimuth**2
        middle = (
            cosine - 2 * math.sin(u1) * math.sin(u2) / square if square > 1e-15 else 0.0
        )
        c = f / 16 * square * (4 + f * (4 - 3 * square))
        before, wide = (
            wide,
            turn
            + (1 - c)
            * f
            * azimuth
            * (arc + c * sine * (middle + c * cosine * (2 * middle**2 - 1))),
        )
        if abs(wide - before) < 1e-14:
            break
    u = square * (a * a - b * b) / (b * b)
    big = 1 + u / 16384 * (4096 + u * (-768 + u * (320 - 175 * u)))
    small = u / 1024 * (256 + u * (-128 + u * (74 - 47 * u)))
    inner = cosine * (2 * middle**2 - 1) - small / 6 * middle * (4 * sine**2 - 3) * (
        4 * middle**2 - 3
    )
    return b * big * (arc - small * sine * (middle + small / 4 * inner))


def one(function, *values):
    return float(function(*(np.array([value]) for value in values))[0])


@given(LONGITUDE, LATITUDE, LONGITUDE, LATITUDE)
def test_metres_between_any_two_points_are_exact(x1, y1, x2, y2):
    expected = geodesic(x1, y1, x2, y2)
    found = one(metres_between, x1, y1, x2, y2)
    assert found == one(metres_between, x2, y2, x1, y1)
    if expected < 19_000_000:  # beyond, the points are nearly opposite
        assert found == pytest.approx(vincenty(x1, y1, x2, y2), abs=2e-4)
        slack = 2.9e-5 if expected < 15e6 else 9e-3
        assert one(metres_about, x1, y1, x2, y2) == pytest.approx(
            expected, rel=slack, abs=1e-6
        )


@pytest.mark.parametrize(
    ("places", "expected_m"),
    [
        (
            (24.94, 60.17, 151.2, -33.87),
            vincenty(24.94, 60.17, 151.2, -33.87),
        ),  # Helsinki to Sydney
        ((0, 0, 1, 0), 111_319.4907932736),  # a degree of the equator: a times pi / 180
        ((0, 0, 0, 90), 10_001_965.729312),  # a quarter of a meridian
        ((179.9, 10, -179.9, 10), vincenty(179.9, 10, 180.1, 10)),
        ((0, 0, 180, 0), 20_003_931.458625),  # opposite: over a pole
    ],
)
def test_known_distances(places, expected_m):
    assert one(metres_between, *places) == pytest.approx(expected_m, abs=5e-4)


BORDER = st.floats(-2e-5, 2e-5) | st.floats(-0.02, 0.02)


@given(LONGITUDE, LATITUDE, st.floats(0, 360), st.floats(0.01, 19_900_000), BORDER)
def test_what_lies_within_a_distance_is_decided_exactly_at_its_border_too(
    x, y, azimuth, distance_m, more
):
    x2, y2, _ = GEOD.fwd(x, y, azimuth, distance_m)
    limit = distance_m * (1 + more)
    assert one(lambda *places: within_metres(*places, limit), x, y, x2, y2) == (
        geodesic(x, y, x2, y2) <= limit
    )


def test_nothing_is_within_a_distance_of_nowhere():
    here, nowhere = np.array([1.0, np.nan]), np.array([np.nan, 1.0])
    assert not within_metres(here, here, nowhere, nowhere, np.inf).any()
    assert np.isnan(metres_between(here, here, nowhere, nowhere)).all()


@given(LONGITUDE, LATITUDE, st.floats(0, 360), st.floats(0.001, 1000))
def test_short_distances_in_the_plane_of_the_degrees_are_right_to_half_a_percent(
    x, y, azimuth, distance_m
):
    x2, y2, _ = GEOD.fwd(x, y, azimuth, distance_m)
    across, along = metres_per_degree(np.array([y]))
    planar = np.hypot((x2 - x) * across, (y2 - y) * along)[0]
    assert planar == pytest.approx(distance_m, rel=0.005)


@given(LONGITUDE, LATITUDE, st.floats(0, 360), st.floats(0.001, 500_000))
def test_no_place_within_a_distance_lies_out_of_its_reach(x, y, azimuth, distance_m):
    x2, y2, _ = GEOD.fwd(x, y, azimuth, distance_m)
    across, along = reach_degrees(np.array([y]), distance_m)
    turn = abs((x2 - x + 180) % 360 - 180)
    assert turn <= across[0]
    assert abs(y2 - y) <= along[0]


def test_reach_goes_around_the_pole_and_boxes_grow_by_it():
    across, along = reach_degrees(np.array([89.999]), 1000.0)
    assert across[0] == 360.0
    assert along[0] == pytest.approx(0.009, rel=0.02)
    boxes = np.array([[0.0, 10.0, 1.0, 60.0]])
    assert grown(boxes, 5.0, space=PLANE).tolist() == [[-5.0, 5.0, 6.0, 65.0]]
    west, south, east, north = grown(boxes, 1000.0, space=GLOBE)[0]
    assert west == pytest.approx(
        -0.0179, rel=0.02
    )  # one kilometre at latitude 60, where a degree is shortest
    assert east - 1.0 == pytest.approx(-west)
    assert (10.0 - south, north - 60.0) == pytest.approx((0.009, 0.009), rel=0.02)


def dense_distance(geometry, x, y, step_m):
    """The smallest geodesic distance to points laid densely along the geometry, straight in longitude and latitude."""
    best = np.inf
    for part in (
        shapely.get_parts(geometry)
        if geometry.geom_type.startswith("Multi")
        else [geometry]
    ):
        places = shapely.get_coordinates(
            part.exterior if part.geom_type == "Polygon" else part
        )
        for (ax, ay), (bx, by) in (
            itertools.pairwise(places) if len(places) > 1 else [(places[0],) * 2]
        ):
            steps = max(2, int(geodesic(ax, ay, bx, by) / step_m) + 2)
            xs, ys = np.linspace(ax, bx, steps), np.linspace(ay, by, steps)
            best = min(
                best,
                float(np.min(geodesic(np.full(steps, x), np.full(steps, y), xs, ys))),
            )
    return best


@pytest.mark.parametrize("latitude", [0.0, 41.0, -60.0, 84.5])
@pytest.mark.parametrize("distance_m", [1.0, 5.0, 900.0, 20_000.0])
def test_nearness_on_the_globe_is_geodesic_within_half_a_percent(latitude, distance_m):
    random = np.random.default_rng(11)
    degrees = distance_m / 111_000
    across = degrees / np.cos(np.radians(latitude))
    places = np.array([10.0, latitude]) + random.uniform(-3, 3, (12, 3, 2)) * [
        across,
        degrees,
    ]
    geometries = np.concatenate(
        [
            shapely.linestrings(places),
            shapely.polygons(places),
            shapely.points(places[:, 0]),
        ],
        dtype=object,
    )
    x, y = (
        np.array([10.0, latitude]) + random.uniform(-3, 3, (25, 2)) * [across, degrees]
    ).T
    which, at = (
        grid.ravel()
        for grid in np.meshgrid(np.arange(len(geometries)), np.arange(len(x)))
    )
    found = near(outlines(geometries), which, x[at], y[at], distance_m, space=GLOBE)
    exact = np.array(
        [
            dense_distance(geometries[g], x[i], y[i], distance_m / 50)
            for g, i in zip(which, at, strict=True)
        ]
    )
    assert found[exact <= distance_m * 0.995].all()
    assert not found[exact > distance_m * 1.005].any()
    assert 50 < found.sum() < len(found) - 50


COORDINATE = st.integers(-8, 8).map(float)
PLACES = st.lists(st.tuples(COORDINATE, COORDINATE), min_size=2, max_size=45)
SHAPES = st.one_of(
    PLACES.map(shapely.LineString),
    PLACES.map(shapely.MultiPoint),
    st.tuples(COORDINATE, COORDINATE).map(shapely.Point),
    st.tuples(PLACES, PLACES).map(lambda both: shapely.MultiLineString(list(both))),
    st.tuples(COORDINATE, COORDINATE).map(
        lambda c: shapely.Point(c).buffer(3).difference(shapely.Point(c).buffer(1))
    ),
    st.tuples(PLACES, PLACES).map(
        lambda both: shapely.GeometryCollection(
            [shapely.LineString(both[0]), shapely.MultiPoint(both[1])]
        )
    ),
    st.just(shapely.Polygon()),
)


@given(
    st.lists(SHAPES, min_size=1, max_size=6),
    PLACES,
    st.sampled_from([0.0, 1.0, 2.5, 5.0]),
)
def test_planar_nearness_is_the_distance_to_the_outline(geometries, points, distance_m):
    array = np.array([*geometries, None], dtype=object)[:-1]
    which, at = (
        grid.ravel()
        for grid in np.meshgrid(np.arange(len(array)), np.arange(len(points)))
    )
    x, y = np.array(points).T
    found = near(outlines(array), which, x[at], y[at], distance_m, space=PLANE)
    for g, i, answer in zip(which, at, found, strict=True):
        shape = array[g].boundary if array[g].geom_type == "Polygon" else array[g]
        exact = (
            shapely.Point(points[i]).distance(shape) if not shape.is_empty else np.inf
        )
        if abs(exact - distance_m) > 1e-9:
            assert answer == (exact <= distance_m)


@pytest.mark.parametrize("piece", ["the limit included", "beyond it"])
def test_the_limit_itself_is_near(piece):
    line = outlines(np.array([shapely.LineString([(0, 0), (10, 0)])], dtype=object))
    y = np.array([3.0 if piece == "the limit included" else np.nextafter(3.0, 4.0)])
    found = near(line, np.array([0]), np.array([4.0]), y, 3.0, space=PLANE)
    assert found.tolist() == [piece == "the limit included"]


@pytest.mark.parametrize(
    ("latitude", "distance_m"), [(-89.99999999999999, 1e-6), (90.0, 1e-9), (-90.0, 0.0)]
)
def test_whatever_reaches_a_pole_reaches_all_around_it_however_short_it_is(
    latitude, distance_m
):
    assert reach_degrees(np.array([latitude]), distance_m)[0] == 360.0


@pytest.mark.parametrize("pole", [90.0, -90.0])
@pytest.mark.parametrize("radius_m", [0.0, 1e-9])
@pytest.mark.parametrize("count", [3, 300], ids=["few", "many"])
def test_a_circle_at_a_pole_has_the_pole_at_every_longitude(pole, radius_m, count):
    x, y = np.linspace(-180, 180, count), np.full(count, pole)
    centre = np.array([10.0]), np.array([pole]), np.array([radius_m])
    _, inside = points_in_circles(*centre, x, y, space=GLOBE)
    assert inside.tolist() == list(range(count))
    _, inside = points_in_circles(*centre, x, np.nextafter(y, 0), space=GLOBE)
    assert len(inside) == 0


def test_places_less_than_an_atom_apart_are_the_same():
    ten, next_to, zero = np.array([10.0]), np.array([1e-155]), np.array([0.0])
    assert metres_about(ten, next_to, ten, zero) == 0.0
    assert within_metres(ten, next_to, ten, zero, 0.001)


def ways(geometries, points):
    """All pairs of a geometry and a point."""
    which, at = (
        grid.ravel()
        for grid in np.meshgrid(np.arange(len(geometries)), np.arange(len(points)))
    )
    return which, at, *np.array(points, float).T


@given(st.lists(SHAPES, min_size=1, max_size=6), PLACES)
def test_a_planar_distance_is_shapely_s_and_the_least_that_is_near(geometries, points):
    array = np.array([*geometries, None], dtype=object)[:-1]
    which, at, x, y = ways(array, points)
    shapes = outlines(array)
    far = distances(shapes, which, x[at], y[at], space=PLANE)
    rings = [s.boundary if s.geom_type == "Polygon" else s for s in geometries]
    exact = [
        shapely.Point(points[i]).distance(rings[g])
        for g, i in zip(which, at, strict=True)
    ]
    assert far == pytest.approx(exact, rel=1e-12, nan_ok=True)
    some = ~np.isnan(far)
    pairs = which[some], x[at][some], y[at][some]
    assert near(shapes, *pairs, far[some], space=PLANE).all()
    less = np.nextafter(far[some], 0)
    assert not near(shapes, *pairs, less, space=PLANE)[less < far[some]].any()


@tries(40)
@given(
    st.integers(0, 1 << 32),
    st.sampled_from([0, 41, -60, 80, -84]),
    st.sampled_from([5.0, 200.0, 3_000.0, 30_000.0]),
)
def test_a_distance_on_the_globe_is_that_to_dense_points(seed, latitude, size_m):
    random = np.random.default_rng(seed)
    across, along = metres_per_degree(np.array([float(latitude)]))
    degrees = size_m / np.array([across[0], along[0]])
    places = np.array([10.0, latitude]) + random.uniform(-1, 1, (6, 4, 2)) * degrees
    shapes = [shapely.LineString(p) for p in places[:4]]
    shapes += [shapely.Point(p[0]) for p in places[4:]]
    points = np.array([10.0, latitude]) + random.uniform(-2, 2, (8, 2)) * degrees
    which, at, x, y = ways(shapes, points)
    outline = outlines(np.array(shapes, object))
    far = distances(outline, which, x[at], y[at], space=GLOBE)
    exact = [
        dense_distance(shapes[g], x[i], y[i], size_m / 500)
        for g, i in zip(which, at, strict=True)
    ]
    assert far == pytest.approx(exact, rel=5e-3, abs=size_m / 500)
    for share, holds in ((1 + 1e-9, True), (1 - 1e-9, False)):
        found = near(outline, which, x[at], y[at], far * share, space=GLOBE)
        assert (found == holds).all()


def test_what_is_nowhere_has_no_distance():
    shapes = outlines(np.array([shapely.Point(1, 2), shapely.Polygon()], dtype=object))
    which, x = np.array([0, 1, 0]), np.array([4.0, 4.0, np.nan])
    far = distances(shapes, which, x, np.full(3, 6.0), space=PLANE)
    assert np.isnan(far).tolist() == [False, True, True]
    assert far[0] == 5
