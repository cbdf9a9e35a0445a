"""What incidents remember: those that are open, and conditions that hold but not long enough yet (SPEC X8)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.state.component import Keyed, Layout, Numbers
from st_common.operators.state.fixes import NEVER


def _ints() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents(Keyed):
    """One row per object and target with an open incident, or with fixes in a row that may become one.

    `key` is `object << 32 | target`, sorted. `begun` is the event time at which the incident begins, `NEVER` of what is
    none yet; that has `fixes` in a row that satisfy the condition, the first of them at `since`. `worst` is the worst
    value so far, NaN where there is none.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="incidents",
        numbers={"key": (Numbers.OBJECTS, Numbers.TARGETS)},
        order=("key",),
        identity=("key",),
        owner=Numbers.OBJECTS,
    )

    key: np.ndarray = field(default_factory=_ints)
    begun: np.ndarray = field(default_factory=_ints)
    fixes: np.ndarray = field(default_factory=_ints)
    since: np.ndarray = field(default_factory=_ints)
    worst: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def object(self) -> np.ndarray:
        """The number of the object of each row."""
        return self.key >> SHIFT

    @property
    def target(self) -> np.ndarray:
        """The number of the target of each row."""
        return self.key & MASK

    @property
    def is_open(self) -> np.ndarray:
        """Whether each row is an incident; bool[n]."""
        return np.asarray(self.begun != NEVER)
