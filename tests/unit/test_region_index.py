"""Regions that an engine does not know are an error, and nowhere taken for everywhere."""

from dataclasses import dataclass

import pytest

from st_common.errors import StateError
from st_common.geometry.space import PLANE
from st_common.operators.matching.query_set import compile_queries
from st_common.operators.state.registered import Registered
from st_common.query.plan import LayerJoin, Plan
from st_common.query.region import Box, MovingBox


@dataclass(frozen=True)
class Corridor:
    width_m: float


def query(inside, **parts):
    return Registered(
        name="q", version=1, plan=Plan(stream="s", inside=inside, **parts), since=0
    )


@pytest.mark.parametrize(
    "parts", [{}, {"join": LayerJoin(layer="woods", predicate="intersects")}]
)
def test_a_region_that_nobody_knows_is_named(parts):
    plan = Plan(stream="s", inside=Corridor(50.0), **parts)
    one = Registered(name="q", version=1, plan=plan, layer_version=0, since=0)
    with pytest.raises(StateError, match="type Corridor is known"):
        compile_queries([one], [0], space=PLANE)


def test_known_regions_and_none_at_all_are_compiled():
    box = Box(minx=0, miny=0, maxx=1, maxy=1)
    moving = MovingBox(focal="a", width=1, height=1)
    queries = [query(None), query(box), query(moving)]
    (unit,) = compile_queries(queries, [0, 1, 2], space=PLANE).units
    assert sorted(unit.everywhere.tolist()) == [0, 2]
