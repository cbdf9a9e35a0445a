"""Rows of changes about fences: ENTER is +, EXIT is -, all other events have the sign 0 (SPEC X3, docs/adr/0024)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.events.timeline import EXPIRED, FIX
from st_common.operators.expressions.readings import Readings
from st_common.operators.fence.dwelling import Dwells
from st_common.operators.fence.judging import Judged
from st_common.operators.fence.specs import FenceSet
from st_common.operators.state.fixes import LastFixes
from st_common.operators.turn.changes import CAUSE, TICK_RANK, change_rows
from st_common.operators.turn.last_known import last_known, readings_of
from st_common.operators.turn.places import places_of
from st_common.operators.turn.shown import shown_fields
from st_common.operators.turn.turn import Turn

_EXIT = np.array([CAUSE["leave"], CAUSE["gone"], CAUSE["expired"]])  # by kind of event


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Lines to be told: of which object and target, when and why, and the reading that they show.

    `reading` is the place of an event, or behind all events the number of an object: its last fix from before the run.
    """

    position: np.ndarray
    event_ts: np.ndarray
    rank: np.ndarray
    object: np.ndarray
    target: np.ndarray
    sign: np.ndarray
    cause: np.ndarray
    value: np.ndarray
    reading: np.ndarray


def tell_fences(judged: Judged, turn: Turn, fixes: LastFixes) -> pa.Table:
    """The rows of changes of a run at fences; `fixes` are the last ones before it."""
    told = together(
        [
            *_crossings(judged, turn),
            _stays(judged, turn, "inside", judged.ran.was_in & judged.ran.is_in),
            _stays(judged, turn, "outside", ~judged.ran.is_in),
            _rows(judged, turn, judged.crosses, "cross", sign=0),
            _dwells(judged.dwells, turn),
        ]
    )
    return rows_of(told, turn, fixes)


def _crossings(judged: Judged, turn: Turn) -> list[Told]:
    """Those that enter and exit: with signs where both are told, else those that are asked for."""
    fences, ran = turn.known.of(FenceSet), judged.ran
    fence = fences.place[turn.numbering.targets.query[judged.target]]
    signs = fences.has_answer[fence]
    enters = np.flatnonzero(ran.enters & fences.wanting("enter")[fence])
    exits = np.flatnonzero(ran.exits & fences.wanting("exit")[fence])
    entered = _rows(judged, turn, enters, "enter", sign=signs[enters].astype(int))
    exited = _rows(judged, turn, exits, "leave", sign=-signs[exits].astype(int))
    ends = turn.events.ts[judged.event[exits]]
    kind = turn.events.kind[judged.event[exits]]
    return [
        entered,
        replace(exited, cause=_EXIT[kind], value=(ends - ran.since[exits]) / 1e6),
    ]


def _stays(judged: Judged, turn: Turn, event: str, stays: np.ndarray) -> Told:
    """Further fixes of those that are in, or all of those that are out, where that is asked for."""
    fences = turn.known.of(FenceSet)
    fence = fences.place[turn.numbering.targets.query[judged.target]]
    is_fix = turn.events.kind[judged.event] == FIX
    rows = np.flatnonzero(stays & is_fix & fences.wanting(event)[fence])
    return _rows(judged, turn, rows, event, sign=0)


def _rows(
    judged: Judged, turn: Turn, rows: np.ndarray, cause: str, *, sign: int | np.ndarray
) -> Told:
    events, event = turn.events, judged.event[rows]
    return Told(
        position=events.position[event],
        event_ts=events.ts[event],
        rank=(events.kind[event] != EXPIRED).astype(np.int8),
        object=events.object[event],
        target=judged.target[rows],
        sign=np.broadcast_to(sign, len(rows)),
        cause=np.full(len(rows), CAUSE[cause]),
        value=np.full(len(rows), np.nan),
        reading=event,
    )


def _dwells(dwells: Dwells, turn: Turn) -> Told:
    """Visits that have lasted long enough: they show the last fix that was known by then."""
    target, objects = dwells.key & MASK, dwells.key >> SHIFT
    fences = turn.known.of(FenceSet)
    fence = fences.place[turn.numbering.targets.query[target]]
    return Told(
        position=dwells.position,
        event_ts=dwells.ts,
        rank=np.full(len(target), TICK_RANK),
        object=objects,
        target=target,
        sign=np.zeros(len(target), np.int64),
        cause=np.full(len(target), CAUSE["dwell"]),
        value=fences.dwell_us[fence] / 1e6,
        reading=last_known(turn.events, objects, dwells.position, dwells.ts),
    )


def rows_of(told: Told, turn: Turn, fixes: LastFixes) -> pa.Table:
    """Rows of changes of some lines; fences show where the object was."""
    query = turn.numbering.targets.query[told.target]
    shown, reading = readings_of(told.reading, turn, fixes)
    fields = shown_fields(turn, query=query, reading=reading, readings=shown)
    return changes_of(told, turn, shown, reading, fields)


def changes_of(
    told: Told,
    turn: Turn,
    shown: Readings,
    reading: np.ndarray,
    fields: pa.Array | None,
) -> pa.Table:
    """Rows of changes of some lines, of fences and of incidents.

    Args:
        told: the lines.
        turn: the run.
        shown: fixes.
        reading: int64[n], the place among these of the one that each line shows.
        fields: what each line shows, as JSON.
    """
    return change_rows(
        turn.names,
        position=told.position,
        event_ts=told.event_ts,
        fix_ts=shown.ts[reading],
        **places_of(shown, reading),
        rank=told.rank,
        objects=told.object,
        target=told.target,
        sign=told.sign,
        cause=told.cause,
        value=told.value,
        fields=fields,
    )


def together(parts: Sequence[Told]) -> Told:
    """The lines of all parts, one at least."""
    names = Told.__dataclass_fields__
    return Told(
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in names
        }
    )
