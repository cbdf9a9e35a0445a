"""Visits of fences that have lasted long enough: DWELL, told by the clock (SPEC X3, docs/adr/0024)."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import MASK, is_in
from st_common.operators.events.agenda import ticks_of
from st_common.operators.events.timeline import LAST
from st_common.operators.fence.machine import Ran
from st_common.operators.fence.specs import FOREVER, Detections
from st_common.operators.fence.visits import Visits
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Dwells:
    """Visits whose DWELL is told in a run: the machine's `key`, since when, at which row of the log, for which time."""

    key: np.ndarray
    since: np.ndarray
    position: np.ndarray
    ts: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Rows of machines, as those of `machine.Course`: at which row of the log each takes effect, and its event time."""

    machine: np.ndarray
    position: np.ndarray
    ts: np.ndarray


def find_dwells(
    turn: Turn,
    fences: Detections,
    visits: Visits,
    keys: np.ndarray,
    effects: Effects,
    ran: Ran,
    *,
    tick_us: int = 1,
) -> tuple[Dwells, np.ndarray]:
    """The visits that the clock found long enough before they ended, and the keys of those that go on; sorted.

    They are told for the first tick at which they are that long; fences that are judged fix by fix have no ticks.
    """
    begun = _begun(visits, keys, effects, ran)
    fence = fences.place[turn.numbering.targets.query[begun.key & MASK]]
    dwell_us = fences.dwell_us[fence]
    asked = np.flatnonzero(dwell_us != FOREVER)
    ts = ticks_of(begun.since[asked] + dwell_us[asked], tick_us)
    position = np.maximum(turn.clock.first_past(ts), begun.position[asked])
    ends_at, ends = begun.ends_at[asked], begun.ends[asked]
    before_end = (position < ends_at) | ((position == ends_at) & (ts < ends))
    told = np.flatnonzero((position != LAST) & before_end)
    goes_on = told[ends_at[told] == LAST]
    dwells = Dwells(
        key=begun.key[asked[told]],
        since=begun.since[asked[told]],
        position=position[told],
        ts=ts[told],
    )
    return dwells, np.sort(begun.key[asked[goes_on]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """Visits that were not told to dwell before the run: since when, from which row of the log, and where they end."""

    key: np.ndarray
    since: np.ndarray
    position: np.ndarray
    ends_at: np.ndarray
    ends: np.ndarray


def _begun(visits: Visits, keys: np.ndarray, effects: Effects, ran: Ran) -> _Begun:
    """Visits of before the run, and those that begin in it. One that does not end in it ends at `LAST`."""
    machine, none = effects.machine, len(effects.machine)
    exits = np.where(ran.exits, np.arange(none), none)
    next_exit = np.minimum.accumulate(exits[::-1])[::-1]
    open_before = np.flatnonzero(visits.is_in & (visits.dwelt == 0))
    moved = is_in(visits.key[open_before], keys)
    first = np.searchsorted(machine, np.searchsorted(keys, visits.key[open_before]))
    first = np.where(moved, first, none)
    entered = np.flatnonzero(ran.enters)
    start = np.concatenate([first, entered])
    end = np.append(next_exit, none)[start]
    key = np.concatenate([visits.key[open_before], keys[machine[entered]]])
    of_other = np.append(keys[machine], -1)[end] != key
    end = np.where(of_other, none, end)
    return _Begun(
        key=key,
        since=np.concatenate([visits.since[open_before], effects.ts[entered]]),
        position=np.r_[np.full(len(first), -1), effects.position[entered]],
        ends_at=np.append(effects.position, LAST)[end],
        ends=np.append(effects.ts, LAST)[end],
    )
