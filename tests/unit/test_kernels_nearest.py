"""The k-th nearest against sorting all objects, for every place anew."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.geometry import nearest
from st_common.geometry.nearest import Objects, kth_nearest
from st_common.geometry.ranked import among_first, kth_smallest
from st_common.geometry.space import GLOBE, PLANE

GEOD = Geod(ellps="WGS84")
INF = float("inf")
ON_LATTICE = st.integers(-3, 3).map(float)  # so that many are equally far
COORDINATE = st.one_of(ON_LATTICE, ON_LATTICE, st.floats(-9, 9), st.floats(-1e9, 1e9))
IDS = st.lists(st.text(max_size=3), unique=True, max_size=40)


@pytest.fixture(params=["few", "many"], autouse=True)
def way(request, monkeypatch):
    """Both ways are taken: all pairs, and the tree."""
    if request.param == "many":
        monkeypatch.setattr(nearest, "_FEW_PAIRS", 0)


def members(found, place, objects, ids, but, length):
    """Who is in, by what `kth_nearest` gave for one place."""
    limit, tie = found
    inside = set()
    for number, at in enumerate(objects):
        far = length(place, at)
        if number != but and (
            far < limit or (far == limit and (tie < 0 or ids[number] <= ids[tie]))
        ):
            inside.add(number)
    return inside


def planar(a, b):
    return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])


def asked(places, objects, ids, *, space):
    (x, y), (ox, oy) = (
        np.array(rows, float).reshape(-1, 2).T.copy()
        for rows in ([p[:2] for p in places], objects)
    )
    k, but = (np.array([p[n] for p in places], np.int64) for n in (2, 3))
    objects = Objects(
        x=ox,
        y=oy,
        number=np.arange(len(ox)),
        space=space,
        ids=pa.array(ids, pa.string()),
    )
    limit, tie = kth_nearest(x, y, k, but, objects)
    return list(zip(limit.tolist(), tie.tolist(), strict=True))


@st.composite
def tasks(draw):
    """Objects, their ids, and places: x, y, k, the object that does not count."""
    ids = draw(IDS)
    stack = draw(st.booleans())
    at = draw(st.tuples(COORDINATE, COORDINATE))
    objects = [at if stack else draw(st.tuples(COORDINATE, COORDINATE)) for _ in ids]
    k = st.one_of(st.integers(1, 4), st.integers(1, 50))
    but = st.integers(-1, len(ids) - 1)
    places = draw(st.lists(st.tuples(COORDINATE, COORDINATE, k, but), max_size=12))
    return (
        [
            (*objects[b], k, b) if b >= 0 and draw(st.booleans()) else (x, y, k, b)
            for x, y, k, b in places
        ],
        objects,
        ids,
    )


@pytest.mark.spec("G5")
@given(tasks())
def test_planar_members_are_the_first_k_by_distance_and_id(task):
    places, objects, ids = task
    for (x, y, k, but), found in zip(
        places, asked(places, objects, ids, space=PLANE), strict=True
    ):
        others = [n for n in range(len(ids)) if n != but]
        expected = sorted(others, key=lambda n: (planar((x, y), objects[n]), ids[n]))[
            :k
        ]
        assert members(found, (x, y), objects, ids, but, planar) == set(expected)
        assert (found[0] == INF) == (len(others) < k)


def test_all_at_one_place_are_ranked_by_id_in_the_order_of_code_points():
    ids = ["b", "a", "Z", "\U0001f600", "", "\uffff", "aa"]
    (found,) = asked([(0, 0, 4, -1)], [(0, 0)] * 7, ids, space=PLANE)
    assert found == (0.0, 0 if sorted(ids)[3] == "b" else ids.index(sorted(ids)[3]))
    assert members(found, (0, 0), [(0, 0)] * 7, ids, -1, planar) == {
        ids.index(name) for name in sorted(ids)[:4]
    }


def test_places_of_nan_and_worlds_without_objects():
    (found,) = asked([(math.nan, 0, 1, -1)], [(0, 0)], ["a"], space=PLANE)
    assert math.isnan(found[0])
    assert asked([(0, 0, 1, -1)], [], [], space=PLANE) == [(INF, -1)]
    assert asked([(0, 0, 1, 0)], [(0, 0)], ["a"], space=PLANE) == [(INF, -1)]
    assert asked([], [(0, 0)], ["a"], space=PLANE) == []


def test_squares_that_overflow_are_equally_far():
    objects, ids = [(1e200, 0), (-1e250, 0), (1e180, 3e180)], ["b", "c", "a"]
    (found,) = asked([(0, 0, 2, -1)], objects, ids, space=PLANE)
    assert found == (INF, 0)


@pytest.mark.spec("G5")
@pytest.mark.parametrize(
    "middle",
    [(0.0, 0.0), (180.0, 10.0), (20.0, 90.0), (-179.99, -89.9), (-8.6, 41.1)],
    ids=str,
)
@pytest.mark.parametrize("spread", [0.001, 5.0, 400.0])
def test_on_the_globe_neighbours_are_geodesic_across_180_degrees_and_poles(
    middle, spread
):
    random = np.random.default_rng(3)
    objects = []
    for azimuth, metres in zip(
        random.uniform(0, 360, 150),
        random.uniform(0, spread * 40_000, 150),
        strict=True,
    ):
        objects.append(GEOD.fwd(*middle, azimuth, metres)[:2])
    ids = [f"o{n}" for n in range(150)]
    places = [(*objects[n], k, n) for n, k in enumerate([1, 2, 5, 60, 149, 150])] + [
        (*middle, 7, -1)
    ]
    for (x, y, k, but), (limit, _) in zip(
        places, asked(places, objects, ids, space=GLOBE), strict=True
    ):
        far = sorted(GEOD.inv(x, y, *at)[2] for n, at in enumerate(objects) if n != but)
        if k > len(far):
            assert limit == INF
        else:
            assert limit == pytest.approx(
                far[k - 1], rel=5e-4 if far[k - 1] < 19e6 else 5e-3, abs=0.002
            )
            assert limit == round(limit, 3)


def test_to_the_millimetre_equal_distances_are_ties():
    objects = [(0.0, 1e-9), (0.0, 0.0), (180.0, 0.0), (-180.0, 0.0)]
    found = asked(
        [(0.0, 0.0, 1, -1), (179.0, 0.0, 1, -1)],
        objects,
        ["b", "c", "y", "x"],
        space=GLOBE,
    )
    assert [tie for _, tie in found] == [0, 3]


def test_only_objects_that_count_are_neighbours():
    objects = Objects(
        x=np.arange(9.0), y=np.zeros(9), number=np.array([1, 4, 8]), space=PLANE
    )
    limit, tie = kth_nearest(
        np.zeros(3), np.zeros(3), np.array([1, 1, 3]), np.array([1, 0, 8]), objects
    )
    assert limit.tolist() == [16.0, 1.0, INF]
    assert tie.tolist() == [-1, -1, -1]


VALUES = st.lists(
    st.lists(st.integers(0, 5).map(float), min_size=1, max_size=30), max_size=12
)


@given(VALUES, st.data())
def test_kth_smallest_of_ragged_rows(rows, data):
    k = [data.draw(st.integers(1, 35)) for _ in rows]
    start = np.cumsum([0, *map(len, rows)])
    found = kth_smallest(
        start, np.array([v for row in rows for v in row]), np.array(k, np.int64)
    )
    assert found.tolist() == [
        sorted(row)[n - 1] if n <= len(row) else INF
        for row, n in zip(rows, k, strict=True)
    ]


@given(IDS.filter(len), st.data())
def test_ids_are_compared_as_text(ids, data):
    numbers = st.lists(st.integers(0, len(ids) - 1), min_size=5, max_size=5)
    a, b = data.draw(numbers), data.draw(numbers)
    one = np.ones(5)
    found = among_first(one, np.array(a), one, np.array(b), pa.array(ids))
    assert found.tolist() == [ids[i] <= ids[j] for i, j in zip(a, b, strict=True)]
