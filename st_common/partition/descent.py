"""In which of the cells that tile a space points lie, found from the top of the tree of their cuts."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def cells_of(bounds: Floats, points: Floats) -> Ints | None:
    """The half-open cell of each point.

        cells x < 4   x >= 4, y < 3   x >= 4, y >= 3, and the point (5, 1)   ->   x >= 4   ->   y < 3   ->   cell 1

    Each cut is looked at once, by all points that come to it; it is found again from the cells, as one that no cell
    lies across and that parts them most evenly.

    Args:
        bounds: float64[n, 2 * d], at least one cell: its lower corner, then its upper one.
        points: float64[m, d], without NaN.

    Returns:
        int64[m], numbers of cells; None where the cells do not tile by cuts, or a point lies in none of them.
    """
    cell = np.zeros(len(points), np.int64)
    todo = [(np.arange(len(bounds)), np.arange(len(points)))]
    while todo:
        cells, inside = todo.pop()
        if len(cells) == 1 or not len(inside):
            cell[inside] = cells[0]
            continue
        cut = max(_cuts(bounds[cells]), default=None)
        if cut is None:
            return None
        _, axis, value = cut
        is_low = points[inside, axis] < value
        is_below = bounds[cells, axis] < value
        todo.append((cells[is_below], inside[is_low]))
        todo.append((cells[~is_below], inside[~is_low]))
    low, high = np.split(bounds[cell], 2, axis=1)
    lies = (points >= low) & ((points < high) | np.isposinf(high))
    return cell if lies.all() else None


def _cuts(bounds: Floats) -> Iterator[tuple[int, int, float]]:
    """Of each axis the most even cut that no cell lies across: the size of its smaller side, the axis and the value."""
    low, high = np.split(bounds, 2, axis=1)
    for axis in range(low.shape[1]):
        order = np.argsort(low[:, axis], kind="stable")
        starts, ends = low[order, axis], np.maximum.accumulate(high[order, axis])
        places = np.flatnonzero(ends[:-1] <= starts[1:]) + 1
        if len(places):
            smaller = np.minimum(places, len(order) - places)
            best = int(smaller.argmax())
            yield int(smaller[best]), axis, float(starts[places[best]])
