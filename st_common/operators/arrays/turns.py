"""From what holds at ticks to what comes and goes there, for many ticks at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import merged, without
from st_common.runs import firsts, is_last


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Keys that come (`comes`) or go at ticks."""

    tick: np.ndarray
    key: np.ndarray
    comes: np.ndarray

    @staticmethod
    def joined(parts: Sequence["Turns"]) -> "Turns":
        """All of them."""
        none = np.empty(0, np.int64)
        return Turns(
            tick=np.concatenate([none, *(part.tick for part in parts)]),
            key=np.concatenate([none, *(part.key for part in parts)]),
            comes=np.concatenate([none.astype(bool), *(part.comes for part in parts)]),
        )

    def after(self, keys: np.ndarray) -> np.ndarray:
        """What the sorted keys of before are after all ticks."""
        order = np.lexsort((self.tick, self.key))
        key, comes = self.key[order], self.comes[order]
        last = is_last(key)
        return merged(without(keys, key[last]), key[last & comes])


class ByTick:
    """The same by tick: sorted keys."""

    def __init__(self, turns: Turns, ticks: int) -> None:
        order = np.lexsort((turns.key, turns.tick))
        tick, key, comes = turns.tick[order], turns.key[order], turns.comes[order]
        numbers = np.arange(ticks + 1)
        self._gone, self._come = key[~comes], key[comes]
        self._gone_at = np.searchsorted(tick[~comes], numbers).tolist()
        self._come_at = np.searchsorted(tick[comes], numbers).tolist()

    def at(self, tick: int) -> tuple[np.ndarray, np.ndarray]:
        """The keys that go and those that come at a tick."""
        gone, come = self._gone_at, self._come_at
        return self._gone[gone[tick] : gone[tick + 1]], self._come[
            come[tick] : come[tick + 1]
        ]

    def between(self, first: int, end: int) -> Turns:
        """What comes and goes from one tick to before another, whose number is 0 then."""
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
    """What comes and goes, given whether keys hold at ticks at which they are decided.

    Args:
        key: int64[n].
        tick: int64[n]; each pair of a key and a tick is there once.
        holds: bool[n].
        before: bool[n], whether the key held before the first tick.
    """
    order = np.lexsort((tick, key))
    return _turned(key[order], tick[order], holds[order], before[order])


def _turned(
    key: np.ndarray, tick: np.ndarray, holds: np.ndarray, before: np.ndarray
) -> Turns:
    """The same, sorted by key and tick; what is before tick 0 does not come there."""
    if len(key):
        follows = key[1:] == key[:-1]
        before[1:][follows] = holds[:-1][follows]
    turned = np.flatnonzero((holds != before) & (tick >= 0))
    return Turns(tick=tick[turned], key=key[turned], comes=holds[turned])


def of_spells(
    key: np.ndarray, start: np.ndarray, until: np.ndarray, ticks: int
) -> Turns:
    """What comes and goes, given that keys hold from one tick to before another, at which they are decided anew.

    Spells that follow each other without a gap are one. One that begins before tick 0 holds already, one that lasts
    until `ticks` goes on.
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
    """What comes and goes, given entries of keys: a key is there as long as one of them is; see `of_spells`."""
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
    held -= np.repeat(np.append(0, held)[first], np.diff(np.append(first, len(keys))))
    last = is_last(keys, tick)
    keys, tick, holds = keys[last], tick[last], held[last] > 0
    return _turned(keys, tick, holds, np.zeros(len(keys), bool))
