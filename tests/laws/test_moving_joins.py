"""The laws for joins of what is inside a region that goes with an object: with a layer, with other objects."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan
from st_common.regions.registry import MovingBox, MovingCircle
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import holds
from tests.kit.random_grid import FOCALS, LAYER, RADII, SIDES, STREAM
from tests.kit.strategies import case_of, courses

JOINS = (
    {"pairs": PairJoin(distance_m=5.0)},
    {"pairs": PairJoin(keys=("kind",))},
    {"pairs": PairJoin(distance_m=2.5)},
    {"join": LayerJoin(layer=LAYER, predicate="intersects")},
    {"join": LayerJoin(layer=LAYER, predicate="within")},
    {"join": LayerJoin(layer=LAYER, predicate="intersects", how="left")},
    {
        "join": LayerJoin(
            layer=LAYER, predicate="dwithin", distance_m=2.5, kinds=("park", "road")
        )
    },
    {"join": LayerJoin(layer=LAYER, predicate="equals", left="object", right="fid")},
)
ABOVE = (
    {},
    {"emit": "every"},
    {"where": "NOT free"},
    {"columns": (("c", "load"),)},
    {"aggregate": Aggregate(function="count")},
    {"aggregate": Aggregate(function="max", argument="load", group="kind")},
)


def plan_of(rng):
    focal = rng.choice(FOCALS)
    inside = rng.choice(
        (
            MovingBox(focal=focal, width=rng.choice(SIDES), height=rng.choice(SIDES)),
            MovingCircle(focal=focal, radius_m=rng.choice(RADII)),
        )
    )
    return Plan(stream=STREAM, inside=inside, **rng.choice(JOINS), **rng.choice(ABOVE))


def with_plans(seed):
    case, rng, rows = case_of(seed, kind="fixes", layers=True), Random(seed), []
    for row in case.rows:
        if not isinstance(row, oracle.Fix) and row.row["op"] == "follow":
            continue  # it could only say the plan before with another area
        is_query = not isinstance(row, oracle.Fix) and "plan" in row.row
        control = (
            {"layer_version": 0, **row.row, "plan": plan_of(rng).to_json()}
            if is_query
            else None
        )
        rows.append(row if control is None else replace(row, row=control))
    numbered = [replace(row, position=number) for number, row in enumerate(rows)]
    return replace(case, rows=tuple(numbered))


@pytest.mark.spec("G4", "G6", "G9", "B9", "X1")
@tries(30)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_however_they_are_run_they_tell_what_brute_force_tells(seed, data):
    case = with_plans(seed)
    holds(case, data.draw(courses(len(case.rows))))
