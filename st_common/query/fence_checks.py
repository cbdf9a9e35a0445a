"""What a fence cannot be, and what it cannot stand beside (SPEC X3)."""

import math
from collections.abc import Iterator

from st_common.query.complaint import Complaint
from st_common.query.fence import Debounce, Fence
from st_common.query.plan import Plan
from st_common.regions.region import MovingRegion

_LONGEST_S = 3.2e9  # a hundred years, as of all times in a query


def complaints_of_fence(plan: Plan) -> Iterator[Complaint]:
    """What is wrong with a plan's fence; nothing without one."""
    if plan.fence is None:
        return
    yield from _border(plan)
    yield from _together(plan)
    yield from _of_itself(plan.fence)


def _border(plan: Plan) -> Iterator[Complaint]:
    """A fence has one border: that of a region that stands still, or those of a layer's features."""
    if isinstance(plan.inside, MovingRegion):
        yield Complaint(
            at="inside",
            message="DETECT at a region that goes with an object is planned",
            hint="without DETECT the query tells who comes in and who leaves",
        )
    if plan.inside is None and plan.join is None:
        yield Complaint(
            at="detect",
            message="DETECT needs INSIDE, or a JOIN with a layer",
            hint="INSIDE region DETECT ENTER, EXIT",
        )
    if plan.inside is not None and plan.join is not None:
        yield Complaint(
            at="detect",
            message="DETECT at a region and at the features of a layer is ambiguous",
            hint="leave out INSIDE or JOIN",
        )
    if plan.join is not None:
        yield from _of_features(plan)


def _of_features(plan: Plan) -> Iterator[Complaint]:
    if plan.join is not None and plan.join.predicate == "equals":
        yield Complaint(
            at="layer",
            message="DETECT needs a join by place, not one by key",
            hint="ON ST_Intersects(stream, layer)",
        )
    events = () if plan.fence is None else plan.fence.events
    if "outside" in events:
        yield Complaint(
            at="detect",
            message="OUTSIDE and JOIN exclude each other: outside of which feature?",
            hint="EXIT tells of each feature that an object leaves",
        )


def _together(plan: Plan) -> Iterator[Complaint]:
    excluded = {
        "KNN": ("knn", plan.neighbours is not None),
        "a JOIN of the stream with itself": ("layer", plan.pairs is not None),
        "a window in brackets": ("frame", plan.frame is not None),
        "WINDOW": ("window", plan.window is not None),
        "an aggregate": ("select", plan.aggregate is not None),
        "USING": ("using", bool(plan.transforms)),
        "COMPARE WITH": ("compare", plan.compare is not None),
        "EMIT EVERY": ("emit", plan.emit == "every"),
        plan.emit.upper(): ("emit", plan.emit not in ("changes", "every")),
        "the option plan": ("options", plan.order != "auto"),
    }
    for what, at in ((what, at) for what, (at, given) in excluded.items() if given):
        hint = "DETECT says itself what is told" if at == "emit" else _EACH
        message = f"{what} and DETECT exclude each other"
        yield Complaint(at=at, message=message, hint=hint)


_EACH = "register one query for each"


def _of_itself(fence: Fence) -> Iterator[Complaint]:
    if not fence.events:
        message, hint = "DETECT needs an event", "DETECT ENTER, EXIT"
        yield Complaint(at="detect", message=message, hint=hint)
    if ("dwell" in fence.events) != (fence.dwell_s is not None):
        message = "DWELL needs a time, and no other event has one"
        yield Complaint(at="detect", message=message, hint="DETECT DWELL 5 min")
    times = {"DWELL": fence.dwell_s, "max_gap": fence.max_gap_s}
    for name in (name for name, value in times.items() if not _is_time(value)):
        at = "detect" if name == "DWELL" else "options"
        message = f"{name} is a time above 0, and not {times[name]:g} s"
        yield Complaint(at=at, message=message, hint="such as 5 min")
    if not (math.isfinite(fence.hysteresis_m) and fence.hysteresis_m >= 0):
        message = f"a hysteresis is 0 or more, and not {fence.hysteresis_m:g} m"
        yield Complaint(at="options", message=message, hint="hysteresis = 30 m")
    for name in ("enter_after", "exit_after"):
        if not _is_row(getattr(fence, name)):
            message = f"{name} is at least 1 fix, and a time that is not negative"
            yield Complaint(at="options", message=message, hint=f"{name} = 2 fixes")


def _is_time(seconds: float | None) -> bool:
    return seconds is None or 0 < seconds <= _LONGEST_S


def _is_row(debounce: Debounce) -> bool:
    return debounce.fixes >= 1 and 0 <= debounce.seconds <= _LONGEST_S
