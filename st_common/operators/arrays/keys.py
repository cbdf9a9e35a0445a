"""Sets of pairs as sorted int64 keys: two numbers below 2**32 packed into one."""

import numpy as np

from st_common.runs import is_first

SHIFT = 32
MASK = (1 << SHIFT) - 1


def packed(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The keys of pairs, in their order."""
    keys: np.ndarray = (high.astype(np.int64, copy=False) << SHIFT) | low
    return keys


def swap_halves(keys: np.ndarray) -> np.ndarray:
    """The keys of the same pairs the other way round, not sorted."""
    return packed(keys & MASK, keys >> SHIFT)


def is_in(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each of the keys whether it is among the sorted others; bool[n]."""
    if not len(others):
        return np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(others, keys), len(others) - 1)
    is_among: np.ndarray = others[at] == keys
    return is_among


def without(keys: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """The sorted keys that are not among the sorted `gone`."""
    if not len(gone) or not len(keys):
        return keys
    kept = np.ones(len(keys), bool)
    at = np.searchsorted(keys, gone)
    inside = at < len(keys)
    at = at[inside]
    kept[at[keys[at] == gone[inside]]] = False
    return keys[kept]


def differences(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The keys of one sorted set that the other has not: what left, and what came. Keys are below 2**62."""
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
    """Two sorted sets without common keys as one."""
    if not len(more):
        return keys
    if not len(keys):
        return more
    both = np.concatenate([keys, more])
    both.sort(kind="stable")  # two sorted runs: timsort merges them in one pass
    return both


def unique(keys: np.ndarray) -> np.ndarray:
    """The keys sorted, each once."""
    keys = np.sort(keys)
    different: np.ndarray = keys[is_first(keys)]
    return different
