"""Rows that an operator remembers by object and target: visits of fences, incidents.

object 7, target 3, since ..      key 7 << 32 | 3
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.state.component import Keyed, Layout, Numbers


def no_numbers() -> np.ndarray:
    """A column without rows; int64[0]."""
    return np.empty(0, np.int64)


def layout_of(name: str, *, owner: Numbers = Numbers.OBJECTS) -> Layout:
    """The layout of rows by object and target.

    Args:
        name: under which they are stored.
        owner: whose shard has a row: that of the object, or that of the query.
    """
    return Layout(
        name=name,
        numbers={"key": (Numbers.OBJECTS, Numbers.TARGETS)},
        order=("key",),
        identity=("key",),
        owner=owner,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRows(Keyed):
    """One row per object and target; operators add what they remember of these.

    Attributes:
        key: int64[n], `object << 32 | target`, ascending.
    """

    LAYOUT: ClassVar[Layout]

    key: np.ndarray = field(default_factory=no_numbers)

    @property
    def object(self) -> np.ndarray:
        """The number of the object of each row."""
        return self.key >> SHIFT

    @property
    def target(self) -> np.ndarray:
        """The number of the target of each row."""
        return self.key & MASK
