"""CSV and TSV cut into chunks: each with the header that its segments need, and no quoted record in two of them."""

from collections.abc import Iterator

import numpy as np

from st_common.errors import ConfigError
from st_common.formats.chunk import HEADER_LIMIT, Chunk, line_border, whole
from st_common.formats.csv_headers import sections
from st_common.formats.format_settings import FormatSettings, Source
from st_common.formats.quotes import RECORD_LIMIT, Dialect, is_closed, join_lines
from st_common.formats.spans import Spans, lines

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
        parts = sections(header, _records(data, dialect), stream)
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
    records = _records(data[:end], dialect)
    near = np.flatnonzero(records.starts > end - RECORD_LIMIT)
    opened = near[~is_closed(records.select(near), dialect)]
    return int(records.starts[opened[0]]) if len(opened) else end


def _records(data: bytes, dialect: Dialect) -> Spans:
    spans = lines(np.frombuffer(data, np.uint8))
    if dialect.quote and dialect.quote.encode() in data:
        return join_lines(spans, dialect)
    return spans
