r"""CSV and TSV: delimited texts with headers and quotes, cut and read, and everything that goes wrong in them.

A quote opens a field only at the field's start; elsewhere it is a character like any other, also behind a closing
quote. So Python's and Arrow's readers have it. A header may stand in the middle, where exports were put one behind
another:

id,t,lon,lat                                        line 1 is the header
a,1764000000,24.9,60.2
id,t,lon,lat                                        line 3 repeats it: no record
a,1764000060,24.9,60.2
id,t,lat,lon                                        line 5 is another one: what is behind it is read by it
a,1764000120,60.2,24.9
"""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from st_common.errors import ConfigError
from st_common.formats.chunk import HEADER_LIMIT, Chunk, line_border, whole
from st_common.formats.encodings import as_utf8
from st_common.formats.format_settings import FormatSettings, Source, named_columns
from st_common.formats.numbers import Mask, mask
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

# --- quotes: records that go over several lines, and quotes that are never closed ---

RECORD_LIMIT = 1 << 16
"""Bytes of a record that goes over several lines; a quote open for longer counts as never closed."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What separates and what quotes fields: one ASCII character each; quote "" for none."""

    delimiter: str
    quote: str


def join_lines(lines: Spans, dialect: Dialect) -> Spans:
    """The records of lines: a line whose quote is open is joined with the next that has an odd number of quotes.

    But only if the joined record is strictly well formed (behind a closing quote comes a delimiter or the end) and
    below RECORD_LIMIT. Otherwise the line stays alone, so that an unbalanced quote costs its own line and no other.
    """
    odd = np.flatnonzero(
        lines.count(byte_places(lines.buffer, ord(dialect.quote))) % 2 == 1
    )
    if len(odd) < 2:
        return lines
    opening, closing = odd[:-1], odd[1:]
    near = lines.ends[closing] - lines.starts[opening] < RECORD_LIMIT
    opening, closing = opening[near], closing[near]
    joined = Spans(lines.buffer, lines.starts[opening], lines.ends[closing])
    pairs = ~is_closed(lines.select(opening), dialect)
    pairs[pairs] = _matches(
        lines.select(closing[pairs]), _tail(dialect)
    )  # cheap, and rules out nearly all
    pairs[pairs] = _matches(joined.select(pairs), _strict(dialect))
    taken = _every_other(pairs, opening, closing)
    inner = np.zeros(
        len(lines) + 1, np.int64
    )  # counts how many joined records a line continues
    np.add.at(inner, opening[taken] + 1, 1)
    np.add.at(inner, closing[taken] + 1, -1)
    ends = lines.ends.copy()
    ends[opening[taken]] = lines.ends[closing[taken]]
    heads = np.cumsum(inner[:-1]) == 0
    return Spans(lines.buffer, lines.starts[heads], ends[heads])


def is_closed(records: Spans, dialect: Dialect) -> Mask:
    """Whether every quote that opens a field is closed, and no carriage return stands outside of quotes."""
    return _matches(records, _lenient(dialect))


def count_fields(records: Spans, dialect: Dialect) -> NDArray[np.int64]:
    """The number of fields of closed records."""
    delimiter, quote = _escaped(dialect)
    pattern = f"(^|{delimiter}){quote}(?:[^{quote}]|{quote}{quote})*{quote}"
    bare = pc.replace_substring_regex(records.texts(), pattern, r"\1")
    return (
        np.asarray(pc.count_substring(bare, dialect.delimiter).to_numpy(), np.int64) + 1
    )


def _every_other(
    pairs: Mask, opening: NDArray[np.int64], closing: NDArray[np.int64]
) -> Mask:
    """From runs of pairs of which each ends where the next begins, every other one, the first included."""
    number = np.arange(len(pairs))
    chained = np.zeros(len(pairs), bool)
    chained[1:] = pairs[1:] & pairs[:-1] & (opening[1:] == closing[:-1])
    first = (
        np.maximum.accumulate(np.where(chained, 0, number)) if len(pairs) else number
    )
    even: Mask = (number - first) % 2 == 0
    return pairs & even


def _escaped(dialect: Dialect) -> tuple[str, str]:
    return f"\\x{ord(dialect.delimiter):02x}", f"\\x{ord(dialect.quote):02x}"


def _strict(dialect: Dialect) -> str:
    return f"^{_fields(dialect)}$"


def _tail(dialect: Dialect) -> str:
    """The last line of a strict record of several lines: the end of a quoted field, then maybe other fields."""
    delimiter, quote = _escaped(dialect)
    return f"^(?:[^{quote}]|{quote}{quote})*{quote}(?:{delimiter}{_fields(dialect)})?$"


def _lenient(dialect: Dialect) -> str:
    delimiter, quote = _escaped(dialect)
    more = f"(?:[^{quote}{delimiter}\\r\\n][^{delimiter}\\r\\n]*)?"
    return f"^{_fields(dialect, after_quote=more)}$"


def _fields(dialect: Dialect, *, after_quote: str = "") -> str:
    delimiter, quote = _escaped(dialect)
    bare = f"(?:[^{quote}{delimiter}\\r\\n][^{delimiter}\\r\\n]*)?"
    quoted = f"{quote}(?:[^{quote}]|{quote}{quote})*{quote}{after_quote}"
    return f"(?:{bare}|{quoted})(?:{delimiter}(?:{bare}|{quoted}))*"


def _matches(records: Spans, pattern: str) -> Mask:
    if not len(records):
        return np.zeros(0, bool)
    return mask(pc.match_substring_regex(records.texts(), pattern))


# --- chunks ---

_LEAST_CHUNK = 4 * RECORD_LIMIT  # bytes; so that a quoted field of several lines fits
_MARKS = (b"\xef\xbb\xbf", b"\n", b"\r\n")


def csv_chunks(source: Source, stream: FormatSettings, *, size: int) -> Iterator[Chunk]:
    """Chunks of at most `size` bytes, raised to four times RECORD_LIMIT where it is less.

    A chunk ends behind a line, or a quoted record of several lines up to RECORD_LIMIT. A longer line is cut. A line in
    the middle that names the columns of an id, a time and a place is a header, by which what is behind it is read.

    Raises:
        ConfigError: the stream has a header, and the first MiB of the source holds no line end.
    """
    size = max(size, _LEAST_CHUNK)
    dialect = Dialect(stream.delimiter, stream.quote)
    header, rest = _header(source, size) if stream.header else (b"", b"")
    portions = whole(
        source, rest, size - len(header) - 1, lambda data: _border(data, dialect)
    )
    for data in portions:
        parts = sections(header, _records_of(data, dialect), stream)
        yield from (Chunk(one, spans) for one, spans in parts if len(spans))
        header = parts[-1][0]


def _header(source: Source, size: int) -> tuple[bytes, bytes]:
    """The first line that is not empty, with its line end, and what was read behind it.

    Raises:
        ConfigError: there is none within HEADER_LIMIT.
    """
    data = source.read(max(size, HEADER_LIMIT))
    while data.startswith(_MARKS):
        data = data.removeprefix(_MARKS[0]).lstrip(b"\r\n")
    end = data.find(b"\n", 0, HEADER_LIMIT) + 1
    if end == 0 and len(data) >= HEADER_LIMIT:
        raise ConfigError(
            "the file has no header in its first MiB",
            hint="header = false says so in the settings",
        )
    return (data[:end], data[end:]) if end else (data + b"\n", b"")


def _border(data: bytes, dialect: Dialect) -> int:
    """How many bytes are whole records, however the source goes on; 0 for none."""
    end = line_border(data)
    if not dialect.quote or dialect.quote.encode() not in data[:end]:
        return end
    # A quote near the end that is not closed yet may be by what comes: the record is left for the next chunk.
    records = _records_of(data[:end], dialect)
    near = np.flatnonzero(records.starts > end - RECORD_LIMIT)
    opened = near[~is_closed(records.select(near), dialect)]
    return int(records.starts[opened[0]]) if len(opened) else end


def _records_of(data: bytes, dialect: Dialect) -> Spans:
    spans = lines(np.frombuffer(data, np.uint8))
    if dialect.quote and dialect.quote.encode() in data:
        return join_lines(spans, dialect)
    return spans


# --- headers in the middle ---

_CORE = ("object", "event_ts", "x", "y", "place")
_SHOWN = 80  # characters of a header
_MOST_TOLD = 5
_UNITS = (
    "deg", "degs", "degree", "degrees", "decimal degrees", "dd", "°", "º", "wgs84", "epsg:4326", "m", "metre", "metres",
    "meter", "meters", "wkt", "grad", "grados", "degrés",
)  # fmt: skip


def core_columns(stream: FormatSettings) -> tuple[str, ...]:
    """The columns without which a line of names is no header: those of the id, the time and the place."""
    named = (name for key, name in named_columns(stream) if key in _CORE)
    return tuple(dict.fromkeys(named))


def places_named(stream: FormatSettings) -> tuple[str, ...]:
    """The columns of the place."""
    named = (name for key, name in named_columns(stream) if key in ("x", "y", "place"))
    return tuple(dict.fromkeys(named))


def names_columns(texts: pa.Array, stream: FormatSettings) -> NDArray[np.bool_]:
    """Which texts of a column of places are names of columns, or units.

    Args:
        texts: strings; null or "" is none.
        stream: names the columns.
    """
    known = [*(name.lower() for name in core_columns(stream)), *_UNITS]
    plain = pc.utf8_lower(pc.utf8_trim(pc.fill_null(texts, ""), " []()"))
    found = pc.is_in(plain, pa.array(known, pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def sections(
    header: bytes, spans: Spans, stream: FormatSettings
) -> list[tuple[bytes, Spans]]:
    """Lines by the header that stands in front of them; headers are none of them. The last one may have no lines.

    Args:
        header: the first one, with its line end.
        spans: the lines behind it, each whole.
        stream: names the columns.
    """
    found = headers_in(spans, stream)
    if not len(found):
        return [(header, spans.without(header.rstrip(b"\r\n")))]
    is_record = np.ones(len(spans), bool)
    is_record[found] = False
    cuts, headers = [0], [header]
    for at, line in zip(found.tolist(), _texts(spans, found), strict=True):
        if line != headers[-1].rstrip(b"\r\n"):  # the same once more is none either
            cuts.append(at)
            headers.append(line + b"\n")
    parts, begun = [], 0
    for one, start, stop in zip(headers, cuts, [*cuts[1:], len(spans)], strict=True):
        end = int(spans.starts[stop]) if stop < len(spans) else len(spans.buffer)
        which = start + np.flatnonzero(is_record[start:stop])
        starts, ends = spans.starts[which] - begun, spans.ends[which] - begun
        parts.append((one, Spans(spans.buffer[begun:end], starts, ends)))
        begun = end if len(which) else begun
    return parts


def headers_in(spans: Spans, stream: FormatSettings) -> NDArray[np.int64]:
    """Which lines name all columns of an id, a time and a place: the numbers of their spans, ascending."""
    wanted = sorted(core_columns(stream), key=len, reverse=True)
    if not stream.header or not wanted or not all(map(_is_a_name, wanted)):
        return np.zeros(0, np.int64)
    data = spans.buffer.tobytes()
    if not all(one.encode() in data for one in wanted):  # nearly always
        return np.zeros(0, np.int64)
    at = np.array(_places(data, wanted[0].encode(), stream), np.int64)
    numbers = np.unique(np.searchsorted(spans.starts, at, side="right") - 1)
    numbers = numbers[numbers >= 0]
    names = frozenset(wanted)
    found = [
        number
        for number, line in zip(numbers.tolist(), _texts(spans, numbers), strict=True)
        if all(one.encode() in line for one in wanted)
        and names.issubset(names_in(as_utf8(line, stream.encoding), stream))
    ]
    return np.array(found, np.int64)


def headers_told(
    data: bytes, stream: FormatSettings, *, first_line: int = 1
) -> list[str]:
    """What is said of the headers in the middle of the first bytes of a file.

    Args:
        data: from its header on.
        stream: names the columns.
        first_line: the number of its first line.
    """
    spans = lines(np.frombuffer(data, np.uint8))
    found = headers_in(spans, stream)
    if len(found) < 2:
        return []
    ends = np.flatnonzero(spans.buffer == _LF)
    numbers = np.searchsorted(ends, spans.starts[found]) + first_line
    first, *texts = _texts(spans, found)
    said, same = [], []
    for number, text in zip(numbers[1:].tolist(), texts, strict=True):
        if text == first:
            same.append(number)
            continue
        shown = as_utf8(text, stream.encoding).decode("utf-8", "replace")[:_SHOWN]
        said.append(
            f"line {number:,} is another header, {shown}: what is behind it is read by it"
        )
        first = text
    if same:
        more = f", and {len(same) - 1:,} more lines do" if len(same) > 1 else ""
        said.insert(0, f"line {same[0]:,} repeats the header{more}: it is no record")
    return said[:_MOST_TOLD]


def _is_a_name(column: str) -> bool:
    """Whether a column is called so that no value is alike, in bytes that are the same in all encodings."""
    return column.isascii() and any(map(str.isalpha, column))


def _places(data: bytes, name: bytes, stream: FormatSettings) -> list[int]:
    """Where a name stands as a field, or at the edge of one."""
    mark, quote = stream.delimiter.encode(), stream.quote.encode()
    edges = {mark, b"\n", b"\r", b" ", quote} - {b""}
    bounded = [edge + name for edge in edges]
    at = [0] if data.startswith(name) else []
    for one in bounded:
        place = data.find(one)
        while place >= 0:
            end = place + len(one)
            if end == len(data) or data[end : end + 1] in edges:
                at.append(place + 1)
            place = data.find(one, end)
    return sorted(at)


def _texts(spans: Spans, numbers: NDArray[np.int64]) -> list[bytes]:
    texts: list[bytes] = spans.select(numbers).texts().to_pylist()
    return texts


# --- records ---

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
