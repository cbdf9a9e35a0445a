"""Frames as the queries of a shard have them: numbers for all windows at once (CQL-S section 3.2, SPEC W2-W5)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.arrays.numbered import numbered
from st_common.operators.matching.query_set import QuerySet, compile_queries
from st_common.operators.state.intern import Sought
from st_common.operators.state.registered import Registered
from st_common.query.comparing import Transform
from st_common.query.frame import Extent, Frame
from st_common.query.plan import Plan
from st_common.regions.registry import Region

SPACE, TIME, ROWS, NONE = 0, 1, 2, -1
_DOMAIN = {"space": SPACE, "time": TIME, "rows": ROWS}
_UNITS = {"space": 1e6, "time": 1e6, "rows": 1.0}  # micrometres, microseconds, fixes


_ONE_OBJECT = re.compile(r"object = '((?:[^']|'')*)'", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSpecs:
    """The frames of f queries, each with at most W windows (CQL-S section 3.2).

    Sizes are in micrometres, microseconds or fixes, by their domain: SPACE, TIME or ROWS.

    Attributes:
        numbers: int64[f], numbers of the queries.
        place: int64[queries], the place of each query among these, NONE without a frame.
        slide_by: int64[f, W], the domain of the slide, NONE where there is no such window.
        slide: int64[f, W], its size, 0 for a window that moves with every fix.
        range_by: int64[f, W], the domain of the range.
        range: int64[f, W], its size.
        origin: int64[f], where slides of time are counted from, in microseconds.
        full: bool[f], only full ranges are told.
        min_step: int64[f], micrometres: shorter legs count nothing; 0 for none.
        seconds: float64[f], the first range of time, NaN without.
        restricted: bool[f], who counts now is asked of the last fixes.
        by_object: bool[f], each group is one object.
        session: int64[f], microseconds: the pause that ends a session; 0 for a frame without one.
        outlives: bool[f], all ranges are of time or of count: fixes stay when their object is gone or silent (SPEC P1).
        rows: the queries that say which fixes are rows.
        regions: by frame what is to be met beside the first region.
        ids: the ids of objects that a query is about alone, each once.
        about: int64[f], the place of that object in `ids`, -1 where it is about any.
    """

    numbers: np.ndarray
    place: np.ndarray
    slide_by: np.ndarray
    slide: np.ndarray
    range_by: np.ndarray
    range: np.ndarray
    origin: np.ndarray
    full: np.ndarray
    min_step: np.ndarray
    seconds: np.ndarray
    restricted: np.ndarray
    by_object: np.ndarray
    session: np.ndarray
    outlives: np.ndarray
    rows: QuerySet
    regions: tuple[tuple[Region, ...], ...]
    ids: Sought
    about: np.ndarray

    @property
    def width(self) -> int:
        """The most windows that a frame has."""
        return int(self.slide.shape[1])


def compile_frames(
    queries: Sequence[Registered], numbers: Sequence[int], *, space: Space
) -> FrameSpecs:
    """The frames of some queries.

    Args:
        queries: all queries of the stream.
        numbers: those that are meant; those without a frame are passed over.
        space: what coordinates mean.
    """
    frames = [
        (n, frame) for n in numbers if (frame := queries[n].plan.frame) is not None
    ]
    plans = [queries[n].plan for n, _ in frames]
    # A query about one object looks at that one alone, not at all of the stream.
    only = [one_object(plan.where) for plan in plans]
    ids = numbered(name for name in only if name is not None)
    place = np.full(len(queries), NONE)
    place[[n for n, _ in frames]] = np.arange(len(frames))
    return FrameSpecs(
        numbers=np.array([n for n, _ in frames], np.int64),
        place=place,
        **_sizes([frame for _, frame in frames]),
        origin=_column(frames, lambda frame: round(frame.origin_s * 1e6)),
        full=np.array([frame.full for _, frame in frames], bool),
        min_step=_column(frames, lambda frame: round(frame.min_step_m * 1e6)),
        seconds=np.array([_seconds(frame) for _, frame in frames], float),
        restricted=np.array([is_restricted(plan) for plan in plans], bool),
        by_object=np.array([_is_by_object(plan) for plan in plans], bool),
        session=_column(frames, lambda frame: round((frame.session_s or 0.0) * 1e6)),
        outlives=np.array([_outlives(frame) for _, frame in frames], bool),
        rows=_compile_rows(queries, dict(frames), space=space),
        regions=tuple(frame.regions[1:] for _, frame in frames),
        ids=Sought(pa.array(list(ids), pa.string())),
        about=np.array([-1 if name is None else ids[name] for name in only], np.int64),
    )


def one_object(where: str | None) -> str | None:
    """The id of the object that a condition is about when it says nothing else, else None.

    Example:
        object = 'bus-2'                 bus-2
        object = 'bus-2' AND speed > 5   None
    """
    match = _ONE_OBJECT.fullmatch(where or "")
    return match[1].replace("''", "'") if match else None


def is_restricted(plan: Plan) -> bool:
    """Whether only some objects count, by where they are now."""
    clauses = (plan.inside, plan.neighbours, plan.join, plan.compare)
    return any(clause is not None for clause in clauses) or bool(plan.transforms)


def who_counts(plan: Plan) -> Plan:
    """The plan whose answer at a tick are the objects that count in a frame then."""
    return replace(
        plan, frame=None, where=None, aggregate=None, columns=(), emit="changes"
    )


def _of_rows(plan: Plan, frame: Frame) -> Plan:
    """The plan that a fix satisfies when it is a row; what is about one object is found by its id."""
    only, inside = one_object(plan.where), frame.regions[0] if frame.regions else None
    if only is None:
        return Plan(stream=plan.stream, where=plan.where, inside=inside)
    return Plan(
        stream=plan.stream,
        inside=inside,
        transforms=(Transform(kind="key", text=only),),
    )


def _compile_rows(
    queries: Sequence[Registered], frames: Mapping[int, Frame], *, space: Space
) -> QuerySet:
    """What a fix satisfies when it is a row of a frame; targets have the numbers of the stream's queries."""
    if not frames:
        return compile_queries([], [], space=space)
    # All queries of the stream, so that numbers mean the same there.
    of_rows = [
        replace(query, plan=_of_rows(query.plan, frames[n])) if n in frames else query
        for n, query in enumerate(queries)
    ]
    return compile_queries(of_rows, list(frames), space=space)


def _sizes(frames: Sequence[Frame]) -> dict[str, np.ndarray]:
    """By what windows slide and reach, and how far; int64[frames, windows] each, `NONE` beside a frame with fewer."""
    width = max((len(frame.sliding) for frame in frames), default=0)
    slide_by, slide, range_by, range_ = np.full((4, len(frames), width), NONE, np.int64)
    for row, frame in enumerate(frames):
        for column, window in enumerate(frame.sliding):
            at = row, column
            range_by[at], range_[at] = _size(window.range)
            if window.slide is None:
                slide_by[at], slide[at] = _DOMAIN[window.range.by], 0
            else:
                slide_by[at], slide[at] = _size(window.slide)
    return {
        "slide_by": slide_by,
        "slide": slide,
        "range_by": range_by,
        "range": range_,
    }


def _outlives(frame: Frame) -> bool:
    """Whether what a frame holds tells of the past alone; ways and regions end with their object (SPEC P1)."""
    return not frame.regions and all(
        window.range.by != "space" for window in frame.sliding
    )


def _size(extent: Extent) -> tuple[int, int]:
    return _DOMAIN[extent.by], round(extent.amount * _UNITS[extent.by])


def _column(
    frames: list[tuple[int, Frame]], value: Callable[[Frame], int]
) -> np.ndarray:
    return np.array([value(frame) for _, frame in frames], np.int64)


def _seconds(frame: Frame) -> float:
    return next(
        (window.range.amount for window in frame.sliding if window.range.by == "time"),
        np.nan,
    )


def _is_by_object(plan: Plan) -> bool:
    spec = plan.aggregate
    if spec is None or spec.top is not None:  # which are told depends on all of them
        return False
    return "object" in map(str.lower, spec.grouped_by)
