"""Rows by the group that each is of, such as features by their region."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def rank_in_group(groups: Ints) -> Ints:
    """The place of each row among the rows of its group, in their order."""
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    rank = np.empty(len(groups), np.int64)
    rank[order] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def groups_of(groups: Ints) -> list[tuple[int, Ints]]:
    """The groups that occur, each with its rows."""
    order = np.argsort(groups, kind="stable")
    ids, starts = np.unique(groups[order], return_index=True)
    return list(
        zip(ids.tolist(), np.split(order, starts[1:])[: len(ids)], strict=True)
    )  # no rows: one empty part
