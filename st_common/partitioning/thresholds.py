"""Regions between two thresholds: what is too full is halved, what is too empty is made one with its sibling.

    upper 100, lower 40    "0": 150 -> "00": 70, "01": 80      "10": 12, "11": 20 -> "1": 32

As in BBoxDB, where a region that grows beyond t_upper is split and children below t_lower are merged (SPEC B2). What is
in between stays what it is, path and all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.errors import ConfigError
from st_common.partitioning.kdtree import Split, halved

Floats = npt.NDArray[np.float64]

ROWS, MB = "rows", "mb"
UNITS = (ROWS, MB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When regions are split and merged.

    Attributes:
        upper: a region with more than that is split.
        lower: siblings that together have less are merged; at most half of `upper`, so that halves of a full region
            are not merged again.
        unit: of both: `rows`, or `mb` of what holds them.
    """

    upper: float
    lower: float
    unit: str = ROWS

    def check(self) -> None:
        """Refuses thresholds that make no sense.

        Raises:
            ConfigError: these do not.
        """
        if self.unit not in UNITS:
            raise ConfigError(
                f"there is no unit {self.unit!r}", hint=" or ".join(UNITS)
            )
        if not 0 <= self.lower <= self.upper / 2 or self.upper <= 0:
            raise ConfigError(
                f"thresholds of {self.upper:g} and {self.lower:g}",
                hint="the upper one above 0, the lower one at most half of it",
            )


@dataclass(frozen=True, slots=True)
class _Cell:
    """A region on the way: its path ("" of the only one), its bounds, the points in it and what each stands for."""

    path: str
    bounds: Floats
    points: Floats
    weights: Floats

    @property
    def load(self) -> float:
        return float(self.weights.sum())

    def halves(self) -> list["_Cell"]:
        """Two cells, split at the median; none where all points are one."""
        return [
            self._part(path, bounds)
            for path, bounds in halved(self.path, self.bounds, self.points)
        ]

    def _part(self, path: str, bounds: Floats) -> "_Cell":
        low, high = np.split(bounds, 2)
        here = ((self.points >= low) & (self.points < high)).all(axis=1)
        return _Cell(path, bounds, self.points[here], self.weights[here])


def balanced(
    split: Split, points: Floats, weights: Floats, thresholds: Thresholds
) -> Split:
    """Cells none of which is above the upper threshold, and no siblings of which are below the lower one together.

    Cells whose points are all at one place cannot be split.

    Args:
        split: the cells to begin with.
        points: float64[n, d], a sample of what lies in them.
        weights: float64[n], how much each point stands for, in the unit of the thresholds.
        thresholds: when cells are split and merged.
    """
    everything = _Cell("", np.empty(0), points, weights)
    is_one = len(split.paths) == 1
    cells = [
        everything._part("" if is_one else path, bounds)  # noqa: SLF001 - its own kind
        for path, bounds in zip(split.paths, split.bounds, strict=True)
    ]
    fitting = [small for cell in cells for small in _fitting(cell, thresholds.upper)]
    merged = _merged({cell.path: cell for cell in fitting}, thresholds.lower)
    ordered = sorted(merged.values(), key=lambda cell: cell.path)
    return Split(
        paths=[cell.path or "0" for cell in ordered],
        bounds=np.array([cell.bounds for cell in ordered]),
    )


def _fitting(cell: _Cell, upper: float) -> Iterator[_Cell]:
    """The parts of a cell that are not above the upper threshold."""
    halves = cell.halves() if cell.load > upper else []
    if not halves:
        yield cell
    for half in halves:
        yield from _fitting(half, upper)


def _merged(cells: dict[str, _Cell], lower: float) -> dict[str, _Cell]:
    """Cells whose siblings are made one with them as long as both together are below the lower threshold."""
    todo = sorted(cells, key=len)
    while todo:
        path = todo.pop()  # the deepest ones first
        one, other = path[:-1] + "0", path[:-1] + "1"
        if not path or one not in cells or other not in cells:
            continue
        both = cells[one], cells[other]
        if both[0].load + both[1].load < lower:
            del cells[one], cells[other]
            cells[path[:-1]] = _joined(path[:-1], *both)
            todo.append(path[:-1])
            todo.sort(key=len)
    return cells


def _joined(path: str, one: _Cell, other: _Cell) -> _Cell:
    (low, high), (other_low, other_high) = (
        np.split(cell.bounds, 2) for cell in (one, other)
    )
    return _Cell(
        path,
        np.concatenate([np.minimum(low, other_low), np.maximum(high, other_high)]),
        np.concatenate([one.points, other.points]),
        np.concatenate([one.weights, other.weights]),
    )
