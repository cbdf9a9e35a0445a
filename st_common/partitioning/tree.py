"""The tree of splits behind boxes that tile a rectangle, found again from the boxes alone."""

import numpy as np
import numpy.typing as npt

from st_common.partitioning.kdtree import Split

Floats = npt.NDArray[np.float64]


def split_of(boxes: Floats) -> Split | None:
    """Half-open cells that tile the plane, one for each box, with their paths.

    The outer edges become infinite. Where several cuts are possible, the one that parts the boxes most evenly is taken,
    so that the paths depend on the boxes alone.

        (0, 0, 4, 10)   (4, 0, 10, 3)   (4, 3, 10, 10)   ->   "0": x < 4   "10": x >= 4, y < 3   "11": x >= 4, y >= 3

    Args:
        boxes: float64[n, 4] of minx, miny, maxx, maxy: leaves of a tree that halves rectangles along an axis.

    Returns:
        None when the boxes do not tile a rectangle that way.
    """
    if not len(boxes) or not np.isfinite(boxes).all():
        return None
    around = np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
    everything = np.array([-np.inf, -np.inf, np.inf, np.inf])
    leaves: list[tuple[str, Floats]] = []
    todo = [("", around, everything, boxes)]
    while todo:
        path, frame, cell, inside = todo.pop()
        if len(inside) == 1:
            if not np.array_equal(inside[0], frame):
                return None
            leaves.append((path or "0", cell))
            continue
        cut = _cut(inside)
        if cut is None:
            return None
        axis, value, low = cut
        for digit, edge, part in (("1", axis, ~low), ("0", axis + 2, low)):
            inner, outer = frame.copy(), cell.copy()
            inner[edge] = outer[edge] = value
            todo.append((path + digit, inner, outer, inside[part]))
    return Split(
        paths=[path for path, _ in leaves],
        bounds=np.array([cell for _, cell in leaves]),
    )


def _cut(boxes: Floats) -> tuple[int, float, npt.NDArray[np.bool_]] | None:
    """The axis and value of a cut that no box straddles, and which boxes lie below it."""
    best: tuple[int, float, npt.NDArray[np.bool_]] | None = None
    fewest = 0
    for axis in (0, 1):
        for value in np.unique(boxes[:, axis])[1:]:
            low = boxes[:, axis + 2] <= value
            if (low | (boxes[:, axis] >= value)).all():
                smaller = int(min(low.sum(), (~low).sum()))
                if smaller > fewest:
                    best, fewest = (axis, float(value), low), smaller
    return best
