"""The k nearest to several places at once: by the sum, the maximum or the minimum of distances to them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.geometry.circles import points_in_circles
from st_common.geometry.clusters import Clusters, clusters_of
from st_common.geometry.grid import blocks
from st_common.geometry.join import Test
from st_common.geometry.nearest import Neighbours, Objects
from st_common.geometry.ranked import kth_smallest, last_of_equals
from st_common.geometry.space import Space
from st_common.runs import is_first

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]

SUM, MAX, MIN = 0, 1, 2
_AT_ONCE = (
    1 << 9
)  # groups: what is tested of them together stays in the processor's cache
_MOST_LOOKED = (
    1 << 17
)  # pairs of a group and an object that is about as near as is asked for, looked at together
_FEW_PAIRS = 1 << 13  # so few groups times objects are compared without a tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Groups of places, m of them with at most p places.

    Attributes:
        x: float64[m, p], longitude in degrees or planar coordinates; NaN where a group has fewer places.
        y: float64[m, p].
        total: int8[m], SUM, MAX or MIN.
        space: what coordinates mean.
    """

    x: Floats
    y: Floats
    total: npt.NDArray[np.int8]
    space: Space

    def take(self, rows: Ints) -> "Groups":
        """These groups."""
        return Groups(
            x=self.x[rows],
            y=self.y[rows],
            total=self.total[rows],
            space=self.space,
        )


def totals(groups: Groups, row: Ints, x: Floats, y: Floats) -> Floats:
    """How far the group and the object's place of each pair are from each other; NaN for groups without places.

        places 0 and 6, an object at 8      SUM 8 + 2 = 10      MAX rank 64 (8 squared)      MIN rank 4

    Args:
        groups: m groups.
        row: int64[p], the group of each pair.
        x: float64[p], where its object is; `y` likewise.
        y: see `x`.

    Returns:
        float64[p]. Sums are distances, rounded once to the decimals of the space; maxima and minima are ranks.
    """
    total, space = groups.total[row], groups.space
    least, most, summed = (
        np.full(len(row), np.inf),
        np.full(len(row), -np.inf),
        np.zeros(len(row)),
    )
    for px, py in zip(groups.x.T, groups.y.T, strict=True):
        far = space.unrounded(px[row], py[row], x, y)
        there = ~np.isnan(far)
        np.minimum(least, far, out=least, where=there)
        np.maximum(most, far, out=most, where=there)
        np.add(summed, space.measure(far), out=summed, where=there)
    sums = np.select(
        [total == MAX, total == MIN],
        [space.rounded(most), space.rounded(least)],
        np.round(summed, space.decimals),
    )
    return np.where(most < least, np.nan, sums)


def kth_nearest_to_groups(
    groups: Groups, k: Ints, but: Ints, objects: Objects
) -> tuple[Floats, Ints]:
    """How far the k-th nearest object is from each group, and which of those exactly so far is the last one.

    Args:
        groups: m groups.
        k: int64[m], at least 1.
        but: int64[m, f], objects that do not count for a group; -1 for none.
        objects: n objects.

    Returns:
        `limit` and `tie` as `nearest.kth_nearest` gives them, `limit` as `totals` compares.
    """
    limit, tie = np.full(len(k), np.inf), np.full(len(k), -1)
    known = ~np.isnan(groups.x).all(axis=1)
    limit[~known] = np.nan
    # Sorted, so that an object that is named twice counts once.
    but = np.sort(but, axis=1)
    excluded = (
        objects.has(but) & np.diff(but, axis=1, prepend=-1).astype(np.bool_)
    ).sum(axis=1)
    rows = np.flatnonzero(known & (k <= len(objects.number) - excluded))
    if not len(rows):
        return limit, tie
    groups, k, but = groups.take(rows), k[rows], but[rows]
    row, at = _candidates(groups, k + excluded[rows], objects)
    number = objects.number[at]
    counts = ~(but[row] == number[:, None]).any(axis=1)
    limit[rows], tie[rows] = _ranked(groups, k, row[counts], number[counts], objects)
    return limit, tie


def kth_nearest_to_groups_of(
    groups: Groups, k: Ints, pairs: Pairs, objects: Objects
) -> tuple[Floats, Ints]:
    """What `kth_nearest_to_groups` finds, where only these pairs of a group (ascending) and an object count.

    Args:
        groups: m groups.
        k: int64[m], at least 1.
        pairs: int64[p], int64[p]; each once, and none of a group without places.
        objects: where objects are; `number` is not asked for.
    """
    limit, tie = (
        np.where(np.isnan(groups.x).all(axis=1), np.nan, np.inf),
        np.full(len(k), -1),
    )
    rows, row = np.unique(pairs[0], return_inverse=True)
    if len(rows):
        limit[rows], tie[rows] = _ranked(
            groups.take(rows), k[rows], row, pairs[1], objects
        )
    return limit, tie


def kth_nearest_to_groups_where(
    groups: Groups, k: Ints, wanted: Ints, most: Ints, objects: Objects, test: Test
) -> tuple[Floats, Ints, Bools]:
    """What `kth_nearest_to_groups` finds, where only pairs count that pass a test; see `nearest.kth_nearest_where`.

    Args:
        groups: m groups.
        k: int64[m], at least 1.
        wanted: int64[m], at least 1: all are looked at first that are as near as so many are; then four times as many.
        most: int64[m], after how many a group gives up.
        objects: n objects.
        test: for pairs of a group and an object whether the object counts.

    Returns:
        `limit` and `tie` as there, and bool[m]: which groups have not given up.
    """
    limit = np.where(np.isnan(groups.x).all(axis=1), np.nan, np.inf)
    tie, is_settled = np.full(len(k), -1), np.isnan(limit)
    size = len(objects.number)
    rows = np.flatnonzero(~is_settled) if size else np.empty(0, np.int64)
    tree = Neighbours(*objects.places(), space=groups.space) if len(rows) else None
    while tree is not None and len(rows):
        look = np.minimum(wanted[rows], size)
        for part in blocks(look, _MOST_LOOKED):
            some, few = rows[part], groups.take(rows[part])
            length = np.where(look[part] < size, _bounds(few, look[part], tree), np.inf)
            row, at = near_groups(few, length, *objects.places())
            keep = test(some[row], objects.number[at])
            pairs = row[keep], objects.number[at[keep]]
            limit[some], tie[some] = kth_nearest_to_groups_of(
                few, k[some], pairs, objects
            )
            # What is farther than all that were looked at may be farther than others.
            is_settled[some] = lengths(few, limit[some]) <= length
        rows = rows[~is_settled[rows] & (look < most[rows])]
        wanted = wanted * 4
    return limit, tie, is_settled


def _ranked(
    groups: Groups, k: Ints, row: Ints, number: Ints, objects: Objects
) -> tuple[Floats, Ints]:
    """The k-th total and its tie of each group, of which each has a pair, sorted by group."""
    value = totals(groups, row, objects.x[number], objects.y[number])
    start = np.searchsorted(row, np.arange(len(k) + 1))
    limit = kth_smallest(start, value, k)
    return limit, last_of_equals(start, value, number, k, limit, objects.ids)


def _candidates(groups: Groups, k: Ints, objects: Objects) -> Pairs:
    """Pairs of a group and a place among the objects, sorted by group: all that can be among the k nearest."""
    if len(k) * len(objects.number) <= _FEW_PAIRS:
        row, at = np.divmod(
            np.arange(len(k) * len(objects.number)), len(objects.number)
        )
        return row, at
    x, y = objects.places()
    return near_groups(
        groups, _bounds(groups, k, Neighbours(x, y, space=groups.space)), x, y
    )


def _bounds(groups: Groups, k: Ints, tree: Neighbours) -> Floats:
    """Lengths that at least k totals do not exceed: those of the k objects nearest to some place of the group.

    What is r away from a place is at most r + d away from another one that is d away from it.
    """
    row, column = np.nonzero(~np.isnan(groups.x))
    bound = tree.bound(groups.x[row, column], groups.y[row, column], k[row])
    near = np.full(groups.x.shape, np.inf)
    near[row, column] = groups.space.measure(bound)
    apart = _apart(groups)
    farthest = near + np.fmax.reduce(apart, axis=2)
    summed = near * _sizes(groups)[:, None] + np.nansum(apart, axis=2)
    kind = groups.total[:, None]
    least: Floats = np.nanmin(
        np.select([kind == MAX, kind == MIN], [farthest, near], summed), axis=1
    )
    return least * groups.space.growth


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
    far = totals(groups, row, x[point], y[point])
    keep = _measured(far, groups.total[row], space) <= most[row]
    return which[row[keep]], point[keep]


def _around(groups: Groups, length: Floats, clusters: Clusters) -> Pairs:
    """Pairs of a group and a cluster that reaches into a circle around the group, sorted by group, each once."""
    across = np.where(np.isnan(groups.x), np.inf, np.nansum(_apart(groups), axis=2))
    radius = np.where(
        groups.total == SUM, (length + across.min(axis=1)) / _sizes(groups), length
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


def lengths(groups: Groups, limit: Floats) -> Floats:
    """Totals, one for each group, as distances: sums are, the ranks of maxima and minima are measured.

    Args:
        groups: m groups.
        limit: float64[m], totals as `totals` gives them.
    """
    return _measured(limit, groups.total, groups.space)


def _measured(far: Floats, total: npt.NDArray[np.int8], space: Space) -> Floats:
    return np.where(total == SUM, far, space.measure(far))


def grown_by(groups: Groups, limit: Floats, margin: float) -> Floats:
    """What totals become, as lengths, when each distance gets longer by a margin.

    Args:
        groups: m groups.
        limit: float64[m], totals as `totals` gives them.
        margin: metres or the unit of the plane; a sum grows by it for each place.

    Example:
        two places, margin 2:  a sum of 10 becomes 14, a maximum with rank 64 becomes 10
    """
    return lengths(groups, limit) + margin * np.where(
        groups.total == SUM, _sizes(groups), 1
    )


def _apart(groups: Groups) -> Floats:
    """How far the places of each group are from each other: float64[m, p, p]; NaN where there is none."""
    x, y, space = groups.x, groups.y, groups.space
    rank = space.rank(x[:, :, None], y[:, :, None], x[:, None], y[:, None])
    return space.measure(rank)


def _sizes(groups: Groups) -> Ints:
    """How many places each group has; 1 where it has none."""
    return np.asarray(np.maximum((~np.isnan(groups.x)).sum(axis=1), 1))
