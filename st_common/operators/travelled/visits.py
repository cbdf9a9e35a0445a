"""Pairs of a slot and a tick at which something of a frame may change, with the way of the object there (SPEC P8).

Nothing is asked of a slot at any other tick: its windows stand still, and nothing begins or ceases to count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.operators.travelled.touches import Advances, Touches
from st_common.operators.travelled.ways import Ways

_READ = ("alive", "since", "n", "way")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs of a slot and a tick (its place)."""

    slot: np.ndarray
    at: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """Visits of slots, sorted by `slot` and tick (`at` is its place, `tick` the time up to which windows move).

    `is_tick` is False where windows catch up with slides of time that passed since the visit before: they are of the
    way as it was then, and nothing is told of them. `touched`: something happened to the object, `end` as in `Touches`.
    `stay` is the place of the first visit of the same stay (a way that begins anew is another one), `goes_on` says that
    the stay was there before all visits. All others are columns of `Ways`.
    """

    slot: np.ndarray
    at: np.ndarray
    tick: np.ndarray
    is_tick: np.ndarray
    touched: np.ndarray
    end: np.ndarray
    stay: np.ndarray
    goes_on: np.ndarray
    alive: np.ndarray
    since: np.ndarray
    n: np.ndarray
    way: np.ndarray

    def __len__(self) -> int:
        return len(self.slot)

    def take(self, index: np.ndarray) -> "Visits":
        """Some of the visits, by place; `stay` still names stays, by a number that no other has."""
        return Visits(
            **{name: getattr(self, name)[index] for name in self.__dataclass_fields__}
        )

    @property
    def is_first(self) -> np.ndarray:
        """bool[n]: whether a visit is the first of its slot."""
        return np.append(True, self.slot[1:] != self.slot[:-1])[: len(self)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What may make a visit: events, ways that go on (those of `late` slots catch up first), and other pairs."""

    touches: Touches
    advances: Advances
    late: Pairs
    others: Sequence[Pairs]


def visits_of(
    asked: Asked, tick: np.ndarray, tick_us: int, now: Ways, after: Ways
) -> Visits:
    """The visits at some ticks, given the ways before them and after each event."""
    width, touches, advances = 2 * len(tick), asked.touches, asked.advances
    at_touches, at_advances = _codes(touches, width) + 1, _codes(advances, width) + 1
    others = [_codes(pairs, width) + 1 for pairs in asked.others]
    code = np.unique(
        np.concatenate([at_touches, at_advances, *others, _codes(asked.late, width)])
    )
    slot, at, is_tick = code // width, code % width // 2, code % 2 == 1
    touched, end, event = (
        np.zeros(len(code), bool),
        np.zeros(len(code), np.int8),
        np.full(len(code), -1),
    )
    place = np.searchsorted(code, at_touches)
    touched[place], end[place] = True, touches.end
    event[np.searchsorted(code, at_advances)] = advances.after
    first = np.append(True, slot[1:] != slot[:-1])[: len(code)]
    last = filled(event >= 0, starts(first))
    ways = {
        name: _taken(getattr(after, name), event, last, getattr(now, name)[slot])
        for name in _READ
    }
    begins = np.zeros(len(code), bool)
    for name in ("alive", "since"):
        column = ways[name]
        begins |= column != np.where(
            first, getattr(now, name)[slot], np.append(column[:1], column[:-1])
        )
    stay = starts(first | begins)
    return Visits(
        slot=slot,
        at=at,
        tick=tick[at] - np.where(is_tick, 0, tick_us),
        is_tick=is_tick,
        touched=touched,
        end=end,
        stay=stay,
        goes_on=~begins[stay],
        **ways,
    )


def _codes(pairs: Pairs | Touches | Advances, width: int) -> np.ndarray:
    """A number for each pair, in their order; the next one is free for a visit after it."""
    codes: np.ndarray = pairs.slot * width + 2 * pairs.at
    return codes


def starts(begins: np.ndarray) -> np.ndarray:
    """The place at which the run of each place begins."""
    found: np.ndarray = np.maximum.accumulate(
        np.where(begins, np.arange(len(begins)), 0)
    )
    return found


def filled(is_set: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The last place up to each one that is set, -1 where none is from the start of its run on."""
    last = np.maximum.accumulate(np.where(is_set, np.arange(len(is_set)), -1))
    return np.where(last >= start, last, -1)


def _taken(
    values: np.ndarray, event: np.ndarray, last: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """The values after the last event of each visit, else the others."""
    known = np.flatnonzero(last >= 0)
    other[known] = values[event[last[known]]]
    return other
