"""CSV and TSV: delimited texts with a header, quotes, and everything that goes wrong in them."""

import csv
import io
import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from st_common.formats.format_settings import FormatSettings
from st_common.formats.quotes import Dialect, count_fields, is_closed, join_lines
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import (
    Bytes,
    Ints,
    Spans,
    byte_places,
    count_lines,
    lines,
    odd_lines,
    utf8_faults,
)

_BOM = b"\xef\xbb\xbf"
_BLANK_START = re.compile(rb"(?:\xef\xbb\xbf|[\r\n]+)*")
_LF, _CR, _NUL = 10, 13, 0


@dataclass(frozen=True, slots=True)
class _Body:
    """A payload and what its header says; `buffer` is what follows the header."""

    payload: bytes
    buffer: Bytes
    header: bytes | None  # None when the stream has no header
    names: tuple[str, ...] | None
    dialect: Dialect
    quoted: bool  # a quote is somewhere in the payload


def read_csv(payload: bytes, stream: FormatSettings) -> Records:
    """The records of a CSV or TSV payload.

    The first line is the header when the stream has one; the same line again, blank lines and byte order marks are no
    records. An unclosed quote spoils its own line only. A record whose number of fields differs is `ragged`.
    """
    body = _body(payload, stream)
    wanted = columns_read(stream)
    if body.names is not None and not set(wanted) <= set(body.names):
        return _all_faulty(_records(body), Reason.MISSING_COLUMN)
    return _read_whole(body, wanted) or _read_sorted_out(body, wanted)


def read_in_shape(payload: bytes, stream: FormatSettings) -> Records | None:
    """The records, as `read_csv`, when every line is one; None where that is in doubt."""
    body, wanted = _body(payload, stream), columns_read(stream)
    if body.names is not None and not set(wanted) <= set(body.names):
        return None
    return _read_whole(body, wanted)


def _body(payload: bytes, stream: FormatSettings) -> _Body:
    dialect = Dialect(stream.delimiter, stream.quote)
    quoted = dialect.quote != "" and dialect.quote.encode() in payload
    buffer = np.frombuffer(payload, np.uint8)
    blank = _BLANK_START.match(payload)
    start = blank.end() if blank else 0
    if not stream.header:
        return _Body(payload, buffer[start:], None, None, dialect, quoted)
    end = payload.find(b"\n", start)
    end = len(payload) if end < 0 else end
    header = payload[start:end].removesuffix(b"\r")
    return _Body(
        payload, buffer[end + 1 :], header, _names(header, dialect), dialect, quoted
    )


def names_in(line: bytes, stream: FormatSettings) -> tuple[str, ...]:
    """The names of columns in a first line."""
    line = line.removeprefix(_BOM).rstrip(b"\r\n")
    return _names(line, Dialect(stream.delimiter, stream.quote))


def _names(header: bytes, dialect: Dialect) -> tuple[str, ...]:
    text = io.StringIO(header.decode("utf-8", "replace").replace("\r", " "))
    try:
        if dialect.quote:
            row = next(
                csv.reader(text, delimiter=dialect.delimiter, quotechar=dialect.quote),
                [],
            )
        else:
            row = next(
                csv.reader(text, delimiter=dialect.delimiter, quoting=csv.QUOTE_NONE),
                [],
            )
    except csv.Error:  # a name longer than Python's csv allows
        return ()
    return tuple(name.strip() for name in row)


def line_numbers(payload: bytes, stream: FormatSettings) -> Ints:
    """In which line of a payload each record begins, from 1, in the order of `read_csv`."""
    body = _body(payload, stream)
    starts = _records(body).starts + len(payload) - len(body.buffer)
    ends = byte_places(np.frombuffer(payload, np.uint8), _LF)
    return np.asarray(np.searchsorted(ends, starts) + 1, np.int64)


def _read_whole(body: _Body, wanted: tuple[str, ...]) -> Records | None:
    """The records when every line is one: one pass of Arrow's reader, which tells the ragged ones. None when in doubt.

    Without a header ragged ones are a doubt: the first line may be one of them.
    """
    buffer, payload = body.buffer, body.payload
    if (
        not len(buffer)
        or b"\0" in payload
        or not (payload.isascii() or _plain_utf8(payload))
    ):
        return None
    if body.header and b"\n" + body.header in payload:
        return None
    if b"\r" in payload and payload.count(b"\r") != payload.count(b"\r\n"):
        return None
    if body.quoted and _has_open_quote(body):
        return None
    names = body.names or _numbered(payload, body.dialect)
    ragged: list[int] = []
    fields = _arrow(pa.py_buffer(buffer), names, wanted, body.dialect, ragged=ragged)
    count = count_lines(buffer, blank=b"\n\n" in payload or b"\n\r\n" in payload)
    if fields is None or len(next(iter(fields.values()))) + len(ragged) != count:
        return None
    if ragged and body.names is None:
        return None
    fault = np.zeros(count, np.int8)
    fault[ragged] = Reason.RAGGED
    return Records(
        fault=fault, fields=fields, raw=lambda rows: _raw(lines(buffer), rows)
    )


def _has_open_quote(body: _Body) -> bool:
    """Whether a line has an odd number of quotes, or the last leaves one open, which Arrow closes where data ends."""
    if odd_lines(body.buffer, ord(body.dialect.quote)).any():
        return True
    end = len(body.payload.rstrip(b"\r\n"))
    last = body.payload[body.payload.rfind(b"\n", 0, end) + 1 : end]
    return not is_closed(lines(np.frombuffer(last, np.uint8)), body.dialect).all()


def _read_sorted_out(body: _Body, wanted: tuple[str, ...]) -> Records:
    """The records with a fault for each that is out of shape; Arrow's reader sees the others only."""
    records = _records(body)
    fault, counts = _faults(records, body)
    expected = (
        len(body.names)
        if body.names is not None
        else _usual(counts[fault == Reason.NONE])
    )
    fault[(fault == Reason.NONE) & (counts != expected)] = Reason.RAGGED
    names = body.names or tuple(str(number + 1) for number in range(expected))
    if not set(wanted) <= set(names):
        return _all_faulty(records, Reason.RAGGED)
    fields = _readable(records, fault, names, wanted, body.dialect)
    return Records(fault=fault, fields=fields, raw=lambda rows: _raw(records, rows))


def _records(body: _Body) -> Spans:
    """The records, blank lines and repeated headers left out."""
    records = lines(body.buffer)
    if body.quoted:
        records = join_lines(records, body.dialect)
    return records.without(body.header) if body.header is not None else records


def _faults(records: Spans, body: _Body) -> tuple[NDArray[np.int8], Ints]:
    """Why records cannot be read, and the number of fields of those that can."""
    buffer, dialect = records.buffer, body.dialect
    quoted = np.zeros(len(records), bool)
    counts = records.count(byte_places(buffer, ord(dialect.delimiter))) + 1
    fault = np.zeros(len(records), np.int8)
    if b"\r" in body.payload:
        fault[records.holding(byte_places(buffer, _CR))] = Reason.BAD_LINE_END
    if body.quoted:
        quoted = records.holding(byte_places(buffer, ord(dialect.quote)))
        closed = is_closed(records.select(quoted), dialect)
        fault[quoted] = np.where(closed, Reason.NONE, Reason.UNBALANCED_QUOTE)
        quoted[quoted] = closed
        counts[quoted] = count_fields(records.select(quoted), dialect)
    if not body.payload.isascii():
        fault[records.holding(utf8_faults(buffer))] = Reason.BAD_UTF8
    if b"\0" in body.payload:
        fault[records.holding(byte_places(buffer, _NUL))] = Reason.NUL
    return fault, counts


def _usual(counts: Ints) -> int:
    """The most frequent number of fields."""
    values, times = np.unique(counts, return_counts=True)
    return int(values[np.argmax(times)]) if len(values) else 0


def _readable(
    records: Spans,
    fault: NDArray[np.int8],
    names: tuple[str, ...],
    wanted: tuple[str, ...],
    dialect: Dialect,
) -> dict[str, pa.Array]:
    """The fields of all records without a fault; should Arrow see one of them otherwise, it gets a fault as well."""
    parts, columns_of_parts = [np.flatnonzero(fault == Reason.NONE)], []
    while parts:
        part = parts.pop()
        fields = _arrow(
            records.with_line_ends(part).buffers()[2], names, wanted, dialect
        )
        if fields is not None and len(next(iter(fields.values()))) == len(part):
            columns_of_parts.append(fields)
        elif len(part) > 1:
            parts += [part[len(part) // 2 :], part[: len(part) // 2]]
        else:
            fault[part] = Reason.UNREADABLE
    return (
        {
            name: pa.concat_arrays([fields[name] for fields in columns_of_parts])
            for name in wanted
        }
        if columns_of_parts
        else {}
    )


def _as_texts(columns: list[str]) -> arrow_csv.ConvertOptions:
    """How Arrow makes texts of some columns, and null of what is empty."""
    return arrow_csv.ConvertOptions(
        check_utf8=False,
        column_types=dict.fromkeys(columns, pa.string()),
        include_columns=columns,
        null_values=[""],
        strings_can_be_null=True,
    )


def _arrow(
    data: pa.Buffer,
    names: tuple[str, ...],
    wanted: tuple[str, ...],
    dialect: Dialect,
    *,
    ragged: list[int] | None = None,
) -> dict[str, pa.Array] | None:
    """The wanted columns as texts, null where empty; None when a row is out of shape or there is none.

    With a list `ragged` rows with more or fewer fields than names are left out, and their numbers, from 0, put there.
    """

    def skip(row: arrow_csv.InvalidRow) -> str:
        if ragged is None:
            return "error"
        ragged.append(row.number - 1)
        return "skip"

    places = {name: str(names.index(name)) for name in wanted if name in names}
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=data.size + 1,
                column_names=[str(place) for place in range(len(names))],
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote or False,
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            convert_options=_as_texts(list(places.values())),
        )
    except pa.ArrowInvalid:
        return None
    if len(places) < len(wanted):
        return None
    return {name: _one_array(table.column(place)) for name, place in places.items()}


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return (
        column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    )


def _numbered(data: bytes, dialect: Dialect) -> tuple[str, ...]:
    """The columns of a payload without a header, "1" and so on, as many as its first line has fields."""
    first = data.partition(b"\n")[0]
    return tuple(str(number + 1) for number in range(len(_names(first, dialect))))


def _plain_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8 and hold no byte order mark."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return _BOM not in data


def _all_faulty(records: Spans, reason: Reason) -> Records:
    fault = np.full(len(records), reason, np.int8)
    return Records(fault=fault, fields={}, raw=lambda rows: _raw(records, rows))


def _raw(records: Spans, rows: Ints) -> pa.Array:
    return records.select(rows).texts(RAW_LIMIT)
