"""The conditions of many queries, each different one once, and which of them each query has."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from st_common.operators.arrays.numbered import numbered
from st_common.operators.expressions.conditions import Conditions, compile_conditions
from st_common.query.pair_columns import pair_names


@dataclass(frozen=True, kw_only=True)
class Predicates:
    """The conditions of some queries.

    Attributes:
        conditions: the different ones.
        of: int32[queries of the stream], the place of each one's among them, -1 without.
    """

    conditions: Conditions
    of: np.ndarray

    @cached_property
    def names(self) -> frozenset[str]:
        """The columns of pairs that the conditions name."""
        return frozenset(chain.from_iterable(map(pair_names, self.conditions.texts)))

    @property
    def empty(self) -> bool:
        """Whether nobody has a condition."""
        return not self.conditions.texts


def predicates_of(
    total: int, wheres: Mapping[int, str], found_so: Collection[int] = ()
) -> Predicates:
    """The conditions of some of so many queries.

    Args:
        total: how many queries there are.
        wheres: canonical SQL, by the query's number.
        found_so: the numbers of those that nothing but their condition can find.
    """
    texts = numbered(wheres.values())
    of = np.full(total, -1, np.int32)
    of[list(wheres)] = [texts[where] for where in wheres.values()]
    finding = frozenset(wheres[number] for number in found_so)
    conditions = compile_conditions(tuple(texts), finding)
    return Predicates(conditions=conditions, of=of)
