"""Many boxes and many points that all move: a grid of the points, made anew by each call.

Where the boxes stay and points come in batches, `grid.BoxIndex` is faster: it is built once. Here what is built costs
one sort of the points. Each box is a run of rows of the grid, and in each row the points of the box's cells lie one
after the other.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.geometry.axis import Axis, axis, reach
from st_common.geometry.grid import blocks
from st_common.runs import ranges

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pairs = tuple[Ints, Ints]
Test = Callable[[Ints, Ints], npt.NDArray[np.bool_]]

_CELLS_PER_SIDE = 4  # cells along the median box: more cells mean fewer false candidates but more runs of points
_CELLS_PER_POINT, _FEWEST_CELLS, _MOST_CELLS = 4, 1 << 8, 1 << 22
_SAMPLE = 1 << 12  # points that say where the grid lies
_FEW_PAIRS = 1 << 14  # of a box and a point: tested one by one, without a grid
_MOST_RUNS, _MOST_CANDIDATES = (
    1 << 16,
    1 << 19,
)  # looked at together, so that crowded boxes do not fill the memory


@dataclass(frozen=True, slots=True)
class _Grid:
    """Points sorted by cell: those of cell c are the columns `starts[c] : starts[c + 1]` of x, y and `number`."""

    columns: Axis
    rows: Axis
    starts: Ints
    number: Ints
    x: Floats
    y: Floats


def points_in_boxes(
    boxes: Floats, x: Floats, y: Floats, *, test: Test | None = None
) -> Pairs:
    """All pairs of a closed box and a point in it.

    Args:
        boxes: float64[4, m]: minx, miny, maxx, maxy; +-inf is allowed. A box with NaN or with its corners in the wrong
            order contains nothing.
        x: float64[n], any values; NaN lies in no box.
        y: float64[n].
        test: what pairs must hold besides; it gets box and point numbers, in pieces that fit into memory.

    Returns:
        `(box_idx, point_idx)`, int64, sorted by box; each pair once.
    """
    boxes = np.asarray(boxes, np.float64).reshape(4, -1)
    points = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    if not len(points):
        return points, points
    extent = np.array(
        [[x[points].max(), y[points].max()], [x[points].min(), y[points].min()]]
    )
    meets = (
        (boxes[:2] <= boxes[2:])
        & (boxes[:2] <= extent[0][:, None])
        & (boxes[2:] >= extent[1][:, None])
    )
    chosen = np.flatnonzero(meets.all(axis=0))
    if not len(chosen):
        return chosen, chosen
    boxes = boxes[:, chosen]
    if len(chosen) * len(points) <= _FEW_PAIRS:
        box, point = _each(boxes, x[points], y[points])
        box, point = chosen[box], points[point]
        keep = None if test is None or not len(box) else test(box, point)
        return (box, point) if keep is None else (box[keep], point[keep])
    grid = _grid(boxes, x[points], y[points], points)
    box, point = _pairs(
        grid, boxes, (lambda b, p: test(chosen[b], p)) if test else None
    )
    return (box if len(chosen) == meets.shape[1] else chosen[box]), point


def _each(boxes: Floats, x: Floats, y: Floats) -> Pairs:
    """Every box with every point: where both are few, that costs less than a grid."""
    minx, miny, maxx, maxy = boxes[:, :, None]
    held = (x >= minx) & (x <= maxx)
    held &= y >= miny
    held &= y <= maxy
    box, point = np.nonzero(held)
    return box, point


def _grid(boxes: Floats, x: Floats, y: Floats, number: Ints) -> _Grid:
    sample = slice(None, None, max(len(x) // _SAMPLE, 1))
    (left, right), (low, high) = reach(x[sample]), reach(y[sample])
    with np.errstate(over="ignore", invalid="ignore"):
        sides = (
            np.median(
                np.minimum(boxes[2:], 1e300) - np.maximum(boxes[:2], -1e300), axis=1
            )
            / _CELLS_PER_SIDE
        )
    most = min(max(_CELLS_PER_POINT * len(x), _FEWEST_CELLS), _MOST_CELLS)
    wanted = np.full(2, float(most))
    with np.errstate(over="ignore"):  # sides that are next to nothing
        np.divide([right - left, high - low], sides, out=wanted, where=sides > 0)
    wanted = np.clip(wanted, 1, most)
    excess = np.sqrt(max(float(wanted.prod()) / most, 1.0))
    across, along = np.maximum(wanted / excess, 1).astype(np.int64).tolist()
    columns, rows = axis(left, right, across), axis(low, high, along)
    cell = rows.cell_of(y) * columns.cells + columns.cell_of(x)
    order = np.argsort(cell)
    starts = np.zeros(columns.cells * rows.cells + 1, np.int64)
    np.cumsum(np.bincount(cell, minlength=len(starts) - 1), out=starts[1:])
    return _Grid(
        columns=columns,
        rows=rows,
        starts=starts,
        number=number[order],
        x=x[order],
        y=y[order],
    )


def _pairs(grid: _Grid, boxes: Floats, test: Test | None) -> Pairs:
    first, last = grid.columns.cell_of(boxes[0]), grid.columns.cell_of(boxes[2]) + 1
    low = grid.rows.cell_of(boxes[1])
    runs = grid.rows.cell_of(boxes[3]) - low + 1
    pairs = [(first[:0], first[:0])]
    for block in blocks(runs, _MOST_RUNS):
        row = ranges(low[block], runs[block]) * grid.columns.cells
        start = grid.starts.take(row + np.repeat(first[block], runs[block]))
        count = grid.starts.take(row + np.repeat(last[block], runs[block])) - start
        box = np.repeat(np.arange(block.start, block.stop), runs[block])
        pairs += [
            _held(grid, boxes, box[of], start[of], count[of], test)
            for of in blocks(count, _MOST_CANDIDATES)
        ]
    return np.concatenate([part[0] for part in pairs]), np.concatenate(
        [part[1] for part in pairs]
    )


def _held(
    grid: _Grid, boxes: Floats, box: Ints, start: Ints, count: Ints, test: Test | None
) -> Pairs:
    """The pairs of runs of points with their boxes that really hold."""
    minx, miny, maxx, maxy = boxes
    place, box = ranges(start, count), np.repeat(box, count)
    x, y = grid.x.take(place), grid.y.take(place)
    keep = x >= minx.take(box)
    keep &= x <= maxx.take(box)
    keep &= y >= miny.take(box)
    keep &= y <= maxy.take(box)
    held = np.flatnonzero(keep)
    box, point = box.take(held), grid.number.take(place.take(held))
    if test is None or not len(box):
        return box, point
    keep = test(box, point)
    return box[keep], point[keep]
