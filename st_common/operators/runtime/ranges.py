"""Queries that are judged fix by fix: regions that stand still, and layers (GPAC's four cases; SPEC G2).

what an object satisfied     before the fix      with the fix
query 1                           yes                no            leaves     -
query 2                           no                 yes           enters     +
query 3                           yes                yes           stays      nothing, or 0 where each fix is asked for
query 4                           no                 no            nothing
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import MASK, SHIFT, packed, swap_halves
from st_common.operators.events.timeline import EXPIRED, FIX
from st_common.operators.expressions import readings
from st_common.operators.matching.match import Hits
from st_common.operators.runtime import gpac
from st_common.operators.state.state import State
from st_common.operators.turn.changes import CAUSE, SHARD_SCHEMA, change_rows
from st_common.operators.turn.part import Counters, Part
from st_common.operators.turn.places import places_of
from st_common.operators.turn.points import look_up
from st_common.operators.turn.shown import shown_fields
from st_common.operators.turn.swapping import Swapping, swapped_keys, tell_swapped
from st_common.operators.turn.turn import Turn

_LEAVE_CAUSE = np.array(
    [CAUSE["leave"], CAUSE["gone"], CAUSE["expired"]]
)  # by kind of event


def judge_ranges(state: State, turn: Turn) -> Part:
    """What the events of a run do to the answers of queries that are judged fix by fix.

    Args:
        state: the state before the run.
        turn: the run; only its own objects are looked up.

    Returns:
        Changes, the answers of all objects with events, and counts by GPAC's cases.
    """
    if turn.known.fixwise.empty and not len(state.answer):
        nothing = SHARD_SCHEMA.empty_table()
        return Part(changes=(nothing,), delta={"answer": state.answer})
    events = turn.events
    fixes = np.flatnonzero((events.kind == FIX) & turn.own(events.object))
    hits = _hits(turn, fixes)
    cases = gpac.judge(events.object, hits.point, hits.target, state.answer)
    return Part(
        changes=(_tell(turn, cases),),
        delta={"answer": cases.answer},
        counters=Counters(
            stays=len(cases.stays[0]),
            leaves=len(cases.leaves[0]),
            enters=len(cases.enters[0]),
            probed=hits.probed,
            matched=hits.matched,
        ),
    )


def swap_ranges(swapping: Swapping) -> Part:
    """What becomes of these answers when queries start, stop or see another version of a layer."""
    answer = swapping.state.answer
    judged = swapping.judges(answer >> SHIFT)
    keys = swapped_keys(swapping, answer, answer & MASK, judged, _members(swapping))
    # Answers fix by fix are sorted by object, what is told by target.
    told = tell_swapped(swapping, swap_halves(keys.minus), swap_halves(keys.plus))
    return Part(
        changes=(told,),
        delta={"answer_minus": keys.minus, "answer_plus": keys.plus},
        counters=Counters(leaves=len(keys.minus), enters=len(keys.plus)),
    )


def _hits(turn: Turn, fixes: np.ndarray) -> Hits:
    """What fixes satisfy, by their places among the events; an object that is gone or expired satisfies nothing."""
    queries = turn.known.fixwise
    if queries.empty:
        return Hits(point=fixes[:0], target=fixes[:0], probed=0, matched=0)
    hits = look_up(turn, queries, turn.readings.take(fixes))
    return replace(hits, point=fixes[hits.point])


def _members(swapping: Swapping) -> np.ndarray:
    """What the last fixes of own living objects satisfy: sorted keys `object << 32 | target`."""
    turn, alive = swapping.turn, swapping.own_alive()
    queries = turn.known.fixwise
    if queries.empty:
        return alive[:0]
    hits = look_up(turn, queries, readings.of_objects(swapping.state.fixes, alive))
    return np.sort(packed(alive[hits.point], hits.target))


def _tell(turn: Turn, cases: gpac.Cases) -> pa.Table:
    """The rows of changes: - where an object leaves, + where it enters, 0 for further fixes on request."""
    events = turn.events
    of_target = turn.numbering.targets.query
    wanted = turn.known.every[of_target[cases.stays[1]]]
    parts = (
        cases.leaves,
        cases.enters,
        (cases.stays[0][wanted], cases.stays[1][wanted]),
    )
    event, target = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    counts = [len(part[0]) for part in parts]
    cause = np.repeat([-1, CAUSE["enter"], CAUSE["inside"]], counts)
    cause[: counts[0]] = _LEAVE_CAUSE[events.kind[cases.leaves[0]]]
    return change_rows(
        turn.names,
        position=events.position[event],
        event_ts=events.ts[event],
        fix_ts=events.fix_ts[event],
        **places_of(turn.readings, event),
        # 0 for an expiry, which comes first at its place in the log and time.
        rank=(events.kind[event] != EXPIRED).astype(np.int8),
        objects=events.object[event],
        target=target,
        sign=np.repeat([-1, 1, 0], counts),
        cause=cause,
        fields=_fields(turn, event, target),
    )


def _fields(turn: Turn, event: np.ndarray, target: np.ndarray) -> pa.Array | None:
    """What rows of changes show of the fixes of events, and of the features that they are joined with."""
    return shown_fields(
        turn,
        query=turn.numbering.targets.query[target],
        reading=event,
        readings=turn.readings,
        target=target,
    )
