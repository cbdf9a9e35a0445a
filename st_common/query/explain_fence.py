"""A fence in words: what it tells of, and what it takes for a crossing of its border."""

from st_common.query.explain_steps import Step
from st_common.query.fence import Debounce, Event, Fence
from st_common.query.plan import Plan
from st_common.query.printed import number


def fence_step(fence: Fence, *, by_ticks: bool = False) -> Step:
    """What a fence tells of, and what it takes for a crossing of its border; `by_ticks` where that moves."""
    of = "ticks" if by_ticks else "fixes"
    parts = [f"tells {', '.join(_event(fence, event) for event in fence.events)}"]
    if fence.enter_after != Debounce():
        parts.append(f"in after {in_a_row(fence.enter_after, of)} inside")
    margin = f" {number(fence.hysteresis_m)} m" if fence.hysteresis_m else ""
    if fence.exit_after != Debounce() or margin:
        where = f"more than{margin} away" if margin else "outside"
        parts.append(f"out after {in_a_row(fence.exit_after, of)} {where}")
    if fence.max_gap_s is not None and "cross" in fence.events:
        parts.append(f"no CROSS over a gap above {number(fence.max_gap_s)} s")
    if fence.restart:
        parts.append("begins anew where it replaces another fence")
    return Step(stage="EVALUATE", operator="fence", detail="; ".join(parts))


def in_a_row(debounce: Debounce, of: str = "fixes") -> str:
    """`a fix`, `2 fixes in a row`, `fixes of 10 s`, `2 fixes in a row over 10 s`; or of ticks."""
    lasting = f"{number(debounce.seconds)} s"
    if debounce == Debounce():
        return "a fix" if of == "fixes" else "a tick"
    if debounce.fixes == 1:
        return f"{of} of {lasting} in a row"
    over = f" over {lasting}" if debounce.seconds else ""
    return f"{debounce.fixes} {of} in a row{over}"


def _event(fence: Fence, event: Event) -> str:
    if event != "dwell":
        return event.upper()
    return f"DWELL after {number(fence.dwell_s or 0.0)} s"


def signs_told(plan: Plan) -> str:
    """The signs of what a query tells."""
    if plan.fence is None:
        return f"+ and -{', 0 for members that stay' if plan.emit == 'every' else ''}"
    if not plan.fence.has_answer:
        return "0, for there is no answer without both ENTER and EXIT"
    others = len(plan.fence.events) > len(("enter", "exit"))
    return f"+ for ENTER and - for EXIT{', 0 for other events' if others else ''}"
