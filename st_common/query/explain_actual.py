"""What `EXPLAIN ANALYZE` counted: the tuples that really went through the operators of a query (SPEC G10).

EVALUATE    select state = 'free'        20 in, 10 out        actual 1,203 in, 611 out
EVALUATE      inside box ..           1,000 in, 20 out        actual 50,000 in, 1,203 out
LOCATE          fixes of taxis           1,000 objects        actual 50,012 in, 50,000 out
"""

from collections.abc import Sequence
from dataclasses import dataclass

from st_common.query.explain_steps import Step
from st_common.query.order import Chosen
from st_common.query.plan import Plan

NOT_COUNTED = "not counted"
_MATCHED = ("inside", "select", "join", "exists", "not exists")


@dataclass(frozen=True, slots=True, kw_only=True)
class Actual:
    """What the step counted while it ran one query alone over all archived fixes of its stream.

    Attributes:
        fixes: fixes that came.
        located: those of them that counted: neither double nor filtered.
        probed: points that were looked up in an index of regions, conditions or features.
        matched: pairs of a point and the query that came out of it.
        satisfied: times that a fix satisfied the query: its object came in, or stayed in.
        ticks: ticks that were judged; 0 of a query that is judged fix by fix.
        touched: objects and pairs that were looked at there.
        came: rows `+` that were told; `went` rows `-`, `told_again` rows `0`.
        went: see above.
        told_again: see above.
        cpu_s: seconds of processor time, reading the fixes included.
        operator: which operator judges the query, in words.
        sharing: how many live queries of the stream that operator judges together, this one among them.
    """

    fixes: int
    located: int
    probed: int
    matched: int
    satisfied: int
    ticks: int
    touched: int
    came: int
    went: int
    told_again: int
    cpu_s: float
    operator: str
    sharing: int

    @property
    def rows(self) -> int:
        """Rows of changes of all signs."""
        return self.came + self.went + self.told_again


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Tuples that went into an operator and came out of it; None was not counted."""

    into: int | None = None
    out: int | None = None


def passed(
    steps: Sequence[Step], plan: Plan, order: Chosen | None, actual: Actual
) -> list[Passed]:
    """What went through each step, as far as the counters say it.

    Args:
        steps: from the bottom to the top, as `explain` has them.
        plan: the plan that they carry out.
        order: the order of selection and region, None where there is none to choose.
        actual: what was counted.

    Returns:
        For each step what went in and came out.
    """
    flows = [Passed() for _ in steps]
    matching = [n for n, step in enumerate(steps) if step.operator in _MATCHED]
    if matching and _is_matched(plan):
        between = _between(plan, order, actual, len(matching))
        into = [actual.located, *between]
        for at, n in enumerate(matching):
            out = actual.satisfied if n == matching[-1] else between[at]
            flows[n] = Passed(into=into[at], out=out)
    for n, step in enumerate(steps):
        if step.operator == "fixes":
            flows[n] = Passed(into=actual.fixes, out=actual.located)
        elif step.operator == "changes":
            flows[n] = Passed(out=actual.rows)
    return flows


def _is_matched(plan: Plan) -> bool:
    """Whether the counters of matching are of this plan's members, fix by fix."""
    return not plan.by_ticks and not plan.tells_events and plan.outer is None


def _between(
    plan: Plan, order: Chosen | None, actual: Actual, operators: int
) -> list[int | None]:
    """What goes from each matching operator to the next; None where the step does both at once."""
    # A join takes place between region and condition, and boxes and filters are tested with the region.
    at_once = plan.join is not None or plan.compare is not None or plan.transforms
    if operators != 2 or order is None or at_once:
        return [None] * (operators - 1)
    return [actual.probed if order == "select_first" else actual.matched]


def actual_lines(actual: Actual) -> list[str]:
    """What was counted of the whole query, for people."""
    counted = f"over {actual.fixes:,} archived fixes, this query alone, {actual.cpu_s:,.2f} s of CPU with reading"
    if actual.ticks:
        counted += (
            f"; {actual.ticks:,} ticks, {actual.touched:,} objects and pairs looked at"
        )
    told = f"{actual.came:,} +, {actual.went:,} -"
    if actual.told_again:
        told += f", {actual.told_again:,} 0"
    queries = "query" if actual.sharing == 1 else "queries"
    return [
        f"actual    {counted}",
        f"told      {told}",
        f"shared    one operator judges {actual.sharing:,} {queries} of this stream: {actual.operator}",
    ]


def in_words(flow: Passed) -> str:
    """The actual tuples of a step for people; what was not counted is said."""
    if flow.into is None and flow.out is None:
        return f"actual {NOT_COUNTED}"
    if flow.into is None:
        return f"actual {flow.out:,} out"
    out = NOT_COUNTED if flow.out is None else f"{flow.out:,}"
    return f"actual {flow.into:,} in, {out} out"
