"""What an object can be in the answer of: a query, or a query together with a partner."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

NO_PARTNER = -1
_FEW = 1 << 14  # targets that are sorted faster than a table of hashes is made
_SEARCHED = 1 << 10  # keys that are searched faster than such a table is made


@dataclass(frozen=True)
class Targets:
    """Numbered pairs of a query and a partner; only ever appended to.

    Attributes:
        query: int64[n], by number of the target, the number of its query.
        partner: int64[n], the number of its partner, `NO_PARTNER` without.
    """

    query: np.ndarray
    partner: np.ndarray

    @staticmethod
    def empty() -> "Targets":
        """No targets."""
        return Targets(np.empty(0, np.int64), np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def _index(self) -> "pd.Index[int]":
        index: pd.Index[int] = pd.Index(_keys(self.query, self.partner))
        return index

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        keys = _keys(self.query, self.partner)
        order = np.argsort(keys, kind="stable")
        # One more than there are, for what is greater than all.
        return np.append(keys[order], -1), np.append(order, -1)

    def _find(self, keys: np.ndarray) -> np.ndarray:
        """The number of each key, -1 without one. A table of hashes takes longer to make than few are to search."""
        if len(self) > _FEW or len(keys) > _SEARCHED:
            numbers: np.ndarray = self._index.get_indexer(pd.Index(keys)).astype(
                np.int64
            )
            return numbers
        known, order = self._sorted
        at = np.searchsorted(known[:-1], keys)
        return np.where(known[at] == keys, order[at], -1)

    def number(
        self, query: np.ndarray, partner: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The numbers of pairs, known and new; these targets stay as they are.

        Args:
            query: int64[n].
            partner: int64[n], `NO_PARTNER` without.

        Returns:
            int64[n], the numbers: new pairs are numbered on from `len(self)`. Then the queries and the partners of the
            new ones, in the order of their numbers, for `with_new`.

        Example:
            with one known target (4, none), the pairs (4, none), (4, 2), (5, none) have numbers 0, 1, 2;
            new are queries [4, 5] with partners [2, none]
        """
        if not len(query):
            return query, query, query
        keys = _keys(query, partner)
        numbers = self._find(keys)
        missing = numbers < 0
        if not missing.any():
            return numbers, query[:0], partner[:0]
        _, first, inverse = np.unique(
            keys[missing], return_index=True, return_inverse=True
        )
        numbers[missing] = len(self) + inverse
        return numbers, query[missing][first], partner[missing][first]

    def with_new(self, query: np.ndarray, partner: np.ndarray) -> "Targets":
        """These targets and more, as `number` gave them: different ones, none of them known."""
        if not len(query):
            return self
        return Targets(
            np.concatenate([self.query, query]), np.concatenate([self.partner, partner])
        )


def _keys(query: np.ndarray, partner: np.ndarray) -> np.ndarray:
    # + 1: NO_PARTNER is -1, and would set all bits.
    keys: np.ndarray = (query << 32) | (partner + 1)
    return keys
