"""Runs: rows that are alike and follow each other. Idioms over sorted columns, so that nobody writes them twice.

key           7   7   9   9   9   2
is_first      T   F   T   F   F   T
is_last       F   T   F   F   T   T
starts_of     0   0   2   2   2   5
ranks_of      0   1   0   1   2   0
"""

from typing import Any

import numpy as np


def is_first(*columns: np.ndarray) -> np.ndarray:
    """Whether each row begins a run: it differs from the row before it in any of the columns.

    Args:
        *columns: at least one, all of one length n, sorted or not. NaN differs from NaN.

    Returns:
        bool[n]; the first row does, and without rows there is none.
    """
    first = np.ones(len(columns[0]), bool)
    first[1:] = _differs(columns)
    return first


def is_last(*columns: np.ndarray) -> np.ndarray:
    """Whether each row ends a run: it differs from the row behind it in any of the columns.

    Args:
        *columns: at least one, all of one length n.

    Returns:
        bool[n]; the last row does.
    """
    last = np.ones(len(columns[0]), bool)
    last[:-1] = _differs(columns)
    return last


def firsts(*columns: np.ndarray) -> np.ndarray:
    """The places of the first rows of all runs; int64, ascending. In the drawing: 0, 2, 5."""
    return np.flatnonzero(is_first(*columns))


def starts_of(first: np.ndarray) -> np.ndarray:
    """The place at which the run of each row begins, given which rows begin one (bool[n]); int64[n]."""
    return last_set(first)


def ranks_of(first: np.ndarray) -> np.ndarray:
    """The place of each row in its run, from 0, given which rows begin one (bool[n]); int64[n]."""
    ranks: np.ndarray = np.arange(len(first)) - starts_of(first)
    return ranks


def last_set(is_set: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """The last place up to each row that is set; int64[n], -1 where none is.

    Args:
        is_set: bool[n].
        start: int64[n], the start of each row's run: places before it do not count.

    Example:
        is_set        F   T   F   F   T   F
        last_set     -1   1   1   1   4   4
        start         0   0   0   3   3   3     with it: not before the start of each row's run
        last_set     -1   1   1  -1   4   4
    """
    places = np.where(is_set, np.arange(len(is_set)), -1)
    last: np.ndarray = np.maximum.accumulate(places)
    return last if start is None else np.where(last >= start, last, -1)


def shifted(values: np.ndarray, first: Any) -> np.ndarray:
    """The value of the row before each one.

    Args:
        values: an array of n values.
        first: the value for the first row.

    Returns:
        n values, of the type that holds both. `shifted([7, 7, 9], 0)` is [0, 7, 7]; without rows there are none.
    """
    return np.append(first, values[:-1])[: len(values)]


def highest_before(
    groups: np.ndarray, values: np.ndarray, initial: np.ndarray
) -> np.ndarray:
    """For rows sorted by group: the largest value in front of each row in its group, `initial` counted in.

    Args:
        groups: n rows, those of a group together, groups in any order.
        values: int64[n].
        initial: int64[n], for each row that of its group.

    Example:
        groups          1  1  1  2  2
        values          5  9  7  3  4
        initial         6  6  6  0  0
        highest_before  6  6  9  0  3
    """
    first = is_first(groups)
    before = np.where(first, initial, shifted(values, 0))
    if (values > before).all():
        return before
    # Disorder: a running maximum per group is one over rank + group x n, for groups come in rising order.
    distinct, rank = np.unique(np.concatenate([values, initial]), return_inverse=True)
    n, group = len(distinct), np.cumsum(first) - 1
    own, start = rank[: len(values)], rank[len(values) :]
    seen = np.where(first, start, shifted(own, 0))
    highest = np.maximum.accumulate(np.maximum(seen, start) + group * n)
    return np.asarray(distinct[highest - group * n])


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers `start, start + 1, ..` of each range, one range after the other.

    Args:
        starts: int64[m].
        counts: int64[m], from 0 on.

    Returns:
        int64[sum of counts].

    Example:
        starts  10  20          ranges  10  11  12  20
        counts   3   1
    """
    ends = np.cumsum(counts)
    numbers = np.repeat(starts - ends + counts, counts)
    numbers += np.arange(len(numbers))
    return numbers


def _differs(columns: tuple[np.ndarray, ...]) -> np.ndarray:
    """Whether each row but the first differs from the one before it; bool[n - 1]."""
    differs = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        differs = differs | (column[1:] != column[:-1])
    return np.asarray(differs)
