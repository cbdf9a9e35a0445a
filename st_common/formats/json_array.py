"""The elements of a JSON array, found by its brackets and commas."""

import numpy as np

from st_common.formats.spans import Bytes, Ints, Mask, Spans, byte_places

_BLANK = b" \t\r\n"
_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")
_STEP = np.zeros(256, np.int8)  # how a byte changes the depth
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1
_STRUCTURE = _STEP != 0
_STRUCTURE[_COMMA] = True


def is_array(head: bytes) -> bool:
    """Whether bytes begin like a JSON array of objects, or an empty one."""
    opened = head.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    return opened.startswith(b"[") and opened[1:].lstrip(_BLANK)[:1] in (b"{", b"]")


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
    return bool(piece.tobytes().strip(_BLANK))


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
