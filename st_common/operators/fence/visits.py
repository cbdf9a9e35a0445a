"""What fences remember: who is in, and who is about to come or to go (SPEC X3, docs/adr/0024)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.state.component import Keyed, Layout, Numbers
from st_common.operators.state.fixes import NEVER


def _ints() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits(Keyed):
    """One row per object and target that is in, or out with fixes in a row that say otherwise.

    `key` is `object << 32 | target`, sorted. `since` is the event time of entering, `NEVER` of what is out; `dwelt` (0
    or 1) says that DWELL was told. `against` counts the fixes in a row that speak against the state, the first of which
    was at `against_since` (`NEVER` for none).
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="visits",
        numbers={"key": (Numbers.OBJECTS, Numbers.TARGETS)},
        order=("key",),
        identity=("key",),
        owner=Numbers.OBJECTS,
    )

    key: np.ndarray = field(default_factory=_ints)
    since: np.ndarray = field(default_factory=_ints)
    dwelt: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    against: np.ndarray = field(default_factory=_ints)
    against_since: np.ndarray = field(default_factory=_ints)

    @property
    def object(self) -> np.ndarray:
        """The number of the object of each row."""
        return self.key >> SHIFT

    @property
    def target(self) -> np.ndarray:
        """The number of the target of each row."""
        return self.key & MASK

    @property
    def is_in(self) -> np.ndarray:
        """Whether each row is of an object that is in; bool[n]."""
        return np.asarray(self.since != NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingVisits(Visits):
    """The same of fences on regions that move: the shard that judges the query has them, whosever objects they are of.

    Here `against` counts ticks in a row.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="moving_visits",
        numbers={"key": (Numbers.OBJECTS, Numbers.TARGETS)},
        order=("key",),
        identity=("key",),
        owner=Numbers.QUERIES,
    )
