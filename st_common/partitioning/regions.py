"""The regions of a group: which there are, where a point belongs, which regions a box touches."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.errors import StateError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """One version of the partition of a group, in as many dimensions d as its streams have, from 1 to 4.

    Cells are half-open (the lower edges belong to them), so every point lies in exactly one.

    Attributes:
        group: the name of the group.
        version: counts from 1; 0 stands for no partition.
        region_id: of each region its path in the tree of splits: "0110" came from "011", and a further split of it
            touches no other region.
        bounds: float64[n, 2 * d], the lower corners, then the upper ones: minx, miny, maxx, maxy in the plane. The
            outer edges are infinite.
        is_by_place: they were stored before regions had the dimensions of their streams: x and y of any element count.
    """

    group: str
    version: int
    region_id: list[str]
    bounds: Floats
    is_by_place: bool = False

    @property
    def dimensions(self) -> int:
        """How many dimensions they have."""
        return int(self.bounds.shape[1]) // 2


def whole(group: str, dimensions: int = 2) -> Regions:
    """The partition before any partitioning: version 0, one region "0" that is everything."""
    edge = np.full((1, dimensions), np.inf)
    return Regions(
        group=group,
        version=0,
        region_id=["0"],
        bounds=np.concatenate([-edge, edge], axis=1),
    )


def rectangles(regions: Regions) -> Floats:
    """Regions in their first two dimensions, float64[n, 4] of minx, miny, maxx, maxy.

    Regions of one dimension reach without end in the second; those of three or four may lie above each other.
    """
    low, high = np.split(regions.bounds, 2, axis=1)
    if regions.dimensions == 1:
        edge = np.full((len(low), 1), np.inf)
        low, high = np.concatenate([low, -edge], 1), np.concatenate([high, edge], 1)
    return np.concatenate([low[:, :2], high[:, :2]], axis=1)


def assign(regions: Regions, points: Floats) -> npt.NDArray[np.int32]:
    """The region of each point.

    A point on a common edge belongs to the region on its upper side. A point that lacks a coordinate (NaN, as in rows
    that say that an object is gone) belongs to the first region.

    Args:
        regions: n regions of d dimensions.
        points: float64[m, d].

    Returns:
        int32[m], numbers of regions, from 0.

    Raises:
        StateError: a point lies in no region, or regions lie across each other, so that they do not tile the space.
    """
    region = np.zeros(len(points), np.int32)
    if len(regions.region_id) == 1:
        return region
    known = np.flatnonzero(~np.isnan(points).any(axis=1))
    cells = cells_of(regions.bounds, points[known])
    if cells is None:
        raise StateError(
            f"the regions of group {regions.group!r}, version {regions.version}, do not tile the space",
            hint="partition the group again",
        )
    region[known] = cells
    return region


def touching(regions: Regions, boxes: Floats) -> tuple[Ints, Ints]:
    """All pairs of a closed box and a closed region that have a point in common.

        regions x < 3, x >= 3; boxes from x = 0 to 1 and from 2 to 8   ->   (0, 0), (1, 0), (1, 1)

    Args:
        regions: of two dimensions.
        boxes: float64[m, 4] of minx, miny, maxx, maxy.

    Returns:
        `(box_idx, region_idx)`, int64, sorted by box, then region.
    """
    minx, miny, maxx, maxy = regions.bounds.T
    parts = [np.empty((0, 2), np.int64)]
    block = max(1, (1 << 22) // len(regions.region_id))
    for start in range(0, len(boxes), block):
        part = boxes[start : start + block]
        meets = (
            (part[:, :1] <= maxx)
            & (part[:, 2:3] >= minx)
            & (part[:, 1:2] <= maxy)
            & (part[:, 3:4] >= miny)
        )
        parts.append(np.argwhere(meets) + np.array([start, 0]))
    pairs = np.concatenate(parts)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def cells_of(bounds: Floats, points: Floats) -> Ints | None:
    """The half-open cell of each point.

        cells x < 4   x >= 4, y < 3   x >= 4, y >= 3, and the point (5, 1)   ->   x >= 4   ->   y < 3   ->   cell 1

    Each cut is looked at once, by all points that come to it; it is found again from the cells, as one that no cell
    lies across and that parts them most evenly.

    Args:
        bounds: float64[n, 2 * d], at least one cell: its lower corner, then its upper one.
        points: float64[m, d], without NaN.

    Returns:
        int64[m], numbers of cells; None where the cells do not tile by cuts, or a point lies in none of them.
    """
    cell = np.zeros(len(points), np.int64)
    todo = [(np.arange(len(bounds)), np.arange(len(points)))]
    while todo:
        cells, inside = todo.pop()
        if len(cells) == 1 or not len(inside):
            cell[inside] = cells[0]
            continue
        cut = max(_cuts(bounds[cells]), default=None)
        if cut is None:
            return None
        _, axis, value = cut
        is_low = points[inside, axis] < value
        is_below = bounds[cells, axis] < value
        todo.append((cells[is_below], inside[is_low]))
        todo.append((cells[~is_below], inside[~is_low]))
    low, high = np.split(bounds[cell], 2, axis=1)
    lies = (points >= low) & ((points < high) | np.isposinf(high))
    return cell if lies.all() else None


def _cuts(bounds: Floats) -> Iterator[tuple[int, int, float]]:
    """Of each axis the most even cut that no cell lies across: the size of its smaller side, the axis and the value."""
    low, high = np.split(bounds, 2, axis=1)
    for axis in range(low.shape[1]):
        order = np.argsort(low[:, axis], kind="stable")
        starts, ends = low[order, axis], np.maximum.accumulate(high[order, axis])
        places = np.flatnonzero(ends[:-1] <= starts[1:]) + 1
        if len(places):
            smaller = np.minimum(places, len(order) - places)
            best = int(smaller.argmax())
            yield int(smaller[best]), axis, float(starts[places[best]])
