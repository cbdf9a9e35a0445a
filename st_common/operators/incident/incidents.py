"""What incidents remember: those that are open, and conditions that hold but not long enough yet (SPEC X8)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from st_common.operators.state.component import Layout
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.object_rows import ObjectRows, layout_of, no_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents(ObjectRows):
    """One row per object and target with an open incident, or with fixes in a row that may become one.

    `key` is `object << 32 | target`, sorted. `begun` is the event time at which the incident begins, `NEVER` of what is
    none yet; that has `fixes` in a row that satisfy the condition, the first of them at `since`. `worst` is the worst
    value so far, NaN where there is none.
    """

    LAYOUT: ClassVar[Layout] = layout_of("incidents")

    begun: np.ndarray = field(default_factory=no_numbers)
    fixes: np.ndarray = field(default_factory=no_numbers)
    since: np.ndarray = field(default_factory=no_numbers)
    worst: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def is_open(self) -> np.ndarray:
        """Whether each row is an incident; bool[n]."""
        return np.asarray(self.begun != NEVER)
