"""The distance of a fix and a feature of a joined layer, in WHERE and among the columns (SPEC X12)."""

import json

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from st_common.errors import QueryError
from st_common.geometry.space import GLOBE, PLANE
from st_common.layers.shapes import RegionShapes
from st_common.query.builder import query
from st_common.query.lengths import in_coordinates
from st_common.query.plan_json import plan_from_json
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import end, fix, gone, layer, register
from tests.kit.effort import tries
from tests.kit.oracle_rows import Feature
from tests.kit.roads import JOIN, plan_of, road, told_of

pytestmark = pytest.mark.spec("X12")
GEOD = Geod(ellps="WGS84")
HOW = [
    {},
    {"cuts": (2, 4, 5)},
    {"cuts": (3, 5), "shards": 3, "restarts": frozenset({0})},
]
SQUARE = Feature("square", "park", shapely.box(0, 10, 20, 30), {})
PLACES = [road("town", 0, width="3"), SQUARE]
FAR = {("roads", 1): PLACES, ("roads", 2): [road("town", 2, width="3"), SQUARE]}


def said(row):
    return f"{row['object']}|{row['partner']} {row['cause']} {row['fields']}"


def told(rows, **how):
    return told_of(rows, FAR, said, **how)


def asked(text):
    return [layer("roads", 1), register("q", plan_of(text), layer_version=1)]


@pytest.mark.parametrize("how", HOW)
def test_rows_show_how_far_the_fix_of_then_is(how):
    rows = [
        *asked(f"SELECT distance(t, r) AS far {JOIN} EMIT EVERY"),
        fix("a", 1, 3, 4),
        fix("a", 2, -3, 4),
        fix("a", 3, 10, 20),
        gone("a", 4),
        end(),
    ]
    assert told(rows, **how) == [
        '1 +a|town enter {"far":4.0}',
        '2 =a|town inside {"far":5.0}',
        '3 -a|town leave {"far":20.0}',
        '3 +a|square enter {"far":0.0}',
        '4 -a|square gone {"far":0.0}',
    ]


@pytest.mark.parametrize("how", HOW)
def test_conditions_hold_by_it_at_each_fix(how):
    rows = [
        *asked(f"SELECT * {JOIN} WHERE distance(t, r) > r.width"),
        fix("a", 1, 3, 4),
        fix("a", 2, 3, 3),
        fix("b", 3, 3, 3.5),
        fix("b", 4, 3, 5.5),
        end(),
    ]
    assert told(rows, **how) == [
        "1 +a|town enter None",
        "2 -a|town leave None",
        "3 +b|town enter None",
        "4 -b|town leave None",
    ]


def test_another_version_of_the_layer_is_another_distance():
    rows = [
        *asked(f"SELECT distance(t, r) AS far {JOIN} WHERE distance(t, r) > 1"),
        fix("a", 1, 3, 3),
        layer("roads", 2),
        fix("a", 2, 3, 4),
        fix("a", 3, 3, 3),
        end(),
    ]
    assert told(rows) == [
        '1 +a|town enter {"far":3.0}',
        '1 -a|town layer {"far":3.0}',
        '2 +a|town enter {"far":2.0}',
        '3 -a|town leave {"far":1.0}',
    ]


def test_a_feature_that_is_joined_by_a_key_is_as_far_as_it_is():
    join = "FROM s t JOIN roads r ON t.object = r.fid"
    rows = [
        *asked(f"SELECT distance(t, r) AS far {join}"),
        fix("square", 1, 23, 34),
        fix("town", 1, -3000, 4000),
        end(),
    ]
    assert told(rows) == [
        '1 +square|square enter {"far":5.0}',
        '1 +town|town enter {"far":5000.0}',
    ]


def test_features_may_choose_by_it():
    near = "EXISTS (SELECT 1 FROM roads r WHERE ST_DWithin(t, r, 5 m) AND distance(t, r) > 2)"
    rows = [
        *asked(f"SELECT * FROM s t WHERE {near}"),
        fix("a", 1, 3, 1),
        fix("b", 1, 3, 3),
        end(),
    ]
    assert told(rows) == ["1 +b|None enter None"]


PLACE = st.tuples(st.floats(-1, 1), st.floats(-1, 1))
SHAPES = st.one_of(
    PLACE.map(shapely.Point),
    st.lists(PLACE, min_size=2, max_size=12).map(shapely.LineString),
    st.lists(PLACE, min_size=3, max_size=12).map(
        lambda places: shapely.MultiPoint(places).convex_hull
    ),
)
CENTRES = [(10.0, 0.0), (25.0, 60.0), (179.9999, -40.0), (-180.0, 84.0), (0.0, -89.0)]


@tries(60)
@given(
    st.lists(SHAPES, min_size=1, max_size=5),
    st.lists(PLACE, min_size=1, max_size=8),
    st.sampled_from([None, *CENTRES]),
    st.sampled_from([1e-4, 0.01, 0.3]),
)
def test_a_distance_is_the_least_limit_that_joins(shapes, points, centre, size):
    """`ST_DWithin(t, r, d)` holds just where `distance(t, r) <= d` does."""
    space = PLANE if centre is None else GLOBE
    middle = np.array(centre or (0.0, 0.0))
    moved = [shapely.transform(s, lambda c: c * size + middle) for s in shapes]
    index = RegionShapes(pa.array([shapely.to_wkb(one) for one in moved]))
    which, at = (g.ravel() for g in np.meshgrid(range(len(moved)), range(len(points))))
    x, y = (np.array(points) * size + middle).T[:, at]
    x = np.where(x > 180, x - 360, x) if centre else x
    far = index.distances(which, x, y, space=space)
    slack = far * 1e-9 + 1e-9
    for pair, limit in enumerate((far + slack).tolist()):
        one = which[pair : pair + 1], x[pair : pair + 1], y[pair : pair + 1]
        assert joins(index, one, limit, space)
        less = float(far[pair] - slack[pair])
        assert less <= 0 or not joins(index, one, less, space)


@tries(60)
@given(
    st.lists(SHAPES, min_size=1, max_size=5),
    st.lists(PLACE, min_size=1, max_size=8),
    st.sampled_from([None, *CENTRES]),
    st.sampled_from([1e-4, 0.01, 0.3]),
)
def test_the_nearest_place_is_one_of_the_feature_and_as_far_as_that(
    shapes, points, centre, size
):
    space = PLANE if centre is None else GLOBE
    middle = np.array(centre or (0.0, 0.0))
    moved = [shapely.transform(s, lambda c: c * size + middle) for s in shapes]
    index = RegionShapes(pa.array([shapely.to_wkb(one) for one in moved]))
    which, at = (g.ravel() for g in np.meshgrid(range(len(moved)), range(len(points))))
    x, y = (np.array(points) * size + middle).T[:, at]
    x = np.where(x > 180, x - 360, x) if centre else x
    far = index.distances(which, x, y, space=space)
    place_x, place_y = index.nearest(which, x, y, space=space)
    assert space.distance(x, y, place_x, place_y) == pytest.approx(
        far, rel=1e-6, abs=1e-6
    )
    off = index.distances(which, place_x, place_y, space=space)
    assert off == pytest.approx(np.zeros(len(off)), abs=1e-3 if centre else 1e-9)


@pytest.mark.parametrize("how", HOW)
def test_rows_show_the_nearest_place(how):
    """On the street below, at a corner, and the fix itself inside an area."""
    rows = [
        *asked(f"SELECT nearest_x(t, r) AS x, nearest_y(t, r) AS y {JOIN} EMIT EVERY"),
        fix("a", 1, 3, 4),
        fix("a", 2, -3, 4),
        fix("a", 3, 10, 20),
        end(),
    ]
    assert told(rows, **how) == [
        '1 +a|town enter {"x":3.0,"y":0.0}',
        '2 =a|town inside {"x":0.0,"y":0.0}',
        '3 -a|town leave {"x":10.0,"y":0.0}',
        '3 +a|square enter {"x":10.0,"y":20.0}',
    ]


@pytest.mark.parametrize("how", HOW)
def test_how_far_the_border_is_counts_from_inside_too(how):
    shown = f"SELECT border_distance(t, r) AS far {JOIN}"
    rows = [
        *asked(f"{shown} WHERE border_distance(t, r) < 4 m EMIT EVERY"),
        fix("a", 1, 10, 12),
        fix("a", 2, 17, 20),
        fix("a", 3, 10, 20),  # 10 m from all sides
        fix("a", 4, 10, 30),
        end(),
    ]
    assert told(rows, **how) == [
        '1 +a|square enter {"far":2.0}',
        '2 =a|square inside {"far":3.0}',
        '3 -a|square leave {"far":10.0}',
        '4 +a|square enter {"far":0.0}',
    ]


AREA = shapely.Polygon(
    [(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (2, 1), (2, 2), (1, 2)]]
)


@given(PLACE)
def test_the_border_of_an_area_is_its_outline_and_those_of_its_holes(place):
    shapes = RegionShapes(pa.array([shapely.to_wkb(AREA)]))
    x, y = (np.array([axis]) for axis in place)
    (far,) = shapes.to_borders(np.array([0]), x, y, space=PLANE)
    assert far == pytest.approx(shapely.Point(place).distance(AREA.boundary), abs=1e-9)


def test_the_border_of_an_area_over_180_degrees_is_found_from_both_sides():
    area = shapely.box(170, -1, 190, 1)
    shapes = RegionShapes(pa.array([shapely.to_wkb(area)]))
    x, y = np.array([179.9, -179.9, -170.5]), np.zeros(3)
    far = shapes.to_borders(np.zeros(3, np.int64), x, y, space=GLOBE)
    to_the_north = GEOD.inv(0, 0, 0, 1)[2]
    assert far[:2] == pytest.approx([to_the_north] * 2, abs=0.1)
    assert far[2] == pytest.approx(GEOD.inv(-170.5, 0, -170, 0)[2], abs=0.1)


def test_nearest_places_are_columns_of_features_alone():
    plan = plan_of(f"SELECT nearest_x(t, r) {JOIN}")
    assert plan.columns == (("nearest_x", '"pair.nearest_x"'),)
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    with pytest.raises(TextError, match="another object is a point"):
        plan_of("SELECT nearest_x(a, b) FROM s a JOIN s b ON ST_DWithin(a, b, 5 m)")
    asked_of_it = plan_of(f"SELECT * {JOIN} WHERE nearest_x(t, r) > 3").to_json()
    with pytest.raises(QueryError, match="are columns, and no conditions"):
        plan_from_json(json.dumps(asked_of_it))


def joins(index, pair, limit, space):
    """As `LayerIndex.match` asks: here, and a turn away where the limit reaches over 180 degrees."""
    which, x, y = pair
    places = [x] if space.is_flat else [x, x - np.copysign(360, x)]
    return any(index.near(which, one, y, limit, space=space)[0] for one in places)


@given(PLACE, st.sampled_from([0.0, 45.0, -70.0]))
def test_on_the_globe_it_is_metres_of_a_geodesic(step, latitude):
    shapes = RegionShapes(pa.array([shapely.to_wkb(shapely.Point(20, latitude))]))
    x, y = 20 + step[0], latitude + step[1]
    (far,) = shapes.distances(np.array([0]), np.array([x]), np.array([y]), space=GLOBE)
    assert far == pytest.approx(GEOD.inv(x, y, 20, latitude)[2], abs=1e-6)


@pytest.mark.parametrize(
    ("said", "columns"),
    [
        ("distance(t, r)", (("distance", '"pair.distance_m"'),)),
        ("distance(r, t) AS far", (("far", '"pair.distance_m"'),)),
        ("distance(t, r) / 1000 AS km", (("km", '"pair.distance_m" / 1000'),)),
        (
            "distance(t, r) - r.width AS off",
            (("off", '"pair.distance_m" - TRY_CAST("other.width" AS DOUBLE)'),),
        ),
    ],
)
def test_text_json_and_builder_say_the_same(said, columns):
    plan = plan_of(f"SELECT {said} {JOIN} WHERE distance(t, r) > 0.002 km")
    assert plan.columns == columns
    assert plan.where == '"pair.distance_m" > 2'
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan
    expression, _, name = (
        said.replace("t,", "s,").replace(", t", ", s").partition(" AS ")
    )
    column = (name, expression) if name else expression
    joined = query("s").join("roads", "r").on_dwithin(5)
    built = joined.where("distance(s, r) > 2").select(column)
    assert built.plan == plan


def test_it_is_metres_where_coordinates_are_feet():
    plan = plan_of(f"SELECT distance(t, r) {JOIN} WHERE distance(t, r) < 5 m")
    feet = in_coordinates(plan, 0.3048)
    assert feet.columns == (("distance", '("pair.distance_m" * 0.3048)'),)
    assert feet.where == '("pair.distance_m" * 0.3048) < 5'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"SELECT bearing(t, r) {JOIN}", "BEARING is of two objects"),
        (f"SELECT distance(t, x) {JOIN}", "of the two of a pair"),
        (f"SELECT * {JOIN} WHERE distance(t, r) > 3 s", "expected a distance"),
        (f"SELECT COUNT(*) {JOIN} GROUP BY distance(t, r)", "has no place here"),
        (f"SELECT distance(t, r) {JOIN} DETECT ENTER", "columns of tags or the dist"),
        (f"SELECT * {JOIN} WHERE distance(t, r) > 1 FOR 1 min", "or the distance"),
    ],
)
def test_what_has_no_meaning_is_refused(text, said):
    with pytest.raises((QueryError, TextError), match=said):
        plan_from_json(json.dumps(plan_of(text).to_json()))


def test_no_plan_groups_by_it():
    plan = plan_of(f"SELECT r.name, COUNT(*) AS n {JOIN} GROUP BY r.name")
    changed = json.dumps(plan.to_json()).replace("other.name", "pair.distance_m")
    with pytest.raises((QueryError, TextError), match="not about both"):
        plan_from_json(changed)
