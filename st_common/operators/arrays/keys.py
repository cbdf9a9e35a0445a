"""Sets of pairs as sorted int64 keys: two numbers below 2**32 packed into one.

    pair (7, 3)    key 7 << 32 | 3 = 30064771075

Keys sort by the first number, then by the second, so all pairs of one query (or object) lie together, and sets of
pairs are joined, compared and cut by binary search instead of by hash tables.
"""

import numpy as np

from st_common.runs import is_first

SHIFT = 32
MASK = (1 << SHIFT) - 1


def packed(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The keys of pairs, in the order of the pairs.

    Args:
        high: int[n], what keys sort by first; below 2**31, so that no key is negative.
        low: int[n], from 0 to below 2**32; a negative one would overwrite `high`.

    Returns:
        int64[n], not sorted.
    """
    keys: np.ndarray = (high.astype(np.int64, copy=False) << SHIFT) | low
    return keys


def swap_halves(keys: np.ndarray) -> np.ndarray:
    """The keys of the same pairs the other way round, int64[n]: `7 << 32 | 3` becomes `3 << 32 | 7`; not sorted."""
    return packed(keys & MASK, keys >> SHIFT)


def is_in(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each key is among others; bool[n].

    Args:
        keys: int64[n], in any order, repeats allowed.
        others: int64[m], ascending.

    Example:
        is_in([3, 4], [1, 3, 5]) = [True, False]
    """
    if not len(others):
        return np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(others, keys), len(others) - 1)
    is_among: np.ndarray = others[at] == keys
    return is_among


def without(keys: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """A sorted set less another; int64, ascending.

    Args:
        keys: int64, ascending, each once.
        gone: int64, ascending; those that are not in `keys` do nothing.

    Example:
        without([1, 3, 5], [3, 4]) = [1, 5]
    """
    if not len(gone) or not len(keys):
        return keys
    kept = np.ones(len(keys), bool)
    at = np.searchsorted(keys, gone)
    inside = at < len(keys)
    at = at[inside]
    kept[at[keys[at] == gone[inside]]] = False
    return keys[kept]


def differences(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What changed from one sorted set to another: the keys that left, and those that came.

    Args:
        old: int64, ascending, each once, from 0 to below 2**62 (a bit is needed to tell the two sets apart).
        new: int64, likewise.

    Returns:
        Two arrays of int64, ascending; they share no key.

    Example:
        differences([1, 3, 5], [3, 4, 5]) = [1], [4]
    """
    if not len(old) or not len(new):
        return old, new
    both = np.concatenate([old << 1, (new << 1) | 1])
    both.sort(kind="stable")  # two sorted runs: timsort merges them in one pass
    keys = both >> 1
    again = keys[1:] == keys[:-1]
    single = np.ones(len(keys), bool)
    single[1:] &= ~again
    single[:-1] &= ~again
    is_new = (both & 1).astype(bool)
    return keys[single & ~is_new], keys[single & is_new]


def merged(keys: np.ndarray, more: np.ndarray) -> np.ndarray:
    """The union of two sorted sets that have no key in common; int64, ascending.

    Args:
        keys: int64, ascending.
        more: int64, ascending. A key that is in both would stand there twice.

    Example:
        merged([1, 5], [3]) = [1, 3, 5]
    """
    if not len(more):
        return keys
    if not len(keys):
        return more
    both = np.concatenate([keys, more])
    both.sort(kind="stable")  # two sorted runs: timsort merges them in one pass
    return both


def unique(keys: np.ndarray) -> np.ndarray:
    """The keys sorted, each once: [5, 3, 5] gives [3, 5].

    `np.unique` hashes whole numbers, which takes ten times as long where most of them differ (NumPy 2.4).
    """
    keys = np.sort(keys)
    different: np.ndarray = keys[is_first(keys)]
    return different
