"""Which of two operators stands below: the selection (`where`) or the spatial operator (GPAC section 6.1, SPEC G10).

A tuple goes through the lower operator, and what the lower one lets through goes through the upper one. Queries with
the same selection share its evaluation where it stands below, and their regions are looked up together:

    of 1,000 fixes, two queries with the same selection of 5 %, each with a region of 32 %
                      evaluated    looked up    pairs
    region first            640        1,000      640       a selection above is tested for each pair
    selection first       1,000           50       32
"""

from dataclasses import dataclass
from typing import Literal

Chosen = Literal["space_first", "select_first"]

# Nanoseconds, as `python -m bench.placing` fits them (docs/performance.md); only how they compare matters.
EVALUATION_NS = 60.0
"""What a selection costs of a fix, or of a pair of a fix and a query."""

PROBE_NS = 5.0
"""What it costs to look up a fix in the index of all regions."""

HIT_NS = 130.0
"""What a pair of a fix and a query costs that comes out of the index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Tuples of one evaluation: through the selection, looked up in the index, out of it as pairs, and out of both."""

    evaluated: float
    probed: float
    pairs: float
    out: float

    @property
    def tuples(self) -> float:
        """The tuples that go through the pipeline, as the paper counts them."""
        return self.evaluated + self.probed

    @property
    def cost_ns(self) -> float:
        """The work."""
        return (
            self.evaluated * EVALUATION_NS
            + self.probed * PROBE_NS
            + self.pairs * HIT_NS
        )


def choose(
    selectivity_where: float | None,
    selectivity_space: float | None,
    *,
    alike: int = 1,
) -> Chosen:
    """The cheaper order.

    What is unknown (None) leaves the spatial operator below, where the paper has it; so does a tie.

    Args:
        selectivity_where: the share of fixes that satisfy the selection (0 to 1).
        selectivity_space: the share of fixes in a region, on average of all queries with this selection.
        alike: how many queries have this selection.
    """
    if selectivity_where is None or selectivity_space is None:
        return "space_first"
    first, second = (
        flow(1.0, order, selectivity_where, selectivity_space, alike=alike)
        for order in ("space_first", "select_first")
    )
    return "space_first" if first.cost_ns <= second.cost_ns else "select_first"


def flow(
    objects: float,
    order: str,
    selectivity_where: float,
    selectivity_space: float,
    *,
    alike: int = 1,
) -> Flow:
    """The estimated tuples when `objects` are looked at in this order by queries with the same selection.

    The selection and the regions are taken as independent. See `choose` for the arguments.
    """
    within = objects * selectivity_space * alike
    out = within * selectivity_where
    if order == "select_first":
        probed = selectivity_where * objects
        return Flow(evaluated=objects, probed=probed, pairs=out, out=out)
    return Flow(evaluated=within, probed=objects, pairs=within, out=out)
