"""Which of the nearest objects of its query each member is, and how far away (SPEC G5).

members of KNN (3, 0, 0)    b   a   c
their distance              5   5   9
their rank                  2   1   3       of equally far ones the first by id

It follows from the members and where they are, and nothing of it is kept.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.geometry.elements import distances_from
from st_common.operators.arrays.keys import packed
from st_common.operators.arrays.ranked import ranks_of_texts
from st_common.operators.skeleton.kind_queries import KindQueries
from st_common.operators.turn.lookups import Lookups
from st_common.operators.turn.turn import Turn
from st_common.operators.turn.valid import Placed
from st_common.query.near_columns import DISTANCE, RANK
from st_common.runs import is_first, ranks_of

_KIND, _OF_EXTENTS = "nearest", "nearest_extent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """All members of some queries at some ticks, m of them.

    Attributes:
        cell: int64[m], a number for each pair of a query and a tick.
        query: int64[m], the query.
        at: int64[m], the place of the tick.
        row: int64[m], where the member was then: a row of `Placed`.
        object: int64[m], the member.
    """

    cell: np.ndarray
    query: np.ndarray
    at: np.ndarray
    row: np.ndarray
    object: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
    """Which of the nearest n members are.

    Attributes:
        rank: int64[n], from 1 on; 0 where it is not known.
        distance: float64[n], in the unit of the space; NaN where it is not known.
    """

    rank: np.ndarray
    distance: np.ndarray

    @classmethod
    def nothing(cls, count: int) -> "Nearness":
        """Of so many nothing is known."""
        return cls(rank=np.zeros(count, np.int64), distance=np.full(count, np.nan))

    def at(self, rows: np.ndarray, count: int) -> "Nearness":
        """The same at some rows (int64[n]) of so many; of the others nothing is known."""
        out = Nearness.nothing(count)
        out.rank[rows], out.distance[rows] = self.rank, self.distance
        return out

    def columns(self) -> dict[str, pa.Array]:
        """The columns that expressions name, null where nothing is known."""
        return {
            RANK: pa.array(self.rank, mask=self.rank == 0),
            DISTANCE: pa.array(self.distance, from_pandas=True),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The nearness of all members, found again by their cell and object: keys are ascending."""

    key: np.ndarray
    near: Nearness

    def of(self, cell: np.ndarray, objects: np.ndarray) -> Nearness:
        """The nearness of some of the members: int64[n] cells, and int64[n] objects."""
        at = np.searchsorted(self.key, packed(cell, objects))
        return Nearness(rank=self.near.rank[at], distance=self.near.distance[at])


def nearness(turn: Turn, lookups: Lookups, fixes: Placed, held: Held) -> Ranked:
    """Which of the nearest each member is.

    Args:
        turn: the run.
        lookups: finds the objects that queries go with.
        fixes: where objects are.
        held: whole answers of queries with `KNN (k, ..)`: ranks are among the members of a cell.
    """
    far, measured = _measured(turn, lookups, fixes, held)
    names = ranks_of_texts(turn.objects.ids.take(pa.array(held.object)))
    order = np.lexsort((names, far, held.cell))
    rank = np.empty(len(order), np.int64)
    rank[order] = ranks_of(is_first(held.cell[order])) + 1
    key = packed(held.cell, held.object)
    by_key = np.argsort(key)
    near = Nearness(rank=rank[by_key], distance=measured[by_key])
    return Ranked(key=key[by_key], near=near)


def _measured(
    turn: Turn, lookups: Lookups, fixes: Placed, held: Held
) -> tuple[np.ndarray, np.ndarray]:
    """What members are ordered by, and how far they are; float64[m]. Of a stream all ask of extents or none."""
    space, extents = turn.settings.space, _OF_EXTENTS in turn.known.kinds
    known = turn.known.kinds[_OF_EXTENTS if extents else _KIND]
    x, y = _places(known, lookups, fixes, held)
    if extents:
        which = np.arange(len(held.row))
        shapes = fixes.shapes_of(held.row)
        far = distances_from(shapes, which, x, y, space=space)
        return np.round(far, space.decimals), far
    ends = x, y, fixes.x[held.row], fixes.y[held.row]
    return space.rank(*ends), space.distance(*ends)


def _places(
    known: KindQueries, lookups: Lookups, fixes: Placed, held: Held
) -> tuple[np.ndarray, np.ndarray]:
    """The place that the query of each member measures from: a point, or where its object is at the tick."""
    table = lookups.table(known)
    which = np.searchsorted(known.numbers, held.query)
    x, y, focal = table.x[which], table.y[which], table.focal[which]
    goes = np.flatnonzero(focal >= 0)
    row = fixes.at_ticks(focal[goes], held.at[goes])
    x[goes], y[goes] = fixes.x[row], fixes.y[row]
    return x, y
