"""When windows move, and what they hold then: d_high and d_low, t_high and t_low (CQL-S section 3.2, SPEC W4, W5)."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.state.fixes import NEVER
from st_common.operators.travelled.rows import FrameRows
from st_common.operators.travelled.specs import NONE, ROWS, SPACE, TIME, FrameSpecs
from st_common.operators.travelled.visits import Visits
from st_common.runs import last_set, shifted


@dataclass(slots=True, kw_only=True)
class Bounds:
    """Where windows are: int64[n, W], by slot or by visit; NEVER before a window moves first.

    Attributes:
        high: how far it went by whole slides, counted from its origin.
        low: the least measure that it holds.
        last: the greatest measure that it holds.
        seen: the number of the object's newest fix that it knows of.
    """

    high: np.ndarray
    low: np.ndarray
    last: np.ndarray
    seen: np.ndarray

    @staticmethod
    def unmoved(slots: int, width: int) -> "Bounds":
        """Windows that have not moved yet: NEVER in arrays [slots, width]."""
        return Bounds(
            **{
                name: np.full((slots, width), NEVER)
                for name in Bounds.__dataclass_fields__
            }
        )

    def take(self, index: np.ndarray) -> "Bounds":
        """Those of some slots or visits (int64, places)."""
        return Bounds(
            **{name: getattr(self, name)[index] for name in self.__dataclass_fields__}
        )

    def of_window(self, number: int, *, where: np.ndarray) -> dict[str, np.ndarray]:
        """The columns of one window of each frame; int64[n] by name.

        Args:
            number: which window, from 0.
            where: bool[n]; the others are as if they had not moved yet.
        """
        return {
            name: np.where(where, getattr(self, name)[:, number], NEVER)
            for name in self.__dataclass_fields__
        }

    def put(self, slot: np.ndarray, bounds: "Bounds") -> None:
        """Takes on the bounds of some slots (int64, each once), one by one."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[slot] = getattr(bounds, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The n-th windows of some frames: a column of each of `FrameSpecs`' arrays.

    Attributes:
        by: int64[f], what it slides by: SPACE, TIME, ROWS, or NONE where a frame has no such window.
        slide: int64[f], micrometres, microseconds or fixes; 0: it moves with every fix.
        range_by: int64[f], what its range is of.
        size: int64[f], the range.
        origin: int64[f], where slides of time are counted from, microseconds; 0 for others.
    """

    by: np.ndarray
    slide: np.ndarray
    range_by: np.ndarray
    size: np.ndarray
    origin: np.ndarray

    @staticmethod
    def of(specs: FrameSpecs, frame: np.ndarray, window: int) -> "Window":
        """The windows with a number of some frames.

        Args:
            specs: all frames.
            frame: int64[n], the frames; repeats allowed.
            window: which of their windows, from 0.
        """
        by = specs.slide_by[frame, window]
        return Window(
            by=by,
            slide=specs.slide[frame, window],
            range_by=specs.range_by[frame, window],
            size=specs.range[frame, window],
            origin=np.where(by == TIME, specs.origin[frame], 0),
        )

    @property
    def slides_by_time(self) -> np.ndarray:
        """bool[n]: whether a window goes on by whole slides of time."""
        slides: np.ndarray = (self.by == TIME) & (self.slide > 0)
        return slides

    def high(self, measure: np.ndarray) -> np.ndarray:
        """How far windows go by whole slides (CQL-S, d_high); int64[f], counted from the origin.

        Args:
            measure: int64[f], how far they could go: the way, time or number of the fix.

        Example:
            slide 10, ways 8, 13, 21:  0, 10, 20
        """
        measure = measure - self.origin
        return np.where(
            self.slide > 0, measure - measure % np.maximum(self.slide, 1), measure
        )

    def highs(self, tick: np.ndarray) -> np.ndarray:
        """The same at each of some ticks (int64, event times); int64[f, ticks]. Of windows that slide by time alone."""
        each = np.repeat(np.arange(len(self.by)), len(tick))
        windows = Window(
            **{name: getattr(self, name)[each] for name in self.__dataclass_fields__}
        )
        return windows.high(np.tile(tick, len(self.by))).reshape(
            len(self.by), len(tick)
        )


def moves(
    bounds: Bounds,
    specs: FrameSpecs,
    visits: Visits,
    frame: np.ndarray,
    may_move: np.ndarray,
) -> tuple[Bounds, np.ndarray]:
    """Where windows are at visits.

    What windows go by never falls in a stay. So one moves if it could not go as far at the visit before.

    Args:
        bounds: where the windows of all slots were before.
        specs: the windows.
        visits: n pairs of a slot and a tick, sorted, with how far the object had come there.
        frame: int64[n], the frame of each visit's slot.
        may_move: bool[n], whether windows are looked at there.

    Returns:
        The bounds at each visit (arrays [n, W]), and whether any window moved there (bool[n]).
    """
    after = Bounds.unmoved(len(visits), specs.width)
    before = bounds.take(visits.slot)
    moved = np.zeros(len(visits), bool)
    for number in range(specs.width):
        window = Window.of(specs, frame, number)
        # In a stay that begins in the run no window has moved yet.
        old = before.of_window(number, where=visits.goes_on)
        # What catches up is behind the clock alone: an open tick may have taken the way on already.
        may_slide = visits.is_tick | window.slides_by_time
        can_move = (window.by != NONE) & visits.alive & may_move & may_slide
        high = np.maximum(window.high(_measured_at(visits, window.by)), old["high"])
        moving = can_move & _grows(window, visits, can_move, high, old["high"])
        new = _placed(window, visits, high, full=specs.full[frame])
        # Where a window did not move its bounds are those of the last visit of the stay at which it did.
        moved_at = last_set(moving, visits.stay)
        for name in _NAMES:
            values = np.where(moved_at >= 0, new[name][moved_at], old[name])
            getattr(after, name)[:, number] = values
        moved |= moving
    return after, moved


def _placed(
    window: Window, visits: Visits, high: np.ndarray, *, full: np.ndarray
) -> dict[str, np.ndarray]:
    """Where windows are that have moved to `high`; those that wait until they are `full` hold nothing before."""
    own = _measured_at(visits, window.range_by)
    last = np.where(window.range_by == window.by, high + window.origin, own)
    low = last - window.size + (window.range_by == ROWS)
    is_full = np.where(
        window.range_by == TIME, low >= visits.since, last >= window.size
    )
    last = np.where(full & ~is_full, NEVER, last)
    return {"high": high, "low": low, "last": last, "seen": visits.n}


_NAMES = tuple(Bounds.__dataclass_fields__)


def _grows(
    window: Window, visits: Visits, can: np.ndarray, high: np.ndarray, old: np.ndarray
) -> np.ndarray:
    """bool[n]: whether windows go farther than at the visit before of the same stay."""
    before = shifted(last_set(can, visits.stay), -1)
    before = np.where(before >= visits.stay, before, -1)
    reached = np.where(before >= 0, high[before], old)
    reached = np.where(
        (reached == NEVER) & (window.by != TIME),
        np.where(window.slide > 0, 0, -1),
        reached,
    )
    # Without a slide a window follows every fix, also that of an object which stands still.
    follows = (window.slide == 0) & (window.by != TIME) & visits.touched
    grows: np.ndarray = (high > reached) | follows
    return grows


def by_the_clock(
    bounds: Bounds,
    specs: FrameSpecs,
    frame: np.ndarray,
    slot: np.ndarray,
    tick: np.ndarray,
) -> np.ndarray:
    """The ticks at which windows slide by the clock alone: those of `SLIDE BY .. SATTR TIME`.

    Args:
        bounds: where the windows of all slots were before.
        specs: the windows.
        frame: int64[n], the frame of each slot.
        slot: int64[n], the slots that are asked about.
        tick: int64[ticks], event times, ascending.

    Returns:
        bool[n, ticks].
    """
    moves = np.zeros((len(slot), len(tick)), bool)
    for number in range(specs.width if len(slot) else 0):
        window = Window.of(specs, np.arange(len(specs.numbers)), number)
        high = window.highs(tick)[frame]
        # A window slides at a tick if it could not go as far at the tick before.
        before = np.concatenate([bounds.high[slot, number, None], high[:, :-1]], axis=1)
        moves |= window.slides_by_time[frame, None] & (high > before)
    return moves


def slid(specs: FrameSpecs, tick: np.ndarray, tick_us: int) -> np.ndarray:
    """Where a window of a frame slides by time; bool[f, ticks].

    Args:
        specs: the frames.
        tick: int64[ticks], event times in microseconds.
        tick_us: the time between two ticks: what is asked is whether it slid since the tick before, judged or not.
    """
    slides = np.zeros((len(specs.numbers), len(tick)), bool)
    for number in range(specs.width):
        window = Window.of(specs, np.arange(len(specs.numbers)), number)
        slides |= window.slides_by_time[:, None] & (
            window.highs(tick) > window.highs(tick - tick_us)
        )
    return slides


def inside(
    bounds: Bounds,
    specs: FrameSpecs,
    rows: FrameRows,
    index: np.ndarray,
    frame: np.ndarray,
    slot: np.ndarray,
) -> np.ndarray:
    """Which rows all windows of their frame hold, where these are now.

    Args:
        bounds: where the windows of all slots are.
        specs: the windows.
        rows: all rows that frames remember.
        index: int64[n], the places of those that are asked about; `frame` and `slot` are those of each.
        frame: see `index`.
        slot: see `index`.

    Returns:
        bool[n].
    """
    held = np.ones(len(index), bool)
    for number in range(specs.width):
        range_by = specs.range_by[frame, number]
        measure = measured(rows, index, range_by)
        seen, low, last = (
            getattr(bounds, name)[slot, number] for name in ("seen", "low", "last")
        )
        held &= (range_by == NONE) | (
            (rows.n[index] <= seen) & (measure >= low) & (measure <= last)
        )
    return held


def _measured_at(visits: Visits, domain: np.ndarray) -> np.ndarray:
    """How far objects had come at visits, in what each one's window is of."""
    return _chosen(domain, (visits.way, visits.tick, visits.n))


def measured(rows: FrameRows, index: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """How far rows had come, each in what its window is of; int64[n]: micrometres, microseconds or fixes.

    Args:
        rows: all rows that frames remember.
        index: int64[n], the places of those that are asked about.
        domain: int64[n], SPACE, TIME or ROWS.
    """
    return _chosen(domain, (rows.way[index], rows.ts[index], rows.n[index]))


def _chosen(
    domain: np.ndarray, measures: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    chosen: np.ndarray = np.where(
        domain == SPACE, measures[0], np.where(domain == TIME, measures[1], measures[2])
    )
    return chosen
