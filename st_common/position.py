"""A place in a stream's log: one int64 that orders like the log. How it is made of a segment and a row is known here.

segment 5, row 17   ->   83886097   ->   5.17 in words
"""

import re
from typing import TYPE_CHECKING, NewType, overload

from st_common.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

Position = NewType("Position", int)
"""Ordered; what else it says is asked of this module, so that it can become a place in several logs (docs/adr/0036)."""

_ROW_BITS = 24  # a segment is below 16 MiB, so it has fewer than 2^24 rows
_ROW_MASK = (1 << _ROW_BITS) - 1
_WRITTEN = re.compile(r"(\d+)\.(\d+)|(\d+)")


@overload
def position_of(segment: int, row: int) -> Position: ...
@overload
def position_of(segment: "int | np.ndarray", row: "np.ndarray") -> "np.ndarray": ...
def position_of(
    segment: "int | np.ndarray", row: "int | np.ndarray"
) -> "Position | np.ndarray":
    """The position of a row, or those of an array of rows.

        segment 5, row 17   ->   5 << 24 | 17 = 83886097

    Args:
        segment: its number, or int64[n].
        row: its number in the segment, below 2^24, or int64[n].
    """
    position = (segment << _ROW_BITS) | row
    return Position(position) if isinstance(position, int) else position


def start_of(segment: int) -> Position:
    """The position at which a segment begins: that of its first row."""
    return position_of(segment, 0)


def segment_of(position: int) -> int:
    """The number of the segment of a position."""
    return position >> _ROW_BITS


def segments_of(positions: "np.ndarray") -> "np.ndarray":
    """The numbers of the segments of positions; int64[n]."""
    segments: np.ndarray = positions >> _ROW_BITS
    return segments


def row_of(position: int) -> int:
    """The row of a position in its segment."""
    return position & _ROW_MASK


def rows_of(positions: "np.ndarray") -> "np.ndarray":
    """The rows of positions in their segments; int64[n]."""
    rows: np.ndarray = positions & _ROW_MASK
    return rows


def printed(position: int) -> str:
    """A position for people: `5.17` is row 17 of segment 5. Tables and ids have the number."""
    return f"{segment_of(position)}.{row_of(position)}"


def parsed(text: str) -> Position:
    """The position that somebody wrote: `5.17` and `83886097` are the same.

    Raises:
        ConfigError: it is neither a number nor `segment.row`, or no segment has such a row.
    """
    match = _WRITTEN.fullmatch(text.strip())
    if match is None or int(match[2] or 0) > _ROW_MASK:
        raise ConfigError(
            f"{text!r} is no position in a log",
            hint="a number as in the column position, or segment.row, such as 5.17",
        )
    if match[3] is not None:
        return Position(int(match[3]))
    return position_of(int(match[1]), int(match[2]))
