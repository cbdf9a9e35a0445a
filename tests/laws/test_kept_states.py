"""The law of states that are stored as what changed: an engine that starts from one goes on as if it never stopped."""

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.engine.states import States
from st_common.operators.runtime.retire import retired
from st_common.operators.runtime.stages import step
from st_common.operators.state.difference import Changed
from st_common.operators.state.state import State
from st_common.operators.turn.changes import SHARD_SCHEMA, settled
from st_common.position import position_of
from st_common.storage import LocalStorage
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import (
    packets_of,
    settings_of,
    told,
    told_by_oracle,
)
from tests.kit.shapely_layer import ShapelyLayer
from tests.kit.strategies import SECOND_US, cases, segmentations

_LAST = 1 << 62


def _damaged(folder, rng):
    """One of the stored objects loses its end, has a flipped bit, or is gone."""
    path = rng.choice(
        sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    )
    data = bytearray(path.read_bytes())
    kind = rng.randrange(3)
    if kind == 0:
        path.unlink()
    elif kind == 1:
        path.write_bytes(data[: rng.randrange(len(data))])
    else:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)


@pytest.mark.spec("S2", "S4", "X1")
@tries(80)
@given(cases(), st.sampled_from([None, 1, 3]), st.integers(0, 1 << 32), st.data())
def test_an_engine_that_starts_from_what_is_stored_tells_what_brute_force_tells(
    case, silence_s, seed, data
):
    silence_us = None if silence_s is None else silence_s * SECOND_US + 1
    case, rng = (
        replace(case, rules=replace(case.rules, silence_us=silence_us)),
        random.Random(seed),
    )
    cut = data.draw(segmentations(len(case.rows)))
    segments, order = packets_of(case, cut, 1)
    of, changes = settings_of(case.rules), settled([SHARD_SCHEMA.empty_table()])
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        states = States(LocalStorage(folder), folder)
        state = states.newest(upto=_LAST)
        changed, at = Changed.since(state), 0
        while at < len(segments):
            batch = segments[at : at + rng.randint(1, 3)]
            done = step(
                state,
                [one[0] for one in batch],
                of,
                lambda *key: ShapelyLayer(case.layers[key]),
            )
            state, changes = (
                done.state,
                pa.concat_tables([changes, settled([done.changes])]),
            )
            at += len(batch)
            changed.add(done.deltas)
            if rng.random() < 0.6:
                kept = retired(state, of, least=0) if rng.random() < 0.2 else state
                states.store(kept, changed if kept is state else None)
                state, changed = kept, Changed.since(kept)
            if rng.random() < 0.3:  # it dies, and perhaps something is damaged
                if rng.random() < 0.5 and states.places():
                    _damaged(folder, rng)
                states = States(LocalStorage(folder), folder)
                state = states.newest(
                    upto=position_of(at, 0) - 1
                )  # none that is ahead of what was told
                changed, at = Changed.since(state), state.next_segment
                changes = changes.filter(pc.field("position") < position_of(at, 0))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, order) == told_by_oracle(expected.changes)


@pytest.mark.spec("S2")
@tries(25)
@given(cases(), st.integers(0, 1 << 32), st.data())
def test_the_state_that_an_archive_behind_needs_stays(case, seed, data):
    cut, rng = data.draw(segmentations(len(case.rows))), random.Random(seed)
    segments, _ = packets_of(case, cut, 1)
    of, stored, needed, let_go = settings_of(case.rules), [0], 0, 0
    with tempfile.TemporaryDirectory() as home:
        states = States(LocalStorage(Path(home)), Path(home))
        state = states.newest(upto=_LAST)
        changed = Changed.since(state)
        for (packet,) in segments:
            done = step(
                state, [packet], of, lambda *key: ShapelyLayer(case.layers[key])
            )
            state = done.state
            changed.add(done.deltas)
            if rng.random() < 0.3:
                needed = rng.randint(needed, state.next_segment)
            if rng.random() < 0.8:
                states.needed = needed
                states.store(state, changed if rng.random() < 0.5 else None)
                changed = Changed.since(state)
                stored.append(state.next_segment)
                again = States(LocalStorage(Path(home)), Path(home))
                found = again.newest(upto=position_of(needed, 0) - 1).next_segment
                allowed = [place for place in stored if place <= needed]
                assert found in allowed
                assert bool(found) == (len(allowed) > 1)
                if found:  # what was let go of the log before is not read again
                    assert found >= let_go
                    assert states.begins() == found
                let_go = states.begins()


@pytest.mark.spec("S2")
def test_a_state_whose_base_was_let_go_is_no_place_to_begin(tmp_path):
    """What hangs on 3 goes with it: else the log before 5 were let go of, which a start from 1 reads."""
    states = States(LocalStorage(tmp_path), tmp_path, needed=1)
    for place, before in ((1, None), (3, None), (5, 3), (9, None), (12, None)):
        changed = before and Changed.since(State(next_segment=before))
        states.store(State(next_segment=place), changed)
        if place == 5:
            assert states.begins() == 1
            states.needed = 5
            assert states.begins() == 5
            states.needed = 1
    assert states.places() == [1, 9, 12]
    states.needed = 6
    assert states.begins() == 1
    again = States(LocalStorage(tmp_path), tmp_path)
    assert again.newest(upto=position_of(6, 0) - 1).next_segment == 1
