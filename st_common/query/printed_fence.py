"""A fence as text: DETECT with its events, and the options of WITH that belong to it."""

from collections.abc import Iterator

from st_common.query.fence import Debounce, Event, Fence
from st_common.query.grammar.words import number


def detect_text(fence: Fence) -> str:
    """DETECT and its events: `DETECT ENTER, EXIT, DWELL 300 s`."""
    return f"DETECT {', '.join(_event(fence, event) for event in fence.events)}"


def fence_options_of(fence: Fence | None) -> Iterator[str]:
    """The options of WITH (...) that are not as they are without being said; none without a fence."""
    if fence is None:
        return
    for name in ("enter_after", "exit_after"):
        if (debounce := getattr(fence, name)) != Debounce():
            yield f"{name} = {debounce_text(debounce)}"
    if fence.hysteresis_m:
        yield f"hysteresis = {number(fence.hysteresis_m)} m"
    if fence.max_gap_s is not None:
        yield f"max_gap = {number(fence.max_gap_s)} s"
    if fence.restart:
        yield "visits = 'anew'"


def debounce_text(debounce: Debounce) -> str:
    """`2 fixes`, `10 s`, or `2 fixes 10 s`."""
    fixes = f"{debounce.fixes} fix{'es' if debounce.fixes > 1 else ''}"
    lasting = f"{number(debounce.seconds)} s"
    if not debounce.seconds:
        return fixes
    return lasting if debounce.fixes == 1 else f"{fixes} {lasting}"


def _event(fence: Fence, event: Event) -> str:
    if event != "dwell":
        return event.upper()
    return f"DWELL {number(fence.dwell_s or 0.0)} s"
