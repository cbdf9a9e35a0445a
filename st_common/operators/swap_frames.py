"""What becomes of frames when queries stop, or when other objects count because a layer was loaded anew (SPEC X4)."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.changes import CAUSE, SHARD_SCHEMA, TICK_RANK
from st_common.operators.course import BEFORE
from st_common.operators.frame_spells import Held
from st_common.operators.frame_telling import frame_lines, parts_of_frames, tell_rows
from st_common.operators.frames import Frames
from st_common.operators.groups import Groups
from st_common.operators.keys import SHIFT
from st_common.operators.present import Present
from st_common.operators.regrouping import regroup
from st_common.operators.relational import At, Regrouped, regrouped_targets
from st_common.operators.state import State
from st_common.operators.swapping import Swap
from st_common.operators.telling import group_lines, one_tick, tell_groups
from st_common.operators.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """The rows of changes, groups that change, and the parts of a delta about frames."""

    changes: pa.Table = field(default_factory=SHARD_SCHEMA.empty_table)
    groups: Regrouped = field(
        default_factory=lambda: Regrouped(
            removed=np.empty(0, np.int64), added=Groups.empty()
        )
    )
    changed: dict[str, Any] = field(default_factory=dict)


def swap_frames(
    state: State, turn: Turn, present: Present, change: Swap, answer: np.ndarray, at: At
) -> Swapped:
    """The part of a swap about frames, given the answers below them after it.

    Queries that stop lose their rows and ways; groups are told elsewhere. With another version of a layer, windows stay
    as they are and objects that cease or begin to count are told.
    """
    if not len(state.frame_rows) and not len(state.tracks):
        return Swapped()
    frames = Frames(state, turn, present)
    if not change.keeps:
        return _stopped(state, turn, change, frames, at)
    if not len(frames.specs.numbers):
        return Swapped()
    held = frames.recount(answer)
    groups = _regrouped(turn, present, frames, held, state.groups, at)
    closed = frames.closed(turn.events.object, at.tick)
    told = [
        _told(turn, frames, held, at),
        tell_groups(turn, group_lines(turn, state.groups, groups, at)),
    ]
    return Swapped(
        changes=pa.concat_tables(told),
        groups=groups,
        changed={"frame_rows_flipped": closed.rows_flipped, "frame_rows": closed.rows},
    )


def _regrouped(
    turn: Turn, present: Present, frames: Frames, held: Held, before: Groups, at: At
) -> Regrouped:
    """What changes among the groups over frames."""
    stretch = one_tick(turn, present, at.tick)
    parts = parts_of_frames(stretch, frames, held)
    after = before if parts is None else regroup(stretch, parts, before)[1]
    return regrouped_targets(before, before.target, after)


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


def _stopped(state: State, turn: Turn, change: Swap, frames: Frames, at: At) -> Swapped:
    rows = np.flatnonzero(np.isin(state.frame_rows.query, change.before))
    row = rows[state.frame_rows.held[rows] > 0]
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
    keys = state.tracks.key
    return Swapped(
        changes=_told(turn, frames, held, at),
        changed={
            "frame_rows_removed": rows,
            "tracks_removed": keys[np.isin(keys >> SHIFT, change.before)],
        },
    )
