"""BoxIndex against a comparison of every point with every box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.geometry.grid import BoxIndex

INF = float("inf")
ON_LATTICE = st.integers(-4, 4).map(
    float
)  # so that borders and corners are hit all the time
ANYWHERE = st.floats(allow_nan=True, allow_infinity=True)
COORDINATE = st.one_of(
    ON_LATTICE, ON_LATTICE, st.floats(-5, 5), st.floats(-1e7, 1e7), ANYWHERE
)
BOXES = st.lists(st.tuples(COORDINATE, COORDINATE, COORDINATE, COORDINATE), max_size=40)
POINTS = st.lists(st.tuples(COORDINATE, COORDINATE), max_size=40)


def every_pair(points, boxes):
    return [
        (i, j)
        for i, (x, y) in enumerate(points)
        for j, (minx, miny, maxx, maxy) in enumerate(boxes)
        if minx <= x <= maxx and miny <= y <= maxy
    ]


def probed(points, boxes):
    x, y = np.array(points, np.float64).reshape(-1, 2).T
    points_found, boxes_found = BoxIndex(
        np.array(boxes, np.float64).reshape(-1, 4)
    ).probe(x.copy(), y.copy())
    assert points_found.dtype == boxes_found.dtype == np.int64
    return list(zip(points_found.tolist(), boxes_found.tolist(), strict=True))


@given(POINTS, BOXES)
def test_probe_gives_exactly_the_pairs_of_brute_force_in_order(points, boxes):
    assert probed(points, boxes) == every_pair(points, boxes)


@given(
    POINTS,
    st.lists(
        st.tuples(ON_LATTICE, ON_LATTICE, st.sampled_from([0.0, 0.5, 1, 9, 900])),
        max_size=40,
    ),
)
def test_boxes_of_mixed_sizes_and_degenerate_ones_are_exact(points, squares):
    boxes = [(x, y, x + side, y + side) for x, y, side in squares]
    assert probed(points, boxes) == every_pair(points, boxes)


@pytest.mark.parametrize(
    "box",
    [
        (0, 0, 1, 1),
        (1, 1, 1, 1),
        (-INF, 0, 1, INF),
        (-INF, -INF, INF, INF),
        (INF, INF, INF, INF),
        (1, 0, 0, 1),
        (float("nan"), 0, 1, 1),
        (-1e308, -1e308, 1e308, 1e308),
        (5e-324, 0, 1e-323, 1),
    ],
    ids=str,
)
def test_one_box_with_points_on_and_beside_its_border(box):
    edges = [
        -INF,
        -1e308,
        np.nextafter(0, -1),
        0.0,
        5e-324,
        np.nextafter(1, 0),
        1.0,
        np.nextafter(1, 2),
        INF,
        np.nan,
    ]
    points = [(x, y) for x in edges for y in edges]
    assert probed(points, [box]) == every_pair(points, [box])


def test_no_points_and_no_boxes_give_no_pairs():
    assert probed([], [(0, 0, 1, 1)]) == probed([(0, 0)], []) == []


@pytest.mark.parametrize("strays", [0, 1, 50], ids="{} far or huge boxes".format)
def test_many_points_stay_in_order_over_chunks_and_levels(strays):
    random = np.random.default_rng(7)
    corner = np.round(random.uniform(0, 100, (300, 2)), 1)
    boxes = np.c_[corner, corner + np.round(random.pareto(1.0, (300, 2)), 1)]
    boxes[:strays, 0] -= 1e6
    x, y = np.round(random.uniform(-1, 101, (2, 150_000)), 1)
    points, found = BoxIndex(boxes).probe(x, y)
    inside = (x[:, None] >= boxes[:, 0]) & (x[:, None] <= boxes[:, 2])
    inside &= (y[:, None] >= boxes[:, 1]) & (y[:, None] <= boxes[:, 3])
    wanted_points, wanted = np.nonzero(inside)
    np.testing.assert_array_equal(points, wanted_points)
    np.testing.assert_array_equal(found, wanted)


def test_an_index_is_not_changed_by_later_writes_to_its_boxes():
    boxes = np.array([[0.0, 0.0, 1.0, 1.0]])
    index = BoxIndex(boxes)
    boxes[:] = 9.0
    assert index.probe(np.array([0.5]), np.array([0.5]))[1].tolist() == [0]


def test_a_crowd_of_points_in_many_boxes_is_looked_at_in_blocks(monkeypatch):
    monkeypatch.setattr("st_common.geometry.grid._MOST_CANDIDATES", 7)
    random = np.random.default_rng(1)
    points = random.integers(0, 6, (50, 2)).astype(float)
    corner = random.integers(0, 5, (30, 2)).astype(float)
    boxes = np.c_[corner, corner + random.integers(0, 3, (30, 2))]
    assert probed(points.tolist(), boxes.tolist()) == every_pair(
        points.tolist(), boxes.tolist()
    )
