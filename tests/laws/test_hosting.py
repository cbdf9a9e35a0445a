"""Shards that know their own objects and those near their queries tell what one that knows all tells (S7)."""

from dataclasses import replace
from random import Random
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.controls.rows import Register
from st_common.operators.state import intern
from st_common.query.plan import Plan
from st_common.regions.registry import MovingBox, MovingCircle
from tests.kit.control_rows import control
from tests.kit.effort import tries
from tests.kit.globe import neighbourhood
from tests.kit.guests import run_with_guests
from tests.kit.laws import in_row_order, run_steps
from tests.kit.oracle import Fix, Rules
from tests.kit.random_grid import OBJECTS
from tests.kit.shapely_layer import ShapelyLayer
from tests.kit.strategies import (
    SECOND_US,
    START_US,
    STREAM,
    Case,
    Segmentation,
    case_of,
    cases,
    segmentations,
)

WHOLE = intern._siphash
pytestmark = pytest.mark.spec("S7", "P9")


@st.composite
def cut_cases(draw, **how):
    """A case, and how it is cut."""
    case = draw(cases(**how))
    return case, draw(segmentations(len(case.rows)))


def layer_of(case):
    return lambda layer, version: ShapelyLayer(case.layers[layer, version])


@tries(40)
@given(cut_cases(kind="moving"), st.integers(2, 7), st.integers(0, 1 << 32))
def test_shards_with_guests_tell_what_one_shard_tells(drawn, shards, seed):
    case, cut = drawn
    changes, _, order = run_steps(case, cut)
    again, other_order, _ = run_with_guests(
        case, cut, layer_of(case), shards=shards, rng=Random(seed)
    )
    assert in_row_order(again, other_order) == in_row_order(changes, order)


@pytest.mark.spec("S4")
@tries(40)
@given(
    cut_cases(kind="moving"),
    st.integers(2, 4),
    st.integers(2, 5),
    st.integers(0, 1 << 32),
)
def test_shards_with_guests_tell_the_same_when_ids_share_hashes(
    drawn, shards, hashes, seed
):
    case, cut = drawn
    changes, _, order = run_steps(case, cut)
    with mock.patch.object(
        intern, "_siphash", lambda texts, key: WHOLE(texts, key) % np.uint64(hashes)
    ):
        again, other_order, _ = run_with_guests(
            case, cut, layer_of(case), shards=shards, rng=Random(seed)
        )
    assert in_row_order(again, other_order) == in_row_order(changes, order)


def on_the_globe(seed):
    """A case whose fixes are near one of the difficult places, and whose queries go with objects among them."""
    case, rng, rows = case_of(seed, kind="moving"), Random(seed), []
    around = neighbourhood(rng)
    for row in case.rows:
        if isinstance(row, Fix):
            x, y = rng.choice(around.places)
            rows.append(row if row.gone else replace(row, x=x, y=y))
        elif "plan" in row.row:
            radius_m = rng.choice(around.radii)
            region = rng.choice(
                (
                    MovingCircle(focal=rng.choice(OBJECTS), radius_m=radius_m),
                    MovingBox(
                        focal=rng.choice(OBJECTS),
                        width=radius_m,
                        height=2 * radius_m,
                        metres=True,
                    ),
                )
            )
            plan = Plan(stream=STREAM, inside=region).to_json()
            rows.append(replace(row, row={**row.row, "plan": plan}))
        else:
            rows.append(row)
    return replace(case, rows=tuple(rows), rules=replace(case.rules, geographic=True))


@tries(20)
@given(st.integers(0, 1 << 48), st.integers(2, 7), st.data())
def test_all_over_the_globe_shards_with_guests_tell_what_one_shard_tells(
    seed, shards, data
):
    case = on_the_globe(seed)
    cut = data.draw(segmentations(len(case.rows)))
    changes, _, order = run_steps(case, cut)
    again, other_order, _ = run_with_guests(
        case, cut, layer_of(case), shards=shards, rng=Random(seed)
    )
    assert in_row_order(again, other_order) == in_row_order(changes, order)


@pytest.mark.parametrize("seed", range(3))
def test_shards_know_fewer_objects_the_more_of_them_there_are(seed):
    """Of 400 objects all over a plane each is gone with by a query; all move a little."""
    rng = Random(seed)
    places = [(rng.uniform(0, 1000), rng.uniform(0, 1000)) for _ in range(400)]
    rows = [
        Fix(position=n, object=f"o{n}", event_us=START_US, x=x, y=y)
        for n, (x, y) in enumerate(places)
    ]
    for n in range(400):
        inside = MovingBox(focal=f"o{n}", width=60, height=60)
        plan = Plan(stream=STREAM, inside=inside).to_json()
        row = Register(query=f"q{n}", version=1, plan=plan)
        rows.append(control(row, len(rows)))
    for second in range(1, 4):
        for n, (x, y) in enumerate(places):
            place = {"x": x + second, "y": y - second}
            at = START_US + second * SECOND_US
            rows.append(Fix(position=len(rows), object=f"o{n}", event_us=at, **place))
    case = Case(rows=tuple(rows), layers={}, rules=Rules())
    cut = Segmentation(cuts=(800, 1200, 1600), batches=(1,) * 9)
    changes, _, order = run_steps(case, cut)
    most = []
    for shards in (2, 4, 8):
        told, other_order, states = run_with_guests(
            case, cut, layer_of(case), shards=shards, rng=DealtOnce(shards)
        )
        assert in_row_order(told, other_order) == in_row_order(changes, order)
        most.append(max(len(state.objects) for state in states))
    assert most[0] < 400
    assert most[1] < 0.75 * most[0]
    assert most[2] < 0.75 * most[1]


class DealtOnce(Random):
    """Has queries dealt at the begin of the third batch, behind their registrations, and nothing forgotten.

    A batch asks once whether they are dealt, and each shard whether it forgets.
    """

    def __init__(self, shards):
        super().__init__(0)
        self._asked, self._third = 0, 2 * (1 + shards)

    def random(self):
        self._asked += 1
        return 0.25 if self._asked == self._third + 1 else 1.0
