"""Pairs of a slot and a tick at which something of a frame may change, with the way of the object there (SPEC P8).

Nothing is asked of a slot at any other tick: its windows stand still, and nothing begins or ceases to count.

    ticks                0     1     2     3     4     5
    fixes of a           x           x
    window by time                         x               slides by the clock
    visits of a          0           2     3
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import unique
from st_common.operators.travelled.touches import Advances, Touches
from st_common.operators.travelled.ways import Ways
from st_common.runs import is_first, last_set, starts_of

_READ = ("alive", "since", "n", "way")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs of a slot and a tick (its place)."""

    slot: np.ndarray
    at: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """Visits of slots, sorted by slot and tick; n of them.

    Attributes:
        slot: int64[n].
        at: int64[n], the place of the tick.
        tick: int64[n], the event time up to which windows move.
        is_tick: bool[n]; False where windows catch up with slides of time that passed since the visit before: these are
            of the way as it was then, and nothing is told of them.
        touched: bool[n], something happened to the object.
        end: int8[n], the kind of event by which its stay ended there, 0 for none.
        stay: int64[n], the place of the first visit of the same stay (a way that begins anew is another one).
        goes_on: bool[n], the stay was there before all visits.
        alive: bool[n], there is a track; `since`, `n`, `way` are its columns.
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
        return is_first(self.slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What may make a visit.

    Attributes:
        touches: something happened to an object.
        advances: its way goes on.
        late: slots whose windows catch up first, before their way goes on.
        others: pairs of other origin: the clock, and who counts.
    """

    touches: Touches
    advances: Advances
    late: Pairs
    others: Sequence[Pairs]


def visits_of(
    asked: Asked, tick: np.ndarray, tick_us: int, now: Ways, after: Ways
) -> Visits:
    """The visits at some ticks.

    Args:
        asked: what may make a visit.
        tick: int64[ticks], event times, ascending.
        tick_us: the time between two ticks.
        now: the ways before the ticks, by the slots of objects.
        after: the ways after each event, by the slots among events.

    Returns:
        A visit for each pair of a slot and a tick, once, sorted by both.
    """
    # Two codes for a slot and a tick: the even one is for catching up, which comes before the tick itself.
    width = 2 * len(tick)
    code = _all_codes(asked, width)
    slot, at, is_tick = code // width, code % width // 2, code % 2 == 1
    touched, end = np.zeros(len(code), bool), np.zeros(len(code), np.int8)
    place = np.searchsorted(code, _codes(asked.touches, width) + 1)
    touched[place], end[place] = True, asked.touches.end
    event = np.full(len(code), -1)
    advanced = np.searchsorted(code, _codes(asked.advances, width) + 1)
    event[advanced] = asked.advances.after
    first = is_first(slot)
    last = last_set(event >= 0, starts_of(first))
    ways = {
        name: _taken(getattr(after, name), event, last, getattr(now, name)[slot])
        for name in _READ
    }
    begins = _is_other(ways["alive"], first, now.alive[slot])
    begins |= _is_other(ways["since"], first, now.since[slot])
    stay = starts_of(first | begins)
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


def _all_codes(asked: Asked, width: int) -> np.ndarray:
    """Where anything makes a visit: sorted numbers, each once; those of ways that catch up are even."""
    pairs: list[Pairs | Touches | Advances] = [
        asked.touches,
        asked.advances,
        *asked.others,
    ]
    at_ticks = [_codes(some, width) + 1 for some in pairs]
    return unique(np.concatenate([*at_ticks, _codes(asked.late, width)]))


def _is_other(values: np.ndarray, first: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Whether each value is another than the one of the visit before, `before` at the first visit of a slot."""
    previous = np.where(first, before, np.append(values[:1], values[:-1]))
    return np.asarray(values != previous)


def _codes(pairs: Pairs | Touches | Advances, width: int) -> np.ndarray:
    """A number for each pair, in their order; the next one is free for a visit after it."""
    codes: np.ndarray = pairs.slot * width + 2 * pairs.at
    return codes


def _taken(
    values: np.ndarray, event: np.ndarray, last: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """The values after the last event of each visit, else the others."""
    known = np.flatnonzero(last >= 0)
    other[known] = values[event[last[known]]]
    return other
