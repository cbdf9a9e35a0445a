"""How far objects have come at each event of a run, since a query looks at them (CQL-S section 3.2.2, SPEC W4).

A leg is rounded to whole micrometres, so that a way is the same number however its fixes are cut into runs.
"""

from dataclasses import dataclass

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.events.timeline import FIX, Events
from st_common.operators.travelled.slots import Slots
from st_common.runs import is_first, ranks_of, shifted, starts_of

_LONGEST = (
    1e15  # micrometres of a leg: a million kilometres; thousands of such legs still fit
)


@dataclass(slots=True, kw_only=True)
class Ways:
    """How far objects have come; arrays by slot: of frames and objects, or of frames and events.

    Columns are as in `Tracks`, and `alive` (bool) says that there is a track. They are changed in place, from tick to
    tick.
    """

    alive: np.ndarray
    since: np.ndarray
    n: np.ndarray
    way: np.ndarray
    x: np.ndarray
    y: np.ndarray

    @staticmethod
    def empty(shape: int) -> "Ways":
        """No tracks in so many slots."""
        whole = {name: np.zeros(shape, np.int64) for name in ("since", "n", "way")}
        return Ways(
            alive=np.zeros(shape, bool),
            **whole,
            x=np.full(shape, np.nan),
            y=np.full(shape, np.nan),
        )

    def take(self, slot: np.ndarray) -> "Ways":
        """Those of some slots, copied."""
        return Ways(
            **{name: getattr(self, name)[slot] for name in self.__dataclass_fields__}
        )

    def put(self, slot: np.ndarray, ways: "Ways") -> None:
        """Takes on those of some slots (int64, each once), one by one."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[slot] = getattr(ways, name)


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
        first: np.ndarray = fixes[
            np.minimum(np.searchsorted(fixes, self.start), len(fixes) - 1)
        ]
        return first


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The events of a run, and the slots of frames among objects and among these events."""

    events: Events
    objects: Slots
    among: Slots
    space: Space


def ways_of(now: Ways, run: Run, min_step: np.ndarray, outlives: np.ndarray) -> Ways:
    """How far objects have come after each event of a run; nothing is changed.

    Args:
        now: the tracks before the run, by the slots of objects.
        run: the events, and their slots.
        min_step: int64[f], micrometres: a leg that is shorter counts nothing, nor does its fix; 0 for none.
        outlives: bool[f], whether a frame's rows outlive their object: then it is nowhere after its end, and no way
            leads to its next fix.

    Returns:
        The tracks, by the slots among events.
    """
    out, frame = Ways.empty(run.among.total), run.among.frame
    if not run.among.total:
        return out
    for lasts in (False, True):
        plain = np.flatnonzero((min_step[frame] == 0) & (outlives[frame] == lasts))
        if len(plain):
            _every_fix(out, now, run, plain, lasts=lasts)
    stepped = np.flatnonzero(min_step[frame] > 0)
    if len(stepped):
        _by_steps(
            out, now, run, stepped, min_step[frame[stepped]], outlives[frame[stepped]]
        )
    return out


def begins(
    now: Ways, after: Ways, run: Run, frame: np.ndarray, event: np.ndarray
) -> np.ndarray:
    """Whether no way leads to fixes: they are the first of a stay, or the object was nowhere before.

    Args:
        now: the tracks before the run, by the slots of objects.
        after: those after each event, by the slots among events.
        run: the events, and their slots.
        frame: int64[n], the frame that looks at each fix.
        event: int64[n], the places of the fixes among the events.

    Returns:
        bool[n].
    """
    who = run.events.object
    first = (event == 0) | (who[event] != who[event - 1])
    here, before = run.objects.of(frame, who[event]), run.among.of(frame, event - 1)
    goes_on = np.where(first, now.alive[here], after.alive[before])
    is_first: np.ndarray = ~goes_on | np.isnan(
        np.where(first, now.x[here], after.x[before])
    )
    return is_first


def legs(
    x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray, *, space: Space
) -> np.ndarray:
    """The lengths between points in whole micrometres: sums of them depend on no order (docs/adr/0012).

    Args:
        x1: float64[n], one end; `y1` likewise.
        y1: see `x1`.
        x2: float64[n], the other end; `y2` likewise.
        y2: see `x2`.
        space: by which distances are measured.

    Returns:
        int64[n], at most 10**15; 0 where one of the ends is NaN. From (0, 0) to (3, 4) in the plane it is 5,000,000.
    """
    length = space.distance(x1, y1, x2, y2)
    return np.rint(np.minimum(np.nan_to_num(length, nan=0.0) * 1e6, _LONGEST)).astype(
        np.int64
    )


def _stays(events: Events, *, lasts: bool) -> _Stays:
    is_fix = events.kind == FIX
    first = is_first(events.object)
    begins = first if lasts else is_fix & (first | ~shifted(is_fix, first=False))
    start = np.maximum(starts_of(begins), 0)
    return _Stays(is_fix=is_fix, start=start, first=first)


def _every_fix(
    out: Ways, now: Ways, run: Run, which: np.ndarray, *, lasts: bool
) -> None:
    """Where every fix counts, legs are the same for all frames: they are summed once."""
    events = run.events
    stays = _stays(events, lasts=lasts)
    x = np.where(stays.is_fix, events.x, np.nan)
    y = np.where(stays.is_fix, events.y, np.nan)
    leg = legs(shifted(x, np.nan), shifted(y, np.nan), x, y, space=run.space)
    # No way leads to the first event of a stay from what stands before it in the array.
    leg[stays.start == np.arange(len(leg))] = 0
    way, count = np.cumsum(leg), np.cumsum(stays.is_fix)
    at = run.among.number[which]
    start = stays.start[at]
    since_start = way[at] - way[start]
    n = count[at] - count[start] + stays.is_fix[start]
    slot = run.objects.of(run.among.frame[which], events.object[start])
    goes_on = now.alive[slot] & stays.first[start] & (slot >= 0)
    # The leg from the last fix before the run to the first one in it.
    reach = legs(now.x[slot], now.y[slot], x[start], y[start], space=run.space)
    out.alive[which] = (goes_on | (n > 0)) if lasts else stays.is_fix[at]
    out.way[which] = since_start + np.where(goes_on, now.way[slot] + reach, 0)
    out.n[which] = n + np.where(goes_on, now.n[slot], 0)
    out.since[which] = np.where(
        goes_on, now.since[slot], events.ts[stays.first_fix[at]]
    )
    out.x[which], out.y[which] = x[at], y[at]


def _by_steps(
    out: Ways,
    now: Ways,
    run: Run,
    which: np.ndarray,
    step: np.ndarray,
    lasts: np.ndarray,
) -> None:
    """Which fix counts depends on the one that counted before: the n-th fixes of all objects, one n after the other."""
    events, event = run.events, run.among.number[which]
    track = now.take(np.arange(len(now.n)))
    slot = run.objects.of(run.among.frame[which], events.object[event])
    for part in _by_rank(events, event):
        at, who = event[part], slot[part]
        after = _one_more(
            track.take(who), events, at, step[part], lasts[part], space=run.space
        )
        track.put(who, after)
        out.put(which[part], after)


def _by_rank(events: Events, event: np.ndarray) -> list[np.ndarray]:
    """Places among `event`: those of the first events of all objects, then those of the second ones, and so on."""
    rank = ranks_of(is_first(events.object))[event]
    ends = np.cumsum(np.bincount(rank))
    return np.split(np.argsort(rank, kind="stable"), ends[:-1])


def _one_more(
    track: Ways,
    events: Events,
    at: np.ndarray,
    step: np.ndarray,
    lasts: np.ndarray,
    *,
    space: Space,
) -> Ways:
    """The tracks after one more event each (`at`); a leg shorter than its step does not count, nor does its fix.

    step 10      fix at 0    at 7    at 12    at 15
    counts            yes      no      yes       no
    way                 0       0       12       12
    """
    is_fix = events.kind[at] == FIX
    is_new = ~track.alive
    x = np.where(is_fix, events.x[at], np.nan)
    y = np.where(is_fix, events.y[at], np.nan)
    leg = legs(track.x, track.y, events.x[at], events.y[at], space=space)
    leg[is_new | (leg < step) | ~is_fix] = 0
    moves = is_new | np.isnan(track.x) | (leg > 0) | ~is_fix
    return Ways(
        alive=is_fix | (~is_new & lasts),
        since=np.where(is_new, events.ts[at], track.since),
        n=np.where(is_new, 0, track.n) + is_fix,
        way=np.where(is_new, 0, track.way) + leg,
        x=np.where(moves, x, track.x),
        y=np.where(moves, y, track.y),
    )
