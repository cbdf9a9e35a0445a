"""Frames by brute force: the fixes of every object that are in a query's windows (CQL-S section 3, SPEC W2-W5).

A query with a frame remembers every fix since it was registered; which of them are in its windows the reference says
(`travelled`, `sliding`), anew at every tick. Here is at which ticks. What happens in a query depends on no other:
- a window that slides by time moves at the first tick from each slide on, whether there are rows or not;
- a window of time without a slide moves at every tick of its query: where something happened in the stream, where a row
  of the query gets too old, where another of its windows slides by time.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np

from st_common.query.frame import Frame, Sliding
from st_common.query.plan import Plan
from st_common.reference import sessions, sliding, travelled
from st_common.reference.columns import objects
from st_common.reference.ranges import inside
from st_common.reference.travelled import Ways, outlives, units
from tests.kit.oracle_expressions import value_of
from tests.kit.oracle_members import fixes_of, metric_of
from tests.kit.oracle_readings import Reading
from tests.kit.oracle_rows import Pair, Rules

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
    """A fix of an object that a frame may hold; `begins`: no way leads to it from the fix before."""

    reading: Reading
    tick: int
    is_row: bool
    begins: bool

    @property
    def pair(self) -> Pair:
        """What names the row in an answer: its object and its time."""
        return self.reading.fix.object, stamp_of(self.reading.fix.event_us)


@dataclass(slots=True)
class Frames:
    """What a query with a frame remembers.

    Attributes:
        marks: what happened and counts from a later tick on.
        stays: by object the fixes of its stay; of a frame that outlives its objects, of all its stays.
        away: the objects that were gone or silent since their last fix.
        ticks: at which the query was judged.
        at: the last tick of the stream.
        coming: when rows were that no window has left behind.
        rows: the fixes of all objects, as they were looked up at the last tick, with their `ways`.
        held: the places among them of those that are in all windows.
        ended: which rows a stay took with it at the last tick, and why.
    """

    marks: list[Mark] = field(default_factory=list)
    stays: dict[str, list[FrameRow]] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    ticks: list[int] = field(default_factory=list)
    at: int = 0
    coming: list[int] = field(default_factory=list)
    rows: list[FrameRow] = field(default_factory=list)
    ways: Ways | None = None
    held: list[int] = field(default_factory=list)
    ended: dict[Pair, str] = field(default_factory=dict)


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
    if not frames.stays:
        return set()
    ticks = set()
    for window in frame.sliding:
        if window.slide is not None and window.slide.by == "time":
            step, origin = units(window.slide), round(1e6 * frame.origin_s)
            following = (frames.at - origin) // step * step + step + origin
            ticks.add(-(-following // rules.tick_us) * rules.tick_us)
        elif window.slide is None and window.range.by == "time":
            last = (event_us + units(window.range) for event_us in frames.coming)
            ticks |= {(us // rules.tick_us + 1) * rules.tick_us for us in last}
    if frame.session_s is not None:
        pause_us = round(1e6 * frame.session_s)
        over = (event_us + pause_us for event_us in frames.coming)
        ticks |= {(us // rules.tick_us + 1) * rules.tick_us for us in over}
    return {tick for tick in ticks if tick > frames.at}


def advance(
    frames: Frames, frame: Frame, tick: int, rules: Rules, *, happened: bool
) -> set[str]:
    """Brings the windows to a tick; gives back whose windows moved.

    `happened`: there was an event of the stream, of whatever object.
    """
    if happened or tick in own_ticks(frames, frame, rules):
        frames.ticks.append(tick)
    frames.ended = {}
    here = [mark for mark in frames.marks if mark.tick <= tick]
    for mark in here:
        _take(frames, frame, mark)
    frames.marks = [mark for mark in frames.marks if mark.tick > tick]
    frames.at = max(frames.at, tick)
    moved = _look_up(frames, frame, tick, rules)
    if any(_follows(window) for window in frame.sliding):
        moved |= frames.away & {mark.name for mark in here}
    return moved


def _follows(window: Sliding) -> bool:
    """Whether a window goes along with whatever its object does, also with its end."""
    return window.slide is None and window.range.by != "time"


def _take(frames: Frames, frame: Frame, mark: Mark) -> None:
    """One event: a stay begins, goes on, or ends with all of its rows."""
    if mark.reading is None:
        if mark.name in frames.stays:
            _end(frames, frame, mark)
        return
    begins = mark.name in frames.away or mark.name not in frames.stays
    frames.away.discard(mark.name)
    row = FrameRow(
        reading=mark.reading, tick=mark.tick, is_row=mark.is_row, begins=begins
    )
    frames.stays.setdefault(mark.name, []).append(row)


def _end(frames: Frames, frame: Frame, mark: Mark) -> None:
    """The object is gone or silent: windows of space and regions end with it, others tell of the past."""
    for row in frames.stays[mark.name]:
        if row.is_row:
            frames.ended.setdefault(row.pair, str(mark.cause))
    if outlives(frame):
        frames.away.add(mark.name)
    else:
        del frames.stays[mark.name]


def _look_up(frames: Frames, frame: Frame, tick: int, rules: Rules) -> set[str]:
    """Asks the reference what is in the windows; gives back whose windows moved at this tick."""
    rows = [row for stay in frames.stays.values() for row in stay]
    ways, ticks = _ways(rows, frame, rules), np.array(frames.ticks, np.int64)
    stands = [sliding.standing(window, frame, ways, ticks) for window in frame.sliding]
    kept = np.array([row.is_row for row in rows], bool)
    kept = sliding.newest(ways, kept, rules.window_rows)
    held, coming, moved = kept.copy(), kept.copy(), set[str]()
    for window, where in zip(frame.sliding, stands, strict=True):
        held &= sliding.in_window(window, ways, where)
        coming &= ~sliding.is_behind(window, ways, where)
        has_moved = (where.last >= 0) & (where.tick == tick)
        moved |= set(ways.ids[has_moved])
    if frame.session_s is not None:
        is_open = sessions.in_session(
            frame.session_s, ways, kept, now=tick, tick_us=rules.tick_us
        )
        held &= is_open
        coming &= is_open
    frames.coming = ways.event_us[coming].tolist()
    frames.rows, frames.ways = rows, ways
    frames.held = np.flatnonzero(held).tolist()
    return moved


def _ways(rows: list[FrameRow], frame: Frame, rules: Rules) -> Ways:
    fixes = [row.reading.fix for row in rows]
    ids = objects([fix.object for fix in fixes])
    begins = np.array([row.begins for row in rows], bool)
    return Ways(
        ids=ids,
        event_us=np.array([fix.event_us for fix in fixes], np.int64),
        tick=np.array([row.tick for row in rows], np.int64),
        begins=begins,
        number=travelled.numbers(ids),
        way_um=travelled.ways_um(
            ids,
            np.array([fix.x for fix in fixes], float),
            np.array([fix.y for fix in fixes], float),
            begins,
            min_step_m=frame.min_step_m,
            by=metric_of(rules),
        ),
    )


def framed(frames: Frames, counting: set[str] | None) -> list[FrameRow]:
    """The rows that are in all windows, of the objects that count (None: of all)."""
    return [frames.rows[place] for place in _counted(frames, counting)]


def of_ways(
    frames: Frames, frame: Frame, counting: set[str] | None
) -> travelled.OfWays:
    """By function what it says of every object that counts and has a row in all windows."""
    if frames.ways is None:
        return {"avgspd": {}, "travelled": {}, "odometer": {}}
    places = np.array(_counted(frames, counting), np.int64)
    return travelled.of_ways(frame, frames.ways.take(places))


def _counted(frames: Frames, counting: set[str] | None) -> list[int]:
    if counting is None:
        return frames.held
    return [
        place
        for place in frames.held
        if frames.rows[place].reading.fix.object in counting
    ]
