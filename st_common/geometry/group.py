"""The k nearest to several places at once: by the sum, the maximum or the minimum of distances to them."""

import numpy as np
import numpy.typing as npt

from st_common.geometry.grid import blocks
from st_common.geometry.group_near import near_groups
from st_common.geometry.group_totals import Groups, lengths, totals
from st_common.geometry.join import Test
from st_common.geometry.nearest import Neighbours, Objects
from st_common.geometry.ranked import kth_smallest, last_of_equals
from st_common.geometry.seeds import seeds_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Pairs = tuple[Ints, Ints]

_MOST_LOOKED = 1 << 17
"""Pairs of a group and an object that is about as near as is asked for, looked at together."""
_FEW_PAIRS = 1 << 13
"""So few groups times objects are compared without a tree."""


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
            length = _looked(few, k[some], look[part], tree, objects, _of(test, some))
            # Where too few of those that were looked at count nobody knows, unless they were all.
            known = np.flatnonzero((length < np.inf) | (look[part] == size))
            some, few = some[known], few.take(known)
            row, at = near_groups(few, length[known], *objects.places())
            keep = test(some[row], objects.number[at])
            pairs = row[keep], objects.number[at[keep]]
            limit[some], tie[some] = kth_nearest_to_groups_of(
                few, k[some], pairs, objects
            )
            is_settled[some] = True
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
    tree = Neighbours(x, y, space=groups.space)
    return near_groups(groups, _at_most(groups, k, k, tree, objects), x, y)


def _of(test: Test, rows: Ints) -> Test:
    """The test of some rows, by their places among these."""
    return lambda row, number: test(rows[row], number)


def _looked(
    groups: Groups,
    k: Ints,
    look: Ints,
    tree: Neighbours,
    objects: Objects,
    test: Test,
) -> Floats:
    """As `_at_most`; where all objects are to be looked at nothing is gained by a bound, and there is none."""
    length = np.full(len(k), np.inf)
    some = np.flatnonzero(look < tree.size)
    args = (groups.take(some), k[some], look[some], tree, objects)
    length[some] = _at_most(*args, _of(test, some))
    return length


def _at_most(
    groups: Groups,
    k: Ints,
    look: Ints,
    tree: Neighbours,
    objects: Objects,
    test: Test | None = None,
) -> Floats:
    """Lengths that at least k totals of objects that count do not exceed; infinite where it takes a farther look.

    Args:
        groups: m groups with places.
        k: int64[m], at least 1.
        look: int64[m], how many objects are looked at near each of some points.
        tree: the objects.
        objects: the same.
        test: which pairs of a group and an object count; None: all.
    """
    row, at = seeds_of(groups.x, groups.y, look, tree)
    number = objects.number[at]
    if test is not None:
        keep = test(row, number)
        row, number = row[keep], number[keep]
    value = totals(groups, row, objects.x[number], objects.y[number])
    start = np.searchsorted(row, np.arange(len(k) + 1))
    return lengths(groups, kth_smallest(start, value, k)) * groups.space.growth
