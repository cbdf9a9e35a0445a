"""How far the k-th nearest of many objects is from each of many places, exactly, ties included.

A k-d tree (in the plane, or of unit vectors on the globe) bounds the k-th distance from above. All that lie within the
bound are then ranked by exact distances.
"""

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.geometry.circles import circle_boxes
from st_common.geometry.grid import blocks
from st_common.geometry.join import Test, points_in_boxes
from st_common.geometry.ranked import kth_smallest, last_of_equals
from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]

_LEAF = 32  # places in a leaf of the tree
_FEW_PAIRS = 1 << 13  # so few places times objects are compared without a tree
_MOST_LOOKED = (
    1 << 20
)  # pairs of a place and an object that it looks at, tested together


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Which objects count, and where they are.

    Attributes:
        x: float64, by number of object, finite where one counts; `y` likewise.
        number: int64[n], ascending, the objects that count.
        space: what coordinates mean.
        ids: texts, by number; None where nobody asks who of equally far ones comes first.
    """

    x: Floats
    y: Floats
    number: Ints
    space: Space
    ids: pa.Array | None = None

    def places(self) -> tuple[Floats, Floats]:
        """Where those that count are, in the order of `number`; float64[n] each."""
        return self.x[self.number], self.y[self.number]

    def has(self, wanted: Ints) -> Bools:
        """Whether these numbers (int64, any shape) are among them; bool of that shape."""
        at = np.minimum(
            np.searchsorted(self.number, wanted), max(len(self.number) - 1, 0)
        )
        return (
            np.asarray(self.number[at] == wanted)
            if len(self.number)
            else np.zeros(wanted.shape, np.bool_)
        )


class Neighbours:
    """A tree of places: how far the k-th one is at most.

    Args:
        x: float64[n], finite: longitude in degrees or a planar coordinate; at least one.
        y: float64[n].
        space: what coordinates mean.
    """

    __slots__ = ("_space", "_tree", "size")

    def __init__(self, x: Floats, y: Floats, *, space: Space) -> None:
        # Its threads would wait for each other on cores that other shards use.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        from pykdtree.kdtree import KDTree  # seldom needed

        self._space = space
        self._tree = KDTree(space.vectors(x, y), leafsize=_LEAF)
        self.size = len(x)

    def bound(self, x: Floats, y: Floats, k: Ints) -> Floats:
        """A rank a little above that of the k-th nearest place; float64[m], more than any there is when k > n.

        Args:
            x: float64[m], from where, finite; `y` likewise.
            y: see `x`.
            k: int64[m], at least 1.
        """
        bound = np.empty(len(x))
        sizes = np.ceil(np.log2(k))
        for size in np.unique(
            sizes
        ).tolist():  # those who ask for few do not wait for those who ask for many
            rows = np.flatnonzero(sizes == size)
            for part in blocks(np.full(len(rows), 1 << int(size)), _MOST_LOOKED):
                some = rows[part]
                bound[some] = self._chord_of_kth(x[some], y[some], k[some])
        return self._space.rank_of_chord(bound)

    def _chord_of_kth(self, x: Floats, y: Floats, k: Ints) -> Floats:
        """How far the k-th nearest place is from each point; infinite when there are fewer."""
        most = min(int(k.max()), self.size)
        chords, _ = self._query(x, y, most)
        kth = chords[np.arange(len(k)), np.minimum(k, most) - 1]
        return np.where(k <= self.size, kth, np.inf)

    def _query(self, x: Floats, y: Floats, k: int) -> tuple[Floats, Ints]:
        """The k nearest places of each point, the nearest first: how far, and which; float64 and int64[m, k]."""
        chords, places = self._tree.query(self._space.vectors(x, y), k=k)
        shape = (len(x), k)
        return chords.reshape(shape), places.reshape(shape).astype(np.int64)

    def nearest(self, x: Floats, y: Floats, k: int) -> Ints:
        """The places that are nearest to points; int64[m, k], each once in a row.

        Args:
            x: float64[m], from where, finite; `y` likewise.
            y: see `x`.
            k: from 1 to the number of places.
        """
        return self._query(x, y, k)[1]


def kth_nearest(
    x: Floats, y: Floats, k: Ints, but: Ints, objects: Objects
) -> tuple[Floats, Ints]:
    """How far the k-th nearest object is from each place, and which of those exactly so far is the last one (SPEC G5).

        objects on a line      a at 1    c at 2    b at 2    d at 9        the place at 0
        k = 2                  a, then c and b are equally far: limit 4 (a rank), tie b, for b is before c by id
        k = 5                  there are four: limit infinite, tie -1

    Args:
        x: float64[m], places: longitude in degrees or a planar coordinate; NaN has no neighbours.
        y: float64[m].
        k: int64[m], at least 1.
        but: int64[m], the object that does not count for a place; -1 for none.
        objects: n objects.

    Returns:
        `limit`, float64[m]: the rank of the k-th; infinite when there are fewer than k objects; NaN
        for places of NaN. `tie`, int64[m]: when more objects are exactly so far than belong to the k: the one of them
        that is the last among the k by its id; else -1.
    """
    limit, tie = np.full(len(k), np.inf), np.full(len(k), -1)
    known = ~(np.isnan(x) | np.isnan(y))
    limit[~known] = np.nan
    rows = np.flatnonzero(known & (k <= len(objects.number) - objects.has(but)))
    if not len(rows):
        return limit, tie
    x, y, k, but = x[rows], y[rows], k[rows], but[rows]
    row, number, value = _candidates(x, y, k, but, objects)
    limit[rows], tie[rows] = _ranked(x, y, k, objects, row, number, value)
    return limit, tie


def kth_nearest_of(
    x: Floats, y: Floats, k: Ints, pairs: Pairs, objects: Objects
) -> tuple[Floats, Ints]:
    """What `kth_nearest` finds, where only these pairs of a place (its number, ascending) and an object count.

    Args:
        x: float64[m], as there.
        y: float64[m].
        k: int64[m], at least 1.
        pairs: int64[p], int64[p]; each once, and none of a place of NaN.
        objects: where objects are; `number` is not asked for.
    """
    limit, tie = (
        np.where(np.isnan(x) | np.isnan(y), np.nan, np.inf),
        np.full(len(k), -1),
    )
    rows, row = np.unique(pairs[0], return_inverse=True)
    if len(rows):
        x, y, number = x[rows], y[rows], pairs[1]
        value = objects.space.rank_about(
            x[row], y[row], objects.x[number], objects.y[number]
        )
        limit[rows], tie[rows] = _ranked(x, y, k[rows], objects, row, number, value)
    return limit, tie


def kth_nearest_where(  # noqa: PLR0917 - places, then objects
    x: Floats,
    y: Floats,
    k: Ints,
    wanted: Ints,
    most: Ints,
    objects: Objects,
    test: Test,
) -> tuple[Floats, Ints, Bools]:
    """What `kth_nearest` finds, where only pairs count that pass a test: they are looked for farther and farther away.

    Args:
        x: float64[m], as there.
        y: float64[m].
        k: int64[m], at least 1.
        wanted: int64[m], at least 1: among so many of the nearest objects it is tried first; then four times as many.
        most: int64[m]: a place that has looked at so many objects without finding k gives up, unless these are all.
        objects: n objects.
        test: for pairs of a place and an object whether the object counts; asked in pieces.

    Returns:
        `limit` and `tie` as there, and bool[m]: which places have not given up.
    """
    limit, tie = (
        np.where(np.isnan(x) | np.isnan(y), np.nan, np.inf),
        np.full(len(k), -1),
    )
    size, is_settled = len(objects.number), np.isnan(limit)
    rows = np.flatnonzero(~is_settled) if size else np.empty(0, np.int64)
    if not len(rows):
        return limit, tie, np.ones(len(k), np.bool_)
    tree = Neighbours(*objects.places(), space=objects.space)
    while len(rows):
        look = np.minimum(wanted[rows], size)
        for part in blocks(look, _MOST_LOOKED):
            some = rows[part]
            limit[some], tie[some], is_settled[some] = _looked(
                x[some], y[some], k[some], look[part], tree, objects, _of(some, test)
            )
        is_settled[rows[look == size]] = True
        rows = rows[~is_settled[rows] & (look < most[rows])]
        wanted = wanted * 4
    return limit, tie, is_settled


def _of(rows: Ints, test: Test) -> Test:
    """The test for pairs of a place among these rows."""
    return lambda row, number: test(rows[row], number)


def _looked(  # noqa: PLR0917 - places, then objects
    x: Floats,
    y: Floats,
    k: Ints,
    look: Ints,
    tree: "Neighbours",
    objects: Objects,
    test: Test,
) -> tuple[Floats, Ints, Bools]:
    """The k-th nearest among so many of the nearest objects, as far as at least k of these count."""
    limit, tie, bound = (
        np.full(len(k), np.inf),
        np.full(len(k), -1),
        tree.bound(x, y, look),
    )
    bound[look == len(objects.number)] = np.inf
    row, number, value = _within(x, y, bound, objects, test)
    enough = np.bincount(row[value <= bound[row]], minlength=len(k)) >= k
    rows = np.flatnonzero(enough)
    if len(rows):
        keep = enough[row]
        row, number, value = np.cumsum(enough)[row[keep]] - 1, number[keep], value[keep]
        limit[rows], tie[rows] = _ranked(
            x[rows], y[rows], k[rows], objects, row, number, value
        )
    return limit, tie, enough


def _ranked(  # noqa: PLR0917 - places, objects, pairs
    x: Floats,
    y: Floats,
    k: Ints,
    objects: Objects,
    row: Ints,
    number: Ints,
    value: Floats,
) -> tuple[Floats, Ints]:
    """The k-th distance and its tie of each place, which has pairs, sorted by place, about `value` far."""
    space = objects.space
    if not space.about_is_exact:
        row, number = _nearly(row, number, value, k, space)
        value = space.rank(x[row], y[row], objects.x[number], objects.y[number])
    start = np.searchsorted(row, np.arange(len(k) + 1))
    limit = kth_smallest(start, value, k)
    if objects.ids is None:
        return limit, np.full(len(k), -1)
    return limit, last_of_equals(start, value, number, k, limit, objects.ids)


def _nearly(
    row: Ints, number: Ints, about: Floats, k: Ints, space: Space
) -> tuple[Ints, Ints]:
    """The candidates that can be among the k nearest: only these are measured exactly."""
    start = np.searchsorted(row, np.arange(len(k) + 1))
    limit = kth_smallest(start, about, k)
    keep = about <= space.surely(limit)[row]
    return row[keep], number[keep]


def _candidates(
    x: Floats, y: Floats, k: Ints, but: Ints, objects: Objects
) -> tuple[Ints, Ints, Floats]:
    """Place, object and about how far it is, sorted by place: all objects that can be among the k nearest."""
    space, (ox, oy) = objects.space, objects.places()
    if len(x) * len(ox) <= _FEW_PAIRS:
        row, at = np.divmod(np.arange(len(x) * len(ox)), len(ox))
        keep = objects.number[at] != but[row]
        row, at = row[keep], at[keep]
        return (
            row,
            objects.number[at],
            space.rank_about(x[row], y[row], ox[at], oy[at]),
        )
    bound = Neighbours(ox, oy, space=space).bound(x, y, k + objects.has(but))
    return _within(
        x, y, bound, objects, lambda row, number: np.asarray(number != but[row])
    )


def _within(
    x: Floats, y: Floats, bound: Floats, objects: Objects, test: Test
) -> tuple[Ints, Ints, Floats]:
    """Place, object and about how far it is, sorted by place: all within a bound that pass a test, and few more."""
    space, (ox, oy) = objects.space, objects.places()
    bound = space.surely(bound)
    boxes, owner = circle_boxes(x, y, space.radius_of(bound), space=space)
    values = [np.empty(0)]

    def near(box: Ints, at: Ints) -> Bools:
        row = owner[box]
        value = space.rank_about(x[row], y[row], ox[at], oy[at])
        keep: Bools = value <= bound[row]
        held = np.flatnonzero(keep)
        keep[held] = test(row[held], objects.number[at[held]])
        values.append(value[keep])
        return keep

    box, at = points_in_boxes(boxes.T, ox, oy, test=near)
    order = np.argsort(owner[box], kind="stable")
    return owner[box][order], objects.number[at[order]], np.concatenate(values)[order]
