"""The law of what a state forgets: wherever it does, the changes are those of a state that keeps everything."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.engine import local
from st_common.engine.local import LocalEngine
from st_common.operators.runtime.retire import retired
from st_common.operators.runtime.stages import step
from st_common.operators.runtime.stored import state_from_blob
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.query.plan import Aggregate, Plan
from st_common.regions.registry import Box
from tests.kit import oracle
from tests.kit.by_hand import drop, end, register
from tests.kit.effort import tries
from tests.kit.laws import (
    ShapelyLayer,
    batched,
    in_row_order,
    packets_of,
    run_steps,
    settings_of,
    told,
    told_by_oracle,
)
from tests.kit.log_writer import settings_of as stream_of
from tests.kit.log_writer import write_log
from tests.kit.oracle import Fix, Rules
from tests.kit.strategies import (
    SECOND_US,
    Case,
    Segmentation,
    cases,
    segmentations,
)

SHORT = st.sampled_from(
    [None, 0, 1, 2, 4]
)  # seconds of silence: so short that objects come back forgotten


@pytest.mark.spec("S4", "X1")
@tries(80)
@given(cases(), SHORT, st.integers(0, 1 << 32), st.data())
def test_a_state_that_forgets_tells_what_brute_force_tells(case, silence_s, seed, data):
    silence_us = None if silence_s is None else silence_s * SECOND_US + 1
    case, rng = (
        replace(case, rules=replace(case.rules, silence_us=silence_us)),
        random.Random(seed),
    )
    cut = data.draw(segmentations(len(case.rows)))
    segments, order = packets_of(case, cut, 1)
    state, of, changes = State(), settings_of(case.rules), []
    for batch in batched(segments, cut.batches):
        done = step(
            state,
            [one[0] for one in batch],
            of,
            lambda *key: ShapelyLayer(case.layers[key]),
        )
        state = done.state
        changes.append(settled([done.changes]))
        if rng.random() < 0.7:
            state = retired(state, of, least=0)
            state = state_from_blob(state.to_blob()) if rng.random() < 0.5 else state
    found = pa.concat_tables(changes)
    again, _, other = run_steps(case, cut)
    assert in_row_order(found, order) == in_row_order(again, other)
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(found, order) == told_by_oracle(expected.changes)


BOX = Plan(stream="grid", inside=Box(minx=0, miny=0, maxx=10, maxy=10))


@pytest.mark.spec("S4")
def test_ids_that_come_and_go_and_dropped_queries_leave_the_state(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(local, "LEAST", 10)
    rows = [register("kept", BOX)]
    for number in range(400):
        rows.append(
            Fix(
                position=0,
                object=f"o{number}",
                event_us=(1 + number) * SECOND_US,
                x=1.0,
                y=1.0,
            )
        )
        rows += [register(f"q{number}", BOX), drop(f"q{number}")]
    home, stream = Home(tmp_path), stream_of("grid", Rules(silence_us=5 * SECOND_US))
    write_log(home.log("grid"), rows)
    engine = LocalEngine(home, stream)
    while engine.batch():
        pass
    assert (len(engine.state.objects), len(engine.state.queries)) == (400, 401)
    engine.store()
    assert engine.state.objects.ids.to_pylist() == [
        f"o{number}" for number in range(394, 400)
    ]
    assert [one.name for one in engine.state.queries] == ["kept"]
    assert len(engine.state.targets) == 1
    engine.close()
    again = LocalEngine(home, stream)
    assert len(again.state.objects) == 6
    again.abandon()


def test_a_little_that_is_not_needed_stays(tmp_path):
    state = State()
    assert retired(state, settings_of(Rules())) is state


def test_sums_do_not_depend_on_the_order_in_which_objects_came():
    parts = [0.1, 0.2, 0.3, 1e16, -1e16, 0.7]
    plan = replace(BOX, aggregate=Aggregate(function="sum", argument="load"))
    values = set()
    for shift in range(len(parts)):
        turned = parts[shift:] + parts[:shift]
        rows = [register("q", plan)]
        rows += [
            Fix(
                position=0,
                object=f"o{parts.index(load)}",
                event_us=SECOND_US,
                x=1.0,
                y=1.0,
                attributes={"load": load},
            )
            for load in turned
        ]
        rows.append(end())
        case = Case(rows=tuple(rows), layers={}, rules=Rules())
        changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
        values |= {row["value"] for row in changes.to_pylist()}
    assert len(values) == 1
