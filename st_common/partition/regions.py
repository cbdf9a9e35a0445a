"""The regions of a group: which there are, where a point belongs, which regions a box touches."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.errors import StateError
from st_common.geometry.grid import BoxIndex

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """One version of the partition of a group.

    Cells are half-open (the lower edges belong to them), so every point lies in exactly one.

    Attributes:
        group: the name of the group.
        version: counts from 1; 0 stands for no partition.
        region_id: of each region its path in the tree of splits: "0110" came from "011", and a further split of it
            touches no other region.
        bounds: float64[n, 4] of minx, miny, maxx, maxy; the outer edges are infinite.
    """

    group: str
    version: int
    region_id: list[str]
    bounds: Floats


def whole(group: str) -> Regions:
    """The partition before any partitioning: version 0, one region "0" that is everything."""
    return Regions(
        group=group,
        version=0,
        region_id=["0"],
        bounds=np.array([[-np.inf, -np.inf, np.inf, np.inf]]),
    )


def assign(regions: Regions, x: Floats, y: Floats) -> npt.NDArray[np.int32]:
    """The region of each point.

    A point on a common edge belongs to the region on its upper side. A point without coordinates (NaN, as in rows that
    say that an object is gone) belongs to the first region.

    Args:
        regions: n regions.
        x: float64[m].
        y: float64[m].

    Returns:
        int32[m], numbers of regions, from 0.

    Raises:
        StateError: a point lies in no region or in two, so that the regions do not tile the plane.
    """
    region = np.zeros(len(x), np.int32)
    if len(regions.region_id) == 1:
        return region
    known = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    px, py = x[known], y[known]
    # The index knows closed boxes; of the regions that meet at an edge, all but the upper one are dropped.
    points, cells = BoxIndex(regions.bounds).probe(px, py)
    maxx, maxy = regions.bounds[cells, 2], regions.bounds[cells, 3]
    inner = ((px[points] < maxx) | np.isposinf(maxx)) & (
        (py[points] < maxy) | np.isposinf(maxy)
    )
    points, cells = points[inner], cells[inner]
    if not np.array_equal(points, np.arange(len(known))):
        raise StateError(
            f"the regions of group {regions.group!r}, version {regions.version}, do not tile the plane",
            hint="partition the group again",
        )
    region[known] = cells
    return region


def touching(regions: Regions, boxes: Floats) -> tuple[Ints, Ints]:
    """All pairs of a closed box and a closed region that have a point in common.

        regions x < 3, x >= 3; boxes from x = 0 to 1 and from 2 to 8   ->   (0, 0), (1, 0), (1, 1)

    Args:
        regions: the regions.
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
