"""The windows, transformations and options of a plan as text."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from st_common.query.comparing import Compare, Transform
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.grammar.words import number, text_literal
from st_common.query.plan import Plan

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"space": " m", "time": " s", "rows": ""}


def frame_text(frame: Frame) -> str:
    """The windows of a frame in brackets, each behind a blank."""
    windows = [_sliding(window) for window in frame.sliding]
    if frame.session_s is not None:
        windows.append(f"SESSION {number(frame.session_s)} s")
    windows += [f"RANGE BY {region.text()} RATTR SPACE" for region in frame.regions]
    return "".join(f" [{window}]" for window in windows)


def compare_text(compare: Compare) -> str:
    """COMPARE WITH and its box."""
    return f"COMPARE WITH {'NOT ' if compare.negative else ''}{compare.box.text()}"


def using_text(transforms: tuple[Transform, ...]) -> str:
    """USING and its steps."""
    return f"USING {', '.join(_step(transform) for transform in transforms)}"


def options_of(plan: Plan) -> Iterator[str]:
    """The options of WITH (...)."""
    if plan.order != "auto":
        yield f"plan = '{plan.order}'"
    if plan.frame is not None and plan.frame.full:
        yield "windows = 'full'"
    if plan.frame is not None and plan.frame.min_step_m:
        yield f"min_step = '{number(plan.frame.min_step_m)} m'"
    if plan.frame is not None and plan.frame.origin_s:
        yield f"origin = '{_moment(plan.frame.origin_s)}'"


def _sliding(window: Sliding) -> str:
    reach, slide = window.range, window.slide
    first = (
        f"ROWS {number(reach.amount)}"
        if reach.by == "rows"
        else f"RANGE BY {_extent(reach, 'RATTR')}"
    )
    if slide is None:
        return first
    if reach.by == slide.by == "rows":
        return f"{first}, SLIDE {number(slide.amount)}"
    return f"{first}, SLIDE BY {_extent(slide, 'SATTR')}"


def _extent(extent: Extent, attribute: str) -> str:
    return f"{number(extent.amount)}{_UNITS[extent.by]} {attribute} {extent.by.upper()}"


def _step(step: Transform) -> str:
    if step.kind == "box" and step.box is not None:
        return f"box{step.box.text()}"
    if step.kind == "key":
        return f"key({text_literal(step.text or '')})"
    if step.kind == "filter":
        value = f", {text_literal(step.text)}" if step.text is not None else ""
        within = f", {number(step.amount)} m" if step.amount else ""
        return f"filter({text_literal(step.name or '')}{value}{within})"
    if step.kind == "metres":
        return f"enlarge({number(step.amount)} m)"
    return f"enlarge_{step.kind}({number(step.amount)})"


def _moment(seconds: float) -> str:
    """A moment in ISO 8601; one between two microseconds, or of no year of the calendar, as seconds since 1970."""
    try:
        moment = _EPOCH + timedelta(microseconds=round(seconds * 1e6))
    except OverflowError:
        return f"{number(seconds)} s"
    exact = round(seconds * 1e6) / 1e6 == seconds
    return (
        moment.isoformat().replace("+00:00", "Z") if exact else f"{number(seconds)} s"
    )
