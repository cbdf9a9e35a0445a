"""The fixes in a query's windows at the last tick that was judged, by whole columns (CQL-S, SPEC W2-W5).

Where a window stands follows from its last move alone, and so does what is in it; no window is moved step by step. On
degrees engines measure legs to 0.01 %: a fix that is in the windows only with a little more or less way may be in the
answer or not.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyproj import Geod

from st_common.geometry.space import Space
from st_common.query.frame import Extent, Frame, Sliding
from st_common.reference.metric import SCALED, Members
from st_common.serving.verify_events import FIX, LATER, Clock, Times

_GEOD = Geod(ellps="WGS84")
_COLUMN = {"space": "way", "rows": "n", "time": "tick"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Now:
    """The last tick that time alone has judged, or at which something happened; and the last of the latter."""

    tick: int
    event_tick: int
    tick_us: int


def stays(frame: Frame, events: pd.DataFrame, position: int) -> pd.DataFrame:
    """The judged fixes after a row of the log that a frame may hold, each with its number `n` from 1.

    Windows of time and of count have those of all stays of an object, others of the one that goes on. `begins`: no way
    leads to a fix from the one before.
    """
    known = events[(events["effect"] > position) & (events["due"] != LATER)]
    known = known.assign(
        begins=(known["object"] != known["object"].shift())
        | (known["kind"].shift() != FIX)
    )
    ends = (known["kind"] != FIX).astype(np.int64)
    to_come = ends[::-1].groupby(known["object"][::-1], sort=False).cumsum()[::-1]
    is_over = (to_come > 0) & (bool(frame.regions) | _has_range_of_space(frame))
    open_: pd.DataFrame = known[(known["kind"] == FIX) & ~is_over]
    return open_.assign(n=open_.groupby("object", sort=False).cumcount() + 1)


def _has_range_of_space(frame: Frame) -> bool:
    return any(window.range.by == "space" for window in frame.sliding)


def framed(
    frame: Frame,
    fixes: pd.DataFrame,
    rows: Members,
    events: pd.DataFrame,
    clock: Clock,
    times: Times,
) -> pd.DataFrame:
    """The rows of `fixes` (see `stays`) in all windows, with `way` in micrometres, and whether each is `sure`.

    `rows` are those that satisfy the query's condition and regions.
    """
    judged = events[events["due"] != LATER]
    last = int(judged["tick"].max()) if len(judged) else 0
    past = (clock.now - 1) // times.tick_us * times.tick_us
    now = _Now(tick=max(past, last), event_tick=last, tick_us=times.tick_us)
    ways = _ways(frame, fixes, space=times.space)
    kept = rows.maybe & _newest(fixes, rows.maybe, times.window_rows)
    scales = (
        (1.0, 1 - SCALED, 1 + SCALED)
        if not times.space.is_flat and _looks_at_space(frame)
        else (1.0,)
    )
    masks = [
        _in_all(frame, fixes.assign(way=np.rint(ways * scale).astype(np.int64)), now)
        for scale in scales
    ]
    some, every = (
        np.logical_or.reduce(masks) & kept,
        np.logical_and.reduce(masks) & kept & rows.sure,
    )
    found: pd.DataFrame = fixes.assign(way=ways, sure=every)[some]
    return found


def _looks_at_space(frame: Frame) -> bool:
    return any(
        "space" in (window.range.by, (window.slide or window.range).by)
        for window in frame.sliding
    )


def _newest(fixes: pd.DataFrame, rows: np.ndarray, most: int) -> np.ndarray:
    """The newest of an object's rows, as many as are kept."""
    counted = pd.Series(rows.astype(np.int64), fixes.index)
    newer: pd.Series = (
        counted[::-1].groupby(fixes["object"][::-1], sort=False).cumsum()[::-1]
    )
    return (newer <= most).to_numpy()


def _ways(frame: Frame, fixes: pd.DataFrame, *, space: Space) -> np.ndarray:
    """How far each object had come at each fix, in whole micrometres."""
    first = fixes["begins"].to_numpy(bool)
    x, y = fixes["x"].to_numpy(float), fixes["y"].to_numpy(float)
    if frame.min_step_m > 0:
        legs = _legs_of_steps(x, y, first, round(frame.min_step_m * 1e6), space=space)
    else:
        legs = _legs(np.r_[x[:1], x[:-1]], np.r_[y[:1], y[:-1]], x, y, space=space)
    legs[first] = 0
    found: np.ndarray = (
        pd.Series(legs, fixes.index)
        .groupby(fixes["object"], sort=False)
        .cumsum()
        .to_numpy(np.int64)
    )
    return found


def _legs(
    x0: np.ndarray, y0: np.ndarray, x: np.ndarray, y: np.ndarray, *, space: Space
) -> np.ndarray:
    metres = (
        np.hypot(x - x0, y - y0)
        if space.is_flat
        else np.asarray(_GEOD.inv(x0, y0, x, y)[2])
    )
    return np.rint(metres * 1e6).astype(np.int64)


def _legs_of_steps(
    x: np.ndarray, y: np.ndarray, first: np.ndarray, least: int, *, space: Space
) -> np.ndarray:
    """Legs from the fix that counted last; whether one counts depends on those before, so they come one by one."""
    legs, anchor = np.zeros(len(x), np.int64), 0
    for at in range(len(x)):
        here, there = slice(anchor, anchor + 1), slice(at, at + 1)
        leg = (
            0
            if first[at]
            else int(_legs(x[here], y[here], x[there], y[there], space=space)[0])
        )
        legs[at] = leg if leg >= least else 0
        anchor = at if first[at] or leg >= least else anchor
    return legs


def _in_all(frame: Frame, fixes: pd.DataFrame, now: _Now) -> np.ndarray:
    held = np.ones(len(fixes), bool)
    if len(fixes):
        ends = fixes[
            ~fixes.duplicated(["object", "tick"], keep="last")
        ]  # as things were at each tick
        for window in frame.sliding:
            held &= _in_one(window, frame, fixes, ends, now)
    return held


def _in_one(
    window: Sliding, frame: Frame, fixes: pd.DataFrame, ends: pd.DataFrame, now: _Now
) -> np.ndarray:
    moved, high = _last_move(window, frame, ends, now)
    by, size = window.range.by, _units(window.range)
    up = high if by == (window.slide or window.range).by else moved[_COLUMN[by]]
    low = up - size + (1 if by == "rows" else 0)
    if frame.full:
        born = fixes.groupby("object", sort=False)["ts"].first().reindex(up.index)
        opened = (
            up if window.slide is not None or by != "time" else up * 0 + now.event_tick
        )
        full = opened - size >= (born if by == "time" else 0)
        up, low = up[full], low[full]
    measure = fixes["ts" if by == "time" else _COLUMN[by]].to_numpy(np.int64)
    of = fixes["object"]
    inside = (
        (measure >= of.map(low))
        & (measure <= of.map(up))
        & (fixes["n"] <= of.map(moved["n"]))
    )
    return np.asarray(inside, bool)


def _last_move(
    window: Sliding, frame: Frame, ends: pd.DataFrame, now: _Now
) -> tuple[pd.DataFrame, pd.Series]:
    """Per object how things were when the window moved last, and how high it came; objects whose did not are absent."""
    slide = window.slide or window.range
    if slide.by == "time":
        return _by_time(window, frame, ends, now)
    step = _units(slide) if window.slide else 1
    high = ends[_COLUMN[slide.by]] // step * step
    highest = high.groupby(ends["object"], sort=False).transform("max")
    at = (high == highest) & (highest > (0 if window.slide else -1))
    moved = ends[at].drop_duplicates("object").set_index("object")
    return moved, moved[_COLUMN[slide.by]] // step * step


def _by_time(
    window: Sliding, frame: Frame, ends: pd.DataFrame, now: _Now
) -> tuple[pd.DataFrame, pd.Series]:
    """A window that slides by time moves at the first tick from the slide on, or at its object's first one after it."""
    high = now.tick
    if window.slide is not None:
        step, origin = _units(window.slide), round(frame.origin_s * 1e6)
        high = (now.tick - origin) // step * step + origin
    moves_at = -(-high // now.tick_us) * now.tick_us
    before = ends[ends["tick"] <= moves_at].drop_duplicates("object", keep="last")
    first = ends[~ends["object"].isin(before["object"])].drop_duplicates("object")
    moved = pd.concat([before.assign(tick=moves_at), first]).set_index("object")
    return moved, pd.Series(high, moved.index)


def _units(extent: Extent) -> int:
    return round(extent.amount * (1 if extent.by == "rows" else 1e6))


def speeds(
    frame: Frame, rows: pd.DataFrame, *, unit_m: float = 1.0
) -> dict[str, float | None]:
    """The average speed of every object that has a row: its way over the legs that are in the result, by their time."""
    follows = (
        (rows["object"] == rows["object"].shift())
        & (rows["n"].diff() == 1)
        & ~rows["begins"]
    ).to_numpy()
    legs = (
        rows.assign(leg=rows["way"].diff(), took=rows["ts"].diff())[follows]
        .groupby("object")[["leg", "took"]]
        .sum()
    )
    whole = next(
        (window.range.amount for window in frame.sliding if window.range.by == "time"),
        None,
    )
    seconds = legs["took"] / 1e6 if whole is None else pd.Series(whole, legs.index)
    speed = (legs["leg"] / 1e6 / seconds).where(seconds > 0) * unit_m
    return {
        name: None if pd.isna(speed.get(name)) else float(speed[name])
        for name in rows["object"].unique()
    }


def speeds_in_doubt(frame: Frame, rows: pd.DataFrame) -> pd.DataFrame:
    """By object its average `speed`, NaN for none, and whether it is `sure`: none of its fixes is in doubt."""
    values = pd.Series(speeds(frame, rows), dtype=float)
    sure = rows.groupby("object")["sure"].all().reindex(values.index)
    return pd.DataFrame({"speed": values, "sure": sure.astype(bool)})
