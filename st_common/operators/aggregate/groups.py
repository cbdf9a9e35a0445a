"""The values of aggregates, one per group, as they were told last (SPEC G9)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from st_common.operators.state.component import NONE, Keyed, Layout, Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups(Keyed):
    """The groups of aggregates with the value of each, as they were told last; sorted by target.

    Attributes:
        target: int64[n], a query and the text of its group, as a partner.
        value: float64[n], NaN for a group without one (`DISTINCT`, null, or several).
        text: int64[n], of several values what the group shows, as the number of a text among the partners; else `NONE`,
            as everywhere where it is not given.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="groups",
        numbers={"target": (Numbers.TARGETS,), "text": (Numbers.PARTNERS,)},
        order=("target",),
        identity=("target",),
        later={"text": NONE},
    )

    target: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    value: np.ndarray = field(default_factory=lambda: np.empty(0))
    text: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if len(self.text) != len(self.target):
            object.__setattr__(self, "text", np.full(len(self.target), NONE))

    def among(self, targets: np.ndarray) -> "Groups":
        """The groups of some targets (int64, in any order)."""
        return self.take(np.isin(self.target, targets))
