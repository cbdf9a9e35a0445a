"""NEAREST in a JOIN with a layer: the k nearest features of each object, kept exactly (P13, P3)."""

import json

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.errors import QueryError
from st_common.geometry.space import GLOBE, PLANE
from st_common.query.builder import query
from st_common.query.explain import explain, lines
from st_common.query.plan import LayerJoin
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, to_text
from tests.kit.by_hand import end, fix, gone, layer, register
from tests.kit.effort import tries
from tests.kit.layer_tables import index_of
from tests.kit.oracle import Feature
from tests.kit.roads import plan_of, told_of

pytestmark = pytest.mark.spec("P13", "P3")
HOW = [{}, {"cuts": (2, 4, 5)}, {"shards": 3, "restarts": frozenset({0})}]
NEAR = "FROM s t JOIN roads r ON NEAREST(t, r, 2)"
KINDS = ("fuel", "water")
GEOD = Geod(ellps="WGS84")


def station(fid, x, y, kind="fuel", **tags):
    return Feature(fid, kind, shapely.Point(x, y), tags)


STATIONS = [
    station("a", 0, 0, brand="x"),
    station("b", 10, 0, brand="y"),
    station("c", 20, 0, brand="x"),
    station("d", 30, 0, kind="water"),
    Feature("park", "park", shapely.box(11, -1, 14, 1), {}),
]
LATER = [one for one in STATIONS if one.fid != "b"]
ROWS = [fix("m", 1, 1, 0), fix("m", 2, 12, 0), fix("m", 3, 15, 0), gone("m", 4)]


def said(row):
    shown = row["fields"] or ("" if row["value"] is None else f"{row['value']:g}")
    return f"{row['object']}|{row['partner'] or ''} {shown}".rstrip()


def told(text, rows=ROWS, **how):
    asked = [layer("roads", 1), register("q", plan_of(text), layer_version=1)]
    known = {("roads", 1): STATIONS, ("roads", 2): LATER}
    return told_of([*asked, *rows, end()], known, said, **how)


@pytest.mark.parametrize("how", HOW)
def test_an_object_is_joined_with_its_nearest_features(how):
    """In the park at 2 it is 0 m from it; at 3 the park is 1 m away, b and c 5 m: b is first by its fid."""
    assert told(f"SELECT * {NEAR}", **how) == [
        "1 +m|a",
        "1 +m|b",
        "2 -m|a",
        "2 +m|park",
        "4 -m|b",
        "4 -m|park",
    ]


@pytest.mark.parametrize("how", HOW)
def test_a_new_version_of_the_layer_gives_other_neighbours(how):
    rows = [ROWS[0], layer("roads", 2), ROWS[1]]
    assert told(f"SELECT * {NEAR}", rows, **how) == [
        "1 +m|a",
        "1 +m|b",
        "1 -m|b",
        "1 +m|park",
        "2 -m|a",
        "2 +m|c",
    ]


def test_kinds_tags_keys_and_a_distance_say_among_which():
    fuel = f"SELECT * {NEAR} AND r.kind = 'fuel'"
    assert told(fuel, ROWS[2:3]) == ["3 +m|b", "3 +m|c"]
    assert told(f"{fuel} AND r.brand = 'x'", ROWS[2:3]) == ["3 +m|a", "3 +m|c"]
    near = f"{fuel} AND ST_DWithin(t, r, 6 m)"
    assert told(near, ROWS[:1]) == ["1 +m|a"]
    own = "SELECT * FROM s t JOIN roads r ON t.kind = r.brand AND NEAREST(t, r, 1)"
    assert told(own, [fix("m", 1, 12, 0, kind="x")]) == ["1 +m|c"]
    assert told("SELECT * FROM s t JOIN roads r ON NEAREST(t, r, 99)", ROWS[:1]) == [
        f"1 +m|{fid}" for fid in ("a", "b", "c", "d", "park")
    ]


def test_other_conditions_are_asked_of_the_nearest():
    """Of the two nearest, b and the park, one has a brand; a, which has it too, is farther."""
    text = f"SELECT r.brand, distance(t, r) AS m {NEAR} WHERE r.brand LIKE '_'"
    assert told(text, ROWS[1:2]) == ['2 +m|b {"brand":"y","m":2.0}']
    far = "SELECT * FROM s t LEFT JOIN roads r ON NEAREST(t, r, 1) AND distance(t, r) > 1 m"
    assert told(far, ROWS[:2]) == ["1 +m|"]


def test_features_count_who_is_nearest_to_them():
    text = "SELECT r.fid, COUNT(*) FROM s t JOIN roads r ON NEAREST(t, r, 1) GROUP BY r.fid"
    rows = [fix("m", 1, 1, 0), fix("n", 1, 29, 0), fix("o", 1, 2, 0)]
    assert told(text, rows) == ["1 +a| 2", "1 +d| 1"]


def test_it_is_said_in_texts_in_json_and_in_python():
    plan = plan_of(
        "SELECT * FROM s t JOIN roads r ON ST_DWithin(t, r, 10 m) AND t.kind = r.ref AND NEAREST(t, r, 2)"
    )
    assert plan.join == LayerJoin(
        layer="roads",
        predicate="dwithin",
        distance_m=10.0,
        left="kind",
        right="ref",
        nearest=2,
    )
    built = query("s").join("roads").on_dwithin(10).and_equal("kind", "ref")
    assert built.and_nearest(2).build() == plan
    alone = query("s").join("roads").on_nearest(3).kinds("fuel").build()
    by_key = query("s").join("roads").on_equal("kind", "ref").and_nearest(1).build()
    for each in (plan, alone, by_key):
        assert plan_from_json(json.dumps(each.to_json())) == each
        assert plan_of(to_text(each, "q").partition(" AS ")[2]) == each
    assert any("the 3 nearest" in line for line in lines(explain(alone, "q")))


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEAR.replace("2)", "0)"), "a number from 1 to 10,000"),
        (NEAR.replace("r, 2", "x, 2"), "NEAREST is of the two"),
        (f"{NEAR} AND NEAREST(t, r, 1)", "one condition by place"),
        (f"{NEAR} AND ST_Intersects(t, r)", "beside ST_DWithin or a key"),
        (f"{NEAR} DETECT ENTER", "DETECT and NEAREST exclude each other"),
        (f"{NEAR} USING enlarge(5 m)", "exclude each other"),
        (f"{NEAR} COMPARE WITH (0, 0, 1, 1)", "exclude each other"),
    ],
)
def test_what_has_no_meaning_is_refused(text, message):
    with pytest.raises((TextError, QueryError), match=message):
        plan_from_json(json.dumps(plan_of(f"SELECT * {text}").to_json()))


@pytest.mark.spec("P4")
def test_json_and_python_are_refused_as_texts_are():
    with pytest.raises(QueryError, match="whole number from 1"):
        query("s").join("roads").on_nearest(0)
    plan = plan_of(f"SELECT * {NEAR}").to_json()
    for wrong in ({"nearest": 0}, {"nearest": 10_001}, {"predicate": "intersects"}):
        said_so = {**plan, "join": {**plan["join"], **wrong}}
        with pytest.raises(QueryError):
            plan_from_json(json.dumps(said_so))
    del plan["join"]["nearest"]
    with pytest.raises(QueryError, match="nearest"):
        plan_from_json(json.dumps(plan))


def nearest_by_shapely(features, x, y, k, kinds):
    """All distances are measured, and sorted with the fids."""
    far = [
        (round(shapely.Point(x, y).distance(one.geometry), 9), one.fid)
        for one in features
        if not kinds or one.kind in kinds
    ]
    return {fid for _, fid in sorted(far)[:k]}


@st.composite
def shapes(draw, place):
    x, y, dx, dy = (draw(place) for _ in range(4))
    a_box = shapely.box(min(x, dx), min(y, dy), max(x, dx) + 1, max(y, dy) + 1)
    return draw(
        st.sampled_from(
            [
                shapely.Point(x, y),
                shapely.LineString([(x, y), (dx + 0.5, dy)]),
                a_box,
                a_box.difference(shapely.box(x, y, x + 1, y + 0.5)),
                shapely.MultiPoint([(x, y), (dx, dy)]),
            ]
        )
    )


@tries(60)
@given(data=st.data(), k=st.integers(1, 9), kinds=st.sampled_from([(), ("fuel",)]))
def test_on_a_plane_they_are_those_that_shapely_finds(data, k, kinds):
    """Whole numbers: many are equally far, and some points lie in features."""
    place = st.integers(-8, 8)
    drawn = data.draw(st.lists(shapes(place), min_size=1, max_size=30))
    features = [
        Feature(f"f{n:02}", KINDS[n % 2], each, {}) for n, each in enumerate(drawn)
    ]
    index = index_of(features, space=PLANE)
    points = data.draw(st.lists(st.tuples(place, place), min_size=1, max_size=8))
    x, y = np.array(points, float).T
    point, feature = index.k_nearest(x, y, k, kinds=kinds)
    for at in range(len(x)):
        mine = set(index.fids[feature[point == at]])
        assert mine == nearest_by_shapely(features, x[at], y[at], k, kinds)


LONGITUDES = st.one_of(st.floats(-180, 180), st.sampled_from([-180.0, 180.0, 179.99]))
LATITUDES = st.one_of(st.floats(-90, 90), st.sampled_from([-90.0, 90.0, 89.99, 0.0]))
PLACES = st.tuples(LONGITUDES, LATITUDES)


@tries(60)
@given(
    places=st.lists(PLACES, min_size=1, max_size=40),
    points=st.lists(PLACES, min_size=1, max_size=8),
    k=st.integers(1, 12),
    limit=st.sampled_from([None, 0.0, 3_000_000.0]),
)
def test_on_the_globe_they_are_those_of_all_geodesics(places, points, k, limit):
    """Over 180 degrees and the poles, from the other side of the Earth too."""
    features = [station(f"f{n:02}", *place) for n, place in enumerate(places)]
    index = index_of(features, space=GLOBE)
    x, y = np.array(points, float).T
    point, feature = index.k_nearest(x, y, k, distance_m=limit)
    for at in range(len(x)):
        n = len(places)
        ends = np.array(places).T
        _, _, far = GEOD.inv(np.full(n, x[at]), np.full(n, y[at]), *ends)
        order = np.lexsort((np.arange(n), np.round(far, 3)))[:k]
        mine = np.sort(far[feature[point == at]])
        wanted = far[order][far[order] <= (np.inf if limit is None else limit)]
        np.testing.assert_allclose(mine, np.sort(wanted), atol=0.002, rtol=1e-9)


@tries(40)
@given(seed=st.integers(0, 10**6), k=st.sampled_from([1, 3, 20]))
def test_on_the_globe_no_shape_that_was_passed_over_is_nearer(seed, k):
    """Of points, lines and areas, small ones and some as large as continents, every distance is measured."""
    rng = np.random.default_rng(seed)
    drawn = []
    for number in range(60):
        x, y = rng.uniform(-180, 175), rng.uniform(-90, 85)
        side = rng.choice([0.01, 1.0, 20.0, 150.0])
        east, north = min(x + side, 180.0), min(y + side, 90.0)
        shape = shapely.box(x, y, east, north)
        if number % 3 == 0:
            shape = shapely.LineString([(x, y), (east, north)])
        drawn.append(Feature(f"f{number:02}", "any", shape, {}))
    index = index_of(drawn, space=GLOBE)
    x, y = rng.uniform(-180, 180, 20), rng.uniform(-90, 90, 20)
    x[:2], y[2:4] = (180.0, -180.0), (90.0, -90.0)
    point, feature = index.k_nearest(x, y, k)
    for at in range(len(x)):
        all_far = index.distances(np.full(60, x[at]), np.full(60, y[at]), np.arange(60))
        order = np.lexsort((np.arange(60), np.round(all_far, 3)))[:k]
        assert sorted(feature[point == at].tolist()) == sorted(order.tolist())


def test_who_is_nowhere_is_near_to_nothing_and_no_features_are_near_to_nobody():
    index = index_of(STATIONS, space=PLANE)
    nowhere = np.array([np.nan]), np.array([0.0])
    assert index.k_nearest(*nowhere, 3)[0].tolist() == []
    none = index.k_nearest(np.zeros(2), np.zeros(2), 3, kinds=("none",))
    assert none[0].tolist() == []
