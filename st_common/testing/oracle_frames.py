"""Frames by brute force: the fixes of every object that are in a query's windows (CQL-S section 3, SPEC W2-W5).

A query with a frame remembers the way of every object since it was registered, and every row of it. At a tick its
windows move on, or they stand still; what is in them is looked up anew among all rows whenever it is asked for.

What happens in a query depends on no other query:
- a window that slides by time moves at the first tick from each slide on, whether there are rows or not;
- a window of time without a slide moves at every tick of its query: where something happened in the stream, where a row
  of the query gets too old, where another of its windows slides by time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.plan import Plan
from st_common.reference.metric import Point
from st_common.reference.ranges import inside
from st_common.testing.oracle_expressions import value_of
from st_common.testing.oracle_members import fixes_of
from st_common.testing.oracle_readings import Reading, metres
from st_common.testing.oracle_rows import Pair, Rules

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happened to an object after the query was registered; it counts from `tick` on."""

    tick: int
    name: str
    reading: Reading | None  # None: its stay ended
    cause: str | None = None  # what ended it
    is_row: bool = (
        False  # whether the fix satisfies the query's condition and its regions
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRow:
    """A fix of a way: its number from 1, and how far the object had come, in micrometres."""

    reading: Reading
    number: int
    way_um: int
    begins: bool = False  # no way leads to it from the fix before

    @property
    def pair(self) -> Pair:
        """What names the row in an answer: its object and its time."""
        return self.reading.fix.object, stamp_of(self.reading.fix.event_us)


@dataclass(slots=True)
class Span:
    """Where a window stands: rows from `low` to `up`, both closed, among the first `seen` fixes; None before it moved.

    `high` is how far it has come in units of what it slides by; None is before all times.
    """

    high: int | None
    low: int = 0
    up: int = 0
    seen: int = 0
    holds: bool = False


@dataclass(slots=True)
class Way:
    """One stay of an object: how far it has come, and its rows. Of a frame without ways and regions all its stays.

    `anchor` is None while the object is gone or silent.
    """

    anchor: Point | None
    first_us: int
    number: int = 0
    um: int = 0
    rows: list[FrameRow] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Frames:
    """What a query with a frame remembers. `at` is the last tick, `ended` says which rows a stay took with it there."""

    marks: list[Mark] = field(default_factory=list)
    ways: dict[str, Way] = field(default_factory=dict)
    ended: dict[Pair, str] = field(default_factory=dict)
    at: int = 0
    cut: int = 0


@cache
def stamp_of(event_us: int) -> str:
    """A time as the partner of a row."""
    return (_EPOCH + timedelta(microseconds=event_us)).strftime(_STAMP)


@cache
def time_of(stamp: str) -> int:
    """The time of a partner of a row, in microseconds."""
    return (datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC) - _EPOCH) // timedelta(
        microseconds=1
    )


def remember(
    frames: Frames,
    plan: Plan,
    *,
    tick: int,
    name: str,
    reading: Reading | None,
    cause: str | None,
    rules: Rules,
) -> None:
    """Keeps what happened to an object until its tick is due."""
    if reading is not None and reading.fix.gone:
        reading, cause = None, "gone"
    is_row = (
        reading is not None
        and plan.frame is not None
        and _is_row(plan, plan.frame, reading, rules)
    )
    frames.marks.append(
        Mark(tick=tick, name=name, reading=reading, cause=cause, is_row=is_row)
    )


def _is_row(plan: Plan, frame: Frame, reading: Reading, rules: Rules) -> bool:
    at = fixes_of([reading], rules)
    if not all(inside(region, at).maybe[0] for region in frame.regions):
        return False
    return plan.where is None or value_of(plan.where, reading) is True


def own_ticks(frames: Frames, frame: Frame, rules: Rules) -> set[int]:
    """The next ticks at which a window moves by time alone: one of a slide, one for every row that will be too old."""
    if not frames.ways:
        return set()
    rows = [
        row
        for way in frames.ways.values()
        for row in way.rows
        if not _is_passed(frame, way, row)
    ]
    found = set()
    for window in frame.sliding:
        if window.slide is not None and window.slide.by == "time":
            step = units(window.slide)
            following = (
                (frames.at - _origin(frame)) // step * step + step + _origin(frame)
            )
            found.add(-(-following // rules.tick_us) * rules.tick_us)
        elif window.slide is None and window.range.by == "time":
            last = (row.reading.fix.event_us + units(window.range) for row in rows)
            found |= {(us // rules.tick_us + 1) * rules.tick_us for us in last}
    return {tick for tick in found if tick > frames.at}


def advance(
    frames: Frames, frame: Frame, tick: int, rules: Rules, *, happened: bool
) -> set[str]:
    """Brings the windows to a tick; gives back whose windows moved.

    `happened`: there was an event of the stream, of whatever object.
    """
    happened = happened or tick in own_ticks(frames, frame, rules)
    frames.ended = {}
    here = [mark for mark in frames.marks if mark.tick <= tick]
    frames.marks = [mark for mark in frames.marks if mark.tick > tick]
    for mark in here:
        _take(frames, frame, mark, rules)
    touched = {mark.name for mark in here}
    frames.at = max(frames.at, tick)
    moved = set()
    for name, way in frames.ways.items():
        if name in touched:
            frames.cut += max(0, len(way.rows) - rules.window_rows)
            way.rows = way.rows[-rules.window_rows :]
        for window, span in zip(frame.sliding, way.spans, strict=True):
            if name in touched or _moves_at(
                window, frame, tick, rules, happened=happened
            ):
                moved |= {name} if _move(window, span, way, frame, tick) else set()
    return moved


def _take(frames: Frames, frame: Frame, mark: Mark, rules: Rules) -> None:
    """One event: a way begins, goes on, or ends with all of its rows."""
    if mark.reading is None:
        if mark.name in frames.ways:
            _end(frames, frame, mark)
        return
    at, event_us = mark.reading.at, mark.reading.fix.event_us
    way = frames.ways.get(mark.name)
    if way is None:
        spans = [_start(window) for window in frame.sliding]
        way = frames.ways[mark.name] = Way(anchor=at, first_us=event_us, spans=spans)
    begins = way.anchor is None or way.number == 0
    leg = 0 if way.anchor is None else round(1e6 * _leg(way.anchor, at, rules))
    if way.anchor is None or leg >= round(1e6 * frame.min_step_m):
        way.um += leg
        way.anchor = at
    way.number += 1
    if mark.is_row:
        way.rows.append(
            FrameRow(
                reading=mark.reading, number=way.number, way_um=way.um, begins=begins
            )
        )


def _end(frames: Frames, frame: Frame, mark: Mark) -> None:
    """The object of a way is gone or silent: windows of space and regions end with it, others tell of the past."""
    way = frames.ways[mark.name]
    for row in way.rows:
        frames.ended.setdefault(row.pair, str(mark.cause))
    if outlives(frame):
        way.anchor = None
    else:
        del frames.ways[mark.name]


def outlives(frame: Frame) -> bool:
    """Whether fixes stay in a frame when their object is gone or silent: no window is one of space."""
    return not frame.regions and all(
        window.range.by in ("time", "rows") for window in frame.sliding
    )


def _leg(a: Point, b: Point, rules: Rules) -> float:
    return (
        metres(a, b, geographic=True)
        if rules.geographic
        else math.hypot(b[0] - a[0], b[1] - a[1])
    )


def _start(window: Sliding) -> Span:
    """Time has no first slide; on a way the first is where a whole one is done."""
    if (window.slide or window.range).by == "time":
        return Span(high=None)
    return Span(high=-1 if window.slide is None else 0)


def _moves_at(
    window: Sliding, frame: Frame, tick: int, rules: Rules, *, happened: bool
) -> bool:
    """Whether a window moves at this tick by time alone, whatever its object does."""
    if window.slide is None:
        return happened and window.range.by == "time"
    if window.slide.by != "time":
        return False
    step, origin = units(window.slide), _origin(frame)
    return (tick - origin) // step > (tick - rules.tick_us - origin) // step


def _move(window: Sliding, span: Span, way: Way, frame: Frame, tick: int) -> bool:
    """The window goes as far as it can by whole slides; whether it moved."""
    origin, by = _origin(frame), (window.slide or window.range).by
    now = {"space": way.um, "rows": way.number, "time": tick}
    high = now[by] - (origin if by == "time" else 0)
    if window.slide is not None:
        high = high // units(window.slide) * units(window.slide)
    follows = (
        window.slide is None and by != "time"
    )  # every fix, also that of an object which stands still
    if span.high is not None and (high < span.high if follows else high <= span.high):
        return False
    span.high, span.seen = high, way.number
    span.up = (
        high + (origin if by == "time" else 0)
        if by == window.range.by
        else now[window.range.by]
    )
    span.low = span.up - units(window.range) + (1 if window.range.by == "rows" else 0)
    start = way.first_us if window.range.by == "time" else 0
    span.holds = not frame.full or span.up - units(window.range) >= start
    return True


def units(extent: Extent) -> int:
    """An extent in micrometres, microseconds or fixes."""
    return round(extent.amount * (1 if extent.by == "rows" else 1e6))


def _origin(frame: Frame) -> int:
    return round(frame.origin_s * 1e6)


def framed(frames: Frames, frame: Frame, counting: set[str] | None) -> list[FrameRow]:
    """The rows that are in all windows, of the objects that count (None: of all)."""
    return [
        row
        for name, way in frames.ways.items()
        if counting is None or name in counting
        for row in way.rows
        if all(
            _holds(window, span, row)
            for window, span in zip(frame.sliding, way.spans, strict=True)
        )
    ]


def _is_passed(frame: Frame, way: Way, row: FrameRow) -> bool:
    """Whether a window has left a row behind for ever."""
    return any(
        span.seen > 0 and _measure(window, row) < span.low
        for window, span in zip(frame.sliding, way.spans, strict=True)
    )


def _measure(window: Sliding, row: FrameRow) -> int:
    return {"space": row.way_um, "rows": row.number, "time": row.reading.fix.event_us}[
        window.range.by
    ]


def _holds(window: Sliding, span: Span, row: FrameRow) -> bool:
    return (
        span.holds
        and row.number <= span.seen
        and span.low <= _measure(window, row) <= span.up
    )


def speeds(frame: Frame, rows: Sequence[FrameRow]) -> dict[str, float | None]:
    """AVGSPD of every object that has a row; None where no two of its fixes follow each other, or no time passed."""
    names = dict.fromkeys(row.reading.fix.object for row in rows)
    return {
        name: _speed(frame, [row for row in rows if row.reading.fix.object == name])
        for name in names
    }


def _speed(frame: Frame, rows: Sequence[FrameRow]) -> float | None:
    pairs = list(_following(rows))
    if not pairs:
        return None
    way_um = sum(b.way_um - a.way_um for a, b in pairs)
    ranges = [
        window.range.amount for window in frame.sliding if window.range.by == "time"
    ]
    passed_us = sum(b.reading.fix.event_us - a.reading.fix.event_us for a, b in pairs)
    seconds = ranges[0] if ranges else passed_us / 1e6
    return way_um / 1e6 / seconds if seconds else None


def _following(rows: Sequence[FrameRow]) -> Iterator[tuple[FrameRow, FrameRow]]:
    by_number = {row.number: row for row in rows}
    pairs = (
        (row, by_number[row.number + 1]) for row in rows if row.number + 1 in by_number
    )
    return ((row, following) for row, following in pairs if not following.begins)
