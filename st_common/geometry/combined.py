r"""Which regions made of others by AND, OR and NOT contain which points: sets of pairs, joined from the leaves up.

What contains a point is a set of pairs of a point and a node. NOT would hold nearly all points, so no such set is made:
a node has a set, and says whether it is that or all but that (`complemented`). AND and OR of such nodes are again one:

    a AND b            both of its sets                     a OR b            one of its sets
    a AND NOT b        that of a, not that of b             a OR NOT b        all but: that of b, not that of a
    NOT a AND NOT b    all but: one of its sets             NOT a OR NOT b    all but: both of its sets

Each of these six wants at least so many of some sets (`needed`) and none of the others (`excludes`), which is one count
for all nodes of all trees at once.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]

_MOST_CELLS = 1 << 22  # of points and regions without end, looked at together


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """The nodes of trees of regions, each column by node; NOT is no node.

    Attributes:
        parent: int64[n], -1 for a root.
        depth: int64[n], 0 for a root.
        needed: int64[n], how many sets of the children that do not exclude must have a point; 0 for leaves.
        excludes: bool[n], whether a point in the set of the node is not in that of its parent.
        roots: int64[r], the root of each region.
        complemented: bool[r], whether the region is all but the set of its root.
    """

    parent: Ints
    depth: Ints
    needed: Ints
    excludes: Bools
    roots: Ints
    complemented: Bools


class CombinedIndex:
    """Finds the combined regions that contain points, exactly as their leaves do; immutable.

    Args:
        trees: the regions, in their order.
        leaves: for x and y (float64[m]) all pairs of a point and a leaf that contains it, each once: point, node.
    """

    __slots__ = ("_leaves", "_region", "_trees")

    def __init__(self, trees: Trees, leaves: Callable[[Floats, Floats], Pairs]) -> None:
        self._trees, self._leaves = trees, leaves
        self._region = np.full(len(trees.parent), -1, np.int64)
        self._region[trees.roots] = np.arange(len(trees.roots))

    def probe(self, x: Floats, y: Floats) -> Pairs:
        """All pairs of a point and a region that contains it.

        Args:
            x: float64[m], any values; NaN lies in no region, also not in what is not in another one.
            y: float64[m].

        Returns:
            `(point_idx, region_idx)`, int64, sorted by point, then region; each pair once.
        """
        point, root = roots_of(self._trees, *self._leaves(x, y))
        region = self._region[root]
        endless = self._trees.complemented[region]
        is_place = ~(np.isnan(x) | np.isnan(y))
        others = self._all_but(point[endless], region[endless], is_place)
        point = np.concatenate([point[~endless], others[0]])
        region = np.concatenate([region[~endless], others[1]])
        order = np.lexsort((region, point))
        return point[order], region[order]

    def _all_but(self, point: Ints, region: Ints, is_place: Bools) -> Pairs:
        """The pairs of a place and a region without end that are not among those given."""
        endless = np.flatnonzero(self._trees.complemented)
        if not len(endless):
            return endless, endless
        column = np.searchsorted(endless, region)
        points, regions = [], []
        step = max(_MOST_CELLS // len(endless), 1)
        for start in range(0, len(is_place), step):
            mine = (point >= start) & (point < start + step)
            left = np.repeat(is_place[start : start + step, None], len(endless), axis=1)
            left[point[mine] - start, column[mine]] = False
            row, of = np.nonzero(left)
            points.append(row + start)
            regions.append(endless[of])
        nothing = np.empty(0, np.int64)
        return np.concatenate([nothing, *points]), np.concatenate([nothing, *regions])


def roots_of(trees: Trees, point: Ints, node: Ints) -> Pairs:
    """The pairs of a point and a root whose set has it, of those of leaves.

    Args:
        trees: the nodes.
        point: int64[p], with `node`: pairs of a point and a leaf whose region has it, each once.
        node: see `point`.
    """
    for level in range(int(trees.depth.max(initial=0)), 0, -1):
        below = trees.depth[node] == level
        joined = _joined(trees, point[below], node[below])
        point = np.concatenate([point[~below], joined[0]])
        node = np.concatenate([node[~below], joined[1]])
    return point, node


def contained(trees: Trees, region: Ints, point: Ints, node: Ints) -> Bools:
    """Whether each of n points lies in a region of its own; bool[n].

    Args:
        trees: the nodes.
        region: int64[n], the region that is asked about of each point.
        point: int64[p], with `node`: pairs of a point and a leaf of its region that has it, each once.
        node: see `point`.
    """
    inside = trees.complemented[region]
    held, _ = roots_of(trees, point, node)
    inside[held] = ~inside[held]
    return inside


def _joined(trees: Trees, point: Ints, node: Ints) -> Pairs:
    """The pairs of a point and a parent whose set has it, of those of all its children."""
    count = max(len(trees.parent), 1)
    excludes = trees.excludes[node]
    key, at = np.unique(point * count + trees.parent[node], return_inverse=True)
    have = np.bincount(at[~excludes], minlength=len(key))
    is_excluded = np.bincount(at[excludes], minlength=len(key)) > 0
    point, parent = np.divmod(key, count)
    keep = (have >= trees.needed[parent]) & ~is_excluded
    return point[keep], parent[keep]
