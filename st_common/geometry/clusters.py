"""Points in small heaps of neighbours, each in a circle: what is far from a heap is far from all its points.

Points are cut into strips by x, each strip into heaps by y (sort-tile-recursive, Leutenegger et al. 1997):

    y |  a  b |  e  f |          strips of 4, heaps of 2:
      |  .  . |  .  . |          {c d} {a b}    {g h} {e f}
      |  c  d |  g  h |
      +----------------- x
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.geometry.space import Space
from st_common.runs import ranges

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SIZE = 8  # points of a heap: smaller ones are more to test, larger ones have more points that are tested for nothing
_COARSE = 16  # heaps of a heap of heaps


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """Heaps of points, c of them; every point is in one.

    Attributes:
        x: float64[c], the middle of each; `y` likewise.
        y: see `x`.
        radius: float64[c], how far its farthest point is from there, in metres or planar units.
        start: int64[c], where the points of each begin in `order`, and `count` of them.
        count: see `start`.
        order: int64[n], places of points.
    """

    x: Floats
    y: Floats
    radius: Floats
    start: Ints
    count: Ints
    order: Ints

    def points(self, cluster: Ints) -> tuple[Ints, Ints]:
        """The points of some clusters (int64[k]), one after the other: the place of the cluster, and of the point."""
        count = self.count[cluster]
        of = np.repeat(np.arange(len(cluster)), count)
        return of, self.order[ranges(self.start[cluster], count)]


def clusters_of(x: Floats, y: Floats, *, space: Space) -> tuple[Clusters, Clusters]:
    """Points in clusters, and these in larger ones; none without points.

    Args:
        x: float64[n], finite: longitude in degrees or a planar coordinate.
        y: float64[n], finite.
        space: what coordinates mean.

    Returns:
        The larger ones, whose points are the smaller ones, and whose circles hold theirs; and the smaller ones.
    """
    small = _clustered(x, y, np.zeros(len(x)), _SIZE, space)
    return _clustered(small.x, small.y, small.radius, _COARSE, space), small


def _clustered(
    x: Floats, y: Floats, radius: Floats, size: int, space: Space
) -> Clusters:
    """Points, or circles around them, in clusters of some size."""
    order = _tiled(x, y, size)
    start = np.arange(0, len(x), size)
    if not len(start):
        none = np.empty(0)
        return Clusters(
            x=none, y=none, radius=none, start=start, count=start, order=order
        )
    count = np.diff(start, append=len(x))
    middle_x, middle_y = (np.add.reduceat(c[order], start) / count for c in (x, y))
    of = np.repeat(np.arange(len(start)), count)
    rank = space.unrounded(middle_x[of], middle_y[of], x[order], y[order])
    reach = space.measure(rank) * space.growth + radius[order]
    return Clusters(
        x=middle_x,
        y=middle_y,
        radius=np.maximum.reduceat(reach, start),
        start=start,
        count=count,
        order=order,
    )


def _tiled(x: Floats, y: Floats, size: int) -> Ints:
    """The order of points in which each `size` of them are neighbours."""
    heaps = -(-len(x) // size)
    strips = max(int(np.sqrt(heaps)), 1)
    width = -(-heaps // strips) * size  # a strip has whole heaps, but the last one
    strip = np.empty(len(x), np.int64)
    strip[np.argsort(x, kind="stable")] = np.arange(len(x)) // max(width, 1)
    return np.lexsort((y, strip))
