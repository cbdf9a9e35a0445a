"""Regions of AND, OR and NOT that go with objects, as columns: a slot for each region that they are made of.

```
    park AND NOT ('M', 'a', 500 m)    slot 0: park, stands still    slot 1: circle around a    found by slot 0
    NOT ('M', 'a', 2, 2)              slot 0: box around a                                     found among all
```

Members are looked for among those in the regions of some slots, the `cover`; whether they are members is asked then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from st_common.geometry.combined import Trees
from st_common.geometry.space import Space
from st_common.operators.arrays.numbered import numbered
from st_common.regions.combined_trees import Leaves, planted
from st_common.regions.region import AroundObject, Extents, MovingRegion, Region


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """What m regions are made of; s slots.

    Attributes:
        trees: how slots are joined.
        node: int64[m, s], the node of each slot in `trees`, -1 beyond those that a region has.
        still: int64[m, s], the region that stands still there, by its number in `leaves`; -1 for others.
        radius: float64[m, s], of circles around an object, metres or the unit of the plane; NaN for others.
        width: float64[m, s], of boxes around an object, the full side; NaN for others. `height` likewise.
        height: see `width`.
        metres: bool[m, s], whether the sides of a box are metres.
        cover: bool[m, s], the slots whose regions together have every member.
        endless: bool[m], whether no slots have; then all objects are asked.
        leaves: the regions that stand still, each once; None without.
    """

    trees: Trees
    node: np.ndarray
    still: np.ndarray
    radius: np.ndarray
    width: np.ndarray
    height: np.ndarray
    metres: np.ndarray
    cover: np.ndarray
    endless: np.ndarray
    leaves: Leaves | None


class _Cover(NamedTuple):
    """The slots among which all members of a region are; None where there are none such."""

    slots: tuple[int, ...] | None
    moves: bool

    @property
    def cost(self) -> tuple[bool, int]:
        """A region around an object is mostly small: better found by one than by what stands still."""
        assert self.slots is not None  # noqa: S101 - only those that have slots are compared
        return not self.moves, len(self.slots)


def compile_forms(regions: Sequence[Region], *, space: Space) -> Forms:
    """The regions as columns; at least one.

    Args:
        regions: made of others by AND, OR and NOT.
        space: what coordinates mean.
    """
    trees, planted_leaves = planted(regions)
    slots = [list(region.leaves()) for region in regions]
    shape = len(regions), max(map(len, slots))
    has = np.arange(shape[1]) < np.array(list(map(len, slots)))[:, None]
    leaves = [leaf for _, leaf in planted_leaves]
    still = numbered(leaf for leaf in leaves if not isinstance(leaf, MovingRegion))
    sizes = [_extents(leaf) for leaf in leaves]
    covers = [_cover_of(region, iter(range(shape[1]))).slots for region in regions]
    return Forms(
        trees=trees,
        node=_filled(has, [node for node, _ in planted_leaves], -1),
        still=_filled(has, [still.get(leaf, -1) for leaf in leaves], -1),
        radius=_filled(has, [size.radius_m for size in sizes], np.nan),
        width=_filled(has, [size.width for size in sizes], np.nan),
        height=_filled(has, [size.height for size in sizes], np.nan),
        metres=_filled(has, [size.metres for size in sizes], 0).astype(bool),
        cover=_marked(shape, covers),
        endless=np.array([cover is None for cover in covers], bool),
        leaves=Leaves(list(enumerate(still)), space=space) if still else None,
    )


_NO_SIZE = Extents(width=np.nan, height=np.nan, radius_m=np.nan)


def _extents(leaf: Region) -> Extents:
    """How large a region around an object is: a circle has no sides, a box no radius."""
    if not isinstance(leaf, AroundObject):
        return _NO_SIZE
    size = leaf.extents
    if leaf.drawn == "ellipse":
        return _NO_SIZE._replace(radius_m=size.radius_m)
    return size._replace(radius_m=np.nan)


def _filled(has: np.ndarray, values: Sequence[float], nothing: float) -> np.ndarray:
    """Values of slots in the order of regions, side by side."""
    out = np.full(has.shape, nothing)
    out[has] = values
    return out


def _marked(
    shape: tuple[int, int], covers: Sequence[tuple[int, ...] | None]
) -> np.ndarray:
    """bool[m, s]: the slots that are in the cover of each region."""
    out = np.zeros(shape, bool)
    for row, slots in enumerate(covers):
        out[row, list(slots or ())] = True
    return out


def _cover_of(region: Region, numbers: Iterator[int]) -> _Cover:
    """The cover of a region; its leaves take the next numbers of slots.

    Example:
        park AND ('M', 'a', 1 km): the circle    depot OR ('M', 'a', 1 km): both    NOT park: None
    """
    if not region.joined_by:
        moves = isinstance(region, MovingRegion)
        return _Cover(slots=(next(numbers),), moves=moves)
    parts = [_cover_of(part, numbers) for part in region.operands]
    ended = [part for part in parts if part.slots is not None]
    nothing = _Cover(slots=None, moves=False)
    if region.joined_by == "all":
        return min(ended, key=lambda part: part.cost, default=nothing)
    if region.joined_by == "not" or len(ended) < len(parts):
        return nothing
    slots = tuple(slot for part in ended for slot in part.slots or ())
    return _Cover(slots=slots, moves=all(part.moves for part in ended))
