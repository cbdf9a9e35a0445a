"""What queries hold over several ticks of a run, and what of it there is at some of them (SPEC P8).

A spell is something (a member, an entry of a window, a row of a frame) that a query holds from one tick to before
another. They are sorted by query, so that what a query holds at a tick is found by two searches.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, unique
from st_common.operators.arrays.turns import Turns
from st_common.operators.turn.course import BEFORE, Course, Now
from st_common.operators.turn.turn import Turn
from st_common.runs import is_last, ranges

_MOST = 1 << 21  # pairs of a tick and a spell that are looked at together


class Spells:
    """Something that queries hold for some ticks: sorted by query and start, found again by query and tick.

    Args:
        query: int64[n], ascending.
        start: int64[n], the tick from which it is held; BEFORE: it was before the first. Ascending within a query.
        until: int64[n], the tick before which that ends.
        ticks: how many there are.

    Example:
        query    0   0   1         at (query 0, tick 2)    spells 0 and 1
        start   -1   2   0         at (query 0, tick 4)    spell 1
        until    3   5   1         at (query 1, tick 1)    none
    """

    def __init__(
        self, query: np.ndarray, start: np.ndarray, until: np.ndarray, ticks: int
    ) -> None:
        self.query, self.start, self.until, self.ticks = query, start, until, ticks
        self._width = ticks + 2
        self._begins = self._packed(query, start)
        self._reach = np.maximum.accumulate(self._packed(query, until))

    def _packed(self, query: np.ndarray, tick: np.ndarray) -> np.ndarray:
        packed: np.ndarray = query * self._width + tick + 1
        return packed

    def at(self, query: np.ndarray, tick: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The spells of queries at ticks.

        Args:
            query: int64[m].
            tick: int64[m].

        Returns:
            Two int64 arrays: the place (0 to m - 1) of the pair of a query and a tick, ascending, and the spell.
        """
        wanted = self._packed(query, tick)
        low, high = (
            np.searchsorted(self._reach, wanted, side="right"),
            np.searchsorted(self._begins, wanted, "right"),
        )
        # `_reach` is a running maximum: below `low` every spell has ended, and some of those above may have too.
        counts = np.maximum(high - low, 0)
        spell, cell = ranges(low, counts), np.repeat(np.arange(len(query)), counts)
        held = self.until[spell] > tick[cell]
        return cell[held], spell[held]

    def parts_at(
        self, query: np.ndarray, tick: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same in parts, each with all spells of its pairs, so that there are never very many at once.

        Args:
            query: int64[m].
            tick: int64[m].

        Yields:
            As `at` gives them; places count in the whole of the m pairs.
        """
        wanted = self._packed(query, tick)
        low, high = (
            np.searchsorted(self._reach, wanted, side="right"),
            np.searchsorted(self._begins, wanted, "right"),
        )
        part = np.cumsum(np.maximum(high - low, 0)) // _MOST
        ends = np.flatnonzero(is_last(part)) + 1
        for first, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False):
            cell, spell = self.at(query[first:end], tick[first:end])
            yield first + cell, spell

    def decided(self) -> tuple[np.ndarray, np.ndarray]:
        """The queries and ticks at which a spell begins or ends: int64 each, every pair once, by query and tick."""
        packed = np.concatenate(
            [
                self._packed(self.query, self.start)[self.start >= 0],
                self._packed(self.query, self.until)[self.until < self.ticks],
            ]
        )
        cells = unique(packed)
        return cells // self._width, cells % self._width - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Members by versions of their objects.

    Attributes:
        spells: from which tick to before which each member is there as one version of its object.
        key: int64[n], `target << 32 | object`.
        since: int64[n], the tick from which on it is a member, with whatever version.
        version: int64[n], the version of the object.
    """

    spells: Spells
    key: np.ndarray
    since: np.ndarray
    version: np.ndarray

    @property
    def anew(self) -> np.ndarray:
        """Where something happened to an object that was a member already and stays one; bool[n]."""
        is_anew: np.ndarray = (self.spells.start > self.since) & (
            self.spells.start < self.spells.until
        )
        return is_anew


def members_of(
    turn: Turn,
    course: Course | Now,
    before: np.ndarray,
    turns: Turns,
    wanted: np.ndarray,
) -> Members:
    """The members of queries over several ticks.

    Args:
        turn: the run.
        course: the versions of last fixes over the ticks.
        before: sorted keys `target << 32 | object` before the ticks.
        turns: who comes and goes at which tick.
        wanted: bool[queries], whose members are asked for.

    Returns:
        Each member as often as it is one: from which tick to before which.
    """
    of_target = turn.numbering.targets.query
    before = before[wanted[of_target[before >> SHIFT]]]
    mine = wanted[of_target[turns.key >> SHIFT]]
    key, since, until = _stays(
        before, turns.tick[mine], turns.key[mine], turns.comes[mine], course.ticks
    )
    spell, version = course.versions_within(key & MASK, since, until)
    # A spell is what a membership and the time of one version have in common.
    start = np.maximum(since[spell], course.tick[version])
    end = np.minimum(until[spell], course.until[version])
    query = of_target[key[spell] >> SHIFT]
    order = np.lexsort((start, query))
    spell = spell[order]
    return Members(
        spells=Spells(query[order], start[order], end[order], course.ticks),
        key=key[spell],
        since=since[spell],
        version=version[order],
    )


def _stays(
    before: np.ndarray, tick: np.ndarray, key: np.ndarray, comes: np.ndarray, ticks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, and from which tick to before which one each is there."""
    key, tick = (
        np.concatenate([before, key]),
        np.concatenate([np.full(len(before), BEFORE), tick]),
    )
    comes = np.concatenate([np.ones(len(before), bool), comes])
    order = np.lexsort((tick, key))
    key, tick, comes = key[order], tick[order], comes[order]
    follows = np.append(key[1:] == key[:-1], False)[: len(key)]
    # A key that came is there until its next turn, by which it goes.
    until = np.where(follows, np.append(tick[1:], 0)[: len(key)], ticks)
    return key[comes], tick[comes], until[comes]
