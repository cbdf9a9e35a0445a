"""What a fence cannot be (SPEC X3); what it cannot stand beside is said by its node."""

import math
from collections.abc import Iterator

from st_common.query.complaint import Complaint
from st_common.query.fence import Debounce, Fence

_LONGEST_S = 3.2e9  # a hundred years, as of all times in a query


def complaints_of_fence(fence: Fence) -> Iterator[Complaint]:
    """What is wrong with the values of a fence."""
    if not fence.events:
        message, hint = "DETECT needs an event", "DETECT ENTER, EXIT"
        yield Complaint(at="detect", message=message, hint=hint)
    if ("dwell" in fence.events) != (fence.dwell_s is not None):
        message = "DWELL needs a time, and no other event has one"
        yield Complaint(at="detect", message=message, hint="DETECT DWELL 5 min")
    times = {"DWELL": fence.dwell_s, "max_gap": fence.max_gap_s}
    for name in (name for name, value in times.items() if not is_time(value)):
        at = "detect" if name == "DWELL" else "options"
        message = f"{name} is a time above 0, and not {times[name]:g} s"
        yield Complaint(at=at, message=message, hint="such as 5 min")
    if not (math.isfinite(fence.hysteresis_m) and fence.hysteresis_m >= 0):
        message = f"a hysteresis is 0 or more, and not {fence.hysteresis_m:g} m"
        yield Complaint(at="options", message=message, hint="hysteresis = 30 m")
    for name in ("enter_after", "exit_after"):
        if not is_row(getattr(fence, name)):
            message = f"{name} is at least 1 fix, and a time that is not negative"
            yield Complaint(at="options", message=message, hint=f"{name} = 2 fixes")


def is_time(seconds: float | None) -> bool:
    """Whether a time of a query is one: above 0, and not above a hundred years; None is."""
    return seconds is None or 0 < seconds <= _LONGEST_S


def is_row(debounce: Debounce) -> bool:
    """Whether a row of fixes is one: a fix at least, and a time that is not negative."""
    return debounce.fixes >= 1 and 0 <= debounce.seconds <= _LONGEST_S
