"""From what holds at ticks to what comes and goes there, for many ticks at once.

A key (a member, a pair) holds from some tick on to before another. Only the ends of such spells are told as changes:

    tick            0   1   2   3   4
    key 7 holds     x   x   -   x   x       turns: comes at 0, goes at 2, comes at 3

The functions below make these turns from cells (key, tick, holds), from spells (key, start, until) or from entries
of windows, of which several may keep one key.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import merged, without
from st_common.runs import firsts, is_last


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Which key comes or goes at which tick, in any order; n of them.

    Attributes:
        tick: int64[n], places of ticks from 0.
        key: int64[n].
        comes: bool[n], else the key goes.
    """

    tick: np.ndarray
    key: np.ndarray
    comes: np.ndarray

    @staticmethod
    def joined(parts: Sequence["Turns"]) -> "Turns":
        """The turns of all parts, one part after the other; without parts there are none."""
        none = np.empty(0, np.int64)
        return Turns(
            tick=np.concatenate([none, *(part.tick for part in parts)]),
            key=np.concatenate([none, *(part.key for part in parts)]),
            comes=np.concatenate([none.astype(bool), *(part.comes for part in parts)]),
        )

    def after(self, keys: np.ndarray) -> np.ndarray:
        """What holds after all ticks; int64, ascending.

        Args:
            keys: int64, ascending, each once: what held before the first tick. The last turn of a key decides about it.
        """
        order = np.lexsort((self.tick, self.key))
        key, comes = self.key[order], self.comes[order]
        last = is_last(key)
        return merged(without(keys, key[last]), key[last & comes])

    @staticmethod
    def net_of(parts: Sequence["Turns"]) -> tuple[np.ndarray, np.ndarray]:
        """The `net` of all parts, of which each counts its ticks from 0.

        Example:
            7 comes at 0 of the first part, and goes at 0 of the second one: nothing left, nothing came
        """
        if len(parts) == 1 and parts[0].of_one_tick:
            (only,) = parts  # each key moves once
            return np.sort(only.key[~only.comes]), np.sort(only.key[only.comes])
        return Turns.joined(parts).net()

    @property
    def of_one_tick(self) -> bool:
        """Whether all turns are at the same tick; so they are where there are none."""
        return not len(self.tick) or bool((self.tick == self.tick[0]).all())

    def net(self) -> tuple[np.ndarray, np.ndarray]:
        """What left and what came over all ticks; two arrays of int64, ascending.

        Each key must come and go by turns, as it does where these are the turns of a set.

        Example:
            7 comes at 0 and goes at 2, 8 goes at 1, 9 comes at 1: 8 left, 9 came
        """
        order = np.argsort(self.key, kind="stable")
        key = self.key[order]
        if not len(key):
            return key, key
        first = firsts(key)
        moves = np.add.reduceat(np.where(self.comes[order], 1, -1), first)
        return key[first[moves < 0]], key[first[moves > 0]]


class ByTick:
    """The same turns, looked up by tick.

    Args:
        turns: in any order.
        ticks: how many ticks there are; the turns are at 0 to `ticks - 1`.
    """

    def __init__(self, turns: Turns, ticks: int) -> None:
        order = np.lexsort((turns.key, turns.tick))
        tick, key, comes = turns.tick[order], turns.key[order], turns.comes[order]
        numbers = np.arange(ticks + 1)
        self._gone, self._come = key[~comes], key[comes]
        self._gone_at = np.searchsorted(tick[~comes], numbers).tolist()
        self._come_at = np.searchsorted(tick[comes], numbers).tolist()

    def at(self, tick: int) -> tuple[np.ndarray, np.ndarray]:
        """The keys that go and those that come at a tick: two arrays of int64, ascending."""
        gone, come = self._gone_at, self._come_at
        return self._gone[gone[tick] : gone[tick + 1]], self._come[
            come[tick] : come[tick + 1]
        ]

    def between(self, first: int, end: int) -> Turns:
        """The turns from tick `first` to before tick `end`, with ticks counted from `first`."""
        parts = []
        for at, keys, comes in (
            (self._gone_at, self._gone, False),
            (self._come_at, self._come, True),
        ):
            key = keys[at[first] : at[end]]
            tick = np.repeat(np.arange(end - first), np.diff(at[first : end + 1]))
            parts.append(Turns(tick=tick, key=key, comes=np.full(len(key), comes)))
        return Turns.joined(parts)


def of_cells(
    key: np.ndarray, tick: np.ndarray, holds: np.ndarray, before: np.ndarray
) -> Turns:
    """What comes and goes, given whether keys hold at the ticks at which that is decided.

    Args:
        key: int64[n].
        tick: int64[n]; each pair of a key and a tick is there once. Between two of its ticks a key stays as it was.
        holds: bool[n].
        before: bool[n], whether the key held before the first tick.

    Returns:
        Turns from tick 0 on: a cell before tick 0 sets what held, and is not told.

    Example:
        key 7 at ticks 0, 1, 3 holds yes, yes, no and key 9 at tick 2 yes; none held before:
        7 comes at 0 and goes at 3, 9 comes at 2
    """
    order = np.lexsort((tick, key))
    return _turned(key[order], tick[order], holds[order], before[order])


def _turned(
    key: np.ndarray, tick: np.ndarray, holds: np.ndarray, before: np.ndarray
) -> Turns:
    """The same, sorted by key and tick; what is before tick 0 does not come there."""
    if len(key):
        follows = key[1:] == key[:-1]
        # Only the first cell of a key asks what held before all.
        before[1:][follows] = holds[:-1][follows]
    turned = np.flatnonzero((holds != before) & (tick >= 0))
    return Turns(tick=tick[turned], key=key[turned], comes=holds[turned])


def of_spells(
    key: np.ndarray, start: np.ndarray, until: np.ndarray, ticks: int
) -> Turns:
    """What comes and goes, given from which tick to before which one keys hold.

    Args:
        key: int64[n]; spells of one key do not overlap.
        start: int64[n]; below 0: it held already before the first tick, and does not come.
        until: int64[n]; `ticks`: it goes on, and does not go.
        ticks: how many there are.

    Returns:
        Turns; spells of a key that follow each other without a gap are one, so nothing is told between them.

    Example:
        of 5 ticks: key 7 from -1 to 2 and 2 to 4, key 9 from 1 to 5
        9 comes at 1, 7 goes at 4
    """
    order = np.lexsort((start, key))
    key, start, until = key[order], start[order], until[order]
    same = key[1:] == key[:-1]
    joined = same & (until[:-1] == start[1:])
    begins, ends = np.ones(len(key), bool), np.ones(len(key), bool)
    begins[1:][joined], ends[:-1][joined] = False, False
    come, go = (
        np.flatnonzero(begins & (start >= 0)),
        np.flatnonzero(ends & (until < ticks)),
    )
    return Turns(
        tick=np.concatenate([start[come], until[go]]),
        key=np.concatenate([key[come], key[go]]),
        comes=np.repeat([True, False], [len(come), len(go)]),
    )


def of_entries(
    key: np.ndarray, start: np.ndarray, until: np.ndarray, ticks: int
) -> Turns:
    """What comes and goes, given entries of keys: a key is there as long as at least one of its entries is.

    Args:
        key: int64[n], as often as it has entries.
        start: int64[n], the tick from which an entry counts.
        until: int64[n], the tick from which it does not any more. One with `until <= start` never counts.
        ticks: how many there are; what is at or after `ticks` is not told.

    Example:
        two entries of key 7, from 0 to 2 and from 1 to 4:  7 comes at 0 and goes at 4
    """
    begun, ended = (
        np.flatnonzero((start < until) & (start < ticks)),
        np.flatnonzero((start < until) & (until < ticks)),
    )
    keys = np.concatenate([key[begun], key[ended]])
    tick = np.concatenate([start[begun], until[ended]])
    more = np.repeat([1, -1], [len(begun), len(ended)])
    order = np.lexsort((tick, keys))
    keys, tick, held = keys[order], tick[order], np.cumsum(more[order])
    first = firsts(keys)
    # The running sum went over all keys: what the keys before left in it is taken off.
    held -= np.repeat(np.append(0, held)[first], np.diff(np.append(first, len(keys))))
    # Entries that come and go at one tick count together: a key that loses one and gets another stays.
    last = is_last(keys, tick)
    keys, tick, holds = keys[last], tick[last], held[last] > 0
    return _turned(keys, tick, holds, np.zeros(len(keys), bool))
