"""Windows along the ways of objects: where each stands, and which fixes it holds (CQL-S section 3, SPEC W2-W5).

Where a window stands follows from its last move alone, so that no window is moved step by step. With RANGE 20 km and
SLIDE 10 km:

        way         0    8    13   21   34 km
        at 13 km    [---------]                 high = floor(13 / 10) * 10 = 10, holds 0 .. 10
        at 34 km              [---------]       high = 30, holds 10 .. 30

When queries are judged, whoever asks knows: at `ticks`, ascending, all those up to now at which something happened in
the stream or a window of time moved by itself.
"""

from dataclasses import dataclass, replace

import numpy as np

from st_common.query.frame import Frame, Sliding
from st_common.reference.metric import SCALED, Bools, Ints, Members
from st_common.reference.travelled import Ways, owners, units


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a window stands for the object of each fix, columns of length n.

    Attributes:
        last: the row of the last fix of the object that it has seen; -1 before its first move.
        tick: of its last move.
        low: the lower bound, closed, in what its range is measured by.
        up: the upper one, closed.
        holds: bool, false until a whole range lies behind the object, where that is asked for.
    """

    last: Ints
    tick: Ints
    low: Ints
    up: Ints
    holds: Bools


def in_windows(frame: Frame, ways: Ways, ticks: Ints, *, doubts: bool) -> Members:
    """Which fixes are in all windows at the last of the ticks. Masks of n.

    With `doubts` others may have measured ways that are a little longer or shorter.
    """
    scales = (1 - SCALED, 1.0, 1 + SCALED) if doubts else (1.0,)
    masks = []
    for scale in scales:
        way_um = np.rint(ways.way_um * scale).astype(np.int64)
        masks.append(_in_all(frame, replace(ways, way_um=way_um), ticks))
    return Members(sure=np.logical_and.reduce(masks), maybe=np.logical_or.reduce(masks))


def _in_all(frame: Frame, ways: Ways, ticks: Ints) -> Bools:
    held = np.ones(len(ways), np.bool_)
    for window in frame.sliding:
        held &= in_window(window, ways, standing(window, frame, ways, ticks))
    return held


def in_window(window: Sliding, ways: Ways, stands: Standing) -> Bools:
    """Which fixes are in a window that stands there. bool[n]."""
    measure = ways.column(window.range.by)
    is_seen = np.arange(len(ways)) <= stands.last
    is_between = (measure >= stands.low) & (measure <= stands.up)
    return np.asarray(stands.holds & is_seen & is_between, np.bool_)


def is_behind(window: Sliding, ways: Ways, stands: Standing) -> Bools:
    """Which fixes a window that stands there has left behind for ever. bool[n]."""
    return (stands.last >= 0) & (ways.column(window.range.by) < stands.low)


def standing(window: Sliding, frame: Frame, ways: Ways, ticks: Ints) -> Standing:
    """Where a window stands at the last of the ticks, for the object of each fix.

    A jump over several slides gives the last window alone. Objects have windows of their own, but time is one: what
    slides by it moves for all objects at the first tick from the slide on, for others at their first tick after it.
    """
    slide = window.slide or window.range
    last, tick, high = (
        _by_time(window, frame, ways, ticks)
        if slide.by == "time"
        else _by_way(window, ways)
    )
    by, size = window.range.by, units(window.range)
    here = tick if by == "time" else ways.column(by)[last]
    up = high if by == slide.by else here
    holds = last >= 0
    if frame.full:
        start = ways.event_us[_first_rows(ways)] if by == "time" else 0
        holds &= up - size >= start
    return Standing(
        last=last,
        tick=tick,
        low=up - size + (1 if by == "rows" else 0),
        up=up,
        holds=holds,
    )


def _by_way(window: Sliding, ways: Ways) -> tuple[Ints, Ints, Ints]:
    """Per fix the last one that its object's window has seen, the tick of that move, and how high it came.

    Without a slide it moves with every fix; with one as soon as the way, or the count, reaches a multiple of it.
    """
    measure = ways.column((window.slide or window.range).by)
    if window.slide is None:
        last = _last_rows(ways, np.ones(len(ways), np.bool_))
        return last, ways.tick[last], measure[last]
    step = units(window.slide)
    high = measure // step * step
    highest = high[_last_rows(ways, np.ones(len(ways), np.bool_))]
    # Ways never get shorter: what is not the highest yet came before the window moved.
    is_reached = _ends_of_ticks(ways) & (high == highest) & (highest > 0)
    last = _first_of(ways, is_reached)
    return last, ways.tick[last], highest


def _by_time(
    window: Sliding, frame: Frame, ways: Ways, ticks: Ints
) -> tuple[Ints, Ints, Ints]:
    """The same for a window that slides by time, or that is judged at every tick for want of a slide."""
    if not len(ticks):
        never = np.full(len(ways), -1)
        return never, never, never
    high = moves_at = int(ticks[-1])
    if window.slide is not None:
        step, origin = units(window.slide), round(1e6 * frame.origin_s)
        high = (high - origin) // step * step + origin
        moves_at = int(ticks[np.searchsorted(ticks, high)])
    last = _last_rows(ways, ways.tick <= moves_at)
    first_tick = _first_of(ways, _ends_of_ticks(ways))
    last = np.where(last >= 0, last, first_tick)
    tick = np.maximum(ways.tick[last], moves_at)
    return last, tick, np.full(len(ways), high)


def _ends_of_ticks(ways: Ways) -> Bools:
    """The last fix of an object at each of its ticks: only then windows are looked at."""
    owner = owners(ways.ids)
    is_followed = (owner[1:] == owner[:-1]) & (ways.tick[1:] == ways.tick[:-1])
    return np.append(~is_followed, True)[: len(ways)]


def _first_rows(ways: Ways) -> Ints:
    """The row of the first fix of the object of each fix."""
    return np.arange(len(ways)) - ways.number + 1


def _last_rows(ways: Ways, among: Bools) -> Ints:
    """The row of the last fix of the same object among some, for each fix; -1: there is none."""
    owner, rows = owners(ways.ids), np.flatnonzero(among)
    last = np.full(len(ways), -1)
    np.maximum.at(last, owner[rows], rows)
    return np.asarray(last[owner])


def _first_of(ways: Ways, among: Bools) -> Ints:
    """The row of the first fix of the same object among some, for each fix; -1: there is none."""
    owner, rows = owners(ways.ids), np.flatnonzero(among)
    first = np.full(len(ways), len(ways))
    np.minimum.at(first, owner[rows], rows)
    return np.where(first[owner] < len(ways), first[owner], -1)


def newest(ways: Ways, among: Bools, most: int) -> Bools:
    """The newest fixes of each object among some, as many as are kept. bool[n]."""
    so_far = np.cumsum(among, dtype=np.int64)
    newer = so_far[_last_rows(ways, np.ones(len(ways), np.bool_))] - so_far
    return among & (newer < most)
