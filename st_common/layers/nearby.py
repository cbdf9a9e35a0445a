"""The k features that are nearest to each point, exactly: a bound, then all that it reaches.

bound      the k features whose boxes have their middles nearest, measured: the k-th is no farther than their farthest
reach      the features whose boxes meet the square that the bound reaches, and the circle in it
measure    these; of equally far ones the first by fid
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.borders import each_once
from st_common.geometry.enlarged import POINT, points_reaching
from st_common.geometry.grid import blocks
from st_common.geometry.nearest import Neighbours
from st_common.geometry.ranked import first_k
from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Measure = Callable[[Floats, Floats, Ints], Floats]
Pairs = tuple[Ints, Ints]

_TOGETHER = 512  # points looked at together: a layer that lies far off is near to all of them alike
_MOST_MEASURED = 1 << 18  # pairs of a point and a feature that bound it
_GROWTH = 1 + 1e-9  # of bounds: more than rounding takes from a distance
_FARTHEST = 1e300  # what reaches farther reaches all


class Nearby:
    """Features of one choice, ready to be searched for the nearest.

    Args:
        tree: their boxes.
        features: int64[n], which they are; pairs name them so.
        boxes: float64[n, 4], finite: minx, miny, maxx, maxy.
        space: what coordinates mean.
    """

    __slots__ = ("_features", "_middle", "_middles", "_radius", "_space", "_tree")

    def __init__(
        self, tree: shapely.STRtree, features: Ints, boxes: Floats, *, space: Space
    ) -> None:
        self._tree, self._features, self._space = tree, features, space
        minx, miny, maxx, maxy = boxes.T
        self._middle = minx / 2 + maxx / 2, miny / 2 + maxy / 2
        self._radius = _radii(boxes, space)
        self._middles = Neighbours(*self._middle, space=space) if len(boxes) else None

    def k_nearest(
        self, x: Floats, y: Floats, k: int, limit: Floats, measure: Measure
    ) -> Pairs:
        """The k features nearest to each point, all of them where there are fewer; see `LayerIndex.k_nearest`.

        Args:
            x: float64[m], of the points; NaN is near to nothing.
            y: float64[m].
            k: how many.
            limit: float64[m], how far a feature may be; infinite for any distance.
            measure: how far points are from features, side by side.
        """
        there = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        if self._middles is None:
            return there[:0], there[:0]
        parts = [(there[:0], there[:0])]
        at_once = max(min(_TOGETHER, _MOST_MEASURED // k), 1)
        for part in blocks(np.ones(len(there), np.int64), at_once):
            some = there[part]
            point, feature = self._nearest(x[some], y[some], k, limit[some], measure)
            parts.append((some[point], feature))
        points, features = zip(*parts, strict=True)
        return np.concatenate(points), np.concatenate(features)

    def _nearest(
        self, x: Floats, y: Floats, k: int, limit: Floats, measure: Measure
    ) -> Pairs:
        bound = np.minimum(self._bound(x, y, k, measure), limit)
        point, at = self._reached(x, y, bound * _GROWTH + 2 * self._space.rounding)
        feature = self._features[at]
        far = measure(x[point], y[point], feature)
        near = np.flatnonzero(far <= limit[point])
        first = first_k(point[near], feature[near], far[near], k, self._space.decimals)
        point, feature = point[near][first], feature[near][first]
        order = np.lexsort((feature, point))
        return point[order], feature[order]

    def _bound(self, x: Floats, y: Floats, k: int, measure: Measure) -> Floats:
        """A distance within which each point has k features; infinite where there are fewer."""
        if self._middles is None or k > self._middles.size:
            return np.full(len(x), np.inf)
        feature = self._features[self._middles.nearest(x, y, k)]
        far = measure(np.repeat(x, k), np.repeat(y, k), feature.ravel())
        return np.asarray(far.reshape(-1, k).max(axis=1, initial=0.0))

    def _reached(self, x: Floats, y: Floats, within: Floats) -> Pairs:
        """Pairs of a point and a place in `features` that may be so near, each once."""
        point, at = reached(self._tree, x, y, within, space=self._space)
        middle_x, middle_y = (one[at] for one in self._middle)
        keep = self._space.is_within(
            x[point], y[point], middle_x, middle_y, within[point] + self._radius[at]
        )
        return point[keep], at[keep]


def reached(
    tree: shapely.STRtree, x: Floats, y: Floats, within: Floats, *, space: Space
) -> Pairs:
    """Pairs of a point and a box in a tree that may be so near, each once: those that meet the square around the point.

    Args:
        tree: boxes, not wrapped at 180 degrees.
        x: float64[n], finite.
        y: float64[n].
        within: float64[n], how near; infinite for any distance.
        space: what coordinates mean.
    """
    px, py, owner = points_reaching(x, y, within, POINT, space=space)
    across, along = (
        np.minimum(side, _FARTHEST) for side in space.reach(py, within[owner])
    )
    squares = shapely.box(px - across, py - along, px + across, py + along)
    point, at = tree.query(squares)
    point = owner[point]
    # What reaches around is met from both sides.
    return (point, at) if len(owner) == len(x) else each_once(point, at)


def _radii(boxes: Floats, space: Space) -> Floats:
    """No place of each box is farther from its middle: as far as along y and then along x; float64[n]."""
    minx, miny, maxx, maxy = boxes.T
    is_across = (miny <= 0) & (maxy >= 0)
    widest = np.where(is_across, 0.0, np.minimum(np.abs(miny), np.abs(maxy)))
    tallest = np.maximum(np.abs(miny), np.abs(maxy))
    across, along = space.scale(widest)[0], space.scale(tallest)[1]
    return np.asarray(
        ((maxx - minx) * across + (maxy - miny) * along) / 2 * _GROWTH + space.rounding
    )
