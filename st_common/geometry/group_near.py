"""Which points are near to groups of places: all whose total is at most a length (SPEC G8)."""

import numpy as np
import numpy.typing as npt

from st_common.geometry.circles import points_in_circles
from st_common.geometry.clusters import Clusters, clusters_of
from st_common.geometry.group_totals import (
    MAX,
    MIN,
    SUM,
    Groups,
    apart_of,
    measured,
    sizes_of,
    totals,
)
from st_common.runs import is_first

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]

_AT_ONCE = 1 << 9
"""Groups: what is tested of them together stays in the processor's cache."""


def near_groups(groups: Groups, length: Floats, x: Floats, y: Floats) -> Pairs:
    """Pairs of a group and a point, sorted by group, each once: all whose total is at most `length`, and few others.

    Points are looked for in clusters: first those around the place in the middle of the others (by the triangle
    inequality, if the sum of distances to p places is s, no place is farther than (s + the sum of its distances to the
    others) / p), of these the ones that can have a point with such a total, then their points.

    Args:
        groups: m groups.
        length: float64[m], metres or planar units; NaN has no points.
        x: float64[n], finite.
        y: float64[n].
    """
    levels = clusters_of(x, y, space=groups.space)
    numbers = np.arange(max(len(length), 1))
    parts = [
        _near_some(groups, length, which[which < len(length)], levels, (x, y))
        for which in np.split(numbers, numbers[_AT_ONCE::_AT_ONCE])
    ]
    row, point = map(np.concatenate, zip(*parts, strict=True))
    return row, point


def _near_some(
    groups: Groups,
    length: Floats,
    which: Ints,
    levels: tuple[Clusters, Clusters],
    places: tuple[Floats, Floats],
) -> Pairs:
    """What `near_groups` finds of some groups: all at once there would be too many pairs of them and clusters."""
    groups, length, space = groups.take(which), length[which], groups.space
    most = length * space.growth + space.rounding
    row, cluster = _around(groups, length, levels[0])
    for clusters in levels:
        keep = _least(groups, row, clusters, cluster) <= most[row]
        of, inner = clusters.points(cluster[keep])
        row, cluster = row[keep][of], inner
    point, (x, y) = cluster, places
    keep = are_within(groups, row, length[row], x[point], y[point])
    return which[row[keep]], point[keep]


def are_within(
    groups: Groups, row: Ints, length: Floats, x: Floats, y: Floats
) -> Bools:
    """Whether totals of pairs of a group and a point are at most lengths, or hardly more; as `near_groups` finds them.

    Args:
        groups: m groups.
        row: int64[p], the group of each pair.
        length: float64[p]; NaN has no points.
        x: float64[p], where the points are; `y` likewise.
        y: see `x`.
    """
    far = measured(totals(groups, row, x, y), groups.total[row], groups.space)
    within: Bools = far <= length * groups.space.growth + groups.space.rounding
    return within


def _around(groups: Groups, length: Floats, clusters: Clusters) -> Pairs:
    """Pairs of a group and a cluster that reaches into a circle around the group, sorted by group, each once."""
    across = np.where(np.isnan(groups.x), np.inf, np.nansum(apart_of(groups), axis=2))
    radius = np.where(
        groups.total == SUM, (length + across.min(axis=1)) / sizes_of(groups), length
    )
    middle = np.arange(across.shape[1]) == across.argmin(axis=1)[:, None]
    is_least = groups.total == MIN
    of, column = np.nonzero(~np.isnan(groups.x) & (middle | is_least[:, None]))
    space = groups.space
    reach = radius * space.growth + space.rounding + clusters.radius.max(initial=0.0)
    circle, cluster = points_in_circles(
        groups.x[of, column],
        groups.y[of, column],
        (reach * space.growth)[of],
        clusters.x,
        clusters.y,
        space=space,
    )
    row = of[circle]
    if not is_least.any():  # then a group has one circle
        return row, cluster
    pairs = np.sort(row * len(clusters.x) + cluster)
    row, cluster = np.divmod(pairs[is_first(pairs)], max(len(clusters.x), 1))
    return row, cluster


def _least(groups: Groups, row: Ints, clusters: Clusters, cluster: Ints) -> Floats:
    """Lengths that no point of a cluster has a shorter total than, for pairs of a group and a cluster.

    A point is nearer to a place than the middle of its cluster is, but at most by the cluster's radius.
    """
    space, total = groups.space, groups.total[row]
    x, y = clusters.x[cluster], clusters.y[cluster]
    radius = clusters.radius[cluster] * space.growth + space.rounding
    least, most, summed = (
        np.full(len(row), np.inf),
        np.zeros(len(row)),
        np.zeros(len(row)),
    )
    for px, py in zip(groups.x.T, groups.y.T, strict=True):
        far = space.measure(space.unrounded(px[row], py[row], x, y))
        near = np.maximum(far - radius, 0.0)
        there = ~np.isnan(far)
        np.minimum(least, near, out=least, where=there)
        np.maximum(most, near, out=most, where=there)
        np.add(summed, near, out=summed, where=there)
    return np.select([total == MAX, total == MIN], [most, least], summed)
