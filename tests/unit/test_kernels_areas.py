"""Points in many areas, against exact arithmetic on every ring."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.geometry import areas
from st_common.geometry.areas import AreaIndex

COORDINATE = st.integers(-6, 6).map(float)
POINTS = st.lists(st.tuples(COORDINATE, COORDINATE), max_size=40)


def turn(a, b, c):
    (ax, ay), (bx, by), (cx, cy) = (tuple(map(Fraction, p)) for p in (a, b, c))
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def on_ring(ring, p):
    return any(
        turn(a, b, p) == 0
        and min(a[0], b[0]) <= p[0] <= max(a[0], b[0])
        and min(a[1], b[1]) <= p[1] <= max(a[1], b[1])
        for a, b in pairwise(ring)
    )


def in_ring(ring, p):
    crossings = 0
    for a, b in pairwise(ring):
        if (a[1] > p[1]) != (b[1] > p[1]):
            low, high = (a, b) if a[1] < b[1] else (b, a)
            crossings += turn(low, high, p) > 0
    return crossings % 2 == 1


def contains(polygons, p):
    """Closed; a polygon is a shell and holes."""
    return any(
        any(on_ring(ring, p) for ring in rings)
        or (in_ring(rings[0], p) and not any(in_ring(h, p) for h in rings[1:]))
        for rings in polygons
    )


def rectangle(x, y, w, h):
    return [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)]


def triangle(a, b, c):
    return [a, b, c, a]


PLACE = st.tuples(COORDINATE, COORDINATE)
TRIANGLES = (
    st.tuples(PLACE, PLACE, PLACE)
    .filter(lambda t: turn(*t) != 0)
    .map(lambda t: [[triangle(*t)]])
)
FRAMES = st.tuples(COORDINATE, COORDINATE).map(
    lambda c: [[rectangle(*c, 4, 4), rectangle(c[0] + 1, c[1] + 1, 2, 2)]]
)
TWINS = st.tuples(COORDINATE, COORDINATE).map(
    lambda c: [[rectangle(*c, 1, 1)], [rectangle(c[0] + 2, c[1], 1, 3)]]
)


def wkt_of(polygons):
    return shapely.MultiPolygon(
        [shapely.Polygon(rings[0], rings[1:]) for rings in polygons]
    ).wkt


@pytest.mark.spec("G4")
@given(st.lists(st.one_of(TRIANGLES, FRAMES, TWINS), max_size=8), POINTS)
def test_points_in_areas_are_those_of_exact_arithmetic(shapes, points):
    x, y = np.array(points, np.float64).reshape(-1, 2).T.copy()
    point, area = AreaIndex([wkt_of(shape) for shape in shapes]).probe(x, y)
    assert point.dtype == area.dtype == np.int64
    expected = [
        (i, j)
        for i, p in enumerate(points)
        for j, shape in enumerate(shapes)
        if contains(shape, p)
    ]
    assert list(zip(point.tolist(), area.tolist(), strict=True)) == expected


def test_equal_texts_empty_areas_and_places_that_are_none():
    square = "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"
    index = AreaIndex([square, "POLYGON EMPTY", square])
    x, y = np.array([1.0, np.nan, np.inf, 2.0]), np.array([1.0, 1.0, 1.0, 0.0])
    point, area = index.probe(x, y)
    assert list(zip(point.tolist(), area.tolist(), strict=True)) == [
        (0, 0),
        (0, 2),
        (3, 0),
        (3, 2),
    ]
    assert index.size == 3
    assert AreaIndex([]).probe(x, y)[0].tolist() == []


def test_geometries_are_prepared_once_and_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(areas, "_MOST_KEPT", 3)
    texts = [f"POLYGON (({n} 0, {n + 1} 0, {n} 1, {n} 0))" for n in range(20, 26)]
    first = areas.prepared(texts)
    assert areas.prepared(texts[-2:])[0] is first[-2]
    assert set(areas._kept) == set(texts[-3:])
    assert areas.prepared(texts)[0].equals(first[0])
