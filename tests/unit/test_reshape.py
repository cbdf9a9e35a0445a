"""Shards become other shards in the middle of a stream, and nobody can tell from the changes."""

import random
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common.engine.packets import packets, step_settings
from st_common.errors import StateError
from st_common.log.log import Log
from st_common.operators.aggregate.groups import Groups
from st_common.operators.runtime.reshape import joined, split
from st_common.operators.runtime.retire import retired
from st_common.operators.runtime.stages import step
from st_common.operators.runtime.stored import state_from_blob
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.state import State
from st_common.operators.travelled.rows import FrameRows, Tracks
from st_common.operators.turn.changes import settled
from st_common.operators.window.entries import Entries
from st_common.query.plan import Plan
from tests.kit.effort import tries
from tests.kit.laws import (
    ShapelyLayer,
    batched,
    in_row_order,
    packets_of,
    run_steps,
)
from tests.kit.laws import settings_of as rules_of
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle import Fix, Rules
from tests.kit.oracle_rows import Control
from tests.kit.strategies import (
    SECOND_US,
    Case,
    Segmentation,
    cases,
    segmentations,
)

pytestmark = pytest.mark.spec("X1", "X4", "P8")


@st.composite
def lives(draw):
    """A case, how it is cut, and the numbers of shards that it goes through with the batches that each gets."""
    case = draw(cases(rows=40))
    cut = draw(segmentations(len(case.rows)))
    return (
        case,
        cut,
        draw(
            st.lists(
                st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=2, max_size=5
            )
        ),
    )


def reshaped(states, shards, *, moving=True, through_bytes=False):
    """The states as those of another number of shards, each of which follows all objects, or none does."""
    if through_bytes:
        states = [state_from_blob(state.to_blob()) for state in states]
    whole = joined(states, following=range(len(states)) if moving else ())
    if through_bytes:
        whole = state_from_blob(whole.to_blob())
    return split(whole, shards=shards, following=range(shards) if moving else ())


def run_life(case, cut, life, *, through_bytes=False, forgets=None):
    """The changes of a case that goes from shards to shards; the last ones get what is left.

    With `forgets` (random numbers) each shard forgets for itself, now and then, what nothing needs.
    """
    made = {shards: packets_of(case, cut, shards) for shards, _ in life}
    segments, at, told = len(made[life[0][0]][0]), 0, []
    states = [State()] * life[0][0]
    for number, (shards, batches) in enumerate(life):
        states = (
            reshaped(states, shards, through_bytes=through_bytes) if number else states
        )
        end = segments if number == len(life) - 1 else at + batches
        for batch in batched(made[shards][0][at:end], cut.batches):
            results = []
            for shard in range(shards):
                rules = rules_of(case.rules, shard=shard, shards=shards)
                done = step(
                    states[shard], [row[shard] for row in batch], rules, layer_of(case)
                )
                is_now = forgets is not None and forgets.random() < 0.5
                states[shard] = (
                    retired(done.state, rules, least=0) if is_now else done.state
                )
                results.append(done.changes)
            told.append(settled(results))
        at = min(end, segments)
    return pa.concat_tables(told), made[life[0][0]][1], states


def layer_of(case):
    return lambda layer, version: ShapelyLayer(case.layers[layer, version])


@given(lives(), st.booleans())
def test_shards_that_become_others_tell_the_same_changes(drawn, through_bytes):
    case, cut, life = drawn
    changes, _, order = run_steps(case, cut)
    again, other_order, _ = run_life(case, cut, life, through_bytes=through_bytes)
    assert in_row_order(again, other_order) == in_row_order(changes, order)


@pytest.mark.spec("S4")
@tries(40)
@given(lives(), st.sampled_from([0, 1, 2, 4]), st.integers(0, 1 << 32))
def test_shards_that_forget_each_for_itself_and_become_others_tell_the_same_changes(
    drawn, silence_s, seed
):
    case, cut, life = drawn
    case = replace(
        case, rules=replace(case.rules, silence_us=silence_s * SECOND_US + 1)
    )
    changes, _, order = run_steps(case, cut)
    again, other_order, _ = run_life(
        case, cut, life, through_bytes=seed % 2 == 0, forgets=random.Random(seed)
    )
    assert in_row_order(again, other_order) == in_row_order(changes, order)


def said(state):
    """What a state remembers, by names alone."""
    names = Names(state)
    return {
        "answer": names.pairs(state.answer, names.ids, names.targets),
        "tick_answer": names.pairs(state.tick_answer, names.targets, names.ids),
        "groups": groups_said(state.memories[Groups], names),
        "entries": entries_said(state.memories[Entries], names),
        "frames": frames_said(state.memories[FrameRows], names),
        "tracks": tracks_said(state.memories[Tracks], names),
        "fixes": sorted(zip(names.ids, state.fixes.ts.tolist(), strict=True)),
        "held": sorted(state.held.position.tolist()),
        "clock": (state.next_segment, state.max_event),
    }


class Names:
    """What the numbers of a state stand for."""

    def __init__(self, state):
        self.queries = [(query.name, query.version) for query in state.queries]
        self.ids = state.objects.ids.to_pylist()
        self.partners = state.partners.ids.to_pylist()
        targets = zip(
            state.targets.query.tolist(), state.targets.partner.tolist(), strict=True
        )
        self.targets = [
            (self.queries[query] if query >= 0 else None, self.partner(partner))
            for query, partner in targets
        ]

    def partner(self, number, none=None):
        return self.partners[number] if number >= 0 else none

    def pairs(self, keys, high, low):
        pairs = ((high[key >> 32], low[key & 0xFFFFFFFF]) for key in keys.tolist())
        return sorted(pairs, key=repr)  # of LEFT JOIN a target may have no partner


def rows_of(memory, *columns):
    """The rows of a memory, as tuples of these columns."""
    return zip(*(getattr(memory, name).tolist() for name in columns), strict=True)


def groups_said(groups, names):
    return sorted(
        repr((names.targets[target], float(value)))
        for target, value in zip(groups.target, groups.value, strict=True)
    )


def entries_said(entries, names):
    rows = rows_of(
        entries, "target", "object", "ts", "position", "tick", "group", "text"
    )
    named = (
        (
            names.targets[target],
            names.ids[who],
            *when,
            names.partner(group),
            names.partner(text),
        )
        for target, who, *when, group, text in rows
    )
    return sorted(named, key=repr)


def frames_said(frames, names):
    rows = rows_of(frames, "query", "object", "ts", "n", "way", "held", "group")
    return sorted(
        (names.queries[query], names.ids[who], *values, names.partner(group, none=""))
        for query, who, *values, group in rows
    )


def tracks_said(tracks, names):
    rows = rows_of(tracks, "key", "since", "n", "way", "high")
    return sorted(
        (
            names.queries[key >> 32],
            names.ids[key & 0xFFFFFFFF],
            *values,
            [value for value in high if value != NEVER],
        )
        for key, *values, high in rows
    )


@tries(15)
@given(lives(), st.integers(1, 5))
def test_one_state_and_all_that_it_is_split_into_know_the_same(drawn, shards):
    case, cut, life = drawn
    states = run_life(case, cut, life)[2]
    whole = joined(states, following=range(len(states)))
    parts = split(whole, shards=shards, following=range(shards))
    assert said(joined(parts, following=range(shards))) == said(whole)
    one = run_life(case, cut, [(1, 0), (1, 0)])[2][0]
    assert said(joined([one], following=[0])) == said(one)
    assert len(whole.partners) <= len(one.partners)


@tries(15)
@given(
    cases(kind="fixes", layers=False),
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
    st.data(),
)
def test_shards_that_know_their_own_objects_alone_become_others(case, life, data):
    assume(
        not any(
            "plan" in row.row and Plan.from_json(row.row["plan"]).by_ticks
            for row in case.rows
            if isinstance(row, Control)
        )
    )
    cut = data.draw(segmentations(len(case.rows)))
    with tempfile.TemporaryDirectory() as folder:
        written = write_log(Path(folder), case.rows, cut.cuts)
        stream, log = (
            replace(settings_of("grid", case.rules), moving=False),
            Log(Path(folder)),
        )
        every = -(-log.end() // len(life))
        states, told = [State()] * life[0], []
        for number, shards in enumerate(life):
            states = (
                reshaped(states, shards, moving=False, through_bytes=True)
                if number
                else states
            )
            read = [
                packets(log, one, stream, shards=shards)
                for one in log.segments(number * every)
            ][:every]
            done = [
                step(
                    state,
                    [row[shard] for row in read],
                    step_settings(stream, shard=shard, shards=shards),
                    None,
                )
                for shard, state in enumerate(states)
            ]
            states = [one.state for one in done]
            told.append(settled([one.changes for one in done]))
    objects = [set(state.objects.ids.to_pylist()) for state in states]
    assert sum(map(len, objects)) == len(set().union(*objects))
    changes, _, order = run_steps(case, cut)
    assert in_row_order(pa.concat_tables(told), written.order) == in_row_order(
        changes, order
    )


def test_shards_of_different_places_of_the_log_are_not_joined():
    with pytest.raises(StateError, match=r"different segments: \[3, 4\]"):
        joined([State(next_segment=3), State(next_segment=4)], following=[0, 1])
    with pytest.raises(StateError, match="do not know the same"):
        joined([State(max_event=1), State(max_event=2)], following=[0, 1])


@pytest.mark.spec("S4")
def test_shards_that_differ_in_what_they_know_of_an_object_are_not_joined():
    def state_at(seconds):
        fix = Fix(position=0, object="a", event_us=seconds * SECOND_US, x=1.0, y=1.0)
        case = Case(rows=(fix,), layers={}, rules=Rules())
        cut = Segmentation(cuts=(), batches=())
        return replace(run_life(case, cut, [(1, 0)])[2][0], max_event=9 * SECOND_US)

    assert len(joined([state_at(1), state_at(1)], following=[0, 1]).objects) == 1
    with pytest.raises(StateError, match="do not know the same of objects"):
        joined([state_at(1), state_at(2)], following=[0, 1])


def test_every_part_of_a_state_is_known_to_a_reshard():
    """What a state gets new must be joined and split as well: this list is where one is reminded of it."""
    same_in_all = {"next_segment", "max_event", "raised_us", "queries", "layers"}
    same_in_all |= {"limits"}
    of_objects = {"objects", "fixes", "held", "pending"}
    of_queries = {"tick_answer", "memories"}
    numbered = {"partners", "targets", "answer", "memo"}
    assert {
        field.name for field in fields(State)
    } == same_in_all | of_objects | of_queries | numbered
