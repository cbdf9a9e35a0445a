"""The axes of uniform grids: coordinates to numbers of cells."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FARTHEST = 1e150  # coordinates beyond this share the outermost cells, so that no difference overflows


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps coordinates to cell numbers, monotonically: what lies between two coordinates lies between their cells."""

    low: float
    high: float
    per_unit: float
    cells: int

    def cell_of(self, values: Floats) -> Ints:
        """The cells of coordinates, which may be infinite but not NaN; beyond the ends it is the outermost one."""
        cell = np.clip(values, self.low, self.high)
        cell -= self.low
        cell *= self.per_unit
        numbers = cell.astype(np.int64)
        return np.minimum(numbers, self.cells - 1, out=numbers)


def axis(low: float, high: float, cells: int) -> Axis:
    """An axis of so many cells; of a single one where its length is nothing or cannot be divided."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        per_unit = float(np.float64(cells) / np.float64(high - low))
    if not np.isfinite(per_unit):
        per_unit, cells = 0.0, 1
    return Axis(low=float(low), high=float(high), per_unit=per_unit, cells=cells)


def reach(bounds: Floats) -> tuple[float, float]:
    """From where to where the cells of an axis go: all finite bounds, but a few far strays do not stretch the grid."""
    finite = bounds[np.abs(bounds) < FARTHEST]
    if not len(finite):
        return 0.0, 0.0
    low, high = np.quantile(finite, (0.01, 0.99))
    return max(finite.min(), 2 * low - high), min(finite.max(), 2 * high - low)
