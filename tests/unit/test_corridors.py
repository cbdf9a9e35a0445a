"""Corridors: who is within a width of a line, by examples on paper, through the step and by brute force (SPEC X9)."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import shapely
from pyproj import Geod

from st_common.checks.sentences import asked
from st_common.errors import QueryError
from st_common.geometry.borders import Segments
from st_common.geometry.space import GLOBE, PLANE
from st_common.query.builder import corridor, query
from st_common.query.explain import explain, lines
from st_common.query.fence import Fence
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.query.plan_json import plan_from_json
from st_common.query.printed import to_text
from st_common.query.problem import TextError
from st_common.query.text import parse
from st_common.regions.registry import Corridor, borders_of, index_of, region_mask
from tests.kit.by_hand import clock, drop, end, fix, log, register
from tests.kit.by_hand import lines as told
from tests.kit.oracle_rows import Feature, Rules
from tests.kit.telling import by_both

pytestmark = pytest.mark.spec("X9")
STREET = Corridor.along("LINESTRING (0 0, 10 0, 10 10)", 2.0)
_GEOD = Geod(ellps="WGS84")


def play(plan, *rows, layers=None, **rules):
    """The changes as the step and brute force tell them, without the query's name."""
    registered = register("q", plan, layer_version=0 if layers else None)
    found = by_both(
        log(registered, *rows), layers=layers, rules=Rules(**rules) if rules else None
    )
    return [line.replace(" q ", " ").partition(" {")[0] for line in told(found)]


def drive(*places, name="a"):
    return [fix(name, n, x, y) for n, (x, y) in enumerate(places, 1)]


def test_the_border_belongs_to_it_also_around_corners_and_ends():
    plan = Plan(stream="cars", inside=STREET)
    inside = [(-2, 0), (5, 2), (5, -2), (8, 8), (12, 5), (10, 12), (11.5, -1)]
    outside = [(-2.01, 0), (5, 2.01), (-1.5, 1.5), (10, 12.01), (7.99, 8), (12, -2)]
    found = play(plan, *(drive(at, name=f"{at}")[0] for at in inside + outside))
    assert [line.split("+")[1].rsplit(" ", 1)[0] for line in found] == [
        f"{at}" for at in inside
    ]


def test_who_follows_the_line_stays_in_the_answer():
    plan = Plan(stream="cars", inside=STREET)
    ways = drive((-5, 0), (1, 1), (9, -1), (11, 8), (20, 8))
    assert play(plan, *ways) == ["2 @2 +a enter", "5 @5 -a leave"]


def test_a_line_of_several_parts_is_one_corridor():
    parts = Corridor.along("MULTILINESTRING ((0 0, 4 0), (8 0, 12 0))", 1.0)
    ways = drive((2, 0), (6, 0), (10, 0))
    assert play(Plan(stream="cars", inside=parts), *ways) == [
        "1 @1 +a enter",
        "2 @2 -a leave",
        "3 @3 +a enter",
    ]


def test_a_fence_goes_out_at_one_distance_and_in_at_another():
    """In at 2, out at more than 3 of the line: a place at 2.5 changes nothing."""
    fence = Fence(events=("enter", "exit"), hysteresis_m=1.0)
    plan = Plan(stream="cars", inside=STREET, fence=fence)
    ways = drive((5, 2.5), (5, 2), (5, 2.5), (5, 3), (5, 3.1), (5, 2.5), (5, 1))
    assert play(plan, *ways) == ["2 @2 +a enter", "5 @5 -a leave =3", "7 @7 +a enter"]


def test_a_way_that_cuts_it_crosses_and_one_that_ends_in_it_enters():
    plan = Plan(stream="cars", inside=STREET, fence=Fence(events=("cross", "enter")))
    ways = drive((5, 5), (5, -5), (-5, -5), (-3, 5), (5, 5), (5, 1))
    assert play(plan, *ways) == ["2 @2 =a cross", "6 @6 =a enter"]


def test_a_way_past_an_end_meets_it_where_it_is_near_enough():
    border = borders_of([STREET], space=PLANE)
    x = np.array([-1.9, -2.0, -2.1])
    ways = Segments(ax=x, ay=np.full(3, 9.0), bx=x, by=np.full(3, -9.0))
    assert border.met_by(ways)[0].tolist() == [0, 1]


def test_windows_aggregates_pairs_and_joins_take_it_as_any_region():
    here, there = Corridor.along("LINESTRING (0 0, 9 0)", 1.0), (5.0, 5.0)
    count = Plan(stream="cars", inside=here, aggregate=Aggregate(function="count"))
    ways = [fix("a", 1, 1, 0), fix("b", 1, 2, 0), fix("b", 3, *there), end()]
    assert play(count, *ways)[-1].endswith("=1")
    window = Plan(stream="cars", inside=here, window=Window(seconds=5.0))
    assert play(window, fix("a", 1, 1, 0), fix("a", 2, *there), clock(9), end())
    pairs = Plan(stream="cars", inside=here, pairs=PairJoin(distance_m=2.0))
    assert len(play(pairs, fix("a", 1, 1, 0), fix("b", 1, 2, 0), end())) == 2
    frame = Frame(
        sliding=(Sliding(range=Extent(by="rows", amount=2.0)),), regions=(here,)
    )
    rows = play(Plan(stream="cars", frame=frame), *ways)
    assert any("+b" in line for line in rows)
    wood = Feature(fid="w", kind="wood", geometry=shapely.box(0, -9, 3, 9))
    join = LayerJoin(layer="woods", predicate="intersects")
    joined = Plan(stream="cars", inside=here, join=join)
    ways = drive((2, 5), (2, 0), (6, 0))
    assert play(joined, *ways, layers={("woods", 0): [wood]}) == [
        "2 @2 +a|w enter",
        "3 @3 -a|w leave",
    ]


def test_a_route_of_a_layer_is_a_corridor_by_st_dwithin():
    line = shapely.LineString([(0, 0), (10, 0)])
    route = Feature(fid="r1", kind="route", geometry=line)
    join = LayerJoin(layer="routes", predicate="dwithin", distance_m=2.0)
    fence = Fence(events=("enter", "exit"), hysteresis_m=1.0)
    plan = Plan(stream="cars", join=join, fence=fence)
    ways = drive((5, 9), (5, 2), (5, 3), (5, 3.5))
    assert play(plan, *ways, layers={("routes", 0): [route]}) == [
        "2 @2 +a|r1 enter",
        "4 @4 -a|r1 leave =2",
    ]


def routes():
    """Two routes with their numbers, one above the other."""
    return [
        Feature(
            fid=fid,
            kind="route",
            geometry=shapely.LineString([(0, y), (10, y)]),
            tags={"line": line},
        )
        for fid, y, line in (("r1", 0, "7"), ("r2", 3, "9"))
    ]


OWN = LayerJoin(
    layer="routes", predicate="dwithin", distance_m=2.0, left="kind", right="line"
)


def test_each_object_has_the_route_that_its_key_says():
    """At height 1.5 both routes are near: bus 7 is on the one, bus 9 on the other, who has no line on none."""
    plan = Plan(stream="cars", join=OWN)
    ways = [
        fix("a", 1, 5, 1.5, kind="7"),
        fix("b", 1, 5, 1.5, kind="9"),
        fix("c", 1, 5, 1.5),
        fix("a", 2, 5, 3.0, kind="7"),
        fix("a", 3, 5, 3.0, kind="9"),
    ]
    assert play(plan, *ways, layers={("routes", 0): routes()}) == [
        "1 @1 +a|r1 enter",
        "2 @1 +b|r2 enter",
        "4 @2 -a|r1 leave",
        "5 @3 +a|r2 enter",
    ]


def test_a_fence_along_the_own_route_has_a_hysteresis_and_is_crossed():
    fence = Fence(events=("enter", "exit", "cross"), hysteresis_m=1.0)
    plan = Plan(stream="cars", join=OWN, fence=fence)
    heights = (1.5, 2.5, 3.5, -9.0, 9.0)
    ways = [fix("a", n, 5, y, kind="7") for n, y in enumerate(heights, 1)]
    ways.append(fix("b", 9, 5, 3, kind="7"))
    assert play(plan, *ways, layers={("routes", 0): routes()}) == [
        "1 @1 +a|r1 enter",
        "3 @3 -a|r1 leave =2",
        "4 @4 =a|r1 cross",
        "5 @5 =a|r1 cross",
    ]


def over_180():
    """Two routes over 180 degrees at latitude 60, 0.003 degrees (334 m) apart; 0.001 degrees of longitude are 56 m."""
    return [
        Feature(
            fid=fid,
            kind="route",
            geometry=shapely.MultiLineString(
                [[(179.9, y), (180, y)], [(-180, y), (-179.9, y)]]
            ),
            tags={"line": line},
        )
        for fid, y, line in (("r1", 60.0, "7"), ("r2", 60.003, "9"))
    ]


def test_the_own_route_goes_on_behind_180_degrees():
    """At 60.0015 both routes are 167 m away. Bus 7 leaves where its route ends, behind 180 degrees."""
    plan = Plan(stream="cars", join=replace(OWN, distance_m=200.0))
    places = [(179.999, 60.0015), (-179.999, 60.0015), (-179.901, 60.0015)]
    ways = [
        fix(name, n, x, y, kind=line)
        for n, (x, y) in enumerate([*places, (-179.89, 60.0)], 1)
        for name, line in (("a", "7"), ("b", "9"), ("c", None))
    ]
    layers = {("routes", 0): over_180()}
    assert play(plan, *ways, layers=layers, geographic=True) == [
        "1 @1 +a|r1 enter",
        "2 @1 +b|r2 enter",
        "10 @4 -a|r1 leave",
        "11 @4 -b|r2 leave",
    ]


def test_a_fence_along_the_own_route_is_crossed_at_180_degrees():
    """The way over the line goes over 180 degrees as well; the route of the other key is crossed by nobody."""
    fence = Fence(events=("enter", "exit", "cross"), hysteresis_m=100.0)
    plan = Plan(stream="cars", join=replace(OWN, distance_m=50.0), fence=fence)
    places = [(179.999, 59.9985), (-179.999, 60.0015), (-179.999, 60.0004)]
    places += [(179.999, 60.0012), (179.999, 60.002)]
    ways = [fix("a", n, x, y, kind="7") for n, (x, y) in enumerate(places, 1)]
    layers = {("routes", 0): over_180()}
    assert play(plan, *ways, layers=layers, geographic=True) == [
        "2 @2 =a|r1 cross",
        "3 @3 +a|r1 enter",
        "5 @5 -a|r1 leave =2",
    ]


def test_the_own_route_is_said_in_text_builder_and_json():
    text = (
        "SELECT * FROM buses b JOIN routes r"
        " ON ST_DWithin(b, r, 50 m) AND b.line = r.ref AND r.kind = 'bus'"
    )
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    join = query("buses").join("routes").on_dwithin("50 m")
    built = join.and_equal("line", "ref").kinds("bus").build()
    assert statement.plan == built
    assert parse(to_text(built, "q"))[0].plan == built
    assert plan_from_json(json.dumps(built.to_json())) == built
    assert "within 50 m and line = ref" in "\n".join(lines(explain(built, "q")))
    assert asked(built).endswith("of routes of kind bus with ref equal to its line")


@pytest.mark.parametrize(
    ("on", "at"),
    [
        ("b.line = r.ref AND b.operator = r.operator", "b.operator"),
        ("ST_DWithin(b, r, 5 m) AND ST_Intersects(b, r)", "ST_Intersects"),
    ],
)
def test_one_place_and_one_key_join_a_layer(on, at):
    text = f"REGISTER QUERY q AS SELECT * FROM buses b JOIN routes r ON {on}"
    with pytest.raises(TextError, match="one condition by place and one key") as caught:
        parse(text)
    (problem, *_) = caught.value.problems
    assert text[problem.column - 1 :].startswith(at)


def sampled_m(wkt, x, y):
    """How far places are from a line: to the nearest of many places on it."""
    found = np.full(len(x), np.inf)
    share = np.linspace(0, 1, 2_001)
    for part in shapely.get_parts(shapely.from_wkt(wkt)):
        ends = shapely.get_coordinates(part)
        for (ax, ay), (bx, by) in pairwise(ends):
            px, py = ax + (bx - ax) * share, ay + (by - ay) * share
            grid = (np.tile(each, len(x)) for each in (px, py))
            places = (np.repeat(each, len(share)) for each in (x, y))
            far = np.reshape(_GEOD.inv(*grid, *places)[2], (len(x), -1))
            found = np.minimum(found, far.min(axis=1))
    return found


@pytest.mark.parametrize("latitude", [0.0, 41.1, -75.0, 84.0])
@pytest.mark.parametrize("width_m", [40.0, 900.0, 5_000.0])
@pytest.mark.parametrize("over_180", [False, True])
def test_on_the_globe_metres_are_geodesic_also_over_180_degrees(
    latitude, width_m, over_180
):
    south, north = latitude - 0.004, latitude + 0.01
    wkt = f"LINESTRING (-8.63 {south}, -8.6 {north}, -8.58 {south})"
    if over_180:
        wkt = f"MULTILINESTRING ((179.97 {south}, 180 {north}), (-180 {north}, -179.98 {south}))"
    rng = np.random.default_rng(int(width_m))
    middle = 180.0 if over_180 else -8.6
    x = middle + rng.uniform(-0.08, 0.08, 250)
    x, y = np.where(x > 180, x - 360, x), latitude + rng.uniform(-0.06, 0.06, 250)
    far = sampled_m(wkt, x, y)
    clear = np.abs(far - width_m) > 0.005 * width_m
    mask = region_mask(Corridor.along(wkt, width_m), x, y, space=GLOBE)
    assert np.array_equal(mask[clear], far[clear] <= width_m)
    assert 0 < mask.sum() < 250 or width_m == 40.0


def test_one_that_ends_at_180_degrees_goes_on_behind_them():
    """At latitude 60 a thousandth of a degree is some 56 m."""
    line = Corridor.along("LINESTRING (179.9 60, 180 60)", 100.0)
    plan = Plan(stream="cars", inside=line, fence=Fence(events=("enter", "exit")))
    ways = drive((-179.99, 60.0), (-179.999, 60.0), (179.95, 60.0), (-179.99, 60.0))
    assert play(plan, *ways, geographic=True) == ["2 @2 +a enter", "4 @4 -a leave =2"]


def test_many_of_different_widths_are_found_at_once():
    rng = np.random.default_rng(4)
    ends = rng.uniform(0, 100, (300, 4)).round(2)
    corridors = [
        Corridor.along(f"LINESTRING ({ax} {ay}, {bx} {by})", float(width))
        for (ax, ay, bx, by), width in zip(
            ends, rng.uniform(0.1, 9, 300).round(2), strict=True
        )
    ]
    x, y = rng.uniform(0, 100, (2, 500))
    found = index_of(corridors, space=PLANE).probe(x, y)
    shapes = shapely.from_wkt([one.wkt for one in corridors])
    far = shapely.distance(shapes[None, :], shapely.points(x, y)[:, None])
    expected = np.nonzero(far <= [one.width_m for one in corridors])
    assert np.array_equal(found, expected)


def test_text_builder_and_json_say_the_same():
    text = "SELECT * FROM cars INSIDE CORRIDOR ('LINESTRING(5 0, 0 0)', 0.5 km)"
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    built = query("cars").inside(corridor("LINESTRING(0 0, 5 0)", "500 m")).build()
    assert statement.plan == built
    assert (
        plan_from_json(
            '{"v": 3, "stream": "cars", "inside": {"kind": "corridor", "wkt": "LINESTRING(5 0, 0 0)", "width_m": 500}}'
        )
        == built
    )
    assert "corridor of 500 m along LINESTRING (0 0, 5 0)" in "\n".join(
        lines(explain(built, "q"))
    )
    assert asked(built) == "within 500 m of the line of the query"


def test_a_named_area_may_be_one():
    text = "CREATE AREA road AS CORRIDOR ('LINESTRING(0 0, 5 0)', 20 m)"
    named, used = parse(f"{text}; REGISTER QUERY q AS SELECT * FROM cars INSIDE road")
    assert named.region == used.plan.inside == corridor("LINESTRING(0 0, 5 0)", 20)


@pytest.mark.parametrize(
    ("written", "at", "says"),
    [
        ("('LINESTRING(0 0, 5 0)')", "'LINESTRING", "expected 2 parts, not 1"),
        ("('POLYGON((0 0, 1 0, 1 1, 0 0))', 5 m)", "'POLYGON", "not a Polygon"),
        ("('LINESTRING(0 0, 5)', 5 m)", "'LINESTRING", "this is no WKT"),
        ("('LINESTRING(1 1, 1 1)', 5 m)", "'LINESTRING", "the line is not valid"),
        ("('LINESTRING(0 0, 5 0)', -1 m)", "-1", "a width is 0 or more"),
        ("(road, 5 m)", "road", "expected a line in single quotes"),
    ],
)
def test_what_is_no_corridor_is_pointed_at(written, at, says):
    text = f"REGISTER QUERY q AS SELECT * FROM cars INSIDE CORRIDOR {written}"
    with pytest.raises(TextError, match=says) as caught:
        parse(text)
    (problem, *_) = caught.value.problems
    assert text[problem.column - 1 :].startswith(at)


def test_until_when_one_stays_in_it_is_not_said():
    inside = query("cars").inside(corridor("LINESTRING(0 0, 5 0)", 20))
    with pytest.raises(QueryError, match="VALID UNTIL and a CORRIDOR exclude"):
        inside.valid_until()


def test_sides_that_have_two_readings_and_places_off_the_earth_are_refused():
    line = "a side of the line is longer than 180 degrees"
    for wkt, says in (
        ("LINESTRING (179 10, -179 10)", line),
        ("LINESTRING (0 10, 5 95)", "the line lies off the Earth: latitude 95"),
    ):
        (wrong, *_) = Corridor.along(wkt, 5.0).wrong_in(GLOBE)
        assert wrong.message.startswith(says)
        assert not list(Corridor.along(wkt, 5.0).wrong_in(PLANE))


def test_it_ends_with_its_query():
    plan = Plan(stream="cars", inside=STREET)
    assert play(plan, *drive((5, 1)), drop("q"))[-1] == "2 @1 -a dropped"
