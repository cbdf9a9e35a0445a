"""Regions, median splits and their balance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.errors import StateError
from st_common.partitioning.balance import (
    rows_per_region,
    rows_per_worker,
    std_deviation,
)
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions, assign, touching, whole

LATTICE = st.integers(-3, 3).map(float)
POINTS = st.lists(st.tuples(LATTICE, LATTICE), max_size=40).map(
    lambda pairs: np.array(pairs, float).reshape(-1, 2)
)
ANY_NUMBER = st.one_of(LATTICE, st.floats(allow_nan=False))


@st.composite
def spaces(draw):
    """Points of one to four dimensions to split by, and others that are asked for: float64[n, d] and float64[m, d]."""
    dimensions = draw(st.integers(1, 4))
    drawn = (
        draw(st.lists(st.tuples(*[number] * dimensions), max_size=most))
        for number, most in ((LATTICE, 40), (ANY_NUMBER, 30))
    )
    points, asked = (np.array(one, float).reshape(-1, dimensions) for one in drawn)
    return points, asked


def regions_of(points, wanted):
    split = median_split(points, wanted)
    return Regions(
        group="default", version=1, region_id=split.paths, bounds=split.bounds
    )


def cells_of(point, bounds):
    d = len(point)
    return [
        i
        for i, cell in enumerate(bounds)
        if all(
            lo <= v and (v < hi or hi == np.inf)
            for v, lo, hi in zip(point, cell[:d], cell[d:], strict=True)
        )
    ]


@pytest.mark.spec("B3")
@given(POINTS, st.integers(1, 12), st.randoms())
def test_a_split_depends_on_the_points_and_not_on_their_order(points, wanted, random):
    order = random.sample(range(len(points)), len(points))
    first, second = median_split(points, wanted), median_split(points[order], wanted)
    assert first.paths == second.paths
    np.testing.assert_array_equal(first.bounds, second.bounds)


@given(POINTS, st.integers(1, 12))
def test_paths_are_the_leaves_of_one_binary_tree_and_prefixes_of_none_other(
    points, wanted
):
    paths = median_split(points, wanted).paths
    assert len(paths) <= wanted
    assert len(set(paths)) == len(paths)
    assert paths == ["0"] or sum(2.0 ** -len(path) for path in paths) == 1.0
    assert not any(a != b and b.startswith(a) for a in paths for b in paths)


@pytest.mark.spec("B3")
@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
@pytest.mark.parametrize("wanted", [1, 2, 3, 7, 40])
def test_distinct_points_are_shared_out_evenly_in_any_dimension(dimensions, wanted):
    points = np.random.default_rng(5).normal(size=(4_000, dimensions))
    split = median_split(points, wanted)
    low, high = split.bounds[:, None, :dimensions], split.bounds[:, None, dimensions:]
    rows = ((points >= low) & (points < high)).all(axis=2).sum(axis=1)
    assert len(split.paths) == wanted
    assert rows.sum() == 4_000
    assert rows.max() - rows.min() <= 6  # each split may round by one half


def test_points_that_are_all_the_same_cannot_be_split():
    assert median_split(np.full((50, 2), 7.0), 8).paths == ["0"]
    assert median_split(np.empty((0, 2)), 8).paths == ["0"]


@pytest.mark.spec("B2", "B3")
@given(spaces(), st.integers(1, 12))
def test_every_point_lies_in_the_one_cell_that_a_look_at_each_finds(space, wanted):
    points, asked = space
    regions = regions_of(points, wanted)
    found = assign(regions, asked)
    assert found.dtype == np.int32
    assert [[i] for i in found.tolist()] == [
        cells_of(point, regions.bounds) for point in asked
    ]


def test_a_row_without_coordinates_goes_to_the_first_region():
    regions = regions_of(np.array([[0.0, 0.0], [1.0, 1.0]]), 2)
    points = np.array([[np.nan, np.nan], [5.0, 5.0], [np.nan, 5.0]])
    assert assign(regions, points).tolist() == [0, 1, 0]


def test_regions_with_a_gap_are_refused():
    broken = Regions(
        group="g",
        version=3,
        region_id=["0", "1"],
        bounds=np.array([[0, 0, 1, 1], [2, 0, 3, 1.0]]),
    )
    with pytest.raises(StateError, match="group 'g', version 3"):
        assign(broken, np.array([[1.5, 0.5]]))


@given(
    POINTS,
    st.integers(1, 9),
    st.lists(st.tuples(LATTICE, LATTICE, LATTICE, LATTICE), max_size=20),
)
def test_a_box_touches_all_closed_regions_with_a_common_point(points, wanted, corners):
    regions = regions_of(points, wanted)
    boxes = [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in corners]
    expected = [
        (i, j)
        for i, (ax, ay, bx, by) in enumerate(boxes)
        for j, (cx, cy, dx, dy) in enumerate(regions.bounds)
        if ax <= dx and bx >= cx and ay <= dy and by >= cy
    ]
    box, region = touching(regions, np.array(boxes, float).reshape(-1, 4))
    assert list(zip(box.tolist(), region.tolist(), strict=True)) == expected


def test_an_unpartitioned_group_is_one_region():
    regions = whole("default")
    assert (regions.region_id, regions.version) == (["0"], 0)
    points = np.array([[1e300, -1e300], [np.nan, 0.0]])
    assert assign(regions, points).tolist() == [0, 0]


@pytest.mark.spec("B4")
def test_balance_counts_rows_of_regions_and_of_workers_that_take_turns():
    regions = regions_of(np.array([[0.0, 0], [1, 0], [2, 0], [3, 0]]), 2)
    points = np.column_stack([[0.0, 1, 5, 6, 7], np.zeros(5)])
    rows = rows_per_region(regions, points)
    assert rows.tolist() == [2, 3]
    assert std_deviation(rows) == 0.5
    assert rows_per_worker(np.array([5, 1, 2, 7, 3]), 2).tolist() == [10, 8]
    assert std_deviation(np.array([4])) == 0.0
