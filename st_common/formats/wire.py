"""The wire format of Protocol Buffers, read for many messages at once.

Messages are pieces of one buffer. Their first fields are read together, then their second ones, and so on: as many
rounds as the message with the most fields has, and not one step of Python for each field of each message.

    messages   08 01 12 02 68 69   |   12 02 68 6f      tag 08: field 1, a varint;  tag 12: field 2, bytes
    round 1    ^^ field 1 = 1          ^^ field 2 = "ho"
    round 2          ^^ field 2 = "hi"
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.formats.spans import Bytes, Ints, Mask, Spans

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = np.array([0, 8, 0, -1, -1, 4, -1, -1])  # by wire type; -1: a group, or no type
_LONGEST = 10  # bytes of a varint
_LEAST_TAG = 8  # of field 1
PADDING = _LONGEST + 8  # bytes of zeros that must stand behind the last message


MOST_FIELDS = 1000
"""Fields of one message, or unknown ones between messages: more are noise, which would take minutes."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of many messages: the last one, where a message has several.

    `present` bool[n]; `values` int64[n] of varints; `starts` and `ends` int64[n], where the bytes of the others stand.
    All are 0 where it is absent.
    """

    present: Mask
    values: Ints
    starts: Ints
    ends: Ints


def read_fields(
    messages: Spans, wanted: Mapping[int, int]
) -> tuple[dict[int, Field], Mask]:
    """Some fields of messages.

    Args:
        messages: pieces of a buffer that ends with PADDING zeros.
        wanted: wire types by field number. A field of another type is passed over, as one of another number is.

    Returns:
        The fields by number, and bool[n]: which messages break, whose fields may be lacking.
    """
    count = len(messages)
    fields = {number: _absent(count) for number in wanted}
    broken = np.zeros(count, bool)
    rows = np.flatnonzero(messages.ends > messages.starts)
    at = messages.starts[rows]
    for _ in range(MOST_FIELDS):
        if not len(rows):
            return fields, broken
        key, read, good = _next(messages.buffer, at, messages.ends[rows])
        _keep(fields, wanted, np.where(good, key, 0), rows, read)
        broken[rows[~good]] = True
        end = read[-1]
        more = good & (end < messages.ends[rows])
        rows, at = rows[more], end[more]
    broken[rows] = True
    return fields, broken


def _next(
    buffer: Bytes, at: Ints, ends: Ints
) -> tuple[Ints, tuple[Ints, Ints, Ints], Mask]:
    """The fields that start at some places, in messages with these ends.

    Returns:
        Their tags; their varints, starts and ends; and which are whole: of the others the rest is of no meaning.
    """
    key, at = varints(buffer, at)
    wire = key & 7
    value, behind = varints(buffer, at)
    is_varint, is_bytes = wire == VARINT, wire == BYTES
    start = np.where(is_bytes, behind, at)
    size = np.where(is_bytes, value, _SIZES[wire])
    good = (key >= _LEAST_TAG) & (size >= 0) & (size <= ends - start)
    good &= ~is_varint | (behind <= ends)
    end = np.where(is_varint, behind, start + np.where(good, size, 0))
    return key, (value, start, end), good


def _absent(count: int) -> Field:
    values, starts, ends = np.zeros((3, count), np.int64)
    return Field(np.zeros(count, bool), values, starts, ends)


def _keep(
    fields: Mapping[int, Field],
    wanted: Mapping[int, int],
    key: Ints,
    rows: Ints,
    read: tuple[Ints, Ints, Ints],
) -> None:
    value, start, end = read
    for number, wire in wanted.items():
        mine = key == number << 3 | wire
        if mine.any():
            field, places = fields[number], rows[mine]
            field.present[places] = True
            field.values[places] = value[mine]
            field.starts[places] = start[mine]
            field.ends[places] = end[mine]


def varints(buffer: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The varints that start at some places, as int64, and where each ends; one that never ends has its end behind all.

    Places may lie behind the messages, within the padding.
    """
    at = np.minimum(at, len(buffer) - _LONGEST)
    byte = buffer[at].astype(np.int64)
    values, ends = byte & 0x7F, at + 1
    going = np.flatnonzero(byte >= 0x80)
    for step in range(1, _LONGEST):
        if not len(going):
            return values, ends
        byte = buffer[at[going] + step].astype(np.int64)
        values[going] |= (byte & 0x7F) << 7 * step
        ends[going] += 1
        going = going[byte >= 0x80]
    ends[going] = len(buffer)
    return values, ends


def floats(buffer: Bytes, field: Field) -> NDArray[np.float64]:
    """The float32 numbers of a field of type FIXED32; NaN where it is absent."""
    digits = buffer[field.starts[:, None] + np.arange(4)]
    with np.errstate(invalid="ignore"):  # a NaN that signals
        numbers = digits.view("<f4")[:, 0].astype(np.float64)
    return np.where(field.present, numbers, np.nan)


def doubles(buffer: Bytes, field: Field) -> NDArray[np.float64]:
    """The numbers of a field of type FIXED64; NaN where it is absent."""
    numbers = buffer[field.starts[:, None] + np.arange(8)].view("<f8")[:, 0]
    return np.where(field.present, numbers, np.nan)


def longs(field: Field) -> pa.Array:
    """The values of a field of type VARINT as int64; null where it is absent."""
    return pa.array(field.values, mask=~field.present)


def inner(buffer: Bytes, field: Field) -> Spans:
    """The messages that a field of type BYTES holds; empty ones where it is absent."""
    return Spans(buffer, field.starts, field.ends)


def texts(buffer: Bytes, field: Field) -> tuple[pa.Array, Mask]:
    """The texts of a field of type BYTES, null where it is absent, and bool[n]: where one is no UTF-8, and null."""
    present = np.flatnonzero(field.present)
    pieces = Spans(buffer, field.starts, field.ends).select(present).texts()
    bad = np.zeros(len(field.present), bool)
    try:
        read = pieces.cast(pa.string())
    except pa.ArrowInvalid:
        known = [_text(piece) for piece in pieces.to_pylist()]
        bad[present] = [text is None for text in known]
        read = pa.array(known, pa.string())
    places = np.cumsum(field.present) - 1
    return read.take(pa.array(places, mask=~field.present)), bad


def _text(piece: bytes) -> str | None:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None
