"""A version of a layer made from another by the few features that were put or deleted.

    features below    a  b  c  d          numbers 0 .. 3 below
    changed           b (put), c (deleted), bb (put)
    above                b  bb            what was put, in an index of its own
    together          a  b  bb  d         numbers 0 .. 3: 0 from below, 0 and 1 from above, 3 from below

What is below is shared, with its shapes, grids and columns, by all versions made from it. What is above is made
anew with each put, and so is in levels: a put goes into those that are not much larger than it, and lies upon the rest.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.borders import Segments
from st_common.geometry.ranked import first_k
from st_common.geometry.space import Space
from st_common.layers.in_memory import index_of
from st_common.layers.index import LayerIndex

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]

_LARGER = 64
"""A level is made anew with what comes upon it, unless it is so many times as large."""
_SHARE, _FEW = 4, 256
"""With more changes than a quarter of the features, and than a few, a version is read anew."""
_STEPS = 16
"""So many versions back a version knows what changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What made one version of a layer from another: the features that changed, as they were and as they are."""

    since: int
    parts: tuple[LayerIndex, ...]


class PatchedIndex:
    """One version of a layer as another, some of whose features are not there any more or are others; see `LayerIndex`.

    Args:
        below: the index that it is made from.
        changed: the fids of all features that were put or deleted since, in any order, each once.
        put: the rows of those that were put, as `layer_rows` gives them; each feature once.
        steps: how it came to be, the newest step last.
    """

    __slots__ = (
        "_above",
        "_at",
        "_fids",
        "_gone",
        "_number",
        "_values",
        "below",
        "changed",
        "put",
        "steps",
    )

    def __init__(
        self,
        below: "LayerIndex | PatchedIndex",
        changed: Collection[str],
        put: pa.Table,
        steps: tuple[Step, ...],
    ) -> None:
        self.below, self.changed, self.put = below, frozenset(changed), put
        self.steps = steps
        self._above = index_of(put, space=below.space)
        self._gone = numbers_of(below, self.changed)
        self._at = np.searchsorted(below.fids, self._above.fids)
        """Before which feature below each of those above comes."""
        alive = self._at - np.searchsorted(self._gone, self._at)
        self._number = alive + np.arange(len(alive))
        """The numbers of those above, ascending."""
        self._fids: npt.NDArray[np.object_] | None = None
        self._values: dict[str, pa.Array] = {}

    @property
    def fids(self) -> npt.NDArray[np.object_]:
        """The fids, sorted; put together when they are first asked for."""
        if self._fids is None:
            kept = np.delete(self.below.fids, self._gone)
            before = self._number - np.arange(len(self._number))
            self._fids = np.insert(kept, before, self._above.fids)
        return self._fids

    @property
    def space(self) -> Space:
        """What the coordinates of the layer and of the points mean."""
        return self._above.space

    def changed_since(self, version: int) -> Sequence[LayerIndex] | None:
        """What differs from an older version, as small indexes; None where it was not made from that one."""
        since = [step.since for step in self.steps]
        if version not in since:
            return None
        steps = self.steps[since.index(version) :]
        return [part for step in steps for part in step.parts]

    def parts(self, features: Ints) -> list[LayerIndex]:
        """Some of the features (their numbers, ascending), as small indexes, together."""
        is_above, place = self._places(features)
        above = self._above.parts(place[is_above])
        return [*self.below.parts(place[~is_above]), *above]

    def match(self, x: Floats, y: Floats, **options: Any) -> Pairs:
        """See `LayerIndex.match`."""
        return self._pairs("match", x, y, **options)

    def crossed(self, ways: Segments, **options: Any) -> Pairs:
        """See `LayerIndex.crossed`."""
        return self._pairs("crossed", ways, **options)

    def keyed(self, values: pa.Array, column: str, **options: Any) -> Pairs:
        """See `LayerIndex.keyed`."""
        return self._pairs("keyed", values, column, **options)

    def k_nearest(self, x: Floats, y: Floats, k: int, **options: Any) -> Pairs:
        """See `LayerIndex.k_nearest`: of those below more are looked at, until enough of them are still there."""
        more = 0
        while True:
            below = self.below.k_nearest(x, y, k + more, **options)
            found = np.bincount(below[0], minlength=len(x))
            stay = np.bincount(below[0][self._stays(below[1])], minlength=len(x))
            if ((stay >= k) | (found < k + more)).all():
                break
            more = min(max(2 * more, k), len(self._gone))
        row, number = self._together(below, self._above.k_nearest(x, y, k, **options))
        far = self.distances(x[row], y[row], number)
        first = first_k(row, number, far, k, self.space.decimals)
        order = np.lexsort((number[first], row[first]))
        return row[first][order], number[first][order]

    def distances(
        self, x: Floats, y: Floats, feature: Ints, *, to_border: bool = False
    ) -> Floats:
        """See `LayerIndex.distances`."""
        far = np.full(len(feature), np.nan)
        is_above, place = self._places(feature)
        for index, rows in ((self.below, ~is_above), (self._above, is_above)):
            far[rows] = index.distances(
                x[rows], y[rows], place[rows], to_border=to_border
            )
        return far

    def nearest(self, x: Floats, y: Floats, feature: Ints) -> Floats:
        """See `LayerIndex.nearest`."""
        places = np.full((2, len(feature)), np.nan)
        is_above, place = self._places(feature)
        for index, rows in ((self.below, ~is_above), (self._above, is_above)):
            places[:, rows] = index.nearest(x[rows], y[rows], place[rows])
        return places

    def values(self, column: str) -> pa.Array:
        """See `LayerIndex.values`."""
        if column not in self._values:
            is_above, place = self._places(np.arange(len(self.fids)))
            place[is_above] += len(self.below.fids)
            both = self.below.values(column), self._above.values(column)
            self._values[column] = pa.concat_arrays(both).take(pa.array(place))
        return self._values[column]

    def rows(self, feature: Ints) -> pa.Table:
        """See `LayerIndex.rows`."""
        is_above, place = self._places(feature)
        both = (self.below, ~is_above), (self._above, is_above)
        parts = [index.rows(place[which]) for index, which in both if which.any()]
        order = np.argsort(np.argsort(is_above, kind="stable"), kind="stable")
        return pa.concat_tables(parts).take(pa.array(order))

    def _pairs(self, method: str, *of: Any, **options: Any) -> Pairs:
        """What a method of both indexes gives, pairs of a row and a feature, as such pairs; sorted, each once."""
        both = self.below, self._above
        below, above = (getattr(one, method)(*of, **options) for one in both)
        return self._together(below, above)

    def _stays(self, feature: Ints) -> Bools:
        """Which of some features below are still there."""
        at = np.searchsorted(self._gone, feature)
        return np.asarray(np.append(self._gone, -1)[at] != feature)

    def _together(self, below: Pairs, above: Pairs) -> Pairs:
        """Pairs with features below and above as pairs with those of this index; sorted, each once."""
        stays = self._stays(below[1])
        row, feature = below[0][stays], below[1][stays]
        at = np.searchsorted(self._gone, feature)
        number = feature - at + np.searchsorted(self._at, feature, side="right")
        if not len(above[0]):
            return row, number
        row = np.concatenate([row, above[0]])
        number = np.concatenate([number, self._number[above[1]]])
        order = np.lexsort((number, row))
        return row[order], number[order]

    def _places(self, feature: Ints) -> tuple[Bools, Ints]:
        """Whether each of some features is one of those above, and its number there or below."""
        at = np.searchsorted(self._number, feature)
        is_above = np.append(self._number, -1)[at] == feature
        alive = feature - at
        before = self._gone - np.arange(len(self._gone))
        below = alive + np.searchsorted(before, alive, side="right")
        return is_above, np.where(is_above, at, below)


Index = LayerIndex | PatchedIndex
"""One version of a layer, as it is held."""


def numbers_of(index: Index, fids: Collection[str]) -> Ints:
    """The numbers of the features with these fids, ascending; those that are not there are passed over."""
    asked = np.array(sorted(fids), object)
    at = np.searchsorted(index.fids, asked)
    known = np.flatnonzero(at < len(index.fids))
    numbers: Ints = at[known][index.fids[at[known]] == asked[known]]
    return numbers


def patched(
    older: Index,
    changed: Collection[str],
    rows: pa.Table,
    *,
    since: int,
) -> PatchedIndex | None:
    """A version of a layer made from an older one.

    Args:
        older: the index of the older version; it stays as it is.
        changed: the fids of all features that were put or deleted since.
        rows: of those of them that are there now, as `layer_rows` gives them.
        since: the older version.

    Returns:
        None where so much has changed by now that it is better to read the version anew.
    """
    rows = rows.filter(rows["home"])
    put = index_of(rows, space=older.space)
    parts = (*older.parts(numbers_of(older, changed)), put)
    step = Step(since=since, parts=tuple(part for part in parts if len(part.fids)))
    levels, all_changed = _levels(older), frozenset(changed)
    taken = _taken(levels, len(all_changed))
    for level in levels[:taken]:
        is_older = pc.is_in(level.put["fid"], pa.array(all_changed, pa.string()))
        rows = pa.concat_tables([level.put.filter(pc.invert(is_older)), rows])
        all_changed |= level.changed
    below = levels[taken - 1].below if taken else older
    index = PatchedIndex(below, all_changed, rows, (*older.steps, step)[-_STEPS:])
    levels = _levels(index)
    most = max(len(levels[-1].below.fids) // _SHARE, _FEW)
    return None if sum(len(level.changed) for level in levels) > most else index


def _levels(index: Index) -> list[PatchedIndex]:
    """What lies upon the index that was read, the highest first."""
    levels = list[PatchedIndex]()
    while isinstance(index, PatchedIndex):
        levels.append(index)
        index = index.below
    return levels


def _taken(levels: Sequence[PatchedIndex], size: int) -> int:
    """How many of the levels a patch of so many features goes into: those that are not much larger than what comes."""
    taken = 0
    for number, level in enumerate(levels, 1):
        if size * _LARGER > len(level.changed):
            taken = number
        size += len(level.changed)
    return taken
