"""The axes of uniform grids: coordinates to numbers of cells."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FARTHEST = 1e150  # coordinates beyond this share the outermost cells, so that no difference overflows


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps coordinates to cell numbers, monotonically: what lies between two coordinates lies between their cells.

        axis(0, 10, 5)      -3    0   1.9   2   10   99      coordinates
                             0    0    0    1    4    4      cells

    Attributes:
        low: where cell 0 begins.
        high: where the last cell ends.
        per_unit: how many cells are in one unit; 0 of an axis with a single cell.
        cells: how many there are.
    """

    low: float
    high: float
    per_unit: float
    cells: int

    def cell_of(self, values: Floats) -> Ints:
        """The cells of coordinates, int64[n]; beyond the ends it is the outermost one.

        Args:
            values: float64[n], which may be infinite but not NaN.
        """
        cell = np.clip(values, self.low, self.high)
        cell -= self.low
        cell *= self.per_unit
        numbers = cell.astype(np.int64)
        return np.minimum(numbers, self.cells - 1, out=numbers)


def axis(low: float, high: float, cells: int) -> Axis:
    """An axis of so many cells; of a single one where its length is nothing or cannot be divided.

    Args:
        low: a finite coordinate, where cell 0 begins.
        high: a finite coordinate, not less.
        cells: at least 1.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        per_unit = float(np.float64(cells) / np.float64(high - low))
    if not np.isfinite(per_unit):
        per_unit, cells = 0.0, 1
    return Axis(low=float(low), high=float(high), per_unit=per_unit, cells=cells)


def reach(bounds: Floats) -> tuple[float, float]:
    """From where to where the cells of an axis go: all finite bounds, but a few far strays do not stretch the grid.

    An axis reaches at most one width of the middle 98 % beyond it. What lies farther shares the outermost cells, so
    that the answer stays exact.

    Args:
        bounds: float64[n], the coordinates that fall onto the axis.

    Example:
        0, 1, .., 99 and 1,000,000:  from 0 to 197
    """
    finite = bounds[np.abs(bounds) < FARTHEST]
    if not len(finite):
        return 0.0, 0.0
    low, high = np.quantile(finite, (0.01, 0.99))
    return max(finite.min(), 2 * low - high), min(finite.max(), 2 * high - low)
