"""CQL-S's windows as a run leaves them: which rows and tracks of the state go, change and come."""

from dataclasses import dataclass, replace

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.state.component import Change
from st_common.operators.state.memories import Changes
from st_common.operators.travelled.bounds import Bounds
from st_common.operators.travelled.rows import FrameRows, Tracks
from st_common.operators.travelled.slots import Slots
from st_common.operators.travelled.specs import NONE, FrameSpecs
from st_common.operators.travelled.ways import Ways
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The rows of a run in its end.

    Attributes:
        origin: int64[n], where in the state each row was, -1 for a new one.
        held: bool[n], whether a result has it.
        live: bool[n], whether it is still remembered.
        cut_short: bool[n], its tick is another one than in the state, for an end mark came.
    """

    rows: FrameRows
    origin: np.ndarray
    held: np.ndarray
    live: np.ndarray
    cut_short: np.ndarray


def closed(turn: Turn, before: Tracks, tracks: Tracks, kept: Kept) -> Changes:
    """What a run changes in the state: changes of `FrameRows` and of `Tracks`.

    Args:
        turn: the run.
        before: the tracks that the state has; those of queries that are no live frames stay as they are.
        tracks: those after the run, of this shard's frames.
        kept: the rows in its end.
    """
    place, live = turn.known.of(FrameSpecs).place, kept.live
    held = kept.held.astype(np.int8)
    old = (kept.origin >= 0) & ~kept.cut_short  # those cut short are stored anew
    flipped = old & live & (held != kept.rows.held)
    rows = replace(kept.rows, held=held)
    mine = before.key[place[before.key >> SHIFT] != NONE]
    # Ways change by events alone, bounds by the clock as well.
    touched = np.isin(tracks.key & MASK, turn.events.object) | _differ(before, tracks)
    return {
        FrameRows: Change(
            removed=kept.origin[(kept.origin >= 0) & ~(old & live)],
            flipped=kept.origin[flipped],
            added=rows.take(~old & live),
            after=rows if live.all() else rows.take(live),
        ),
        Tracks: Change(
            removed=mine[~np.isin(mine, tracks.key)], added=tracks.take(touched)
        ),
    }


def tracks_of(ways: Ways, bounds: Bounds, slots: Slots, specs: FrameSpecs) -> Tracks:
    """The ways of objects that are there, with where their windows are, as states have them; sorted by key.

    Args:
        ways: by slot.
        bounds: by slot.
        slots: pairs of a frame and an object.
        specs: the frames.
    """
    slot = np.flatnonzero(ways.alive)
    return Tracks(
        key=packed(specs.numbers[slots.frame[slot]], slots.number[slot]),
        **{name: getattr(ways, name)[slot] for name in ("since", "n", "way", "x", "y")},
        **{name: getattr(bounds, name)[slot] for name in Bounds.__dataclass_fields__},
    )


def _differ(old: Tracks, tracks: Tracks) -> np.ndarray:
    """Which tracks have other bounds than before the run."""
    if not len(old) or tracks.high.shape[1] != old.high.shape[1]:
        return np.ones(len(tracks), bool)
    at = np.minimum(np.searchsorted(old.key, tracks.key), len(old) - 1)
    same = (
        (old.key[at] == tracks.key)[:, None]
        & (old.high[at] == tracks.high)
        & (old.last[at] == tracks.last)
    )
    moved: np.ndarray = ~same.all(axis=1)
    return moved
