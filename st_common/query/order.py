"""Which of two operators stands below: the selection (`where`) or the spatial operator (GPAC section 6.1, SPEC G10).

A tuple goes through the lower operator, and what the lower one lets through goes through the upper one. Testing a
condition and testing a place cost differently, so that the better order is not simply the more selective one first.
"""

from dataclasses import dataclass
from typing import Literal

Chosen = Literal["space_first", "select_first"]

PREDICATE_COST = 1.0
"""What one evaluation of a selection costs."""

PROBE_COST = 0.68 / 0.95
"""What one test of a place costs beside it.

In the paper's Fig. 9 a selection of 5 % and a region cross over at a selectivity of the region of 32 %: there
`1 + 0.05 p = p + 0.32`, which is p = 0.68 / 0.95.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Tuples of one evaluation: through the selection, through the spatial operator, and out of both."""

    evaluated: float
    probed: float
    out: float

    @property
    def tuples(self) -> float:
        """The tuples that go through the pipeline, as the paper counts them."""
        return self.evaluated + self.probed

    @property
    def cost(self) -> float:
        """The work, in evaluations of the selection."""
        return self.evaluated * PREDICATE_COST + self.probed * PROBE_COST


def choose(selectivity_where: float | None, selectivity_space: float | None) -> Chosen:
    """The cheaper order for these selectivities (0 to 1).

    What is unknown (None) leaves the spatial operator below, where the paper has it; so does a tie.
    """
    if selectivity_where is None or selectivity_space is None:
        return "space_first"
    first, second = (
        flow(1.0, order, selectivity_where, selectivity_space)
        for order in ("space_first", "select_first")
    )
    return "space_first" if first.cost <= second.cost else "select_first"


def flow(
    objects: float, order: str, selectivity_where: float, selectivity_space: float
) -> Flow:
    """The estimated tuples when `objects` are looked at in this order; the two conditions are taken as independent."""
    out = objects * selectivity_where * selectivity_space
    if order == "select_first":
        return Flow(evaluated=objects, probed=selectivity_where * objects, out=out)
    return Flow(evaluated=selectivity_space * objects, probed=objects, out=out)
