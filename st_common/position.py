"""A place in a stream's log: the number of a segment and a row in it, as one int64 that orders like the log."""

from typing import overload

import numpy as np

ROW_BITS = 24  # a segment is below 16 MiB, so it has fewer than 2^24 rows
ROW_MASK = (1 << ROW_BITS) - 1


@overload
def position_of(segment: int, row: int) -> int: ...
@overload
def position_of(segment: int | np.ndarray, row: np.ndarray) -> np.ndarray: ...
def position_of(segment: int | np.ndarray, row: int | np.ndarray) -> int | np.ndarray:
    """The position of a row, or those of an int64 array of rows."""
    return (segment << ROW_BITS) | row


def segment_of(position: int) -> int:
    """The number of the segment of a position."""
    return position >> ROW_BITS


def row_of(position: int) -> int:
    """The row of a position in its segment."""
    return position & ROW_MASK
