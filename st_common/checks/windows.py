"""The fixes in a query's windows at the last tick that was judged, by whole columns (CQL-S, SPEC W2-W5).

What windows hold the reference says (`travelled`, `sliding`). Here is which fixes there are, and at which ticks the
query was judged. On degrees engines measure legs to 0.01 %: a fix that is in the windows only with a little more or
less way may be in the answer or not.
"""

import numpy as np
import pandas as pd

from st_common.checks.archived import History
from st_common.checks.history import FIX, LATER
from st_common.query.frame import Frame
from st_common.reference import sessions, sliding, travelled
from st_common.reference.columns import Fixes
from st_common.reference.metric import Ints, Members
from st_common.reference.travelled import Ways, outlives, units


def open_stays(frame: Frame, events: pd.DataFrame, position: int) -> pd.DataFrame:
    """The judged fixes after a row of the log that a frame may hold.

    Windows of time and of count have those of all stays of an object, others of the one that goes on. `begins`: no way
    leads to a fix from the one before.
    """
    known = events[(events["effect"] > position) & (events["due"] != LATER)]
    known = known.assign(
        begins=(known["object"] != known["object"].shift())
        | (known["kind"].shift() != FIX)
    )
    is_open = known["kind"] == FIX
    if not outlives(frame):
        ends = (~is_open).astype(np.int64)
        to_come = ends[::-1].groupby(known["object"][::-1], sort=False).cumsum()[::-1]
        is_open &= to_come == 0
    open_: pd.DataFrame = known[is_open]
    return open_


def framed(
    frame: Frame,
    stays: pd.DataFrame,
    fixes: Fixes,
    rows: Members,
    history: History,
) -> pd.DataFrame:
    """The rows of `stays` (see `open_stays`) in all windows, with `number`, `way_um` and whether each is `sure`.

    `fixes` are the same rows as the reference reads them, `rows` those that satisfy the query's condition and regions.
    """
    way_um = travelled.ways_um(
        fixes.ids,
        fixes.x,
        fixes.y,
        stays["begins"].to_numpy(bool),
        min_step_m=frame.min_step_m,
        by=fixes.metric,
    )
    stays = stays.assign(number=travelled.numbers(fixes.ids), way_um=way_um)
    ways = _ways(stays)
    newest = sliding.newest(ways, rows.maybe, history.times.window_rows)
    rows &= Members(sure=newest, maybe=newest)
    fewest, most = _ticks(frame, stays[rows.sure], history)
    doubts = fixes.metric.doubts
    one = sliding.in_windows(frame, ways, fewest, doubts=doubts)
    other = sliding.in_windows(frame, ways, most, doubts=doubts)
    rows = _in_session(frame, ways, rows, history)
    sure = rows.sure & one.sure & other.sure
    maybe = rows.maybe & (one.maybe | other.maybe)
    in_result: pd.DataFrame = stays.assign(sure=sure)[maybe]
    return in_result


def _in_session(frame: Frame, ways: Ways, rows: Members, history: History) -> Members:
    """The rows of sessions that are open; where a row is in doubt, what it holds together is too."""
    if frame.session_s is None or not len(ways):
        return rows
    pause_s, tick_us = frame.session_s, history.times.tick_us
    now = _now(history)
    return Members(
        **{
            name: sessions.in_session(pause_s, ways, known, now=now, tick_us=tick_us)
            for name, known in (("sure", rows.sure), ("maybe", rows.maybe))
        }
    )


def _now(history: History) -> int:
    """The last tick of all that was judged, in microseconds."""
    events, tick_us = history.events, history.times.tick_us
    past = (history.clock.now - 1) // tick_us * tick_us
    return max(past, int(events.loc[events["due"] != LATER, "tick"].max()))


def _ways(stays: pd.DataFrame) -> Ways:
    return Ways(
        ids=stays["object"].to_numpy(object),
        event_us=stays["ts"].to_numpy(np.int64),
        tick=stays["tick"].to_numpy(np.int64),
        begins=stays["begins"].to_numpy(bool),
        number=stays["number"].to_numpy(np.int64),
        way_um=stays["way_um"].to_numpy(np.int64),
    )


def _ticks(frame: Frame, rows: pd.DataFrame, history: History) -> tuple[Ints, Ints]:
    """The ticks at which a query surely was judged, and those at which it may have been.

    They are the same but for windows that hold nothing before they are full: with others it changes nothing whether
    the query was judged at the last tick of all.
    """
    events, tick_us = history.events, history.times.tick_us
    happened = events.loc[events["due"] != LATER, "tick"].to_numpy(np.int64)
    if not len(happened):
        return happened, happened
    now = _now(history)
    by_itself = _slides(frame, now, tick_us)
    if frame.full and len(frame.sliding) == 1:
        # Beside another window a row may be behind that one, and is waited for no more.
        by_itself += _ages(frame, rows, now, tick_us)
    fewest = np.unique(np.append(happened, np.array(by_itself, np.int64)))
    most = np.unique(np.append(fewest, now))
    return (fewest if frame.full else most), most


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


def _ages(frame: Frame, rows: pd.DataFrame, now: int, tick_us: int) -> list[int]:
    """The ticks up to now at which rows got too old for a window of time that does not slide."""
    (window,) = frame.sliding
    if window.slide is not None or window.range.by != "time":
        return []
    last_us = rows["ts"].to_numpy(np.int64) + units(window.range)
    ticks = (last_us // tick_us + 1) * tick_us
    is_tick = (ticks > rows["tick"].to_numpy(np.int64)) & (ticks <= now)
    return list(ticks[is_tick])


def of_ways(
    frame: Frame, rows: pd.DataFrame, *, unit_m: float = 1.0
) -> travelled.OfWays:
    """By function what it says of every object that has a row in a result, in metres and seconds; see the reference."""
    return {
        function: {
            name: None if value is None else value * unit_m
            for name, value in values.items()
        }
        for function, values in travelled.of_ways(frame, _ways(rows)).items()
    }


def speeds_in_doubt(frame: Frame, rows: pd.DataFrame) -> pd.DataFrame:
    """By object its average `speed`, NaN for none, and whether it is `sure`: none of its fixes is in doubt."""
    values = pd.Series(of_ways(frame, rows)["avgspd"], dtype=float)
    sure = rows.groupby("object")["sure"].all().reindex(values.index)
    return pd.DataFrame({"speed": values, "sure": sure.astype(bool)})
