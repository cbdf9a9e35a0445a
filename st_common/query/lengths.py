"""Lengths and speeds on a CRS whose unit is not the metre: they would silently be so many of that unit."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from st_common.query.complaint import Complaint
from st_common.query.frame import Frame
from st_common.query.plan import Plan
from st_common.query.region import Circle, MovingBox, MovingCircle, Region

if TYPE_CHECKING:
    from st_common.settings import StreamSettings

_SPEED = re.compile(r"\bspeed_mps\b", re.IGNORECASE)


def complaints_of_lengths(plan: Plan, stream: "StreamSettings") -> Iterator[Complaint]:
    """What of a plan is counted in metres, on a stream whose coordinates are counted in another unit."""
    if stream.unit_m == 1.0:
        return
    message = f"metres have no place on {stream.crs}, whose unit is {stream.unit_m:.10g} m"
    hint = "rectangles, polygons and KNN work in its coordinates; for lengths and speeds bring the stream into metres"
    for at in _in_metres(plan):
        yield Complaint(at=at, message=message, hint=hint)


def _in_metres(plan: Plan) -> Iterator[str]:
    """The clauses that count in metres, or in metres per second."""
    near = plan.join is not None and plan.join.predicate == "dwithin"
    counts = {
        "inside": plan.inside is not None and _has_length(plan.inside),
        "layer": near or (plan.pairs is not None and plan.pairs.distance_m is not None),
        "using": any(step.kind == "metres" for step in plan.transforms),
        "frame": plan.frame is not None and _frame_has_length(plan.frame),
        "where": plan.where is not None and _SPEED.search(plan.where) is not None,
        "select": any(_SPEED.search(text) for text in _selected(plan)) or _is_avgspd(plan),
    }
    yield from (at for at, counted in counts.items() if counted)


def _has_length(region: Region) -> bool:
    return isinstance(region, Circle | MovingCircle) or (isinstance(region, MovingBox) and region.metres)


def _frame_has_length(frame: Frame) -> bool:
    extents = [one for window in frame.sliding for one in (window.range, window.slide) if one is not None]
    return bool(frame.min_step_m) or any(one.by == "space" for one in extents) or any(map(_has_length, frame.regions))


def _selected(plan: Plan) -> list[str]:
    aggregate = plan.aggregate
    grouped = [aggregate.argument, aggregate.group] if aggregate is not None else []
    return [*(text for _, text in plan.columns), *(text for text in grouped if text)]


def _is_avgspd(plan: Plan) -> bool:
    return plan.aggregate is not None and plan.aggregate.function == "avgspd"
