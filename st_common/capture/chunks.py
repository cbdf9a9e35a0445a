"""Bytes as chunks that end at the border of a record, without ever holding a file as a whole."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from st_common.capture.source import Source
from st_common.decode.json_array import is_array, split
from st_common.decode.quotes import RECORD_LIMIT, Dialect, is_closed, join_lines
from st_common.decode.spans import Spans, lines
from st_common.errors import ConfigError
from st_common.settings import StreamSettings

HEADER_LIMIT = 1 << 20  # bytes
_LEAST_CHUNK = 4 * RECORD_LIMIT  # bytes; so that a quoted field of several lines fits
_LF, _CR, _BLANK = 10, 13, 32
_MARKS = (b"\xef\xbb\xbf", b"\n", b"\r\n")


@dataclass(frozen=True, slots=True)
class Chunk:
    r"""Whole records, from which payloads of segments are cut.

        b'id,t,x,y\n1,2,3,4\n\n2,2,3,4\n'   ->   header b'id,t,x,y\n', spans from 0 to 7 and from 9 to 16

    Attributes:
        header: goes in front of each payload, with its line end; empty for NDJSON and CSV without a header.
        spans: the records in the order of the source, without line ends and blank lines; the bytes behind the header.
    """

    header: bytes
    spans: Spans

    def payload(self, start: int, stop: int) -> bytes:
        """The bytes of a segment: the header, then records `start` to `stop` (not included), and a line end.

        Blank lines between the records are part of it.
        """
        ends = (
            self.spans.starts[stop]
            if stop < len(self.spans)
            else len(self.spans.buffer)
        )
        body = self.spans.buffer[self.spans.starts[start] : ends].tobytes()
        return (
            self.header + body if body.endswith(b"\n") else self.header + body + b"\n"
        )


def chunks(source: Source, stream: StreamSettings, *, size: int) -> Iterator[Chunk]:
    r"""Cuts a source into chunks of about `size` bytes, each with the header that a CSV segment needs.

    A chunk ends behind a whole record: a line, or for CSV a quoted field of several lines up to RECORD_LIMIT. A line
    longer than `size` is cut. A JSON array of objects becomes lines:

        b'[{"a":1},\n {"a":2}]'   ->   b'{"a":1}\n  {"a":2}\n'

    Args:
        source: read portion by portion; never held as a whole.
        stream: its `format`, `delimiter`, `quote` and `header` count here.
        size: bytes of a chunk; raised to four times RECORD_LIMIT where it is less.

    Yields:
        Chunks with at least one record, in the order of the source.

    Raises:
        ConfigError: the stream has a header, and the first MiB of the source holds no line end.
    """
    size = max(size, _LEAST_CHUNK)
    if stream.format == "ndjson":
        yield from _json_chunks(source, size)
        return
    dialect = Dialect(stream.delimiter, stream.quote)
    header, rest = _header(source, size) if stream.header else (b"", b"")
    for data in _whole(source, rest, size - len(header) - 1, dialect):
        spans = _records(data, dialect).without(header.rstrip(b"\r\n"))
        if len(spans):
            yield Chunk(header, spans)


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


def _whole(
    source: Source, rest: bytes, size: int, dialect: Dialect | None
) -> Iterator[bytes]:
    """The bytes of a source, `rest` first, cut behind whole records."""
    while True:
        more = source.read(max(size - len(rest), 0))
        data = rest + more
        if not more and len(data) < size:
            yield from (data,) if data else ()
            return
        end = _border(data, dialect) or len(data)
        yield data[:end]
        rest = data[end:]


def _border(data: bytes, dialect: Dialect | None) -> int:
    """How many bytes are whole records, however the source goes on; 0 for none."""
    end = data.rfind(b"\n") + 1
    if dialect is None or not dialect.quote or dialect.quote.encode() not in data[:end]:
        return end
    # A quote near the end that is not closed yet may be by what comes: the record is left for the next chunk.
    records = _records(data[:end], dialect)
    near = np.flatnonzero(records.starts > end - RECORD_LIMIT)
    opened = near[~is_closed(records.select(near), dialect)]
    return int(records.starts[opened[0]]) if len(opened) else end


def _records(data: bytes, dialect: Dialect | None) -> Spans:
    spans = lines(np.frombuffer(data, np.uint8))
    if dialect is not None and dialect.quote and dialect.quote.encode() in data:
        return join_lines(spans, dialect)
    return spans


def _json_chunks(source: Source, size: int) -> Iterator[Chunk]:
    start = source.read(size)
    bodies = (
        _array_lines(source, start, size)
        if is_array(start)
        else _whole(source, start, size, None)
    )
    for data in bodies:
        spans = _records(data, None)
        if len(spans):
            yield Chunk(b"", spans)


def _array_lines(source: Source, data: bytes, size: int) -> Iterator[bytes]:
    """The elements of a JSON array as lines; what follows the array, and an element that never ends, is a line too."""
    data = data[data.index(b"[") :]
    while True:
        more = source.read(max(size - len(data), 0))
        data += more
        elements, close = split(np.frombuffer(data, np.uint8))
        ended = not more and len(data) < size
        if close < len(data) or ended:
            yield _as_lines(elements)
            yield from _whole(source, b"", size, None)
            return
        last = (
            int(elements.starts[-1]) if len(elements) > 1 else len(data)
        )  # one element of `size` bytes is cut
        yield _as_lines(elements.select(np.arange(max(len(elements) - 1, 1))))
        data = b"[" + data[last:]


def _as_lines(spans: Spans) -> bytes:
    """Adjacent elements of an array, each on a line of its own: line ends inside become blanks, commas line ends."""
    if not len(spans):
        return b""
    first = spans.starts[0]
    text = spans.buffer[first : spans.ends[-1]].copy()
    text[(text == _LF) | (text == _CR)] = _BLANK
    text[spans.ends[:-1] - first] = _LF
    return text.tobytes() + b"\n"
