"""The k nearest to several places at once, against sorting all objects by their totals."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.geometry import group
from st_common.geometry.group import (
    kth_nearest_to_groups,
    kth_nearest_to_groups_where,
)
from st_common.geometry.group_near import are_within, near_groups
from st_common.geometry.group_totals import MAX, MIN, SUM, Groups, grown_by, totals
from st_common.geometry.nearest import Objects
from st_common.geometry.space import GLOBE, PLANE

GEOD = Geod(ellps="WGS84")
FOLD = {SUM: sum, MAX: max, MIN: min}
ON_LATTICE = st.integers(-3, 3).map(float)  # so that many are equally far
COORDINATE = st.one_of(ON_LATTICE, st.floats(-9, 9))
PLACE = st.tuples(COORDINATE, COORDINATE)
GROUP = st.tuples(
    st.lists(PLACE, max_size=3),
    st.sampled_from(sorted(FOLD)),
    st.integers(1, 8),
    st.integers(-1, 5),
)


@pytest.fixture(params=["few", "many"], autouse=True)
def way(request, monkeypatch):
    """Both ways are taken: all pairs, and the tree."""
    if request.param == "many":
        monkeypatch.setattr(group, "_FEW_PAIRS", 0)


def made(rows, *, space):
    """Groups of at most three places each, the missing ones NaN, also before others."""
    x, y = np.full((2, len(rows), 3), np.nan)
    for number, (places, *_) in enumerate(rows):
        for at, (px, py) in zip((1, 0, 2), places, strict=False):
            x[number, at], y[number, at] = px, py
    total = np.array([row[1] for row in rows], np.int8)
    return Groups(x=x, y=y, total=total, space=space)


def total_of(places, kind, at, far):
    return FOLD[kind](far(place, at) for place in places)


def on_globe(a, b):
    return GEOD.inv(*a, *b)[2]


def columns(points):
    return np.array(points, np.float64).reshape(-1, 2).T.copy()


@pytest.mark.spec("G5")
@given(st.lists(GROUP, max_size=6), st.lists(PLACE, max_size=12))
def test_the_kth_nearest_in_the_plane_is_as_far_as_sorting_finds(rows, objects):
    x, y = columns(objects)
    all_of_them = Objects(
        x=x,
        y=y,
        number=np.arange(len(x)),
        space=PLANE,
        ids=pa.array(map(str, range(len(x)))),
    )
    k, but = (np.array([row[n] for row in rows], np.int64) for n in (2, 3))
    but = np.where(but < len(x), but, -1)[:, None]
    limit, tie = kth_nearest_to_groups(made(rows, space=PLANE), k, but, all_of_them)
    for number, (places, kind, wanted, _) in enumerate(rows):
        others = [n for n in range(len(x)) if n != but[number, 0]]
        far = (
            sorted((total_of(places, kind, objects[n], math.dist), n) for n in others)
            if places
            else []
        )
        if not places:
            assert math.isnan(limit[number])
        elif len(far) < wanted:
            assert limit[number] == math.inf
        else:
            length = limit[number] if kind == SUM else math.sqrt(limit[number])
            assert length == pytest.approx(far[wanted - 1][0], abs=1e-8)
            assert kind != SUM or length == np.round(length, 9)
            equally = [
                n for value, n in far if value == pytest.approx(length, abs=1e-8)
            ]
            assert tie[number] == -1 or tie[number] in equally


@pytest.mark.spec("G5", "X13")
@given(
    st.lists(GROUP, max_size=5),
    st.lists(PLACE, min_size=1, max_size=40),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_among_those_that_count_it_is_as_far_as_sorting_finds(
    rows, objects, wanted, rng
):
    x, y = columns(objects)
    counts = np.array(
        [[rng.random() < 0.4 for _ in objects] for _ in rows], bool
    ).reshape(len(rows), len(x))
    all_of_them = Objects(
        x=x,
        y=y,
        number=np.arange(len(x)),
        space=PLANE,
        ids=pa.array(map(str, range(len(x)))),
    )
    k = np.array([row[2] for row in rows], np.int64)
    limit, _, is_settled = kth_nearest_to_groups_where(
        made(rows, space=PLANE),
        k,
        np.full(len(rows), wanted),
        np.full(len(rows), len(x)),
        all_of_them,
        lambda row, number: counts[row, number],
    )
    assert is_settled.all()
    for number, (places, kind, nth, _) in enumerate(rows):
        others = np.flatnonzero(counts[number]).tolist()
        far = sorted(
            total_of(places, kind, objects[n], math.dist) for n in others if places
        )
        if not places:
            assert math.isnan(limit[number])
        elif len(far) < nth:
            assert limit[number] == math.inf
        else:
            length = limit[number] if kind == SUM else math.sqrt(limit[number])
            assert length == pytest.approx(far[nth - 1], abs=1e-8)


@pytest.mark.spec("X13")
@pytest.mark.parametrize("kind", sorted(FOLD))
def test_few_are_looked_at_between_places_far_from_each_other(kind, monkeypatch):
    """Of 4,000 objects some hundred lie about as near as the nearest to both places 80 away from each other."""
    random = np.random.default_rng(9)
    x, y = random.uniform(0, 100, (2, 4_000))
    objects = Objects(
        x=x,
        y=y,
        number=np.arange(len(x)),
        space=PLANE,
        ids=pa.array(map(str, range(len(x)))),
    )
    looked = []
    monkeypatch.setattr(group, "_FEW_PAIRS", 0)
    monkeypatch.setattr(
        group,
        "near_groups",
        lambda *asked: looked.append(near_groups(*asked)) or looked[-1],
    )
    groups = made([([(10.0, 20.0), (80.0, 60.0)], kind)], space=PLANE)
    k, nobody = np.array([3]), np.full((1, 1), -1)
    limit, _ = kth_nearest_to_groups(groups, k, nobody, objects)
    far = np.sort(totals(groups, np.zeros(len(x), np.int64), x, y))
    assert limit[0] == pytest.approx(far[2])
    assert len(looked[0][0]) < 60


@pytest.mark.spec("X13")
@given(
    st.lists(GROUP, min_size=1, max_size=4),
    st.lists(PLACE, max_size=9),
    st.floats(0, 20),
)
def test_pairs_are_within_a_length_where_they_are_found_by_it(rows, points, length):
    (x, y), groups = columns(points), made(rows, space=PLANE)
    lengths = np.full(len(rows), length)
    row, point = near_groups(groups, lengths, x, y)
    every_row = np.repeat(np.arange(len(rows)), len(x))
    every = np.tile(np.arange(len(x)), len(rows))
    within = are_within(groups, every_row, lengths[every_row], x[every], y[every])
    assert {*zip(row.tolist(), point.tolist(), strict=True)} == {
        *zip(every_row[within].tolist(), every[within].tolist(), strict=True)
    }


def test_of_equally_far_ones_the_first_by_id_are_in():
    x, y = columns([(0, 1), (1, 0), (0, -1), (-1, 0)])
    ids = pa.array(["d", "b", "a", "c"])
    objects = Objects(x=x, y=y, number=np.arange(4), space=PLANE, ids=ids)
    at_the_middle = made(
        [([(0.0, 0.0)] * 2, kind, 2, -1) for kind in (SUM, MAX, MIN)], space=PLANE
    )
    limit, tie = kth_nearest_to_groups(
        at_the_middle, np.full(3, 2), np.full((3, 1), -1), objects
    )
    assert (limit.tolist(), tie.tolist()) == ([2.0, 1.0, 1.0], [1, 1, 1])


@pytest.mark.parametrize("but", [[0], [0, -1, 0]], ids=str)
@pytest.mark.parametrize("kind", sorted(FOLD))
def test_the_nearest_of_all_does_not_count_when_it_is_left_out(kind, but):
    x, y = np.arange(10.0), np.zeros(10)
    groups = made([([(at, 0.0)], kind) for at in x], space=PLANE)
    left_out = np.stack(
        [np.full(10, -1) if one else np.arange(10) for one in but], axis=1
    )
    objects = Objects(
        x=x, y=y, number=np.arange(10), space=PLANE, ids=pa.array("abcdefghij")
    )
    limit, _ = kth_nearest_to_groups(groups, np.ones(10, np.int64), left_out, objects)
    assert limit.tolist() == [1.0] * 10
    limit, _ = kth_nearest_to_groups(groups, np.full(10, 9), left_out, objects)
    assert np.isfinite(limit).all()


@pytest.mark.parametrize(
    "middle", [(0.0, 0.0), (180.0, 10.0), (20.0, 89.0), (-8.6, 41.1)], ids=str
)
@pytest.mark.parametrize("kind", sorted(FOLD))
def test_on_the_globe_totals_are_geodesic(middle, kind):
    random = np.random.default_rng(5)

    def around(count, most_m):
        found = zip(
            random.uniform(0, 360, count), random.uniform(0, most_m, count), strict=True
        )
        return [GEOD.fwd(*middle, azimuth, metres)[:2] for azimuth, metres in found]

    objects, places = around(60, 300_000), around(3, 80_000)
    x, y = columns(objects)
    groups = made([(places, kind), (places[:1], kind)], space=GLOBE)
    k, none = np.array([7, 60]), np.full((2, 1), -1)
    limit, _ = kth_nearest_to_groups(
        groups, k, none, Objects(x=x, y=y, number=np.arange(60), space=GLOBE)
    )
    far = sorted(total_of(places, kind, at, on_globe) for at in objects)
    assert limit.tolist() == pytest.approx(
        [far[6], max(on_globe(places[0], at) for at in objects)], abs=0.01
    )
    assert limit.tolist() == np.round(limit, 3).tolist()
    row, point = near_groups(groups, np.array([far[6] + 1, math.nan]), x, y)
    assert set(row.tolist()) == {0}
    near = {
        n
        for n, at in enumerate(objects)
        if total_of(places, kind, at, on_globe) <= far[6] + 1
    }
    assert set(point.tolist()) == near


@given(st.lists(GROUP, max_size=6), st.lists(PLACE, max_size=12), st.floats(0, 30))
def test_near_to_a_group_are_all_whose_total_is_at_most_a_length(rows, points, length):
    x, y = columns(points)
    row, point = near_groups(made(rows, space=PLANE), np.full(len(rows), length), x, y)
    found = list(zip(row.tolist(), point.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert (np.diff(row) >= 0).all()
    for number, (places, kind, *_) in enumerate(rows):
        for other, at in enumerate(points):
            far = total_of(places, kind, at, math.dist) if places else math.inf
            if abs(far - length) > 1e-6:
                assert ((number, other) in found) == (far < length)


@pytest.mark.parametrize("kind", sorted(FOLD))
def test_half_of_many_points_are_near_to_groups_of_places_far_from_each_other(kind):
    random = np.random.default_rng(9)
    rows = [
        ([tuple(at) for at in random.uniform(-9, 9, (3, 2))], kind) for _ in range(20)
    ]
    points = [tuple(at) for at in random.uniform(-9, 9, (60, 2))]
    far = np.array(
        [[total_of(places, kind, at, math.dist) for at in points] for places, _ in rows]
    )
    length = np.median(far, axis=1)  # between two of them
    row, point = near_groups(made(rows, space=PLANE), length, *columns(points))
    found = np.zeros(far.shape, bool)
    found[row, point] = True
    assert (found == (far < length[:, None])).all()


def test_a_total_grows_by_the_margin_of_each_distance():
    rows = [
        ([(0.0, 0.0)] * count, kind) for kind in (SUM, MAX, MIN) for count in (1, 3)
    ]
    squares = np.array([6.0, 6.0, 4.0, 4.0, 4.0, 4.0])
    assert grown_by(made(rows, space=PLANE), squares, 0.5).tolist() == [
        6.5,
        7.5,
        2.5,
        2.5,
        2.5,
        2.5,
    ]
    assert grown_by(made(rows, space=GLOBE), squares, 0.5).tolist() == [
        6.5,
        7.5,
        4.5,
        4.5,
        4.5,
        4.5,
    ]
