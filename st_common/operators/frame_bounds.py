"""When windows move, and what they hold then: d_high and d_low, t_high and t_low (CQL-S section 3.2, SPEC W4, W5)."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.fixes import NEVER
from st_common.operators.frame_rows import FrameRows
from st_common.operators.frame_specs import NONE, ROWS, SPACE, TIME, FrameSpecs
from st_common.operators.frame_ways import Ways


@dataclass(slots=True, kw_only=True)
class Bounds:
    """Arrays [slots, W]: the bounds of all windows; columns as `Tracks`, NEVER before a window moves first."""

    high: np.ndarray
    low: np.ndarray
    last: np.ndarray
    seen: np.ndarray

    @staticmethod
    def unmoved(slots: int, width: int) -> "Bounds":
        """Windows that have not moved yet."""
        return Bounds(**{name: np.full((slots, width), NEVER) for name in Bounds.__dataclass_fields__})

    def forget(self, slot: np.ndarray) -> None:
        """The windows of these slots begin anew."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[slot] = NEVER


def move(bounds: Bounds, specs: FrameSpecs, ways: Ways, frame: np.ndarray, slot: np.ndarray, tick: int) -> np.ndarray:
    """Moves the windows of some slots, which are of these frames, to a tick; bool[n]: whether one has moved."""
    moved = np.zeros(len(frame), bool)
    measures = (ways.way[slot], np.full(len(frame), tick), ways.n[slot])
    for window in range(specs.width):
        by, slide = specs.slide_by[frame, window], specs.slide[frame, window]
        size, range_by = specs.range[frame, window], specs.range_by[frame, window]
        origin = np.where(by == TIME, specs.origin[frame], 0)
        measure = _chosen(by, measures) - origin
        high = np.where(slide > 0, measure - measure % np.maximum(slide, 1), measure)
        before = bounds.high[slot, window]
        before = np.where((before == NEVER) & (by != TIME), np.where(slide > 0, 0, -1), before)
        # Without a slide a window follows every fix, also that of an object which stands still.
        grows = (high > before) | ((slide == 0) & (by != TIME) & (high == before))
        moves = np.flatnonzero((by != NONE) & ways.alive[slot] & grows)
        last = np.where(range_by == by, high + origin, _chosen(range_by, measures))
        low = last - size + (range_by == ROWS)
        reached = np.where(range_by == TIME, low >= ways.since[slot], last >= size)
        last = np.where(specs.full[frame] & ~reached, NEVER, last)
        at = (slot[moves], window)
        bounds.high[at], bounds.low[at], bounds.last[at] = high[moves], low[moves], last[moves]
        bounds.seen[at] = measures[ROWS][moves]
        moved[moves] = True
    return moved


def by_the_clock(
    bounds: Bounds, specs: FrameSpecs, ways: Ways, frame: np.ndarray, slot: np.ndarray, tick: int
) -> np.ndarray:
    """Those of some slots, which are of these frames, whose windows the clock moves at a tick, whatever objects do."""
    moves = np.zeros(len(slot), bool)
    for window in range(specs.width if len(slot) else 0):
        slide, measure = specs.slide[frame, window], tick - specs.origin[frame]
        high = np.where(slide > 0, measure - measure % np.maximum(slide, 1), measure)
        moves |= (specs.slide_by[frame, window] == TIME) & (bounds.high[slot, window] < high)
    found: np.ndarray = slot[moves & ways.alive[slot]]
    return found


def inside(
    bounds: Bounds, specs: FrameSpecs, rows: FrameRows, index: np.ndarray, frame: np.ndarray, slot: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which of some rows (`index`, of these frames and slots) all windows hold, and which one has left behind."""
    held, passed = np.ones(len(index), bool), np.zeros(len(index), bool)
    n = rows.n[index]
    measures = (rows.way[index], rows.ts[index], n)
    for window in range(specs.width):
        range_by = specs.range_by[frame, window]
        measure = _chosen(range_by, measures)
        low, last = bounds.low[slot, window], bounds.last[slot, window]
        exists = range_by != NONE
        held &= ~exists | ((n <= bounds.seen[slot, window]) & (measure >= low) & (measure <= last))
        passed |= exists & (measure < low)
    return held, passed


def _chosen(domain: np.ndarray, measures: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    chosen: np.ndarray = np.where(domain == SPACE, measures[0], np.where(domain == TIME, measures[1], measures[2]))
    return chosen
