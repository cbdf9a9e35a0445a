"""Which closed boxes contain which points: a uniform grid in CSR form, in a few levels of cell size.

Cell numbers grow with the coordinate and are clamped, so a few far boxes do not stretch the grid, bounds may be
infinite, and the answer stays exact. To sort points by x and search for each box was slower at every number of boxes
tried, and so were GEOS's prepared `dwithin` and a test of far corners for distances
(docs/performance.md, what was tried).
"""

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.geometry.axis import FARTHEST, Axis, axis, reach
from st_common.runs import ranges

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pairs = tuple[Ints, Ints]

_CHUNK = (
    1 << 16
)  # points probed at once: their columns and candidates stay in the processor's cache
_MOST_CANDIDATES = (
    1 << 22
)  # pairs looked at together, so that crowded boxes do not fill the memory
_CELLS_PER_SIDE = 3  # cells along the median box: more cells mean fewer false candidates but a larger index
_MAX_SPAN = (
    8  # cells a box may span on one axis before it goes to a level with coarser cells
)
_FINEST = (
    1 << 20
)  # cells along the median box's longer side at the start of a search for the sides
_CELLS_PER_BOX, _FEWEST_CELLS, _MOST_CELLS = 64, 1 << 12, 1 << 22


@dataclass(frozen=True, slots=True)
class _Level:
    """One uniform grid: the boxes of cell c are `members[starts[c] : starts[c] + counts[c]]`, ascending."""

    x: Axis
    y: Axis
    starts: Ints
    counts: Ints
    members: Ints


class BoxIndex:
    """Finds the closed boxes that contain points, exactly; immutable, built once for a set of boxes.

    Args:
        boxes: float64[n, 4] of minx, miny, maxx, maxy; +-inf is allowed. A box with NaN or with its corners in the
            wrong order contains nothing.
    """

    __slots__ = ("_columns", "_extent", "_levels", "size")

    def __init__(self, boxes: npt.ArrayLike) -> None:
        array = np.array(boxes, dtype=np.float64).reshape(-1, 4)
        self.size = len(array)
        self._columns = tuple(
            np.ascontiguousarray(array[:, column]) for column in range(4)
        )
        usable = np.flatnonzero(
            (array[:, 0] <= array[:, 2]) & (array[:, 1] <= array[:, 3])
        )
        self._levels = _levels(array, usable)
        low = array[usable, :2].min(axis=0, initial=np.inf)
        high = array[usable, 2:].max(axis=0, initial=-np.inf)
        self._extent = (float(low[0]), float(low[1]), float(high[0]), float(high[1]))

    def probe(self, x: Floats, y: Floats) -> Pairs:
        """All pairs of a point and a box that contains it, borders included.

        Args:
            x: float64[m], any values; NaN and infinity lie in no box unless its bounds say so.
            y: float64[m].

        Returns:
            `(point_idx, box_idx)`, int64, sorted by point, then box; each pair once.
        """
        parts = [self._probe_chunk(x, y, start) for start in range(0, len(x), _CHUNK)]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _probe_chunk(self, x: Floats, y: Floats, start: int) -> Pairs:
        x, y = x[start : start + _CHUNK], y[start : start + _CHUNK]
        minx, miny, maxx, maxy = self._extent
        near = np.flatnonzero((x >= minx) & (x <= maxx) & (y >= miny) & (y <= maxy))
        if len(near) < len(x):
            x, y = x[near], y[near]
        pairs = [self._probe_level(level, x, y) for level in self._levels]
        if not pairs:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        points, boxes = pairs[0] if len(pairs) == 1 else _merged(pairs, self.size)
        return near[points] + start, boxes

    def _probe_level(self, level: _Level, x: Floats, y: Floats) -> Pairs:
        cell = level.y.cell_of(y)
        cell *= level.x.cells
        cell += level.x.cell_of(x)
        counts = level.counts[cell]
        points = np.flatnonzero(counts)
        if not len(points):
            return points, points
        counts, starts = counts[points], level.starts[cell[points]]
        pairs = []
        for block in blocks(counts, _MOST_CANDIDATES):
            place = ranges(starts[block], counts[block])
            pairs.append(
                self._contained(
                    x, y, np.repeat(points[block], counts[block]), level.members[place]
                )
            )
        return pairs[0] if len(pairs) == 1 else _joined(pairs)

    def _contained(self, x: Floats, y: Floats, points: Ints, boxes: Ints) -> Pairs:
        """Those of the candidates that really hold."""
        minx, miny, maxx, maxy = self._columns
        px, py = x[points], y[points]
        keep = px >= minx[boxes]
        keep &= px <= maxx[boxes]
        keep &= py >= miny[boxes]
        keep &= py <= maxy[boxes]
        return points[keep], boxes[keep]


def blocks(counts: Ints, most: int) -> list[slice]:
    """Runs of rows whose counts are together at most about `most`, so that what they stand for fits into memory.

    Args:
        counts: int64[n], how many pairs each row stands for.
        most: pairs; a single row may have more, and is a run of its own then.

    Returns:
        Slices, one behind the other, that cover all rows; none without rows.

    Example:
        counts 3, 3, 3, 9 with most 6:  rows 0 and 1, row 2, row 3
    """
    ends = np.cumsum(counts)
    if not len(ends) or ends[-1] <= most:
        return [slice(0, len(counts))] if len(counts) else []
    cuts = np.searchsorted(ends, np.arange(most, int(ends[-1]), most), side="right")
    edges = np.unique(np.concatenate([[0], cuts, [len(counts)]])).tolist()
    return [slice(start, end) for start, end in itertools.pairwise(edges)]


def _joined(parts: list[Pairs]) -> Pairs:
    empty = np.empty(0, np.int64)
    points = np.concatenate([empty, *(part[0] for part in parts)])
    return points, np.concatenate([empty, *(part[1] for part in parts)])


def _merged(pairs_of_levels: list[Pairs], boxes: int) -> Pairs:
    """The pairs of all levels in one order; each level's are in order already, so that the sort only merges."""
    keys = np.concatenate([points * boxes + box for points, box in pairs_of_levels])
    keys.sort(kind="stable")
    points = keys // boxes
    return points, keys - points * boxes


def _levels(boxes: Floats, usable: Ints) -> list[_Level]:
    """Grids from fine to coarse; a box goes into the first one in which it does not span too many cells."""
    near = np.clip(boxes, -FARTHEST, FARTHEST)
    levels, left = [], usable
    while len(left):
        sides, fits = _sides(near[left, 2:] - near[left, :2])
        levels.append(_level(boxes, left[fits], sides))
        left = left[~fits]
    return levels


def _sides(extents: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The sides of a level's cells, and which boxes it takes: at least half, so that there are few levels."""
    sides: Floats = np.median(extents, axis=0) / _CELLS_PER_SIDE
    while True:
        fits = np.all(extents <= sides * _MAX_SPAN, axis=1)
        if 2 * np.count_nonzero(fits) >= len(extents):
            return sides, fits
        sides = np.maximum(sides * 2, np.median(extents.max(axis=1)) / _FINEST)


def _level(boxes: Floats, chosen: Ints, sides: Floats) -> _Level:
    near = boxes[chosen]
    x, y = _axes(near, sides)
    col, row = x.cell_of(near[:, 0]), y.cell_of(near[:, 1])
    width = x.cell_of(near[:, 2]) - col + 1
    entries = width * (y.cell_of(near[:, 3]) - row + 1)
    owner = np.repeat(np.arange(len(chosen)), entries)
    step = ranges(np.zeros_like(entries), entries)
    down, across = np.divmod(step, width[owner])
    cell = (row[owner] + down) * x.cells + col[owner] + across
    order = np.argsort(cell, kind="stable")
    counts = np.bincount(cell, minlength=x.cells * y.cells)
    return _Level(
        x=x,
        y=y,
        starts=np.cumsum(counts) - counts,
        counts=counts,
        members=chosen[owner[order]],
    )


def _axes(boxes: Floats, sides: Floats) -> tuple[Axis, Axis]:
    """Both axes of a grid, with as many cells as the sides ask for and the number of boxes allows."""
    low, high = np.array([reach(boxes[:, 0::2]), reach(boxes[:, 1::2])]).T
    length = high - low
    wanted = np.ones(2)
    np.divide(length, sides, out=wanted, where=(length > 0) & (sides > 0))
    wanted[(length > 0) & (sides <= 0)] = _MOST_CELLS
    most = min(max(_CELLS_PER_BOX * len(boxes), _FEWEST_CELLS), _MOST_CELLS)
    wanted = np.clip(wanted, 1, most)
    excess = max(float(wanted.prod()) / most, 1.0)
    cells = np.maximum(wanted / np.sqrt(excess), 1).astype(np.int64)
    return axis(low[0], high[0], int(cells[0])), axis(low[1], high[1], int(cells[1]))
