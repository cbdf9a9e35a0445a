"""What a format gives: records taken apart, each with its texts or with the reason why it has none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.formats.format_settings import FormatSettings, named_columns

RAW_LIMIT = 4096  # bytes of a record that its reject keeps


class Reason(IntEnum):
    """Why a record is no fix; the table of rejects holds the names in small letters. The least one wins.

    The first ones are found by the format: the record could not be taken apart. The others are found in its fields.
    """

    NONE = 0
    BAD_GZIP = 1  # the segment's compressed bytes end or break here
    TOO_LARGE = 2  # the segment unpacks to more than a segment may hold: its rest, as one record
    NUL = 3
    BAD_UTF8 = 4
    UNBALANCED_QUOTE = 5
    BAD_LINE_END = 6  # a carriage return inside a record
    RAGGED = 7  # more or fewer fields than the header, or than most records when there is no header
    BAD_JSON = 8
    NO_JSON_OBJECT = 9
    MISSING_COLUMN = 10  # the header lacks a column of the stream's settings
    UNREADABLE = 11
    BAD_CHECKSUM = 12
    INCOMPLETE = 13  # parts of the message are lacking
    NO_POSITION = 14  # a message about something else than where an object is
    MISSING_OBJECT = 15
    MISSING_TIME = 16
    BAD_TIME = 17  # not in the stream's time unit, or outside 1970 to 2199
    MISSING_POSITION = 18
    BAD_NUMBER = 19
    OUT_OF_CRS = 20
    TOO_FAR_AHEAD = 21
    NO_POINT = 22  # the place is another geometry than a point, or none that is known
    BAD_BOX = 23  # a low side of the box is above the high one
    NO_SHAPE = 24  # the shape is no geometry that is known, or an invalid one
    AHEAD_OF_STREAM = (
        25  # its event time leaps too far ahead of all others to be believed
    )
    FILTERED_OUT = 26  # the stream's `where` does not let it in
    HEADER = 27  # a line of CSV that names columns or units again


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """A payload taken apart into records, before anything is known of their meaning.

    `fault` int8[n] holds a Reason for each record that could not be taken apart. `fields` holds, by the name of a
    column, the values of all others in order: string arrays (null or "" is a missing value), or, where the format
    knows the type, float64, int64 and bool (null or NaN is missing), and event times as timestamp[us]: in UTC, or
    without a zone, where it is the stream's `time_zone` that counts; no time unit of a stream changes them. int64 and
    float64 event times are numbers in that unit. A typed value means what its text would. `raw` gives the bytes of the
    records with the given rows, each cut at RAW_LIMIT.
    """

    fault: NDArray[np.int8]
    fields: Mapping[str, pa.Array]
    raw: Callable[[NDArray[np.int64]], pa.Array]


def columns_read(stream: FormatSettings) -> tuple[str, ...]:
    """The names of the columns that a stream's settings speak of, each once."""
    return tuple(dict.fromkeys(name for _, name in named_columns(stream)))
