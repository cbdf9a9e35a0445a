"""NDJSON cut into chunks; the elements of a JSON array, found by its brackets and commas, become lines."""

from collections.abc import Iterator

import numpy as np

from st_common.formats.chunk import Chunk, line_border, whole
from st_common.formats.format_settings import Source
from st_common.formats.spans import Bytes, Ints, Mask, Spans, byte_places, lines

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


# --- the elements of an array ---

_BLANKS = b" \t\r\n"
_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")
_STEP = np.zeros(256, np.int8)  # how a byte changes the depth
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1
_STRUCTURE = _STEP != 0
_STRUCTURE[_COMMA] = True


def is_array(head: bytes) -> bool:
    """Whether bytes begin like a JSON array of objects, or an empty one."""
    opened = head.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANKS)
    return opened.startswith(b"[") and opened[1:].lstrip(_BLANKS)[:1] in (b"{", b"]")


def elements(buffer: Bytes) -> Spans:
    """The elements of the array that the buffer begins with, blanks around them included.

    What stands behind the array counts as one more element, and so does the rest when the array never ends.
    """
    return split(buffer)[0]


def nesting(buffer: Bytes) -> tuple[Ints, Ints]:
    """Where the brackets of a text stand, those of its strings left out, and the depth behind each.

    {"a":[1],   ->   0, 5, 7   and   1, 2, 1
    """
    brackets = np.flatnonzero(_STEP[buffer] != 0)
    brackets = brackets[~in_strings(buffer, brackets)]
    return brackets, np.cumsum(_STEP[buffer[brackets]], dtype=np.int64)


def in_strings(buffer: Bytes, places: Ints) -> Mask:
    """Which places of a text lie inside a string."""
    return np.asarray(np.searchsorted(_quotes(buffer), places) % 2 == 1, bool)


def split(buffer: Bytes) -> tuple[Spans, int]:
    """The same elements, and where the bracket stands that ends the array; the buffer's length when there is none."""
    structure = np.flatnonzero(_STRUCTURE[buffer])
    structure = structure[~in_strings(buffer, structure)]
    kinds = buffer[structure]
    depth = np.cumsum(_STEP[kinds], dtype=np.int64)
    closing = np.flatnonzero(depth <= 0)
    close = int(structure[closing[0]]) if len(closing) else len(buffer)
    commas = structure[(kinds == _COMMA) & (depth == 1) & (structure < close)]
    starts = np.concatenate([structure[:1] + 1, commas + 1, [close + 1]])
    ends = np.concatenate([commas, [close, len(buffer)]])
    return _without_blank_ends(Spans(buffer, starts, np.maximum(starts, ends))), close


def _without_blank_ends(spans: Spans) -> Spans:
    """Leaves out what holds nothing: the rest behind the array, and the only element of an empty array."""
    keep = np.ones(len(spans), bool)
    keep[-1] = _holds_something(spans, -1)
    keep[-2] = len(spans) > 2 or _holds_something(
        spans, -2
    )  # more than one element and the rest
    return spans.select(keep)


def _holds_something(spans: Spans, number: int) -> bool:
    piece = spans.buffer[spans.starts[number] : spans.ends[number]]
    return bool(piece.tobytes().strip(_BLANKS))


def _quotes(buffer: Bytes) -> Ints:
    """The quotes that open or close a string: those behind an even number of backslashes."""
    quotes = byte_places(buffer, _QUOTE)
    slashes = byte_places(buffer, _BACKSLASH)
    if not len(slashes):
        return quotes
    return quotes[~_escaped(quotes, slashes)]


def _escaped(quotes: Ints, slashes: Ints) -> Mask:
    begins = np.ones(len(slashes), bool)
    begins[1:] = slashes[1:] != slashes[:-1] + 1
    run_start = np.maximum.accumulate(np.where(begins, slashes, 0))
    last = np.searchsorted(slashes, quotes) - 1  # the last backslash before each quote
    behind = (last >= 0) & (slashes[last] == quotes - 1)
    return np.asarray(behind & ((quotes - run_start[last]) % 2 == 1), bool)
