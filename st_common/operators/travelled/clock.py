"""When frames change by the clock alone: windows that slide by time, and rows that get too old (SPEC W3, W4)."""

import numpy as np

from st_common.operators.arrays.keys import SHIFT, unique
from st_common.operators.events.agenda import cut_short, ticks_of, ticks_past
from st_common.operators.events.timeline import LAST
from st_common.operators.travelled.rows import FrameRows
from st_common.operators.travelled.specs import TIME, FrameSpecs
from st_common.operators.turn.turn import Turn


class FrameClock:
    """The ticks at which the clock alone changes the frames of a run.

    Args:
        turn: the run.
        specs: the frames.
        rows: all rows that they remember, those of the run included.
        newest: the largest event time of any object, in microseconds.

    Attributes:
        sliding: bool[f], frames with a window that slides by time.
        strict: bool[f], frames where it can be seen at which ticks a window of time without a slide moves: all is told
            again at each of them, or nothing before windows are full.
    """

    def __init__(
        self, turn: Turn, specs: FrameSpecs, rows: FrameRows, newest: int
    ) -> None:
        self._turn, self._specs, self._rows, self._newest = turn, specs, rows, newest
        self.sliding = ((specs.slide_by == TIME) & (specs.slide > 0)).any(axis=1)
        self._is_loose = (specs.slide_by == TIME) & (specs.slide == 0)
        loose = self._is_loose.any(axis=1)
        self.strict = loose & (turn.known.retelling[specs.numbers] | specs.full)
        index = self._loose_rows(loose)
        age = self._first_age(index)
        order = np.argsort(age, kind="stable")
        self._index, self._age = index[order], age[order]

    def _loose_rows(self, loose: np.ndarray) -> np.ndarray:
        """The rows of frames with a window of time without a slide (bool[f]); all rows are looked at only for these."""
        if not loose.any():
            return np.empty(0, np.int64)
        is_loose = np.append(loose, False)  # the last is for NONE
        return np.flatnonzero(is_loose[self._specs.place[self._rows.query]])

    def _first_age(self, index: np.ndarray) -> np.ndarray:
        """The ticks at which rows are too old for the first of their windows without a slide."""
        specs, frame = self._specs, self._specs.place[self._rows.queries(index)]
        size = np.where(self._is_loose, specs.range, LAST).min(axis=1, initial=LAST)
        return ages_of(self._turn, self._rows, index, size[frame])

    def aging(self, tick: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows that get too old up to the last of some ticks.

        Args:
            tick: int64[ticks], event times, ascending, at least one.

        Returns:
            Places of rows, when each gets too old (microseconds), and the place of the first tick that sees it.
        """
        few = slice(0, int(np.searchsorted(self._age, tick[-1], side="right")))
        return self._index[few], self._age[few], np.searchsorted(tick, self._age[few])

    def forget(self, tick: int) -> None:
        """Rows that are too old at a tick are not named again."""
        done = int(np.searchsorted(self._age, tick, side="right"))
        self._index, self._age = self._index[done:], self._age[done:]

    def slides(self, until: int) -> np.ndarray:
        """The ticks before a time at which the clock moves windows or ages rows; int64, ascending, each once.

        Args:
            until: an event time in microseconds; ticks from the clock's beginning in the run on are named.
        """
        specs = self._specs
        # Before the first row of all nothing moves: a window's slide may begin before the stream has a time.
        earliest = int(self._rows.tick.min(initial=LAST))
        first = max(int(self._turn.clock.value[0]), earliest)
        frame = specs.place[self._rows.queries(self._index)]
        parts = [np.empty(0, np.int64)]
        for window in range(specs.width):
            mine = self._is_loose[frame, window]
            size = specs.range[frame[mine], window]
            parts.append(ages_of(self._turn, self._rows, self._index[mine], size))
        for frame_at, window in np.argwhere(
            (specs.slide_by == TIME) & ~self._is_loose
        ).tolist():
            number = int(specs.numbers[frame_at])
            low, end = np.searchsorted(
                self._rows.key, [number << SHIFT, (number + 1) << SHIFT]
            )
            if low < end:
                parts.append(
                    self._slides(frame_at, window, self._rows.ts[low:end], first, until)
                )
        ticks = unique(np.concatenate(parts))
        return ticks[(ticks >= first) & (ticks < until)]

    def _slides(
        self, frame: int, window: int, ts: np.ndarray, first: int, until: int
    ) -> np.ndarray:
        """The ticks at which a window slides that has rows of these times."""
        specs, tick_us = self._specs, self._turn.settings.tick_us
        slide, size, origin = (
            int(specs.slide[frame, window]),
            int(specs.range[frame, window]),
            int(specs.origin[frame]),
        )
        timed = specs.range_by[frame, window] == TIME
        retells = self._turn.known.retelling[specs.numbers[frame]]
        if timed or not retells:  # nothing changes after that
            until = min(until, self._newest + slide + (size if timed else 0) + tick_us)
        start = max(first, int(ts.min())) - origin
        slides: np.ndarray = (
            np.arange(start - start % slide - slide, until - origin + slide, slide)
            + origin
        )
        return ticks_of(slides, tick_us)


def ages_of(
    turn: Turn, rows: FrameRows, index: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """The first ticks at which rows are older than so long; one that an end mark cuts short is at its time.

    Args:
        turn: the run.
        rows: all rows that frames remember.
        index: int64[n], the places of those that are asked about.
        size: int64[n], microseconds.

    Returns:
        int64[n], event times; none before the tick from which its row is known.
    """
    last, final = rows.ts[index] + size, turn.final
    end = ticks_past(last, turn.settings.tick_us)
    if final is not None:
        end = np.where(last < final.ts, cut_short(end, final), end)
    ages: np.ndarray = np.maximum(end, rows.tick[index])
    return ages
