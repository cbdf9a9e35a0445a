"""What fences remember: who is in, and who is about to come or to go (SPEC X3, docs/adr/0024)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from st_common.operators.state.component import Layout, Numbers
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.object_rows import ObjectRows, layout_of, no_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits(ObjectRows):
    """One row per object and target that is in, or out with fixes in a row that say otherwise.

    `key` is `object << 32 | target`, sorted. `since` is the event time of entering, `NEVER` of what is out; `dwelt` (0
    or 1) says that DWELL was told. `against` counts the fixes in a row that speak against the state, the first of which
    was at `against_since` (`NEVER` for none).
    """

    LAYOUT: ClassVar[Layout] = layout_of("visits")

    since: np.ndarray = field(default_factory=no_numbers)
    dwelt: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    against: np.ndarray = field(default_factory=no_numbers)
    against_since: np.ndarray = field(default_factory=no_numbers)

    @property
    def is_in(self) -> np.ndarray:
        """Whether each row is of an object that is in; bool[n]."""
        return np.asarray(self.since != NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingVisits(Visits):
    """The same of fences on regions that move: the shard that judges the query has them, whosever objects they are of.

    Here `against` counts ticks in a row.
    """

    LAYOUT: ClassVar[Layout] = layout_of("moving_visits", owner=Numbers.QUERIES)
