"""From where windows are at visits to when rows are in results, for many ticks at once (CQL-S section 3, SPEC W2-W5).

Bounds never go back in a stay, and the rows of an object are in the order in which they came. So a row comes into each
window once and leaves it once, and both are found by bisection among the visits of its slot.
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import packed
from st_common.operators.events.timeline import LAST
from st_common.operators.travelled.bounds import Bounds, measured
from st_common.operators.travelled.rows import FrameRows
from st_common.operators.travelled.specs import NONE, FrameSpecs
from st_common.operators.travelled.visits import Visits
from st_common.operators.turn.changes import CAUSE
from st_common.operators.turn.course import BEFORE
from st_common.runs import firsts, ranges

_OF_END = np.array([CAUSE["leave"], CAUSE["gone"], CAUSE["expired"]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Visits with where windows are there.

    Attributes:
        frame: int64[n], the frame of each visit.
        bounds: the bounds at each.
        moved: bool[n], whether any window moved there.
    """

    visits: Visits
    frame: np.ndarray
    bounds: Bounds
    moved: np.ndarray

    def take(self, index: np.ndarray) -> "Moved":
        """Some of the visits, by place."""
        return Moved(
            visits=self.visits.take(index),
            frame=self.frame[index],
            bounds=self.bounds.take(index),
            moved=self.moved[index],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """When rows may be in results, by places of visits; all int64[n] but for the flags.

        visits of a slot       0     1     2     3     4
        a row                  first       enters      dies       in all windows at visits 2 and 3

    Attributes:
        index: the rows that are looked at.
        first: the first visit that knows of a row.
        enters: the visit from which on it is in all windows.
        dies: the visit at which it is left behind for ever, `end` if there is none.
        end: where the visits of its slot end.
        cut: bool, only newer rows push it out (`window_rows`).
        ts: the row's event time in microseconds.
    """

    index: np.ndarray
    first: np.ndarray
    enters: np.ndarray
    dies: np.ndarray
    end: np.ndarray
    cut: np.ndarray
    ts: np.ndarray

    def stays_at(self, look: Moved, place: np.ndarray, visit: np.ndarray) -> np.ndarray:
        """Whether rows are of the stay that their object has at visits; bool[n].

        Args:
            look: the visits.
            place: int64[n], places among these rows.
            visit: int64[n], places of visits.
        """
        stays: np.ndarray = look.visits.alive[visit] & (
            self.ts[place] >= look.visits.since[visit]
        )
        return stays


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRows:
    """Rows that are asked about.

    Attributes:
        index: int64[n], ascending, places of the rows.
        slot: int64[n], the slot of each.
        tick: int64[ticks], event times, ascending.
        most: how many rows a slot keeps.
        over: int64[n], the first tick after the session of each, in microseconds; None where no frame has sessions.
    """

    index: np.ndarray
    slot: np.ndarray
    tick: np.ndarray
    most: int
    over: np.ndarray | None = None

    def known_at(self, rows: FrameRows, index: np.ndarray) -> np.ndarray:
        """The places of the ticks from which on rows are known; int64[n].

        Args:
            rows: all rows that frames remember.
            index: int64[n], the places of those that are asked about.
        """
        known: np.ndarray = np.searchsorted(self.tick, rows.tick[index])
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What results depend on beside windows.

    Attributes:
        counts: bool[visits], whether the slot's object counts there.
        outlives: bool[f], whether rows of objects that ended stay.
        retelling: bool[f], whether all is told again at each result.
        ticks: how many ticks there are.
    """

    counts: np.ndarray
    outlives: np.ndarray
    retelling: np.ndarray
    ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the results of frames hold over some ticks.

    Attributes:
        row: int64[n], places of rows, each as often as it is held.
        start: int64[n], the tick from which on; BEFORE: already.
        until: int64[n], the tick before which that ends, `ticks` for none.
        cause: int64[n], why it left, a place in `CAUSES`; -1 where it is held after all ticks.
        again: int64, with `again_at`: rows that stay at ticks at which their results are told anew.
        looked: int64, all rows that were looked at; of others nothing changes.
        ticks: how many there are.
    """

    row: np.ndarray
    start: np.ndarray
    until: np.ndarray
    cause: np.ndarray
    again: np.ndarray
    again_at: np.ndarray
    looked: np.ndarray
    ticks: int

    @property
    def stays(self) -> np.ndarray:
        """bool[n]: whether a row is held after all ticks."""
        return self.cause < 0


def lives_of(
    look: Moved, specs: FrameSpecs, rows: FrameRows, asked: AskedRows
) -> Lives:
    """When rows may be in results, by places of visits.

    Args:
        look: the visits at which results are looked at, with where windows are there.
        specs: the windows.
        rows: all rows that frames remember.
        asked: those that are asked about.

    Returns:
        The lives of those that any visit knows of: a row comes into all windows once, and leaves them once.
    """
    visits, index = look.visits, asked.index
    known_at = packed(asked.slot, asked.known_at(rows, index))
    first = np.searchsorted(packed(visits.slot, visits.at), known_at)
    end = np.searchsorted(visits.slot, asked.slot, side="right")
    seen = first < end
    index, first, end = index[seen], first[seen], end[seen]
    stay_end = np.searchsorted(visits.stay, visits.stay[first], side="right")
    stays = visits.alive[first] & (rows.ts[index] >= visits.since[first])
    enters, dies = first, np.where(stays, stay_end, first)
    for number in range(specs.width):
        range_by = specs.range_by[look.frame[first], number]
        exists, measure = range_by != NONE, measured(rows, index, range_by)
        reached, passed = _in_window(
            look.bounds, number, (first, stay_end), measure, rows.n[index]
        )
        # A row is held where all windows have it: it enters by the last of them, and dies by the first.
        enters = np.where(exists, np.maximum(enters, reached), enters)
        dies = np.where(exists, np.minimum(dies, passed), dies)
    if asked.over is not None:
        dies = np.minimum(dies, _over(look, asked, asked.over, seen))
    cut = np.minimum(_pushed_out(look, rows, asked, index, first), end)
    return Lives(
        index=index,
        first=first,
        enters=enters,
        dies=np.minimum(dies, cut),
        end=end,
        cut=cut < dies,
        ts=rows.ts[index],
    )


def _over(
    look: Moved, asked: AskedRows, over: np.ndarray, seen: np.ndarray
) -> np.ndarray:
    """The visits at which the sessions of rows that are `seen` (bool) are over; the end of the slot's without one."""
    visits, over_at = look.visits, np.searchsorted(asked.tick, over[seen])
    reached = packed(asked.slot[seen], over_at)
    return np.searchsorted(packed(visits.slot, visits.at), reached)


def _pushed_out(
    look: Moved, rows: FrameRows, asked: AskedRows, index: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """The visits at which as many newer rows are known as a slot keeps; LAST without one."""
    most, visits = asked.most, look.visits
    out = np.full(len(index), LAST)
    newer = np.minimum(index + most, len(rows) - 1)
    full = np.flatnonzero(
        (newer == index + most) & (rows.key[newer] == rows.key[index])
    )
    if not len(full):
        return out
    known = packed(visits.slot[first[full]], asked.known_at(rows, newer[full]))
    reached = np.maximum(
        np.searchsorted(packed(visits.slot, visits.at), known), first[full]
    )
    touched = np.append(np.flatnonzero(visits.touched), LAST)
    out[full] = touched[np.searchsorted(touched, reached)]
    return out


def _in_window(
    bounds: Bounds,
    number: int,
    places: tuple[np.ndarray, np.ndarray],
    measure: np.ndarray,
    fix: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The visits at which a window reaches rows, and those at which it has passed them; int64[n] each.

    Args:
        bounds: of all windows at visits.
        number: which window, from 0.
        places: for each row the visits to look at, from the first to before the second.
        measure: int64[n], what the window measures of each row.
        fix: int64[n], the number of each row among the fixes of its object.
    """
    low, last = bounds.low[:, number], bounds.last[:, number]
    seen = bounds.seen[:, number]
    reached = np.maximum(
        _first_at_least(last, *places, measure), _first_at_least(seen, *places, fix)
    )
    # + 1: a row at the lower bound is still in the window.
    return reached, _first_at_least(low, *places, measure + 1)


def _first_at_least(
    values: np.ndarray, low: np.ndarray, high: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """The first place from `low` to before `high` whose value is at least as large, `high` without one.

    The values of each such range are ascending.
    """
    while (low < high).any():
        middle = (low + high) // 2
        searching = low < high
        reached = values[np.where(searching, middle, 0)] >= wanted
        low = np.where(searching & ~reached, middle + 1, low)
        high = np.where(searching & reached, middle, high)
    return low


def held_of(look: Moved, lives: Lives, before: np.ndarray, rules: Rules) -> Held:
    """What results hold over some ticks.

    Args:
        look: the visits at which results are looked at.
        lives: when rows may be in them.
        before: bool, which of these rows results held before the ticks.
        rules: who counts, and what becomes of rows whose object ended.

    Returns:
        Each row as often as it is held: from which tick to before which, and why it left.
    """
    place, start, until = _counted(look.visits, lives, rules.counts)
    goes_on = before[place] & (start == lives.first[place])
    # Those that are held no longer leave at the first visit.
    leaves_at_once = before.copy()
    leaves_at_once[place[goes_on]] = False
    at_once = np.flatnonzero(leaves_at_once)
    place = np.append(place, at_once)
    goes_on = np.append(goes_on, np.ones(len(at_once), bool))
    start = np.append(start, lives.first[at_once])
    until = np.append(until, lives.first[at_once])
    at = np.append(look.visits.at, rules.ticks)
    leaves = until < lives.end[place]
    cause = np.full(len(place), -1)
    cause[leaves] = _causes(
        look, until[leaves], rules, lives.stays_at(look, place[leaves], until[leaves])
    )
    changed = np.append(until[leaves], start[~goes_on])
    again, visit = _again(look, rules, changed, (place, start + ~goes_on, until))
    return Held(
        row=lives.index[place],
        start=np.where(goes_on, BEFORE, at[start]),
        until=np.where(leaves, at[until], rules.ticks),
        cause=cause,
        again=lives.index[again],
        again_at=at[visit],
        looked=lives.index,
        ticks=rules.ticks,
    )


def _counted(
    visits: Visits, lives: Lives, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows by place among those looked at, each as often as it is held: from which visit to before which."""
    start = firsts(counts, visits.slot)
    end = np.append(start[1:], len(counts))[: len(start)]
    start, end = start[counts[start]], end[counts[start]]
    low, high = (
        np.searchsorted(end, lives.enters, side="right"),
        np.searchsorted(start, lives.dies),
    )
    times = np.where(lives.enters < lives.dies, np.maximum(high - low, 0), 0)
    place, run = np.repeat(np.arange(len(times)), times), ranges(low, times)
    return (
        place,
        np.maximum(start[run], lives.enters[place]),
        np.minimum(end[run], lives.dies[place]),
    )


def _causes(
    look: Moved, visit: np.ndarray, rules: Rules, stays: np.ndarray
) -> np.ndarray:
    """Why rows leave at visits: their object ended or counts no longer, else they are too old."""
    counts, end = rules.counts[visit], look.visits.end[visit]
    outlived = rules.outlives[look.frame[visit]] & ~counts
    ended = np.where(stays, np.where(outlived, end, 0), np.maximum(end, 1))
    return np.where(
        ended > 0, _OF_END[ended], np.where(counts, CAUSE["aged"], CAUSE["leave"])
    )


def _again(
    look: Moved,
    rules: Rules,
    changed: np.ndarray,
    spells: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and visits at which they stay in a result that is told again: a window moved, or the result `changed`."""
    is_told = look.moved.copy()
    is_told[changed] = True
    told = np.flatnonzero(is_told & rules.retelling[look.frame])
    place, start, until = spells
    low = np.searchsorted(told, start)
    times = np.maximum(np.searchsorted(told, until) - low, 0)
    return np.repeat(place, times), told[ranges(low, times)]
