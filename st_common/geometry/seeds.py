"""Objects that are near to a group of places for sure: how far the k-th nearest is at most (SPEC G8).

Who has the least sum of distances to two places lies about between them, and most likely near to neither:

    A . . . . . s . . . . . B        the nearest to A and B, and to points on the way
      a                 b            s has nearly the least sum that there can be; a and b have more

So the totals of the objects nearest to points on the way bound the k-th total far better than those of the objects that
are nearest to a place, and few others have to be looked at.
"""

import numpy as np
import numpy.typing as npt

from st_common.geometry.nearest import Neighbours
from st_common.runs import is_first

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pairs = tuple[Ints, Ints]

_SHARES = (0.25, 0.5, 0.75)
"""Where on the way between two places points stand."""


def points_of(x: Floats, y: Floats) -> tuple[Ints, Floats, Floats]:
    """Points at which objects may be near to all places of a group: these, and some on the ways between them.

    Args:
        x: float64[m, p], the places of m groups; NaN where a group has fewer.
        y: float64[m, p].

    Returns:
        int64[n], ascending: the group of each point; and its coordinates, float64[n] each. Between two places on both
        sides of 180 degrees they are elsewhere, and of less use.
    """
    columns = [x, *(_between(x, share) for share in _SHARES)]
    rows = [y, *(_between(y, share) for share in _SHARES)]
    every_x, every_y = np.concatenate(columns, axis=1), np.concatenate(rows, axis=1)
    group, column = np.nonzero(~np.isnan(every_x))
    return group, every_x[group, column], every_y[group, column]


def _between(values: Floats, share: float) -> Floats:
    """Points between places that follow each other: float64[m, p - 1]."""
    points: Floats = values[:, :-1] + share * (values[:, 1:] - values[:, :-1])
    return points


def seeds_of(x: Floats, y: Floats, look: Ints, tree: Neighbours) -> Pairs:
    """The objects nearest to each of the points of groups.

    Args:
        x: float64[m, p], as `points_of` takes it; `y` likewise.
        y: see `x`.
        look: int64[m], how many are looked for at each point, at least 1; perhaps more are.
        tree: the objects.

    Returns:
        Pairs of a group and the place of an object among those of the tree, sorted and each once; int64[n] each.
    """
    group, point_x, point_y = points_of(x, y)
    sizes = np.minimum(_power_of_two(look), tree.size)
    parts = [np.empty(0, np.int64)]
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes[group] == size)
        near = tree.nearest(point_x[rows], point_y[rows], size)
        parts.append((group[rows][:, None] * tree.size + near).ravel())
    keys = np.sort(np.concatenate(parts))
    row, place = np.divmod(keys[is_first(keys)], max(tree.size, 1))
    return row, place


def _power_of_two(numbers: Ints) -> Ints:
    """The next power of two, so that few sizes are asked for one after the other."""
    return np.asarray(2 ** np.ceil(np.log2(numbers)).astype(np.int64))
