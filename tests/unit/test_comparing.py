"""BBoxDB's continuous range query and its transformations, by hand (BBoxDB sections 4.3 and 4.4)."""

import numpy as np
import pyarrow as pa
import pytest
import shapely
from pyproj import Geod

from st_common.geometry.enlarged import POINT, Growth, reached
from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.expressions import readings, screens
from st_common.operators.expressions.filters import FILTERS
from st_common.operators.matching.match import match
from st_common.operators.matching.query_set import compile_queries
from st_common.operators.state.fixes import LastFixes
from st_common.operators.state.intern import Interner, hashes_of
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.registered import Registered
from st_common.operators.state.targets import Targets
from st_common.operators.turn.points import points_of
from st_common.query import filters
from st_common.query.comparing import Compare, Transform
from st_common.query.plan import LayerJoin, Plan
from st_common.regions.registry import Area, Box, Circle
from tests.kit.oracle import Feature
from tests.kit.shapely_layer import ShapelyLayer

GEOD = Geod(ellps="WGS84")
TAU = Box(minx=2, miny=2, maxx=3, maxy=3)
SPACE = Box(minx=0, miny=0, maxx=10, maxy=10)


def value(amount):
    return Transform(kind="value", amount=amount)


def factor(amount):
    return Transform(kind="factor", amount=amount)


def metres(amount):
    return Transform(kind="metres", amount=amount)


def named(name, text):
    return Transform(kind="filter", name=name, text=text)


def plan(*steps, negative=False, tau=TAU, **of):
    return Plan(
        stream="s",
        transforms=steps,
        compare=tau and Compare(box=tau, negative=negative),
        **of,
    )


def matched(plans, places, *, ids=None, attributes=None, features=None, space=PLANE):
    """For each plan the places (x, y) that it matches, with a layer the pairs of a place and a fid."""
    count = len(places)
    x, y = np.array(places, float).reshape(-1, 2).T
    fixes = LastFixes(
        ts=np.arange(count),
        x=x,
        y=y,
        status=np.ones(count, np.int8),
        seen_ts=np.arange(count),
        before_ts=np.full(count, np.iinfo(np.int64).min),
        before_x=np.full(count, np.nan),
        before_y=np.full(count, np.nan),
        earlier_ts=np.full(count, np.iinfo(np.int64).min),
        earlier_x=np.full(count, np.nan),
        earlier_y=np.full(count, np.nan),
        attributes=attributes or {},
    )
    names = pa.array(ids or [f"o{n}" for n in range(count)])
    objects = Interner.empty().with_new(hashes_of(names), names)
    queries = [
        Registered(name=f"q{n}", version=1, plan=of, layer_version=0)
        for n, of in enumerate(plans)
    ]
    known = compile_queries(queries, range(len(queries)), space=space)
    points = points_of(
        known,
        readings.of_objects(fixes, np.arange(count)),
        objects,
        space=space,
    )
    numbering = Numbering(Interner.empty(), Targets.empty())
    hits = match(
        known, points, layer_of=lambda *_: ShapelyLayer(features), numbering=numbering
    )
    found = [[] for _ in plans]
    for point, target in zip(hits.point.tolist(), hits.target.tolist(), strict=True):
        partner = numbering.targets.partner[target]
        pair = (point, numbering.partners.ids[partner].as_py()) if features else point
        found[numbering.targets.query[target]].append(pair)
    return [sorted(of) for of in found]


@pytest.mark.spec("B10")
def test_extents_grow_as_the_paper_says():
    two = POINT.by_value(2)  # [r1 - v/2, r2 + v/2]
    assert two.half_sides(np.zeros(1), space=PLANE)[0].tolist() == [1.0]
    assert two.by_factor(0.5) == Growth(value=3)  # (1 + c) e
    assert POINT.by_factor(5) == POINT  # a point has nothing that could grow
    assert two.by_factor(-1).is_point
    assert POINT.by_value(2).by_metres(3).by_factor(1) == Growth(value=4, metres=6)
    assert Growth(value=0.3, metres=50).rounded() == Growth(value=0.5, metres=64)
    assert Growth(value=2, metres=1).rounded() == Growth(value=2, metres=1)
    assert POINT.rounded() == POINT


@pytest.mark.spec("B8", "B10")
def test_steps_apply_in_the_order_written():
    first = plan(value(2), factor(1))  # reaches 2 on each side
    last = plan(factor(1), value(2))  # reaches 1
    assert matched([first, last], [(0, 2.5), (0.5, 2.5), (1, 2.5)]) == [[0, 1, 2], [2]]


@pytest.mark.spec("B8")
def test_boxes_that_touch_meet_and_negative_matches_are_all_others():
    places = [(1.5, 2.5), (1.25, 2.5), (3.5, 3.5), (3.5, 3.75), (9, 9)]
    assert matched([plan(value(1)), plan(value(1), negative=True)], places) == [
        [0, 2],
        [1, 3, 4],
    ]


@pytest.mark.spec("B8")
def test_the_region_tests_the_fix_itself_and_the_comparison_its_enlarged_box():
    """BBoxDB's example of a range query: enlarged by 0.5 on each side there, which is an extent of 1 here."""
    alpha = Box(minx=2, miny=0, maxx=10, maxy=10)
    places = [
        (1.75, 2.5),
        (2, 2.5),
        (2, 4),
        (3.5, 1.5),
    ]  # the first only reaches into alpha
    assert matched([plan(value(1), inside=alpha)], places) == [[1, 3]]
    assert matched([plan(value(1), inside=alpha, negative=True)], places) == [[2]]
    assert matched([plan(value(1), inside=Circle(x=2, y=2.5, radius_m=1))], places) == [
        [0, 1]
    ]
    assert matched(
        [plan(value(1), inside=Area(wkt="POLYGON ((2 2, 4 2, 2 4, 2 2))"))], places
    ) == [[1]]


@pytest.mark.spec("B8", "B10")
def test_a_filter_stops_a_fix_also_where_what_does_not_match_is_asked_for():
    places = [(5, 5), (6, 6), (2.5, 2.5)]
    key = Transform(kind="key", text="o1")
    box = Transform(kind="box", box=Box(minx=5.5, miny=5.5, maxx=9, maxy=9))
    assert matched([plan(key, negative=True), plan(box, negative=True)], places) == [
        [1],
        [1],
    ]
    assert matched(
        [plan(key, Transform(kind="key", text="o0"), negative=True)], places
    ) == [[]]
    assert matched(
        [plan(value(1), box, tau=None), plan(box, value(1), tau=None)], places
    ) == [[0, 1], [1]]
    assert matched([plan(Transform(kind="key", text="nobody"), tau=None)], places) == [
        []
    ]


@pytest.mark.spec("B8", "B10", "P8")
def test_positive_matches_in_coordinates_cost_nothing_beside_the_index():
    plans = [plan(value(n / 1000), inside=SPACE) for n in range(1000)]
    queries = [
        Registered(name=str(n), version=1, plan=of) for n, of in enumerate(plans)
    ]
    known = compile_queries(queries, range(1000), space=GLOBE)
    assert known.screens.empty
    assert [len(numbers) for numbers, _ in known.units[0].parts] == [1000]
    assert not len(known.units[0].everywhere)


@pytest.mark.spec("B8", "B10", "P8")
@pytest.mark.parametrize("negative", [False, True])
def test_a_thousand_queries_in_metres_are_one_test_of_arrays(monkeypatch, negative):
    calls = []
    whole = screens.meets
    monkeypatch.setattr(
        screens, "meets", lambda *given: calls.append(len(given[2])) or whole(*given)
    )
    plans = [
        plan(metres(1200 + n), inside=SPACE, negative=negative) for n in range(1000)
    ]
    found = matched(plans, [(2.5, 2.5), (3.1, 2.5), (3.005, 2.5)], space=GLOBE)
    assert len(calls) == 1
    assert found == ([[1]] * 1000 if negative else [[0, 2]] * 1000)
    near = [
        1113 + n for n in range(3)
    ]  # 0.005 degrees are 556.1 m there: half of 1112.3
    edge = [plan(metres(amount), negative=negative) for amount in (1111, *near)]
    assert [
        2 in of
        for of in matched(edge, [(2.5, 2.5), (3.1, 2.5), (3.005, 2.5)], space=GLOBE)
    ] == [negative, *[not negative] * 3]


@pytest.mark.spec("B10")
def test_metres_are_right_to_half_a_percent_at_every_latitude_below_85_degrees():
    latitude = np.linspace(-85, 85, 681)
    for amount in (1.0, 50.0, 1_000.0, 10_000.0):
        across, along = Growth(metres=amount).half_sides(latitude, space=GLOBE)
        nothing = np.zeros(len(latitude))
        wide = GEOD.inv(nothing - across, latitude, nothing + across, latitude)[2]
        high = GEOD.inv(nothing, latitude - along, nothing, latitude + along)[2]
        assert np.abs(np.array([wide, high]) / amount - 1).max() < 0.005


@pytest.mark.spec("B10")
def test_boxes_of_candidates_hold_every_point_whose_box_meets():
    rng = np.random.default_rng(3)
    for growth in (
        Growth(metres=900.0),
        Growth(value=0.3, metres=40_000.0),
        Growth(value=0.2),
    ):
        box = np.array([[20.0, 0.0, 21.0, 1.0]]) + np.array(
            [[0.0, 1.0, 0.0, 1.0]]
        ) * rng.uniform(-89, 89, (50, 1))
        (minx, miny, maxx, maxy), y = box.T, rng.uniform(-89.99, 89.99, 50)
        y = np.where(rng.random(50) < 0.8, rng.uniform(miny - 0.6, maxy + 0.6), y)
        across, along = growth.half_sides(y, space=GLOBE)
        for x in (minx - across * 0.999999, maxx + across * 0.999999):
            meet = (y + along >= miny) & (y - along <= maxy)
            low = reached(box, growth, space=GLOBE)
            held = (
                (low[:, 0] <= x)
                & (x <= low[:, 2])
                & (low[:, 1] <= y)
                & (y <= low[:, 3])
            )
            assert held[meet].all()
            assert meet.any()


@pytest.mark.parametrize(
    "growth",
    [Growth(metres=900.0), Growth(value=0.3, metres=40_000.0), Growth(value=0.2)],
    ids=str,
)
def test_boxes_of_candidates_are_hardly_larger_than_they_must_be(growth):
    miny = np.linspace(-80, 79, 60)
    box = np.stack([np.full(60, 20.0), miny, np.full(60, 21.0), miny + 1], axis=1)
    across, along = growth.half_sides(
        np.maximum(np.abs(miny), np.abs(miny + 1)), space=GLOBE
    )
    grown = (reached(box, growth, space=GLOBE) - box) * np.array([-1.0, -1.0, 1.0, 1.0])
    assert (grown[:, 0::2] <= 1.06 * across[:, None]).all()
    assert (grown[:, 1::2] <= 1.02 * along[:, None]).all()


def test_at_a_pole_every_longitude_is_near():
    far = Box(minx=100, miny=89.9, maxx=101, maxy=90)
    assert matched(
        [plan(metres(50.0), tau=far)], [(-60, 90), (-60, 89.99)], space=GLOBE
    ) == [[0]]


ATTRIBUTES = {
    "Kind": pa.array(["taxi", "bus", None]),
    "seats": pa.array([2, 3, 2]),
    "free": pa.array([True, None, False]),
}
PLACES = [(1, 1), (4, 4), (8, 1)]


@pytest.mark.spec("B10", "B12")
@pytest.mark.parametrize(
    ("name", "text", "passed"),
    [
        ("key", "o1", [1]),
        ("property", "kind:taxi", [0]),
        ("property", "kind:Taxi", []),
        ("property", "seats:2", [0, 2]),
        ("property", "free:true", [0]),
        ("property", "color:red", []),
        ("wkt", "POLYGON ((0 0, 8 0, 0 8, 0 0))", [0, 1]),  # (4, 4) lies on its border
        ("wkt", "POLYGON ((0 0, 8 0, 8 8, 0 0))", [0, 1, 2]),
        ("wkt", "LINESTRING (0 2, 8 2)", []),
        ("geojson", None, [0, 1, 2]),
        ("geojson", "seats:3", [1]),
        ("geojson", '{"type": "Point", "coordinates": [8, 1]}', [2]),
        (
            "geojson",
            '{"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": '
            "[[[0, 0], [9, 0], [9, 2], [0, 0]]]}}",
            [2],
        ),  # its bounds hold the first place, too
    ],
)
def test_built_in_filters(name, text, passed):
    assert filters.complaint(name, text) is None
    for tau, negative in (
        (None, False),
        (SPACE, False),
        (Box(minx=50, miny=50, maxx=60, maxy=60), True),
    ):
        wanted = plan(named(name, text), tau=tau, negative=negative)
        assert matched([wanted], PLACES, attributes=ATTRIBUTES) == [passed]


@pytest.mark.spec("B10", "B12")
def test_geometries_of_filters_meet_the_box_as_it_is_then():
    line = named("wkt", "LINESTRING (0 2, 8 2)")
    assert matched(
        [plan(value(2), line, tau=None), plan(line, value(2), tau=None)], PLACES
    ) == [[0, 2], []]


@pytest.mark.spec("B11")
def test_filters_see_candidates_of_boxes_alone_each_once(monkeypatch):
    seen = []

    class Spy:
        def filter_fixes(self, fixes, text):
            seen.append((text, fixes.objects().to_pylist()))
            return fixes.readings.x > 2.25

    monkeypatch.setitem(FILTERS, "spy", Spy())
    plans = [plan(value(n), named("spy", "v"), inside=SPACE) for n in (0, 0)] + [
        plan(named("spy", "w"))
    ]
    places = [(2, 2), (2.5, 2.5), (7, 7), (20, 20)]
    assert matched(plans, places) == [[1], [1], [1]]
    assert seen == [("v", ["o0", "o1"]), ("w", ["o0", "o1"])]


FEATURES = [
    Feature("f1", "park", shapely.box(2, 2, 4, 4), {"line": "taxi", "size": "2"}),
    Feature(
        "f2", "road", shapely.LineString([(0, 0), (2, 2), (6, 6)]), {"line": "bus"}
    ),
    Feature("f3", "park", shapely.Point(8, 8), {}),
]


def joined(*steps, predicate="intersects", **of):
    return plan(*steps, tau=None, join=LayerJoin(layer="l", predicate=predicate, **of))


@pytest.mark.spec("B9", "B10")
def test_the_enlarged_box_meets_features():
    places = [(1, 1), (1, 3), (8.5, 8.5)]
    plans = [
        joined(),
        joined(value(1)),
        joined(value(2)),
        joined(value(2), predicate="within"),
    ]
    assert matched(plans, places, features=FEATURES) == [
        [(0, "f2")],
        [(0, "f2"), (2, "f3")],
        [(0, "f1"), (0, "f2"), (1, "f1"), (1, "f2"), (2, "f3")],
        [],
    ]
    assert matched(
        [joined(value(1), predicate="within")],
        [(3, 3), (2.5, 2.5), (2.25, 3)],
        features=FEATURES,
    ) == [[(0, "f1"), (1, "f1")]]


@pytest.mark.spec("B9")
def test_a_border_is_not_within():
    places = [(2, 3), (3, 3), (0, 0), (8, 8)]
    plans = [joined(predicate="within"), joined()]
    assert matched(plans, places, features=FEATURES) == [
        [(1, "f1"), (1, "f2"), (3, "f3")],
        [(0, "f1"), (1, "f1"), (1, "f2"), (2, "f2"), (3, "f3")],
    ]


@pytest.mark.spec("B9", "B12")
def test_joins_by_tags_and_properties_of_either_side():
    places = [(3, 3), (3, 3), (3, 3)]
    tags = (("line", "taxi"), ("size", "2"))
    plans = [
        joined(tags=tags),
        joined(tags=(("line", "taxi"), ("size", "3"))),
        joined(named("property", "line:bus")),
        joined(named("geojson", "kind:bus")),
    ]
    found = matched(
        plans,
        places,
        features=FEATURES,
        attributes={"kind": pa.array(["bus", "taxi", None])},
    )
    assert found == [
        [(0, "f1"), (1, "f1"), (2, "f1")],
        [],
        [(0, "f2"), (1, "f2"), (2, "f2")],
        [(0, "f1"), (0, "f2")],
    ]


@pytest.mark.spec("B12")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("key", None),
        ("key", ""),
        ("property", None),
        ("property", "taxi"),
        ("property", ":taxi"),
        ("wkt", None),
        ("wkt", "POLYGON"),
        ("wkt", "POLYGON EMPTY"),
        ("wkt", "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"),
        ("geojson", ""),
        ("geojson", "taxi"),
        ("geojson", "{"),
        ("geojson", "{}"),
        ("geojson", '{"type": "Polygon", "coordinates": []}'),
        ("geojson", '{"type": "Point"}'),
    ],
)
def test_values_that_a_filter_cannot_use_are_complained_about(name, text):
    assert filters.complaint(name, text)


def test_the_filters_that_queries_may_name_are_those_that_run():
    assert tuple(sorted(FILTERS)) == filters.NAMES
