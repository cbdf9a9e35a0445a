"""DETECT: which events at a border a query tells of, and the options that say what counts as a crossing (SPEC X3)."""

from functools import partial

from sqlglot import exp

from st_common.query.fence import EVENTS, Event, Fence
from st_common.query.grammar.nodes import (
    REFUSED,
    Detect,
    Detected,
    Refused,
    Span,
    span_of,
)
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.options import Chosen
from st_common.query.lowering.quantity import duration

_A_FENCE = "INSIDE region DETECT ENTER, EXIT"


def fence_of(select: exp.Expr, chosen: Chosen, gathered: Gathered) -> Fence | None:
    """The fence of DETECT and its options; None without one. An event that is wrong is gathered."""
    detect: Detect | None = select.args.get("detect")
    if detect is None:
        if "DETECT" not in select.meta.get(REFUSED, ()):
            alone = "DETECT, and there is none"
            _refuse_options(chosen.of_fence, alone, _A_FENCE, gathered)
            if select.args.get("lasting") is None:
                neither = "DETECT and of FOR, and there is neither"
                either = f"{_A_FENCE}, or WHERE condition FOR 30 s"
                _refuse_options(chosen.of_gap, neither, either, gathered)
        return None
    seen: dict[Event, float | None] = {}
    for one in detect.expressions:
        gathered.attempt(partial(_detect, one, seen), None)
    return Fence(
        events=tuple(seen),
        dwell_s=seen.get("dwell"),
        enter_after=chosen.enter_after,
        exit_after=chosen.exit_after,
        hysteresis_m=chosen.hysteresis_m,
        max_gap_s=chosen.max_gap_s,
        restart=chosen.restart,
    )


def _refuse_options(span: Span | None, of: str, hint: str, gathered: Gathered) -> None:
    """An option that stands in a query without the clause that it is of."""
    if span is None:
        return
    message = f"this is an option of {of}"
    gathered.found.append(Refused(message, span, hint))


def _detect(one: Detected, seen: dict[Event, float | None]) -> None:
    """Takes an event, with how long a visit lasts where it is DWELL."""
    name = next(event for event in EVENTS if event == one.this.name)
    if name in seen:
        hint = "register one query for each time" if name == "dwell" else ""
        raise Refused(f"{name.upper()} stands there twice", span_of(one), hint)
    seen[name] = None  # also where its time is wrong: only that is told
    lasting = one.args.get("expression")
    if lasting is not None:
        seen[name] = duration(lasting, "a visit")
