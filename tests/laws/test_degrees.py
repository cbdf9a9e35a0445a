"""The laws on longitude and latitude: metres, the antimeridian, poles, against brute force with another geodesic.

Engine and oracle differ by up to 0.01 %, so places are few and all their distances clearly differ: see the first test.
"""

import math
from dataclasses import replace
from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common.query.fence import Debounce
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.reference.crossing import gaps, ways_between
from st_common.reference.metric import Metric
from st_common.reference.shapes import from_shapes
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    Corridor,
    MovingBox,
    MovingCircle,
)
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.globe import distances, neighbourhood, track
from tests.kit.laws import assert_alike, holds, run_course, told, told_by_oracle
from tests.kit.random_fences import draw_fence, draw_moving_fence
from tests.kit.random_grid import FOCALS, LAYER, STREAM
from tests.kit.strategies import case_of, courses

PLACES = (
    (179.943, 59.993),
    (-179.962, 60.049),
    (-179.998, 59.909),
    (-178.922, 60.692),  # around the antimeridian
    (27.406, 89.911),
    (-163.581, 89.959),
    (87.766, 89.843),  # around a pole
    (25.271, 60.381),
    (25.02, 60.109),
    (24.956, 60.045),
    (3.394, -2.721),
    (0.014, -0.036),
)
SIDES_M = (11_300.0, 23_000.0, 170_000.0, 1_700_000.0)
RADII = (1500.0, 4000.0, 9100.0, 50_000.0, 700_000.0, 8_000_000.0)

CORRIDORS = (
    Corridor.along("LINESTRING (24.9 60.05, 25.3 60.36)", 9_000.0),
    Corridor.along(
        "MULTILINESTRING ((179.7 59.9, 180 59.95), (-180 59.95, -179.6 60.1))", 6_000.0
    ),
    Corridor.along("LINESTRING (-3 0, 3 0)", 4_500.0),
)


def test_places_are_clearly_in_corridors_or_out_of_them_and_some_are_in():
    for corridor in CORRIDORS:
        line = shapely.from_wkt(corridor.wkt)
        far = [
            min(
                oracle.distance_m(line, x + turn, y, geographic=True)
                for turn in (-360, 0, 360)
            )
            for x, y in PLACES
        ]
        assert all(abs(each - corridor.width_m) > 0.01 * each for each in far)
        assert 0 < sum(each <= corridor.width_m for each in far) < len(PLACES)


def test_distances_between_the_places_and_radii_clearly_differ():
    found = sorted([*distances(PLACES), *RADII])
    assert all(b > a * 1.0003 for a, b in pairwise(found))


def plan_of(rng):
    x, y = rng.choice(PLACES)
    place = Place(focal=rng.choice(FOCALS)) if rng.random() < 0.6 else Place(x=x, y=y)
    radius = rng.choice(RADII)
    inside = rng.choice(
        (
            Circle(x=x, y=y, radius_m=radius),
            MovingCircle(focal=rng.choice(FOCALS), radius_m=radius),
            MovingBox(focal=rng.choice(FOCALS), width=0.31, height=0.47),
            MovingBox(
                focal=rng.choice(FOCALS),
                width=rng.choice((0.83, 9.7, 311.0)),
                height=17.3,
            ),
            MovingBox(
                focal=rng.choice(FOCALS),
                width=rng.choice(SIDES_M),
                height=rng.choice(SIDES_M),
                metres=True,
            ),
            Area.across(rng.choice((170.3, 27.41)), 59.95, -178.9999, 89.92),
            Box(minx=-180, miny=50.5, maxx=100.5, maxy=90),
            *CORRIDORS,
        )
    )
    every = rng.choice(("changes", "every"))
    return rng.choice(
        (
            Plan(stream=STREAM, inside=inside, emit=every),
            Plan(
                stream=STREAM,
                neighbours=Nearest(k=rng.randint(1, 3), place=place),
                emit=every,
            ),
            Plan(stream=STREAM, neighbours=ReverseNearest(place=place)),
            Plan(
                stream=STREAM,
                neighbours=GroupNearest(
                    k=1, total=rng.choice(("max", "min")), places=(place, place)
                ),
            ),
            Plan(stream=STREAM, pairs=PairJoin(distance_m=radius)),
        )
    )


def on_degrees(seed, places, plan, *, kind="fixes", layers=None):
    """A case of the grid with its fixes at some places, and its queries and layers replaced by such on degrees."""
    case = case_of(seed, kind=kind, layers=layers is not None)
    rng, rows, plans = Random(seed), [], {}
    for row in case.rows:
        if isinstance(row, oracle.Fix):
            x, y = rng.choice(places)
            rows.append(row if row.gone else replace(row, x=x, y=y))
        elif "plan" in row.row:
            name, asked = row.row["query"], plan(rng)
            if row.row["op"] == "follow":
                drawn = (elsewhere(plans[name], plan(rng)) for _ in range(20))
                asked = next((one for one in drawn if one != plans[name]), plans[name])
            plans[name] = asked
            said = {"plan": asked.to_json(), "layer_version": 0}
            rows.append(replace(row, row={**row.row, **said}))
        else:
            rows.append(row)
    numbered = [replace(row, position=number) for number, row in enumerate(rows)]
    return replace(
        case,
        rows=tuple(numbered),
        rules=replace(case.rules, geographic=True),
        layers={key: layers[key[1]] for key in case.layers},
    )


@pytest.mark.spec("G4", "G5", "G6", "G8", "G9", "X1")
@tries(15)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_all_over_the_globe_caches_and_restarts_tell_what_brute_force_tells(seed, data):
    case = on_degrees(seed, PLACES, plan_of)
    holds(
        case,
        data.draw(
            courses(len(case.rows), margins=(0.0, 900.0, 20_000.0, 9e6), shards=(1, 3))
        ),
    )


def elsewhere(plan, other):
    """The plan with the region of another one, where an area could be both and no distance comes into doubt."""
    in_doubt = plan.fence is not None and plan.fence.hysteresis_m > 0
    if in_doubt or plan.inside is None or type(plan.inside) is not type(other.inside):
        return plan
    return replace(plan, inside=other.inside)


def near_plan(rng, here):
    """A plan whose lengths lie clearly between the distances of the places."""
    x, y = rng.choice(here.places)
    radius, focal = rng.choice(here.radii), rng.choice(FOCALS)
    place = Place(focal=focal) if rng.random() < 0.6 else Place(x=x, y=y)
    sides = [2 * here.reach_m * rng.uniform(0.1, 1.2) for _ in range(2)]
    moving = rng.choice(
        (
            MovingCircle(focal=focal, radius_m=radius),
            MovingCircle(focal=focal, radius_m=radius),
            MovingBox(focal=focal, width=sides[0], height=sides[1], metres=True),
            MovingBox(focal=focal, width=sides[0] / 70_000, height=sides[1] / 111_000),
        )
    )
    inside = rng.choice((Circle(x=x, y=y, radius_m=radius), moving, moving, moving))
    nearest = Nearest(k=rng.randint(1, 3), place=place)
    group = GroupNearest(
        k=rng.randint(1, 2), total=rng.choice(("max", "min")), places=(place, place)
    )
    return rng.choice(
        (
            Plan(stream=STREAM, inside=inside, emit=rng.choice(("changes", "every"))),
            Plan(stream=STREAM, inside=inside),
            Plan(stream=STREAM, inside=inside, where="NOT free"),
            Plan(stream=STREAM, inside=moving, neighbours=nearest),
            Plan(stream=STREAM, neighbours=nearest),
            Plan(stream=STREAM, neighbours=nearest, where="load > 2"),
            Plan(stream=STREAM, neighbours=ReverseNearest(place=place)),
            Plan(stream=STREAM, neighbours=group),
            Plan(stream=STREAM, pairs=PairJoin(distance_m=radius)),
            Plan(
                stream=STREAM,
                pairs=PairJoin(distance_m=radius),
                where='"other.load" > 1 AND x < "other.x"',
                columns=(("seats", '"other.seats"'),),
            ),
            Plan(stream=STREAM, inside=moving, aggregate=Aggregate(function="count")),
            Plan(
                stream=STREAM,
                inside=Circle(x=x, y=y, radius_m=radius),
                window=Window(seconds=rng.choice((1.0, 3.5))),
            ),
        )
    )


@pytest.mark.spec("G4", "G5", "G6", "G8", "G9", "P5", "X1", "X4")
@tries(30)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_among_near_places_caches_and_restarts_tell_what_brute_force_tells(seed, data):
    here = neighbourhood(Random(seed))
    case = on_degrees(seed, here.places, lambda rng: near_plan(rng, here))
    margins = [0.0, *(share * here.reach_m for share in (0.05, 0.5, 1.0, 20.0))]
    holds(case, data.draw(courses(len(case.rows), margins=margins, shards=(1, 1, 3))))


def fence_plan(rng, here):
    """A fence around one of the places, or a rectangle among them; where places are near to it is beyond doubt."""
    region, hysteresis_m = rng.choice((circle_among, rectangle_among))(rng, here)
    fence = draw_fence(rng, inside=None, join=None)
    near_m = rng.choice((0.0, hysteresis_m))  # 0: another region may take its place
    fence = replace(fence, hysteresis_m=near_m, enter_after=Debounce())
    return Plan(
        stream=STREAM,
        inside=region,
        fence=fence,
        where=rng.choice((None, None, "NOT free")),
    )


def circle_among(rng, here):
    """Its radius, also with the hysteresis, lies between the distances of places."""
    x, y = rng.choice(here.places)
    radius, wider = sorted(rng.choices(here.radii, k=2))
    return Circle(x=x, y=y, radius_m=radius), wider - radius


def rectangle_among(rng, here):
    """Its sides lie between the coordinates of places, also across 180 degrees, and so does the hysteresis."""
    middle = here.places[0][0]
    easts = sorted((x - middle + 540) % 360 - 180 for x, _ in here.places)
    souths = sorted(y for _, y in here.places)
    west, east = (middle + side for side in sides_among(rng, easts))
    south, north = sides_among(rng, souths)
    west, east = ((side + 540) % 360 - 180 for side in (west, east))
    region = (
        Box(minx=west, miny=south, maxx=east, maxy=north)
        if west < east
        else Area.across(west, south, east, north)
    )
    shape = shape_of(region)
    far = sorted(
        min(
            oracle.distance_m(shape, x + turn, y, geographic=True)
            for turn in (0, 360, -360)
        )
        for x, y in here.places
    )
    clear = [(a + b) / 2 for a, b in pairwise(far) if b > 1.05 * a]
    return region, rng.choice((0.0, *clear))


def sides_among(rng, sorted_places):
    """Far enough from each other for some places to lie between them."""
    ends = rng.choice((0, 1)), rng.choice((-3, -2))
    return [(sorted_places[at] + sorted_places[at + 1]) / 2 for at in ends]


@pytest.mark.spec("X3", "G5", "X1", "X4")
@tries(20)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_fences_on_the_globe_tell_what_brute_force_tells(seed, data):
    here = neighbourhood(Random(seed))
    # Further up straight lines in longitude and latitude are nothing that a distance could be measured from.
    assume(max(abs(y) for _, y in here.places) <= 85)
    case = on_degrees(seed, here.places, lambda rng: fence_plan(rng, here))
    holds(case, data.draw(courses(len(case.rows), shards=(1, 3))))


def fence_around(rng, here):
    """A fence around an object, wherever that is among the places: who is inside or near is beyond doubt."""
    region, hysteresis_m = rng.choice((circle_around, rectangle_around))(rng, here)
    fence = draw_moving_fence(rng, region)
    near_m = rng.choice((0.0, hysteresis_m))  # 0: another region may take its place
    return Plan(
        stream=STREAM,
        inside=region,
        fence=replace(fence, hysteresis_m=near_m),
        where=rng.choice((None, None, "NOT free")),
    )


def circle_around(rng, here):
    """Its radius, also with the hysteresis, lies between the distances of places."""
    radius, wider = sorted(rng.choices(here.radii, k=2))
    return MovingCircle(focal=rng.choice(FOCALS), radius_m=radius), wider - radius


def rectangle_around(rng, here):
    """The hysteresis lies clearly between the distances of places from the rectangles around all places."""
    wide, high = (2 * here.reach_m * rng.uniform(0.1, 1.2) for _ in range(2))
    wide, high = wide / 70_000, high / 111_000
    shapes = [
        shapely.box(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
        for x, y in here.places
    ]
    far = sorted(
        min(
            oracle.distance_m(shape, x + turn, y, geographic=True)
            for turn in (0, 360, -360)
        )
        for shape in shapes
        for x, y in here.places
    )
    clear = [(a + b) / 2 for a, b in pairwise(far) if b > 1.05 * a + 1.0]
    region = MovingBox(focal=rng.choice(FOCALS), width=wide, height=high)
    return region, rng.choice((0.0, *clear))


@pytest.mark.spec("X3", "G4", "G5", "X1", "X4")
@tries(20)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_fences_around_objects_on_the_globe_tell_what_brute_force_tells(seed, data):
    here = neighbourhood(Random(seed))
    # Further up the nearest place of a rectangle is none of the nearest longitude and latitude.
    assume(max(abs(y) for _, y in here.places) <= 85)
    case = on_degrees(
        seed, here.places, lambda rng: fence_around(rng, here), kind="moving fences"
    )
    margins = [0.0, *(share * here.reach_m for share in (0.5, 20.0))]
    holds(case, data.draw(courses(len(case.rows), margins=margins, shards=(1, 3))))


def feature_among(rng, here, fid):
    """A rectangle among the places, or a line from between some of them to between others, or such a place."""
    ends = [between(*rng.sample(here.places, 2)) for _ in range(rng.choice((1, 2, 3)))]
    xs = [x for x, _ in ends]
    if rng.random() < 0.4 or max(xs) - min(xs) > 180:
        region, _ = rectangle_among(rng, here)
        shape = shape_of(region)
    else:
        shape = shapely.LineString(ends) if len(ends) > 1 else shapely.Point(ends[0])
    return oracle.Feature(fid=fid, kind="any", geometry=shape)


def between(one, other):
    """A place on the way between two, nearer to the first; on their side of 180 degrees."""
    x, other_x = one[0], other[0] + 360 * round((one[0] - other[0]) / 360)
    x += 0.3 * (other_x - x)
    return (x + 540) % 360 - 180, one[1] + 0.3 * (other[1] - one[1])


def shape_of(region):
    """What a rectangle covers."""
    if isinstance(region, Box):
        return shapely.box(region.minx, region.miny, region.maxx, region.maxy)
    return shapely.from_wkt(region.wkt)


def clear_reaches(here, features):
    """Lengths that are clearly not the distance of a place, or of a way between two places, from any feature."""
    metric, far = Metric(is_flat=False), []
    shapes = np.array([feature.geometry for feature in features])
    for one, other in combinations(here.places, 2):
        ends = [
            (np.full(len(shapes), x), np.full(len(shapes), y)) for x, y in (one, other)
        ]
        for turn in metric.turns:
            far += gaps(ways_between(*ends, metric, turn), shapes, metric).tolist()
    for x, y in here.places:
        for turn in (0, 360, -360):
            far += [
                oracle.distance_m(each.geometry, x + turn, y, geographic=True)
                for each in features
            ]
    far = sorted(gap for gap in far if gap < 3 * here.reach_m)
    return [(a + b) / 2 for a, b in pairwise(far) if b > 1.05 * a]


def join_by_place(rng, near):
    """A join with the features that a place meets, or is near to."""
    if near is None:
        return LayerJoin(layer=LAYER, predicate=rng.choice(("intersects", "within")))
    return LayerJoin(layer=LAYER, predicate="dwithin", distance_m=near)


def joined_fence_plan(rng, clear):
    """A fence at features; with a distance and a hysteresis that are beyond doubt."""
    near = rng.choice((None, *clear))
    join = join_by_place(rng, near)
    wider = [reach - (near or 0.0) for reach in clear if reach > (near or 0.0)]
    fence = replace(
        draw_fence(rng, inside=None, join=join),
        hysteresis_m=rng.choice((0.0, *wider)),
        enter_after=Debounce(),
    )
    where = rng.choice((None, None, "NOT free"))
    return Plan(stream=STREAM, join=join, fence=fence, where=where)


def among_features(seed, draw_plan, *, kind):
    """A case of near places and three versions of a layer among them, and the places.

    `draw_plan` takes a generator, the places, and reaches that are beyond doubt.
    """
    rng = Random(seed)
    here = neighbourhood(rng, count=5)
    assume(max(abs(y) for _, y in here.places) <= 85)
    layers = [[feature_among(rng, here, fid) for fid in "fg"] for _ in range(3)]
    clear = clear_reaches(here, [each for some in layers for each in some])
    case = on_degrees(
        seed,
        here.places,
        lambda rng: draw_plan(rng, here, clear),
        kind=kind,
        layers=layers,
    )
    return case, here


@pytest.mark.spec("X3", "X4", "B3", "X1")
@tries(20)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_fences_at_features_on_the_globe_tell_what_brute_force_tells(seed, data):
    case, _ = among_features(
        seed, lambda rng, _, clear: joined_fence_plan(rng, clear), kind="fences"
    )
    holds(case, data.draw(courses(len(case.rows), shards=(1, 3))))


def choosing_plan(rng, here, clear):
    """What is near or in a region, of those that have a feature, or have none."""
    below = near_plan(rng, here)
    while below.pairs is not None:
        below = near_plan(rng, here)
    join = join_by_place(rng, rng.choice((None, *clear)))
    return replace(below, join=replace(join, how=rng.choice(("semi", "anti"))))


@pytest.mark.spec("G4", "G5", "G9", "P7", "X1", "X4", "X12")
@tries(20)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_who_has_a_feature_on_the_globe_is_who_brute_force_says(seed, data):
    case, here = among_features(seed, choosing_plan, kind="choosing")
    margins = [0.0, *(share * here.reach_m for share in (0.5, 20.0))]
    holds(case, data.draw(courses(len(case.rows), margins=margins, shards=(1, 3))))


def nearest_plan(rng, clear):
    """The nearest feature of each object, of all or within a distance that is beyond doubt."""
    near = rng.choice((None, None, *clear))
    join = LayerJoin(
        layer=LAYER,
        predicate="nearest" if near is None else "dwithin",
        distance_m=near or 0.0,
        how=rng.choice(("inner", "left", "semi") if near else ("inner", "left")),
        nearest=rng.choice((1, 1, 2)),
    )
    return Plan(stream=STREAM, join=join, emit=rng.choice(("changes", "every")))


def is_clear(case, here):
    """Whether of two features of a version one is clearly nearer to each place, or it lies in both."""
    x, y = np.array(here.places).T
    for features in case.layers.values():
        one, other = (
            from_shapes(
                np.full(len(x), each.geometry, object), x, y, Metric(is_flat=False)
            )
            for each in features
        )
        close = np.abs(one - other) < 0.02 * np.maximum(one, other)
        if (close & (np.maximum(one, other) > 0)).any():
            return False
    return True


@pytest.mark.spec("P13", "P3", "X1", "X4")
@tries(20)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_the_nearest_features_on_the_globe_are_those_of_brute_force(seed, data):
    case, here = among_features(
        seed, lambda rng, _, clear: nearest_plan(rng, clear), kind="fixes"
    )
    assume(is_clear(case, here))
    holds(case, data.draw(courses(len(case.rows), shards=(1, 3))))


RANGES = (
    0.31,
    0.74,
    1.39,
    2.63,
    4.47,
)  # in legs, and never whole with any number of slides, see below
SLIDES = (0.846, 1.417, 2.778)
MIN_STEPS = (0.0, 0.0, 0.5, 1.5)


def test_no_window_of_a_way_ends_near_a_fix_where_engine_and_brute_force_could_differ():
    for legs in range(1, 100):
        for slide in SLIDES:
            assert abs(legs / slide - round(legs / slide)) > 1e-4
            high = math.floor(legs / slide) * slide
            for low in (high - size for size in RANGES):
                assert abs(low - round(low)) > 1e-4 * max(1.0, low)


def way_plan(rng, unit_m):
    """A plan with windows over the ways of objects."""

    def sliding():
        if rng.random() < 0.3:
            return Sliding(range=Extent(by="time", amount=rng.choice((2.0, 3.5, 10.0))))
        size = Extent(by="space", amount=unit_m * rng.choice(RANGES))
        slide = (
            Extent(by="space", amount=unit_m * rng.choice(SLIDES))
            if rng.random() < 0.5
            else None
        )
        return Sliding(range=size, slide=slide)

    frame = Frame(
        sliding=tuple(sliding() for _ in range(rng.choice((1, 1, 2)))),
        full=rng.random() < 0.2,
        min_step_m=unit_m * rng.choice(MIN_STEPS),
    )
    aggregate = (
        Aggregate(function=rng.choice(("avgspd", "avgspd", "count")))
        if rng.random() < 0.5
        else None
    )
    return Plan(stream=STREAM, frame=frame, aggregate=aggregate)


@pytest.mark.spec("W2", "W3", "W4", "W5", "X1")
@tries(20)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_ways_on_the_globe_tell_what_brute_force_tells(seed, data):
    here = track(Random(seed))
    case = on_degrees(seed, here.places, lambda rng: way_plan(rng, here.unit_m))
    course = data.draw(courses(len(case.rows), shards=(1, 3)))
    changes, _, order = run_course(case, course)
    expected = oracle.judge(case.rows, rules=case.rules)
    assert_alike(told(changes, order), told_by_oracle(expected.changes))
