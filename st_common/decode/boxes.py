"""Boxes of one to four dimensions, from the columns of their sides (SPEC B1, B7).

lo1 hi1 lo2 hi2        x   y
2   4   10  20    ->   3   15      the middle of the first two dimensions; of one dimension y is 0
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.config.columns import sides_of
from st_common.formats.numbers import Mask, Parsed, doubles


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of some records. Where a side is missing, bad or crossed, x and y are no numbers that count.

    Attributes:
        x: the middle of the first dimension.
        y: the middle of the second one, or 0.
        crossed: bool[n], a low side is above its high one.
        bounds: float64[n, 4], the low x and y and the high ones.
        sides: the sides by name: lo1, hi1, ..
    """

    x: Parsed
    y: Parsed
    crossed: Mask
    bounds: npt.NDArray[np.float64]
    sides: Mapping[str, pa.Array]


def boxes_of(fields: Mapping[str, pa.Array], columns: Sequence[str]) -> Boxes:
    """The boxes that columns of sides make; closed, so that a low side may equal its high one.

    Args:
        fields: the columns of records.
        columns: the low and the high side of each dimension.
    """
    parsed = [doubles(fields[name]) for name in columns]
    missing = np.logical_or.reduce([one.missing for one in parsed])
    finite = np.logical_and.reduce([np.isfinite(one.values) for one in parsed])
    bad = ~missing & ~finite
    known = ~(missing | bad)
    low, high = ([one.values for one in parsed[start::2]] for start in (0, 1))
    crossed = known & np.logical_or.reduce(
        [a > b for a, b in zip(low, high, strict=True)]
    )
    if len(low) == 1:
        low, high = [*low, np.zeros(len(bad))], [*high, np.zeros(len(bad))]
    x, y = (_middle(low[axis], high[axis], known) for axis in (0, 1))
    names = sides_of(len(columns) // 2)
    return Boxes(
        x=Parsed(x, missing, bad),
        y=Parsed(y, missing, bad),
        crossed=crossed,
        bounds=np.column_stack([low[0], low[1], high[0], high[1]]),
        sides={
            name: pa.array(one.values, mask=~known)
            for name, one in zip(names, parsed, strict=True)
        },
    )


def _middle(low: np.ndarray, high: np.ndarray, known: Mask) -> np.ndarray:
    """Half of each and not half of the sum, which may be too large a number."""
    return np.where(known, low / 2 + high / 2, np.nan)
