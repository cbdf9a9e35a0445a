"""A median split of points in any number of dimensions into any number of regions, repeating exactly."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Half-open cells that tile the space, in the order of their paths.

    Attributes:
        paths: the ways down the tree: "0" to the lower side of a split, "1" to the upper one.
        bounds: float64[n, 2 * d], the lower corner, then the upper one, infinite at the outer edges.
    """

    paths: list[str]
    bounds: Floats


def median_split(points: Floats, regions: int, *, depth: int = 0) -> Split:
    """Cells that hold about the same number of the points each.

    The result depends on the points alone, not on their order. The axis of a split goes round with the depth; an axis
    on which all points agree is passed over. A cell of identical points cannot be split, so there may be fewer cells
    than wanted, and exactly one, with the path "0", when nothing can be split.

        points (0, 0) (1, 5) (2, 1) (3, 4) (6, 0) (7, 3) (8, 2) (9, 9), 4 cells

                  x < 6        x >= 6
                +----------+----------+
                | 01       | 11       |
                |   y >= 4 |          |
                +----------+   y >= 3 |
                | 00       +----------+
                |   y < 4  | 10 y < 3 |
                +----------+----------+

    Args:
        points: float64[n, d], finite.
        regions: how many cells are wanted, at least 1; it need not be a power of two.
        depth: how deep in a tree the first split stands, which says its axis.

    Source: BBoxDB's KD-tree space partitioner with the split at the median (SPEC B3).
    """
    dimensions = points.shape[1]
    outer = np.concatenate([np.full(dimensions, -np.inf), np.full(dimensions, np.inf)])
    leaves: list[tuple[str, Floats]] = []
    todo = [("", outer, points, regions)]
    while todo:
        path, bounds, inside, wanted = todo.pop()
        lower_wanted = wanted // 2
        cut = (
            _cut(inside, (depth + len(path)) % dimensions, lower_wanted / wanted)
            if wanted > 1
            else None
        )
        if cut is None:
            leaves.append((path or "0", bounds))
            continue
        axis, value = cut
        below, above = bounds.copy(), bounds.copy()
        below[dimensions + axis] = above[axis] = value
        low = inside[:, axis] < value
        # The lower side is on top of the stack, so that leaves come in the order of their paths.
        todo.append((path + "1", above, inside[~low], wanted - lower_wanted))
        todo.append((path + "0", below, inside[low], lower_wanted))
    return Split(
        paths=[path for path, _ in leaves],
        bounds=np.array([bounds for _, bounds in leaves]),
    )


def _within(points: Floats, cell: Floats) -> Floats:
    """Those of some points (float64[n, d]) that lie in a cell (float64[2d]: the lowest corner, then the highest)."""
    low, high = np.split(cell, 2)
    inside: Floats = points[((points >= low) & (points < high)).all(axis=1)]
    return inside


def refined(split: Split, points: Floats, regions: int) -> Split:
    """A split whose fullest cells are halved at the median until there are `regions` of them, or no cell can be.

    The other cells stay what they are, and so do their paths; halves of the cell "01" are called "010" and "011".

    Args:
        split: the cells to begin with. A single one is split anew.
        points: float64[n, d], by which cells are full.
        regions: how many cells are wanted.
    """
    if len(split.paths) == 1:
        return median_split(points, regions)
    paths, bounds = list(split.paths), list(split.bounds)
    inside = [_within(points, cell) for cell in bounds]
    while len(paths) < regions:
        fullest = max(
            range(len(paths)), key=lambda cell: (len(inside[cell]), paths[cell])
        )
        parts = halved(paths[fullest], bounds[fullest], inside[fullest])
        if not parts:
            break
        held = inside.pop(fullest)
        del bounds[fullest], paths[fullest]
        for path, cell in parts:
            bounds.append(cell)
            paths.append(path)
            inside.append(_within(held, cell))
    order = sorted(range(len(paths)), key=paths.__getitem__)
    return Split(
        paths=[paths[cell] for cell in order],
        bounds=np.array([bounds[cell] for cell in order]),
    )


def halved(path: str, bounds: Floats, points: Floats) -> list[tuple[str, Floats]]:
    """The two halves of a cell at the median of its points, as paths and bounds; none where all points are one.

    Args:
        path: of the cell; halves of "01" are "010" and "011".
        bounds: float64[2 * d], the cell.
        points: float64[n, d], those in it.
    """
    parts, half = median_split(points, 2, depth=len(path)), len(bounds) // 2
    if len(parts.paths) < 2:
        return []
    return [
        (
            path + digit,
            np.concatenate(
                [
                    np.maximum(bounds[:half], part[:half]),
                    np.minimum(bounds[half:], part[half:]),
                ]
            ),
        )
        for digit, part in zip(parts.paths, parts.bounds, strict=True)
    ]


def _cut(points: Floats, first_axis: int, share: float) -> tuple[int, float] | None:
    """The axis and the value of a split that leaves about this share of the points below the value."""
    dimensions = points.shape[1]
    for turn in range(dimensions if len(points) else 0):
        axis = (first_axis + turn) % dimensions
        values = np.sort(points[:, axis])
        if values[0] < values[-1]:
            return axis, _nearest_step(values, round(share * len(values)))
    return None


def _nearest_step(values: Floats, wanted: int) -> float:
    """The smallest value of the upper part, cut between two different values as near to the wanted place as can be."""
    value = values[min(max(wanted, 1), len(values) - 1)]
    start, end = (
        np.searchsorted(values, value),
        np.searchsorted(values, value, side="right"),
    )
    if start == 0 or (end < len(values) and end - wanted < wanted - start):
        return float(values[end])
    return float(values[start])
