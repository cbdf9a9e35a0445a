"""Visits of fences that have lasted long enough: DWELL, told by the clock (SPEC X3, docs/adr/0024)."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import MASK, is_in
from st_common.operators.events.timeline import LAST
from st_common.operators.fence.machine import Ran
from st_common.operators.fence.specs import FOREVER, FenceSet
from st_common.operators.fence.visits import Visits
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Dwells:
    """Visits whose DWELL is told in a run: the machine's `key`, at which row of the log, and for which event time."""

    key: np.ndarray
    position: np.ndarray
    ts: np.ndarray


def find_dwells(
    turn: Turn,
    visits: Visits,
    keys: np.ndarray,
    event: np.ndarray,
    machine: np.ndarray,
    ran: Ran,
) -> tuple[Dwells, np.ndarray]:
    """The visits that the clock found long enough before they ended, and the keys of those that go on; sorted."""
    begun = _begun(turn, visits, keys, event, machine, ran)
    fence = turn.known.of(FenceSet).place[
        turn.numbering.targets.query[begun.key & MASK]
    ]
    dwell_us = turn.known.of(FenceSet).dwell_us[fence]
    asked = np.flatnonzero(dwell_us != FOREVER)
    ts = begun.since[asked] + dwell_us[asked]
    position = np.maximum(turn.clock.first_past(ts), begun.position[asked])
    ends_at, ends = begun.ends_at[asked], begun.ends[asked]
    before_end = (position < ends_at) | ((position == ends_at) & (ts < ends))
    told = np.flatnonzero((position != LAST) & before_end)
    goes_on = told[ends_at[told] == LAST]
    found = Dwells(key=begun.key[asked[told]], position=position[told], ts=ts[told])
    return found, np.sort(begun.key[asked[goes_on]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """Visits that were not told to dwell before the run: since when, from which row of the log, and where they end."""

    key: np.ndarray
    since: np.ndarray
    position: np.ndarray
    ends_at: np.ndarray
    ends: np.ndarray


def _begun(
    turn: Turn,
    visits: Visits,
    keys: np.ndarray,
    event: np.ndarray,
    machine: np.ndarray,
    ran: Ran,
) -> _Begun:
    """Visits of before the run, and those that begin in it. One that does not end in it ends at `LAST`."""
    events, none = turn.events, len(event)
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
        since=np.concatenate([visits.since[open_before], events.ts[event[entered]]]),
        position=np.r_[np.full(len(first), -1), events.position[event[entered]]],
        ends_at=np.append(events.position[event], LAST)[end],
        ends=np.append(events.ts[event], LAST)[end],
    )
