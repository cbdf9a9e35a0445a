"""NDJSON cut into chunks; the elements of a JSON array become lines."""

from collections.abc import Iterator

import numpy as np

from st_common.formats.chunk import Chunk, line_border, whole
from st_common.formats.format_settings import Source
from st_common.formats.json_array import is_array, split
from st_common.formats.spans import Spans, lines

LEAST_CHUNK = 1 << 18  # bytes
_LF, _CR, _BLANK = 10, 13, 32


def ndjson_chunks(source: Source, *, size: int) -> Iterator[Chunk]:
    r"""Chunks of at most `size` bytes, raised to 256 KiB where it is less, that end behind a line; a longer one is cut.

    A JSON array of objects becomes lines:

        b'[{"a":1},\n {"a":2}]'   ->   b'{"a":1}\n  {"a":2}\n'
    """
    size = max(size, LEAST_CHUNK)
    start = source.read(size)
    yield from chunks_of_lines(object_lines(source, start, size))


def chunks_of_whole_lines(source: Source, *, size: int) -> Iterator[Chunk]:
    """Chunks of about `size` bytes of a source whose lines are its records."""
    return chunks_of_lines(whole(source, b"", size, line_border))


def chunks_of_lines(portions: Iterator[bytes]) -> Iterator[Chunk]:
    """A chunk of each portion of whole lines; none of what holds no record."""
    for data in portions:
        spans = lines(np.frombuffer(data, np.uint8))
        if len(spans):
            yield Chunk(b"", spans)


def object_lines(source: Source, start: bytes, size: int) -> Iterator[bytes]:
    """The lines of a source of which `start` was read already, or the elements of the array that it is."""
    if is_array(start):
        return _array_lines(source, start, size)
    return whole(source, start, size, line_border)


def _array_lines(source: Source, data: bytes, size: int) -> Iterator[bytes]:
    """The elements of a JSON array as lines; what follows the array, and an element that never ends, is a line too."""
    data = data[data.index(b"[") :]
    while True:
        more = source.read(max(size - len(data), 0))
        data += more
        elements, close = split(np.frombuffer(data, np.uint8))
        ended = not more and len(data) < size
        if close < len(data) or ended:
            yield as_lines(elements)
            yield from whole(source, b"", size, line_border)
            return
        last = (
            int(elements.starts[-1]) if len(elements) > 1 else len(data)
        )  # one element of `size` bytes is cut
        yield as_lines(elements.select(np.arange(max(len(elements) - 1, 1))))
        data = b"[" + data[last:]


def as_lines(spans: Spans) -> bytes:
    """Adjacent elements of an array, each on a line of its own: line ends inside become blanks, commas line ends."""
    if not len(spans):
        return b""
    first = spans.starts[0]
    text = spans.buffer[first : spans.ends[-1]].copy()
    text[(text == _LF) | (text == _CR)] = _BLANK
    text[spans.ends[:-1] - first] = _LF
    return text.tobytes() + b"\n"
