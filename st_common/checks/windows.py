"""The fixes in a query's windows at a tick, by whole columns (CQL-S, SPEC W2-W5).

What windows hold the reference says (`travelled`, `sliding`). Here is which fixes there are, and at which ticks the
query was judged. On degrees engines measure legs to 0.01 %: a fix that is in the windows only with a little more or
less way may be in the answer or not.
"""

from dataclasses import dataclass

import numpy as np

from st_common.checks.history import FIX, History, Moment
from st_common.query.frame import Frame
from st_common.reference import sessions, sliding, travelled
from st_common.reference.columns import Fixes
from st_common.reference.metric import Bools, Ints, Members
from st_common.reference.travelled import OfWays, Ways, outlives, units


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """The fixes that a frame may hold, by their rows; `begins`: no way leads to a fix from the one before."""

    rows: Ints
    begins: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """The fixes in all windows: their rows, and how far their objects had come."""

    rows: Ints
    ways: Ways

    def take(self, which: Ints) -> "Framed":
        """Some of them, by their places."""
        return Framed(rows=self.rows[which], ways=self.ways.take(which))


def open_stays(frame: Frame, history: History, moment: Moment, position: int) -> Stays:
    """The judged fixes after a row of the log that a frame may hold.

    Windows of time and of count have those of all stays of an object, others of the one that goes on.
    """
    events = history.events
    known = moment.judged[events.effect[moment.judged] > position]
    code, is_fix = events.code[known], events.kind[known] == FIX
    is_another = np.append(True, code[1:] != code[:-1])[: len(known)]
    begins = is_another | np.append(True, ~is_fix[:-1])[: len(known)]
    is_open = is_fix.copy()
    if not outlives(frame) and len(known):
        number = np.arange(len(known))
        last_end = np.full(int(code.max()) + 1, -1)
        np.maximum.at(last_end, code[~is_fix], number[~is_fix])
        is_open &= number > last_end[code]
    return Stays(rows=known[is_open], begins=begins[is_open])


def framed(
    frame: Frame,
    stays: Stays,
    fixes: Fixes,
    rows: Members,
    history: History,
    moment: Moment,
) -> tuple[Framed, Bools]:
    """The fixes of stays in all windows, and whether each is so beyond doubt.

    `fixes` are the same rows as the reference reads them, `rows` those that satisfy the query's condition and regions.
    """
    ways = ways_of(frame, stays, fixes, history)
    newest = sliding.newest(ways, rows.maybe, history.times.window_rows)
    rows &= Members(sure=newest, maybe=newest)
    own = ways.take(np.flatnonzero(rows.sure))
    fewest, most = ticks_of(frame, own, history, moment)
    doubts = fixes.metric.doubts
    one = sliding.in_windows(frame, ways, fewest, doubts=doubts)
    other = one
    if most is not fewest:
        other = sliding.in_windows(frame, ways, most, doubts=doubts)
    rows = _in_session(frame, ways, rows, history, moment)
    sure = rows.sure & one.sure & other.sure
    kept = np.flatnonzero(rows.maybe & (one.maybe | other.maybe))
    return Framed(rows=stays.rows[kept], ways=ways.take(kept)), sure[kept]


def ways_of(frame: Frame, stays: Stays, fixes: Fixes, history: History) -> Ways:
    """How far the objects of fixes had come at each of them."""
    events = history.events
    return Ways(
        ids=fixes.ids,
        event_us=events.ts[stays.rows],
        tick=events.tick[stays.rows],
        begins=stays.begins,
        number=travelled.numbers(fixes.ids),
        way_um=travelled.ways_um(
            fixes.ids,
            fixes.x,
            fixes.y,
            stays.begins,
            min_step_m=frame.min_step_m,
            by=fixes.metric,
        ),
    )


def _in_session(
    frame: Frame, ways: Ways, rows: Members, history: History, moment: Moment
) -> Members:
    """The rows of sessions that are open; where a row is in doubt, what it holds together is too."""
    if frame.session_s is None or not len(ways):
        return rows
    pause_s, tick_us, now = frame.session_s, history.times.tick_us, moment.tick_us
    return Members(
        **{
            name: sessions.in_session(pause_s, ways, known, now=now, tick_us=tick_us)
            for name, known in (("sure", rows.sure), ("maybe", rows.maybe))
        }
    )


def ticks_of(
    frame: Frame, own: Ways, history: History, moment: Moment
) -> tuple[Ints, Ints]:
    """The ticks at which a query surely was judged, and those at which it may have been.

    They are the same but for windows that hold nothing before they are full: with others it changes nothing whether
    the query was judged at the last tick of all.
    """
    happened, tick_us = history.events.tick[moment.judged], history.times.tick_us
    if not len(happened):
        return happened, happened
    by_itself = _slides(frame, moment.tick_us, tick_us)
    if frame.full and len(frame.sliding) == 1:
        # Beside another window a row may be behind that one, and is waited for no more.
        by_itself += _ages(frame, own, moment.tick_us, tick_us)
    fewest = np.unique(np.append(happened, np.array(by_itself, np.int64)))
    most = np.unique(np.append(fewest, moment.tick_us))
    return (fewest if frame.full and not moment.is_due else most), most


def _slides(frame: Frame, now: int, tick_us: int) -> list[int]:
    """The ticks at which windows that slide by time moved last, by time alone."""
    origin = round(1e6 * frame.origin_s)
    slides = [window.slide for window in frame.sliding if window.slide is not None]
    steps = [units(slide) for slide in slides if slide.by == "time"]
    ticks = [
        -(-((now - origin) // step * step + origin) // tick_us) * tick_us
        for step in steps
    ]
    return [tick for tick in ticks if tick <= now]


def _ages(frame: Frame, own: Ways, now: int, tick_us: int) -> list[int]:
    """The ticks up to now at which rows got too old for a window of time that does not slide."""
    (window,) = frame.sliding
    if window.slide is not None or window.range.by != "time":
        return []
    ticks = ((own.event_us + units(window.range)) // tick_us + 1) * tick_us
    return list(ticks[(ticks > own.tick) & (ticks <= now)])


def of_ways(frame: Frame, found: Framed, *, unit_m: float = 1.0) -> OfWays:
    """By function what it says of every object that has a row in a result, in metres and seconds; see the reference."""
    return {
        function: {
            name: None if value is None else value * unit_m
            for name, value in values.items()
        }
        for function, values in travelled.of_ways(frame, found.ways).items()
    }
