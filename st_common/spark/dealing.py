"""Who of some tasks answers for which regions of a layer: each of them finds the same, by itself."""

from functools import lru_cache

import numpy as np

_WORTH_A_COPY = 1024
"""From so many rows on a region that many lie in is asked of several tasks."""


@lru_cache(maxsize=64)
def dealt(weights: tuple[int, ...], members: int) -> tuple[int, ...]:
    """The member that has each region: the heaviest first, each to whoever has the least.

        weights 5, 3, 3 for 2 members:  0, 1, 1

    Args:
        weights: of the regions.
        members: how many there are.
    """
    loads, owner = np.zeros(members), np.zeros(len(weights), np.int64)
    for region in sorted(range(len(weights)), key=lambda one: (-weights[one], one)):
        owner[region] = loads.argmin()
        loads[owner[region]] += weights[region]
    return tuple(owner.tolist())


def copies_of(rows: int, *, of: int, members: int) -> int:
    """How many members share in the rows of one region, which then each have a copy of it.

    One, unless the rows are many, and as much as the work of two members or more.

    Args:
        rows: that ask for the region.
        of: how many rows ask for any.
        members: how many there are.
    """
    if rows < _WORTH_A_COPY:
        return 1
    return max(rows * members // of, 1)
