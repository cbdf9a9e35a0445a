"""When windows move, and what they hold then: d_high and d_low, t_high and t_low (CQL-S section 3.2, SPEC W4, W5)."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.fixes import NEVER
from st_common.operators.frame_rows import FrameRows
from st_common.operators.frame_specs import NONE, ROWS, SPACE, TIME, FrameSpecs
from st_common.operators.frame_ways import Ways


@dataclass(slots=True, kw_only=True)
class Bounds:
    """Arrays [f, objects, W]: the bounds of all windows; columns as `Tracks`, NEVER before a window moves first."""

    high: np.ndarray
    low: np.ndarray
    last: np.ndarray
    seen: np.ndarray

    @staticmethod
    def unmoved(frames: int, objects: int, width: int) -> "Bounds":
        """Windows that have not moved yet."""
        return Bounds(**{name: np.full((frames, objects, width), NEVER) for name in Bounds.__dataclass_fields__})

    def forget(self, frame: np.ndarray, who: np.ndarray) -> None:
        """The windows of these objects begin anew."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[frame, who] = NEVER


def move(bounds: Bounds, specs: FrameSpecs, ways: Ways, frame: np.ndarray, who: np.ndarray, tick: int) -> np.ndarray:
    """Moves the windows of some objects (`frame` and `who` number them) to a tick; bool[n]: whether one has moved."""
    moved = np.zeros(len(frame), bool)
    measures = (ways.way[frame, who], np.full(len(frame), tick), ways.n[frame, who])
    for window in range(specs.width):
        by, slide = specs.slide_by[frame, window], specs.slide[frame, window]
        size, range_by = specs.range[frame, window], specs.range_by[frame, window]
        origin = np.where(by == TIME, specs.origin[frame], 0)
        measure = _chosen(by, measures) - origin
        high = np.where(slide > 0, measure - measure % np.maximum(slide, 1), measure)
        before = bounds.high[frame, who, window]
        before = np.where((before == NEVER) & (by != TIME), np.where(slide > 0, 0, -1), before)
        # Without a slide a window follows every fix, also that of an object which stands still.
        grows = (high > before) | ((slide == 0) & (by != TIME) & (high == before))
        moves = np.flatnonzero((by != NONE) & ways.alive[frame, who] & grows)
        last = np.where(range_by == by, high + origin, _chosen(range_by, measures))
        low = last - size + (range_by == ROWS)
        reached = np.where(range_by == TIME, low >= ways.since[frame, who], last >= size)
        last = np.where(specs.full[frame] & ~reached, NEVER, last)
        at = (frame[moves], who[moves], window)
        bounds.high[at], bounds.low[at], bounds.last[at] = high[moves], low[moves], last[moves]
        bounds.seen[at] = measures[ROWS][moves]
        moved[moves] = True
    return moved


def by_the_clock(bounds: Bounds, specs: FrameSpecs, ways: Ways, tick: int) -> np.ndarray:
    """bool[f, objects]: whose windows the clock moves at a tick, whatever the object does."""
    out = np.zeros(ways.alive.shape, bool)
    for frame, window in np.argwhere(specs.slide_by == TIME).tolist():
        slide, measure = int(specs.slide[frame, window]), tick - int(specs.origin[frame])
        high = measure - measure % slide if slide else measure
        out[frame] |= ways.alive[frame] & (bounds.high[frame, :, window] < high)
    return out


def inside(
    bounds: Bounds, specs: FrameSpecs, rows: FrameRows, index: np.ndarray, frame: np.ndarray, who: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which of some rows (`index`, of these frames and objects) all windows hold, and which one has left behind."""
    held, passed = np.ones(len(index), bool), np.zeros(len(index), bool)
    n = rows.n[index]
    measures = (rows.way[index], rows.ts[index], n)
    for window in range(specs.width):
        range_by = specs.range_by[frame, window]
        measure = _chosen(range_by, measures)
        low, last = bounds.low[frame, who, window], bounds.last[frame, who, window]
        exists = range_by != NONE
        held &= ~exists | ((n <= bounds.seen[frame, who, window]) & (measure >= low) & (measure <= last))
        passed |= exists & (measure < low)
    return held, passed


def _chosen(domain: np.ndarray, measures: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    chosen: np.ndarray = np.where(domain == SPACE, measures[0], np.where(domain == TIME, measures[1], measures[2]))
    return chosen
