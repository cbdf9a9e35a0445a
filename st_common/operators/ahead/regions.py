"""Regions that move, over several ticks: who is inside of them, from when, and until when that is sure (SPEC P8).

```
    tick       0      1      2      3      4
    region     moves  .      .      moves  .        moves[1] = 3
    fix of a   .      new    .      .      .        a's version of tick 1 lasts to the end
    inside     [------ until 3 -----)               decided anew when the region moves
```
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.ahead.kinds import Asked, asked_of
from st_common.operators.arrays.keys import SHIFT
from st_common.operators.pairs.specs import Moving
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.turn.course import Course
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn
from st_common.runs import ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """Regions that move, of one kind, over some ticks.

    Attributes:
        name: the kind, as in `KINDS`.
        numbers: int64[q], the numbers of their queries.
        asked: what they ask for at each tick.
        moves: int64[ticks + 1, q], the first tick at or after each at which the region moves, `ticks` without.
    """

    name: str
    numbers: np.ndarray
    asked: Asked
    moves: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Firsts:
    """Versions that come first in pairs at a tick; n of them.

    Attributes:
        tick: int64[n], the tick from which on.
        query: int64[n], the number of the query.
        version: int64[n].
        until: int64[n], the tick at which that is decided anew.
    """

    tick: np.ndarray
    query: np.ndarray
    version: np.ndarray
    until: np.ndarray

    def take(self, index: np.ndarray) -> "Firsts":
        """Some of them, by place."""
        return Firsts(
            **{name: getattr(self, name)[index] for name in self.__dataclass_fields__}
        )


def regions_of(
    moving: Moving, course: Course, turn: Turn, fixes: Present
) -> list[Regions]:
    """The regions of some queries over the ticks of a course, kind by kind.

    Args:
        moving: the queries.
        course: the versions over the ticks.
        turn: the run.
        fixes: the last fixes before the ticks.
    """
    regions = []
    for name, queries in moving.kinds.items():
        asked = asked_of(KINDS[name], queries, course, turn, fixes)
        number = np.arange(course.ticks)[:, None]
        moves = np.concatenate(
            [
                np.where(asked.moved, number, course.ticks),
                np.full((1, len(queries.numbers)), course.ticks),
            ]
        )
        # From the last tick backwards: the first move at or after each tick.
        moves = np.minimum.accumulate(moves[::-1], axis=0)[::-1]
        regions.append(
            Regions(name=name, numbers=queries.numbers, asked=asked, moves=moves)
        )
    return regions


def insiders(
    of: Regions,
    course: Course,
    tick: np.ndarray,
    query: np.ndarray,
    version: np.ndarray,
) -> Firsts:
    """Those of some pairs of a query and a version that is inside of the query's region at a tick.

    Args:
        of: the regions.
        course: the versions over the ticks.
        tick: int64[p], places of ticks.
        query: int64[p], places of queries in `of`.
        version: int64[p].
    """
    asked = of.asked
    keep = np.flatnonzero(
        KINDS[of.name].satisfy(
            asked.world, asked.criteria, asked.row[tick, query], version
        )
    )
    tick, query, version = tick[keep], query[keep], version[keep]
    # Sure until the object has another version, or the region moves again.
    until = np.minimum(course.until[version], of.moves[tick + 1, query])
    return Firsts(tick=tick, query=of.numbers[query], version=version, until=until)


def joined(parts: list[Firsts]) -> Firsts:
    """All of them, one part after the other."""
    none = np.empty(0, np.int64)
    return Firsts(
        **{
            name: np.concatenate([none, *(getattr(part, name) for part in parts)])
            for name in Firsts.__dataclass_fields__
        }
    )


def next_move(turn: Turn, regions: list[Regions], ticks: int) -> np.ndarray:
    """The first tick at which the region of each query moves, `ticks` without; int64[queries of the stream]."""
    first = np.full(len(turn.queries), ticks)
    for of in regions:
        first[of.numbers] = of.moves[0]
    return first


def expanded(of: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All rows that are of some places.

    Args:
        of: int64[n], the place that each row is of, in any order.
        place: int64[m], the places that are asked for, repeats allowed.

    Returns:
        Two int64 arrays, by `place`: the row, and the number (0 to m - 1) of the place that asked for it.
    """
    order = np.argsort(of, kind="stable")
    start = np.searchsorted(of[order], place)
    count = np.searchsorted(of[order], place, side="right") - start
    return order[ranges(start, count)], np.repeat(np.arange(len(place)), count)


def query_of(turn: Turn, keys: np.ndarray) -> np.ndarray:
    """The number of the query of each key `target << 32 | object`; int64[n]."""
    query: np.ndarray = turn.numbering.targets.query[keys >> SHIFT]
    return query


def old_keys(turn: Turn, answer: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The keys of an answer that are of some queries, in their order.

    Args:
        turn: the run.
        answer: int64, keys `target << 32 | object`.
        numbers: int64, the numbers of the queries.
    """
    mine = np.zeros(len(turn.queries), bool)
    mine[numbers] = True
    keys: np.ndarray = answer[mine[query_of(turn, answer)]]
    return keys
