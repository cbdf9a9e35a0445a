"""Many queries, each with a condition of its own, against brute force; and what is looked at for them (X13)."""

from contextlib import ExitStack
from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.ahead import ahead
from st_common.operators.arrays import bits
from st_common.operators.skeleton import listing, ways
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import LayerJoin, PairJoin, Plan
from st_common.regions.registry import MovingBox, MovingCircle
from tests.kit import oracle_rows
from tests.kit.asked_by import WAYS, asked_by
from tests.kit.by_hand import log, register
from tests.kit.effort import tries
from tests.kit.laws import holds
from tests.kit.many_conditions import many_conditions
from tests.kit.random_grid import FOCALS, LAYER, RADII, SIDES, STREAM
from tests.kit.random_plans import plan_of
from tests.kit.strategies import case_of, courses

QUERIES = 20
JOINS = (
    {"join": LayerJoin(layer=LAYER, predicate="intersects")},
    {"join": LayerJoin(layer=LAYER, predicate="equals", left="kind", right="kind")},
    {"pairs": PairJoin(distance_m=2.5)},
    {"pairs": PairJoin(keys=("kind",))},
)


def joined(rng):
    focal = rng.choice(FOCALS)
    circle = MovingCircle(focal=focal, radius_m=rng.choice(RADII))
    box = MovingBox(focal=focal, width=rng.choice(SIDES), height=rng.choice(SIDES))
    return Plan(stream=STREAM, inside=rng.choice((circle, box)), **rng.choice(JOINS))


def nearest(rng):
    place = (
        Place(focal=rng.choice(FOCALS)) if rng.random() < 0.7 else Place(x=4.0, y=4.0)
    )
    return Plan(stream=STREAM, neighbours=Nearest(k=rng.randint(1, 3), place=place))


FORMS = {
    "joined": joined,
    "nearest": nearest,
    **{
        kind: lambda rng, kind=kind: plan_of(rng, kind)
        for kind in ("moving", "neighbours", "pairs", "counting", "comparing")
    },
}


@pytest.mark.spec("X13", "P8", "G4", "G5", "G8", "G9")
@pytest.mark.parametrize("form", FORMS)
@tries(6)
@given(
    data=st.data(),
    seed=st.integers(0, (1 << 48) - 1),
    most=st.sampled_from((0, 1 << 17)),
    few=st.sampled_from((0, 2, 100)),
    way=st.sampled_from(WAYS),
)
def test_however_who_qualifies_is_found_it_is_what_brute_force_finds(
    form, data, seed, most, few, way
):
    rng = Random(seed)
    conditions, meanings = many_conditions(rng, QUERIES)
    plans = [replace(FORMS[form](rng), where=text) for text in conditions]
    case = case_of(
        seed, kind="fixes", layers=True, kept=[rng.random() < 0.7 for _ in range(30)]
    )
    queries = (
        register(f"many{n}", plan, layer_version=0 if plan.join else None)
        for n, plan in enumerate(plans)
    )
    case = replace(case, rows=tuple(log(*queries, *case.rows)))
    with ExitStack() as stack:
        stack.enter_context(patch.dict(oracle_rows.EXPRESSIONS, meanings))
        stack.enter_context(asked_by(way))
        for module, name, value in (
            (ahead, "MOST_PAIRS", most),
            (bits, "TOGETHER", 8),
            (ways, "FEW_RULES", 0),
            (ways, "MANY", 3),
            (ways, "few_of", lambda _: few),
            (listing, "few_of", lambda _: few),
        ):
            stack.enter_context(patch.object(module, name, value))
        holds(case, data.draw(courses(len(case.rows))))
