"""What becomes of frames when queries stop, or when other objects count because a layer was loaded anew (SPEC X4)."""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.regrouping import regroup
from st_common.operators.aggregate.relational import regrouped_targets, zeros
from st_common.operators.aggregate.stretch import one_tick
from st_common.operators.aggregate.telling import group_lines, tell_groups
from st_common.operators.arrays.keys import SHIFT
from st_common.operators.state.component import Change, joined
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.memories import Changes
from st_common.operators.travelled.frames import Frames
from st_common.operators.travelled.rows import FrameRows, Tracks
from st_common.operators.travelled.specs import FrameSpecs
from st_common.operators.travelled.spells import Held
from st_common.operators.travelled.telling import (
    frame_lines,
    parts_of_frames,
    tell_rows,
)
from st_common.operators.turn.changes import CAUSE, SHARD_SCHEMA, TICK_RANK
from st_common.operators.turn.course import BEFORE
from st_common.operators.turn.swapping import At, Swapping
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """The rows of changes, groups that change, and what becomes of the components of frames."""

    changes: pa.Table = field(default_factory=SHARD_SCHEMA.empty_table)
    groups: Change[Groups] = field(default_factory=lambda: Change(added=Groups()))
    changed: Changes = field(default_factory=dict)


def swap_frames(swapping: Swapping, answer: np.ndarray) -> Swapped:
    """The part of a swap about frames.

    Queries that stop lose their rows and ways; groups are told elsewhere. With another version of a layer, windows stay
    as they are and objects that cease or begin to count are told.

    Args:
        swapping: what stops and what starts.
        answer: int64, ascending, keys `target << 32 | object`: the answers below frames after the swap.
    """
    state, turn, present = swapping.state, swapping.turn, swapping.present
    if not swapping.change.keeps:
        memories = state.memories[FrameRows], state.memories[Tracks]
        return _stopped(swapping) if any(map(len, memories)) else Swapped()
    if not len(turn.known.of(FrameSpecs).numbers):
        return Swapped()
    frames = Frames(state, turn, present)
    held = frames.recount(answer)
    at, before = swapping.at, state.memories[Groups]
    groups = _regrouped(swapping, frames, held)
    closed = frames.closed(turn.events.object, at.tick)[FrameRows]
    told = [
        _told(turn, frames, held, at),
        tell_groups(turn, group_lines(turn, before, groups, at)),
    ]
    return Swapped(
        changes=pa.concat_tables(told),
        groups=groups,
        changed={
            FrameRows: Change(
                added=FrameRows(), flipped=closed.flipped, after=closed.after
            )
        },
    )


def _regrouped(swapping: Swapping, frames: Frames, held: Held) -> Change[Groups]:
    """What changes among the groups over frames; a count that nobody was told yet is told, if only as 0."""
    turn, before = swapping.turn, swapping.state.memories[Groups]
    stretch = one_tick(turn, swapping.present, swapping.at.tick)
    parts = parts_of_frames(stretch, frames, held)
    after = before if parts is None else regroup(stretch, parts, before)[1]
    after = joined([after, zeros(turn, _counted_now(swapping), after)])
    return regrouped_targets(before, before.target, after)


def _counted_now(swapping: Swapping) -> np.ndarray:
    """The numbers of the judged queries with groups over frames; none before the stream has a time."""
    if swapping.state.max_event == NEVER:
        return np.empty(0, np.int64)
    known, after = swapping.turn.known, swapping.change.after
    counted: np.ndarray = after[(known.framed & known.grouped & known.mine)[after]]
    return counted


def _told(turn: Turn, frames: Frames, held: Held, at: At) -> pa.Table:
    """Rows of changes for what enters and leaves results at a row of the log, for the causes that it has."""
    lines = frame_lines(turn, frames, held, np.array([at.tick]), np.zeros(1, np.int64))
    if lines is not None:
        cause = np.where(lines.sign > 0, CAUSE[at.plus or "enter"], lines.cause)
        if at.minus is not None:
            cause[lines.sign < 0] = CAUSE[at.minus]
        rank = np.full(len(lines), TICK_RANK if at.plus is None else 1)
        lines = replace(
            lines,
            position=at.rows(frames.rows.queries(lines.target)),
            rank=rank,
            cause=cause,
        )
    return tell_rows(turn, frames, lines)


def _stopped(swapping: Swapping) -> Swapped:
    """Queries that stop: what their results held leaves, rows and tracks go."""
    state, change = swapping.state, swapping.change
    frames = Frames(state, swapping.turn, swapping.present)
    before = state.memories[FrameRows]
    rows = np.flatnonzero(np.isin(before.query, change.before))
    row = rows[before.held[rows] > 0]
    none = row[:0]
    held = Held(
        row=row,
        start=np.full(len(row), BEFORE),
        until=np.zeros(len(row), np.int64),
        cause=np.full(len(row), CAUSE["leave"]),
        again=none,
        again_at=none,
        looked=row,
        ticks=1,
    )
    keys = state.memories[Tracks].key
    gone = keys[np.isin(keys >> SHIFT, change.before)]
    return Swapped(
        changes=_told(swapping.turn, frames, held, swapping.at),
        changed={
            FrameRows: Change(added=FrameRows(), removed=rows),
            Tracks: Change(added=Tracks(), removed=gone),
        },
    )
