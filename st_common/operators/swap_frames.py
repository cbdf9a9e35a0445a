"""What becomes of frames when queries stop, or when other objects count because a layer was loaded anew (SPEC X4)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.changes import SHARD_SCHEMA
from st_common.operators.frame_telling import frame_lines, regroup, tell_rows
from st_common.operators.frames import Frames, Judged
from st_common.operators.groups import Groups
from st_common.operators.keys import SHIFT
from st_common.operators.present import Present
from st_common.operators.relational import At, Regrouped
from st_common.operators.state import State
from st_common.operators.swapping import Swap
from st_common.operators.telling import group_lines, tell_groups
from st_common.operators.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """The rows of changes, groups that change, and the parts of a delta about frames."""

    changes: pa.Table = field(default_factory=SHARD_SCHEMA.empty_table)
    groups: Regrouped = field(default_factory=lambda: Regrouped(removed=np.empty(0, np.int64), added=Groups.empty()))
    changed: dict[str, Any] = field(default_factory=dict)


def swap_frames(state: State, turn: Turn, present: Present, change: Swap, answer: np.ndarray, at: At) -> Swapped:
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
    judged = frames.recount(answer)
    groups, _ = regroup(turn, frames, judged, state.groups)
    closed = frames.closed(turn.events.object, at.tick)
    told = [
        tell_rows(turn, frames, frame_lines(turn, frames, judged, at)),
        tell_groups(turn, group_lines(turn, state.groups, groups, at)),
    ]
    return Swapped(
        changes=pa.concat_tables(told), groups=groups,
        changed={"frame_rows_flipped": closed.rows_flipped, "frame_rows": closed.rows},
    )  # fmt: skip


def _stopped(state: State, turn: Turn, change: Swap, frames: Frames, at: At) -> Swapped:
    rows = np.flatnonzero(np.isin(state.frame_rows.query, change.before))
    held = rows[state.frame_rows.held[rows] > 0]
    none = held[:0]
    judged = Judged(minus=held, plus=none, stays=none, ended=none, uncounted=none, moved=none.astype(bool))
    keys = state.tracks.key
    return Swapped(
        changes=tell_rows(turn, frames, frame_lines(turn, frames, judged, at)),
        changed={"frame_rows_removed": rows, "tracks_removed": keys[np.isin(keys >> SHIFT, change.before)]},
    )  # fmt: skip
