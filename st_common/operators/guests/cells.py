"""Where queries look for objects: the cells of a grid that their regions touch. Too many rather than too few.

f at (2, 2), a box of 4 x 4 around it     0 .. 4, 0 .. 4
cells with a side of 4                    (0, 0)  (1, 0)  (0, 1)  (1, 1)
an object at (5, 1)                       is in (1, 0): it may be near
an object at (9, 1)                       is in (2, 0): it is not
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common.geometry.space import Space
from st_common.operators.arrays.keys import is_in, unique
from st_common.runs import ranges

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_GROWTH = 1 + 1e-9
"""Boxes are a rounding error too large rather than too small."""
_ULPS = 1e-15
_MOST = 1 << 29
"""The number of a cell along an axis, either way, so that both fit into one number."""
_SHIFT = 1 << 32
_FEW_CELLS, _CELLS_PER_BOX = 1 << 10, 16
_COARSER = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How far queries look around a place each; float64[n], in coordinates, metres, metres.

    Attributes:
        half_width: half of a rectangle in coordinates; `half_height` likewise.
        half_width_m: half of a rectangle in metres; `half_height_m` likewise.
        radius_m: of a circle.
    """

    half_width: Floats
    half_height: Floats
    half_width_m: Floats
    half_height_m: Floats
    radius_m: Floats

    def at(self, rows: Ints) -> "Extent":
        """Those of some rows."""
        names = self.__dataclass_fields__
        return Extent(**{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Cells of a grid.

    Attributes:
        side: of a cell, in coordinates.
        numbers: int64, which ones, ascending, each once (see `numbers_of`).
    """

    side: float
    numbers: Ints

    def hold(self, x: Floats, y: Floats) -> Bools:
        """Whether places lie in one of the cells; bool[n]. NaN lies nowhere."""
        return is_in(numbers_of(x, y, self.side), self.numbers)


def numbers_of(x: Floats, y: Floats, side: float) -> Ints:
    """The cell of each place; int64[n], -1 for NaN."""
    numbers = _along(x, side) * _SHIFT + _along(y, side)
    return np.asarray(np.where(np.isnan(x) | np.isnan(y), -1, numbers))


def _along(values: Floats, side: float) -> Ints:
    """The number of the cell along an axis, from 0; far outside the last one."""
    with np.errstate(invalid="ignore", over="ignore"):
        clipped = np.clip(np.floor(values / side), -_MOST, _MOST)
    return np.asarray(np.nan_to_num(clipped).astype(np.int64) + _MOST)


def cells_around(x: Floats, y: Floats, extent: Extent, *, space: Space) -> Cells:
    """The cells in which queries may find something.

    Args:
        x: float64[n], where they stand; NaN is nowhere. `y` likewise.
        y: see `x`.
        extent: how far each looks, n rows.
        space: what coordinates mean.
    """
    known = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    boxes = _boxes(x[known], y[known], extent.at(known), space=space)
    if not len(boxes):
        return Cells(side=1.0, numbers=np.empty(0, np.int64))
    side, most = _side_of(boxes), _FEW_CELLS + _CELLS_PER_BOX * len(boxes)
    while _count(boxes, side) > most:
        side *= _COARSER
    return Cells(side=side, numbers=_touched(boxes, side))


def _boxes(x: Floats, y: Floats, extent: Extent, *, space: Space) -> Floats:
    """Boxes around places, in coordinates that places have; float64[b, 4]."""
    reach_x, reach_y = space.reach(y, extent.radius_m)
    across, along = space.scale(y)
    wide = np.maximum(extent.half_width, extent.half_width_m / across)
    high = np.maximum(extent.half_height, extent.half_height_m / along)
    wide, high = (
        np.maximum(half, reach) * _GROWTH + np.abs(middle) * _ULPS
        for half, reach, middle in ((wide, reach_x, x), (high, reach_y, y))
    )
    boxes, _ = space.wrap(np.stack([x - wide, y - high, x + wide, y + high], axis=1))
    far_x, far_y = space.farthest
    far = np.array([far_x, far_y, far_x, far_y])
    return np.clip(boxes, -far, far)


def _side_of(boxes: Floats) -> float:
    """The side of cells that fit boxes: that of the one in the middle, as a power of two."""
    sides = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    finest = float(np.abs(boxes).max()) / _MOST
    side = max(float(np.median(sides)), finest, np.finfo(np.float64).tiny)
    return float(2.0 ** np.ceil(np.log2(side)))


def _count(boxes: Floats, side: float) -> float:
    """How many cells boxes touch, each by itself."""
    first, last = _corners(boxes, side)
    return float(np.prod((last - first + 1).astype(np.float64), axis=1).sum())


def _corners(boxes: Floats, side: float) -> tuple[Ints, Ints]:
    """The first and the last cell of boxes along both axes; int64[b, 2] each."""
    return _along(boxes[:, :2], side), _along(boxes[:, 2:], side)


def _touched(boxes: Floats, side: float) -> Ints:
    """The numbers of all cells that boxes touch, ascending, each once."""
    first, last = _corners(boxes, side)
    count = last - first + 1
    total = count[:, 0] * count[:, 1]
    box = np.repeat(np.arange(len(boxes)), total)
    nth = ranges(np.zeros(len(boxes), np.int64), total)
    column, row = np.divmod(nth, count[box, 1])
    return unique((first[box, 0] + column) * _SHIFT + first[box, 1] + row)
