"""How far objects have come at each event of a run, since a query looks at them (CQL-S section 3.2.2, SPEC W4).

A leg is rounded to whole micrometres, so that a way is the same number however its fixes are cut into runs.
"""

from dataclasses import dataclass

import numpy as np

from st_common.geometry.distance import metres_between
from st_common.operators.timeline import FIX, Events

_LONGEST = 1e15  # micrometres of a leg: a million kilometres; thousands of such legs still fit


@dataclass(slots=True, kw_only=True)
class Ways:
    """Arrays [f, n]: of f frames and n objects, or n events; columns as `Tracks`, `alive`: the object has a track.

    They are changed in place, from tick to tick.
    """

    alive: np.ndarray
    since: np.ndarray
    n: np.ndarray
    way: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @staticmethod
    def empty(frames: int, count: int) -> "Ways":
        """No tracks."""
        shape = (frames, count)
        whole = {name: np.zeros(shape, np.int64) for name in ("since", "n", "way")}
        return Ways(alive=np.zeros(shape, bool), **whole, x=np.full(shape, np.nan), y=np.full(shape, np.nan))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stays:
    """The events of a run as stays: `start` is the first event of each one's stay, `first` says that none is before it.

    A way that outlives its object is one stay: from the object's first event in the run on.
    """

    is_fix: np.ndarray
    start: np.ndarray
    first: np.ndarray

    @property
    def first_fix(self) -> np.ndarray:
        """The first fix of each event's stay; any number where there is none up to the event."""
        fixes = np.flatnonzero(self.is_fix)
        if not len(fixes):
            return self.start
        found: np.ndarray = fixes[np.minimum(np.searchsorted(fixes, self.start), len(fixes) - 1)]
        return found


def ways_of(now: Ways, events: Events, min_step: np.ndarray, outlives: np.ndarray, *, geographic: bool) -> Ways:
    """The tracks after each event, [f, events], from those before the run, [f, objects]; nothing is changed.

    Where a way `outlives` its object (bool[f]), the object is nowhere after its end, and no way leads to its next fix.
    """
    out = Ways.empty(len(min_step), len(events))
    if not len(events) or not len(min_step):
        return out
    for lasts in (False, True):
        plain = np.flatnonzero((min_step == 0) & (outlives == lasts))
        if len(plain):
            _every_fix(out, now, plain, events, lasts=lasts, geographic=geographic)
    for frame in np.flatnonzero(min_step > 0).tolist():
        _by_steps(out, now, frame, events, int(min_step[frame]), lasts=bool(outlives[frame]), geographic=geographic)
    return out


def begins(now: Ways, after: Ways, events: Events, frame: np.ndarray, event: np.ndarray) -> np.ndarray:
    """bool[n]: whether no way leads to some fixes in some frames, by the tracks before a run and after its events."""
    first = (event == 0) | (events.object[event] != events.object[event - 1])
    who = events.object[event]
    goes_on = np.where(first, now.alive[frame, who], after.alive[frame, event - 1])
    found: np.ndarray = ~goes_on | np.isnan(np.where(first, now.x[frame, who], after.x[frame, event - 1]))
    return found


def legs(x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray, *, geographic: bool) -> np.ndarray:
    """The lengths between points in micrometres, int64; 0 where one of them is nowhere."""
    length = metres_between(x1, y1, x2, y2) if geographic else np.hypot(x2 - x1, y2 - y1)
    return np.rint(np.minimum(np.nan_to_num(length, nan=0.0) * 1e6, _LONGEST)).astype(np.int64)


def _stays(events: Events, *, lasts: bool) -> _Stays:
    is_fix = events.kind == FIX
    first = np.r_[True, events.object[1:] != events.object[:-1]]
    starts = first if lasts else is_fix & (first | ~np.r_[False, is_fix[:-1]])
    start = np.maximum.accumulate(np.where(starts, np.arange(len(first)), 0))
    return _Stays(is_fix=is_fix, start=start, first=first)


def _every_fix(out: Ways, now: Ways, frames: np.ndarray, events: Events, *, lasts: bool, geographic: bool) -> None:
    """Where every fix counts, legs are the same for all frames: they are summed once."""
    stays = _stays(events, lasts=lasts)
    x, y = np.where(stays.is_fix, events.x, np.nan), np.where(stays.is_fix, events.y, np.nan)
    leg = legs(np.r_[np.nan, x[:-1]], np.r_[np.nan, y[:-1]], x, y, geographic=geographic)
    leg[stays.start == np.arange(len(leg))] = 0
    way, count = np.cumsum(leg), np.cumsum(stays.is_fix)
    since_start, n = way - way[stays.start], count - count[stays.start] + stays.is_fix[stays.start]
    rows, who = frames[:, None], events.object[stays.start]
    goes_on = now.alive[rows, who] & stays.first[stays.start]
    reach = legs(now.x[rows, who], now.y[rows, who], x[stays.start], y[stays.start], geographic=geographic)
    out.alive[frames] = (goes_on | (n > 0)) if lasts else stays.is_fix
    out.way[frames] = since_start + np.where(goes_on, now.way[rows, who] + reach, 0)
    out.n[frames] = n + np.where(goes_on, now.n[rows, who], 0)
    out.since[frames] = np.where(goes_on, now.since[rows, who], events.ts[stays.first_fix])
    out.x[frames], out.y[frames] = x, y


def _by_steps(out: Ways, now: Ways, frame: int, events: Events, step: int, *, lasts: bool, geographic: bool) -> None:
    """Which fix counts depends on the one that counted before: the n-th fixes of all objects, one n after the other."""
    track = {name: getattr(now, name)[frame].copy() for name in Ways.__dataclass_fields__}
    first = np.flatnonzero(np.r_[True, events.object[1:] != events.object[:-1]])
    rank = np.arange(len(events)) - np.repeat(first, np.diff(np.r_[first, len(events)]))
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))
    for at in np.split(by_rank, ends[:-1]):
        who, is_fix = events.object[at], events.kind[at] == FIX
        is_new = ~track["alive"][who]
        leg = legs(track["x"][who], track["y"][who], events.x[at], events.y[at], geographic=geographic)
        leg[is_new | (leg < step) | ~is_fix] = 0
        counts = is_new | np.isnan(track["x"][who]) | (leg > 0)
        x, y = np.where(is_fix, events.x[at], np.nan), np.where(is_fix, events.y[at], np.nan)
        fresh = {
            "alive": is_fix | (~is_new & lasts), "since": np.where(is_new, events.ts[at], track["since"][who]),
            "n": np.where(is_new, 0, track["n"][who]) + is_fix, "way": np.where(is_new, 0, track["way"][who]) + leg,
            "x": np.where(counts | ~is_fix, x, track["x"][who]), "y": np.where(counts | ~is_fix, y, track["y"][who]),
        }  # fmt: skip
        for name, values in fresh.items():
            track[name][who] = values
            getattr(out, name)[frame, at] = values
