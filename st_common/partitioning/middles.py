"""Where elements lie for the regions of their group: the middles of their boxes, in all dimensions."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.config.columns import Columns

Floats = npt.NDArray[np.float64]


def middles(fixes: pa.Table, columns: Columns, dimensions: int) -> Floats:
    """The middle of each element in the dimensions of its group.

        lo1 hi1 lo2 hi2 lo3 hi3       x   y
        2   4   10  20  -5  5    ->   3   15   0       the place, and half way between the further sides

    Args:
        fixes: n decoded fixes, with x and y and the sides of boxes.
        columns: by which they were decoded.
        dimensions: d, of the group.

    Returns:
        float64[n, d]; NaN where an object is gone, and in further dimensions that elements did not have when they
        came. Any element has x and y; of one dimension y is 0.
    """
    own = min(max(columns.dimensions, 2), dimensions)
    axes = [_numbers(fixes, name) for name in ("x", "y")[:own]]
    axes += [_half_way(fixes, axis) for axis in range(3, own + 1)]
    missing = [np.full(len(fixes), np.nan)] * (dimensions - own)
    return np.column_stack([*axes, *missing])


def _half_way(fixes: pa.Table, axis: int) -> Floats:
    """Half of each and not half of the sum, which may be too large a number."""
    return _numbers(fixes, f"lo{axis}") / 2 + _numbers(fixes, f"hi{axis}") / 2


def _numbers(fixes: pa.Table, name: str) -> Floats:
    values: Floats = fixes[name].to_numpy()
    return values
