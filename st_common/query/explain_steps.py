"""Operators in words: regions, windows of CQL-S, transformations of BBoxDB."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from st_common.query.comparing import Compare, Transform
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Top, Value
from st_common.query.printed import number
from st_common.query.several import name_of_key

Stage = Literal["LOCATE", "EVALUATE", "SETTLE"]

STREAMS = {
    "istream": "only what is new goes out: +",
    "dstream": "only what is gone goes out: -",
    "rstream": "what stays is told as well, whenever something moved: 0",
}
"""CQL's streams, and what goes out."""

_WAYS = {"space": "of its way", "time": "of time", "rows": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operator: in which stage it works, what it does, and the tuples that are expected to go in and out."""

    stage: Stage
    operator: str
    detail: str
    tuples_in: float | None = None
    tuples_out: float | None = None


def frame_steps(frame: Frame, where: str | None) -> Iterator[Step]:
    """The windows of a frame, its regions, and the condition on the fixes in it (CQL-S: window, WHERE, then the rest).

    `where` None: every fix in the windows counts.
    """
    track = "the way of every object since its first fix"
    if frame.min_step_m:
        track += f", steps below {number(frame.min_step_m)} m count nothing"
    if any(
        extent.by == "space"
        for window in frame.sliding
        for extent in (window.range, window.slide)
        if extent
    ):
        yield Step(stage="EVALUATE", operator="track", detail=track)
    for window in frame.sliding:
        yield Step(
            stage="EVALUATE",
            operator="window",
            detail=_sliding(window, full=frame.full),
        )
    for region in frame.regions:
        yield Step(
            stage="EVALUATE", operator="window", detail=f"fixes in: {region.words()}"
        )
    if frame.session_s is not None:
        yield Step(
            stage="EVALUATE", operator="window", detail=_session(frame.session_s)
        )
    if where is not None:
        yield Step(stage="EVALUATE", operator="restrict", detail=f"fixes with {where}")


def windows_in_words(frame: Frame) -> Iterator[str]:
    """Where the fixes of a frame lie, window after window."""
    yield from (_sliding(window, full=frame.full) for window in frame.sliding)
    if frame.session_s is not None:
        yield _session(frame.session_s)
    yield from (f"the {region.words()}" for region in frame.regions)


def frame_in_words(frame: Frame) -> str:
    """What kind of window a frame is: window over space, over time and fixes, of a region."""
    words = {"space": "way", "time": "time", "rows": "fixes"}
    domains = dict.fromkeys(words[window.range.by] for window in frame.sliding)
    parts = [f"window over {' and '.join(domains)}"] if domains else []
    if frame.session_s is not None:
        parts.append("window of a session")
    return ", ".join([*parts, "window of a region"] if frame.regions else parts)


def compare_step(compare: Compare) -> Step:
    """The box that a fix must meet, or must not meet, by the box that is left of it (BBoxDB: tau and beta)."""
    must = "must not meet" if compare.negative else "must meet"
    detail = f"what is left {must} the {compare.box.words()}"
    return Step(stage="EVALUATE", operator="compare", detail=detail)


def _session(pause_s: float) -> str:
    return f"what each object did since it paused for more than {number(pause_s)} s"


def _sliding(window: Sliding, *, full: bool) -> str:
    detail = f"the last {_extent(window.range)} {_WAYS[window.range.by]}".rstrip()
    if window.slide is not None:
        on = f"{_extent(window.slide)} {_WAYS[window.slide.by]}".rstrip()
        detail += f", moving on every {on}"
    return f"{detail}, once all of it lies behind" if full else detail


def _extent(extent: Extent) -> str:
    unit = {"space": " m", "time": " s", "rows": " fixes"}[extent.by]
    return f"{number(extent.amount)}{unit}"


def transform_in_words(transform: Transform) -> str:
    """What a step does with the box of a fix."""
    if transform.kind == "box":
        return (
            f"only what meets the {transform.box.words()}"
            if transform.box is not None
            else ""
        )
    if transform.kind == "filter":
        within = f" within {number(transform.amount)} m" if transform.amount else ""
        return f"only what the filter {transform.name} lets through{within}: {transform.text}"
    return {
        "factor": f"boxes grow by the factor {number(transform.amount)}",
        "value": f"boxes grow by {number(transform.amount)} in coordinates",
        "metres": f"boxes grow by {number(transform.amount)} m",
        "key": f"only {transform.text}",
    }[transform.kind]


def layer_in_words(join: LayerJoin) -> str:
    """Which features of a layer an object is joined with."""
    how = {
        "intersects": "in it",
        "within": "in it and not on its border",
        "dwithin": f"within {number(join.distance_m)} m",
        "equals": f"{join.left} = {join.right}",
        "nearest": "",
    }[join.predicate]
    if join.left is not None and join.predicate != "equals":
        how += f" and {join.left} = {join.right}"
    if join.nearest is not None:
        how = (
            f"{how}, the {join.nearest} nearest"
            if how
            else f"the {join.nearest} nearest"
        )
    kinds = f" of kind {', '.join(join.kinds)}" if join.kinds else ""
    tags = "".join(f", {name} = {value}" for name, value in join.tags)
    said = f"layer {join.layer}{kinds}{tags}: {how}"
    return f"{_CHOOSES[join.how]}{said}"


_CHOOSES = {
    "inner": "",
    "semi": "objects with a feature, ",
    "anti": "objects without a feature, ",
    "left": "or without a feature, ",
}


def pairs_in_words(pairs: PairJoin) -> str:
    """Which other objects an object is paired with."""
    conditions = [f"equal {key}" for key in pairs.keys]
    if pairs.distance_m is not None:
        conditions.insert(0, f"within {number(pairs.distance_m)} m")
    if pairs.nearest is not None:
        conditions.append(f"the {pairs.nearest} nearest")
    return f"{_PAIRS[pairs.how]}{', '.join(conditions)}"


_PAIRS = {
    "inner": "with the other objects: ",
    "semi": "objects with another one: ",
    "anti": "objects without another one: ",
    "left": "with the other objects, or without one: ",
}


def aggregate_step(aggregate: Aggregate, *, framed: bool) -> Step:
    """What is counted or summed, of fixes where they are `framed`, else of members."""
    if aggregate.function == "avgspd":
        detail = "way over time between the fixes of each object, in metres per second"
        return Step(stage="EVALUATE", operator="average speed", detail=detail)
    if aggregate.function == "distinct":
        return Step(stage="EVALUATE", operator="distinct", detail=aggregate.group or "")
    values = aggregate.values or (aggregate,)
    counted = [_counted(value, framed=framed) for value in values]
    by = [name_of_key(text) for text in aggregate.grouped_by]
    detail = ", ".join(counted) + (f" for each {', '.join(by)}" if by else "")
    if aggregate.top is not None:
        detail += f"; {_greatest(aggregate, aggregate.top)}"
    return Step(stage="EVALUATE", operator="aggregate", detail=detail)


def _greatest(aggregate: Aggregate, top: Top) -> str:
    """Which groups are told."""
    if top.limit is None:
        return f"those with {top.having}"
    per = "" if top.per is None else f" for each {dict(aggregate.keys)[top.per]}"
    which = "greatest" if top.descending else "least"
    among = "" if top.having is None else f", among those with {top.having}"
    return f"the {top.limit} with the {which} {top.value}{per}{among}"


def _counted(value: Aggregate | Value, *, framed: bool) -> str:
    """What one value is of what."""
    if value.function == "count_distinct":
        return f"count of different {value.argument or 'objects'}"
    if isinstance(value, Value) and value.share is not None:
        return f"quantile {number(value.share)} of {value.argument}"
    return f"{value.function} {value.argument or ('fixes' if framed else 'members')}"
