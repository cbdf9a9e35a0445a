"""Regions by their registry: each says all that is asked of it, and one that nobody knows is an error everywhere."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
import shapely

from st_common.errors import StateError
from st_common.geometry.borders import Segments
from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.fence.specs import compile_fences
from st_common.operators.matching.query_set import compile_queries
from st_common.operators.state.registered import Registered
from st_common.query.builder import all_of, around, outside
from st_common.query.builder import query as built
from st_common.query.fence import Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.query.schema import plan_schema
from st_common.query.text import parse
from st_common.reference.ranges import inside
from st_common.regions.region import MovingRegion, Region, StillRegion
from st_common.regions.registry import (
    REGIONS,
    Area,
    Box,
    ByExtent,
    Circle,
    Complement,
    Corridor,
    Forecast,
    Intersection,
    MovingBox,
    MovingCircle,
    MovingCombined,
    Union,
    borders_of,
    by_kind,
    index_of,
    joined_region,
    region_from_json,
    region_mask,
    region_to_json,
)
from tests.kit.oracle_rows import Rules
from tests.kit.oracle_walks import fixes_of

BOX = Box(minx=0, miny=0, maxx=4, maxy=3)
ROUND = Circle(x=2, y=2, radius_m=1.5)
EXAMPLES: dict[type[Region], Region] = {
    Box: Box(minx=0, miny=0, maxx=4, maxy=3),
    Circle: Circle(x=2, y=2, radius_m=1.5),
    Area: Area.of_wkt("POLYGON ((0 0, 4 0, 4 3, 0 0))"),
    Corridor: Corridor.along("LINESTRING (0 0, 4 0, 4 3)", 0.75),
    MovingBox: MovingBox(focal="it's", width=4, height=2, metres=True),
    MovingCircle: MovingCircle(focal="a", radius_m=2.5),
    Intersection: Intersection(parts=(BOX, Complement(part=ROUND))),
    Union: Union(parts=(BOX, ROUND)),
    Complement: Complement(part=BOX),
    Forecast: Forecast(part=ROUND, within_s=90.0, by="speed"),
    ByExtent: ByExtent(part=ROUND, how="intersects"),
}
# Others are asked about velocities and extents: test_forecast.py, test_extents.py.
OF_PLACES = [one for one in EXAMPLES.values() if not one.asks_beyond_place]
STILL = [region for region in OF_PLACES if isinstance(region, StillRegion)]
MOVING = [region for region in EXAMPLES.values() if isinstance(region, MovingRegion)]
NEAR_A = joined_region(
    Intersection(parts=(BOX, Complement(part=MovingCircle(focal="a", radius_m=2))))
)
every = pytest.mark.parametrize("region", EXAMPLES.values(), ids=lambda one: one.kind)
still = pytest.mark.parametrize("region", STILL, ids=lambda one: one.kind)


@dataclass(frozen=True)
class Spiral:
    """No region of ours: what a newer version may have."""

    kind = "spiral"
    turns: float = 3.0


def query(inside, **parts):
    plan = Plan(stream="s", inside=inside, **parts)
    return Registered(name="q", version=1, plan=plan, layer_version=0, since=0)


def test_every_region_of_the_registry_has_an_example_here():
    assert set(EXAMPLES) == set(REGIONS)
    assert len({kind.kind for kind in REGIONS}) == len(REGIONS)


@every
def test_a_region_is_read_again_from_its_text_and_from_its_json(region):
    text = f"SELECT * FROM s {region.clause()}"
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    assert statement.plan.inside == region
    assert region_from_json(json.loads(json.dumps(region_to_json(region)))) == region


@every
def test_the_schema_of_plans_knows_its_kind_and_its_fields(region):
    schema = plan_schema()["$defs"]["Region"]
    assert region.kind in schema["properties"]["kind"]["enum"]
    (part,) = [
        one["then"]
        for one in schema["allOf"]
        if one["if"]["properties"]["kind"]["const"] == region.kind
    ]
    assert set(region_to_json(region)) <= set(part["properties"])


@every
def test_a_builder_takes_it_as_it_is(region):
    assert built("s").inside(region).build().inside == region


@every
def test_lengths_become_those_of_the_plane_and_coordinates_stay(region):
    pairs = zip(region.leaves(), region.in_units(0.5).leaves(), strict=True)
    for values, shorter in (map(region_to_json, pair) for pair in pairs):
        lengths = {"radius_m", "width", "height", "width_m"} & set(values)
        changed = {name for name in values if values[name] != shorter[name]}
        assert changed == lengths
        assert all(shorter[name] == 2 * values[name] for name in changed)


@still
@pytest.mark.parametrize("space", [PLANE, GLOBE], ids=str)
def test_what_it_contains_lies_within_its_bounds_and_its_border_is_met(region, space):
    rng = np.random.default_rng(8)
    region = region.in_units(1e-5) if space is GLOBE else region
    x, y = rng.uniform(-2, 6, (2, 400))
    mask = region_mask(region, x, y, space=space)
    assert 0 < mask.sum() < 400
    minx, miny, maxx, maxy = type(region).bounds([region], space=space)[0]
    assert (x[mask] >= minx).all()
    assert (x[mask] <= maxx).all()
    assert (y[mask] >= miny).all()
    assert (y[mask] <= maxy).all()
    drawn = np.clip([minx, miny, maxx, maxy], -1e9, 1e9)  # without end: so far
    outline = shapely.bounds(region.outline(space=space))
    assert np.allclose(outline, drawn, rtol=0.01)
    if region.no_border:
        return
    borders, here = borders_of([region], space=space), np.zeros(400, np.int64)
    ways = Segments(ax=x, ay=y, bx=x, by=y)
    assert np.array_equal(borders.met_by(ways)[0], np.flatnonzero(mask))
    assert borders.near(here, x, y, np.full(400, 2e6)).all()


@pytest.mark.parametrize("region", MOVING, ids=lambda one: one.kind)
def test_one_that_goes_with_an_object_is_that_of_the_place_where_it_is(region):
    there = region.standing({region.focal: (10.0, 20.0)}, space=PLANE)
    minx, miny, maxx, maxy = type(there).bounds([there], space=PLANE)[0]
    size = region.extents
    assert np.allclose([minx + maxx, miny + maxy], [20.0, 40.0])
    wide = size.width or 2 * size.radius_m
    assert maxx - minx == pytest.approx(wide)


@pytest.mark.spec("X12")
def test_one_made_of_others_goes_with_all_that_one_of_these_goes_with():
    around = [MovingCircle(focal=name, radius_m=2) for name in "bab"]
    region = joined_region(Union(parts=(BOX, Complement(part=Union(parts=(*around,))))))
    assert isinstance(region, MovingCombined)
    assert region.focals == ("b", "a")
    places = {"a": (10.0, 0.0), "b": (0.0, 10.0)}
    there = region.standing(places, space=PLANE)
    x, y = np.array([10.0, 0.0, 5.0, 1.0]), np.array([0.0, 10.0, 5.0, 1.0])
    assert region_mask(there, x, y, space=PLANE).tolist() == [False, False, True, True]
    assert joined_region(region) == region
    assert region.with_parts(lambda _: BOX) == Union(parts=(BOX, BOX))


@pytest.mark.spec("X12")
@pytest.mark.parametrize(
    "made",
    [
        lambda: all_of(BOX, outside(around("a", 2))),
        lambda: NEAR_A,
        lambda: region_from_json(region_to_json(NEAR_A)),
        lambda: (
            parse(f"REGISTER QUERY q AS SELECT * FROM s {NEAR_A.clause()}")[
                0
            ].plan.inside
        ),
        lambda: built("s").inside(NEAR_A.of).build().inside,
    ],
)
def test_whoever_makes_it_it_goes_with_its_objects(made):
    assert made() == NEAR_A


@pytest.mark.parametrize(
    "parts", [{}, {"join": LayerJoin(layer="woods", predicate="intersects")}]
)
def test_a_region_that_nobody_knows_is_named_when_queries_are_compiled(parts):
    with pytest.raises(StateError, match="type Spiral is known"):
        compile_queries([query(Spiral(), **parts)], [0], space=PLANE)


def test_a_region_that_nobody_knows_is_named_everywhere_else():
    spiral, alone = Spiral(), np.zeros(1)
    acts = {
        "written": lambda: region_to_json(spiral),
        "found": lambda: index_of([spiral], space=PLANE),
        "mask": lambda: region_mask(spiral, alone, alone, space=PLANE),
        "borders": lambda: borders_of([spiral], space=PLANE),
        "kinds": lambda: by_kind([spiral]),
        "fence": lambda: compile_fences(
            [query(spiral, fence=Fence(events=("cross",)))], [0], space=PLANE
        ),
    }
    for what, act in acts.items():
        with pytest.raises(StateError, match="type Spiral is known"):
            pytest.fail(f"{what}: {act()}")


def test_a_region_that_nobody_knows_has_no_reference():
    with pytest.raises(TypeError, match="Spiral"):
        inside(Spiral(), fixes_of([], Rules()))


def test_a_kind_that_nobody_knows_is_not_read():
    with pytest.raises(KeyError, match="spiral"):
        region_from_json({"kind": "spiral", "turns": 3.0})


def test_one_that_goes_with_an_object_has_no_index():
    with pytest.raises(StateError, match="a moving circle goes with an object"):
        index_of([EXAMPLES[MovingCircle]], space=PLANE)


def test_known_regions_and_none_at_all_are_compiled():
    queries = [query(None), query(EXAMPLES[Box]), query(EXAMPLES[MovingBox])]
    (unit,) = compile_queries(queries, [0, 1, 2], space=PLANE).units
    assert sorted(unit.everywhere.tolist()) == [0, 2]
