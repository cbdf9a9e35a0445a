r"""The elements of a list that is a member of a JSON document, each on a line: of what comes in whole documents.

    {"type":"FeatureCollection",        {"type":"Feature",..}
     "features":[                   ->  {"type":"Feature",..}
       {"type":"Feature",..},
       {"type":"Feature",..}]}

Several documents may follow each other, and lines behind them stay lines. What a document says beside its list can be
given to each element, so that a record stands alone, wherever the list is cut:

    {"now": 1753571941.0, "aircraft": [{"hex": "3c0001"}]}   ->   {"document":{"now":1753571941.0},"hex": "3c0001"}
    {"icao": "3c0001", "trace": [[0, 47.1, 8.2]]}            ->   {"document":{"icao":"3c0001"},"row":[0, 47.1, 8.2]}
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.chunk import whole
from st_common.formats.format_settings import Source
from st_common.formats.ndjson_chunks import (
    as_lines,
    in_strings,
    nesting,
    object_lines,
    split,
)
from st_common.formats.spans import lines

HEAD = 1 << 20  # bytes in which the list of a document begins
_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_BLANKS = re.compile(rb"[ \t\r\n]*")
_NULL = b"null"
_SMALL = 1 << 12  # bytes
_SEPARATOR = b"\x1e"
_OF_SEQUENCE = bytes.maketrans(b"\r\n\x1e", b"  \n")


def member_lines(
    source: Source, member: str, *, size: int, kept: Sequence[str] = ()
) -> Iterator[bytes]:
    """Portions of at most `size` bytes that end behind a line: the elements of such lists, else the lines as they are.

    A sequence of records (RFC 8142) becomes lines, too. What is left of a document that breaks is a line. A source
    without such a document is read as `object_lines` does.

    Args:
        source: the bytes.
        member: the key of the list in each document; by path where it lies deeper: `data.vehicles`.
        size: the most bytes that are held; a longer element is cut.
        kept: the paths of what a document says beside its list that each element is given (`said_beside`); of a
            document that is longer than `size`, of what stands in front of the list.
    """
    data = source.read(size)
    if data.removeprefix(_MARK).lstrip(_BLANK).startswith(_SEPARATOR):
        for portion in whole(source, data, size, _separator_border):
            yield portion.translate(_OF_SEQUENCE)
        return
    while (opened := list_of(data, member)) is not None:
        lines, behind = _whole_documents(data, member, kept)
        if behind:
            yield lines
            data = data[behind:]
            data += source.read(max(size - len(data), 0))
            continue
        document = _Document(source, size, _levels(member))
        head = data[:opened].removeprefix(_MARK)
        said = said_beside(head, None, _levels(member), kept)
        for lines in document.elements(data[opened:]):
            yield with_said(lines, said)
        data = document.rest
    yield from object_lines(source, data, size) if data else ()


def list_of(data: bytes, member: str) -> int | None:
    """Where the list of the document that the bytes begin with opens, or `null` in its place; None: there is none.

    {"data": {"vehicles": [..]}}   and   data.vehicles   ->   22
    """
    *outer, name = member.split(".")
    at = 0
    for one in outer:
        inner = _value_of(data[at:], one, rb"\{")
        if inner is None:
            return None
        at += inner
    listed = _value_of(data[at:], name, rb"\[|null")
    return None if listed is None else at + listed


def _levels(member: str) -> int:
    """How many objects lie around the list."""
    return member.count(".") + 1


def _value_of(data: bytes, member: str, opening: bytes) -> int | None:
    """Where the value of a member of the object that the bytes begin with stands; None: it has none that opens so."""
    start = len(data) - len(data.removeprefix(_MARK).lstrip(_BLANK))
    if data[start : start + 1] != b"{":
        return None
    head = data[start : start + HEAD]
    buffer = np.frombuffer(head, np.uint8)
    brackets, depths = nesting(buffer)
    ended = brackets[depths <= 0]
    pattern = rb'"%s"\s*:\s*(?=%s)' % (re.escape(member.encode()), opening)
    places = np.array([place.span() for place in re.finditer(pattern, head)], np.int64)
    places = places.reshape(-1, 2)
    behind = depths[np.searchsorted(brackets, places[:, 0]) - 1]
    own = (behind == 1) & ~in_strings(buffer, places[:, 0])
    if len(ended):
        own &= places[:, 0] < ended[0]
    return start + int(places[own][0, 1]) if own.any() else None


def _whole_documents(
    data: bytes, member: str, kept: Sequence[str]
) -> tuple[bytes, int]:
    """The elements of the whole documents that the bytes begin with, as lines, and where the last one ends."""
    pieces, behind = [], 0
    while (first := _first_document(data, behind, member, kept)) is not None:
        lines, behind = first
        pieces.append(lines)
    return b"".join(pieces), behind


def _first_document(
    data: bytes, at: int, member: str, kept: Sequence[str]
) -> tuple[bytes, int] | None:
    """The elements of the document that begins at a place, and where it ends; None where it is cut, or is another one.

    It looks at no more bytes than four times those of the document, so that many small ones cost what they are large.
    """
    blank = _BLANKS.match(data, at)
    start, size = blank.end() if blank else at, _SMALL
    while True:
        window = data[start : start + size]
        opened = list_of(window, member)
        if opened is not None:
            lines, end = _read_whole(window, opened, _levels(member), kept)
            if end:
                return lines, start + end
        elif _is_other(window):
            return None
        if start + size >= len(data):
            return None
        size *= 4


def _read_whole(
    window: bytes, opened: int, levels: int, kept: Sequence[str]
) -> tuple[bytes, int]:
    """The elements of a document whose list opens there, in so many objects, and where it ends; 0 where it goes on."""
    listed, lines = window[opened:], b""
    if listed.startswith(_NULL):
        behind = opened + len(_NULL)
    else:
        elements, close = split(np.frombuffer(listed, np.uint8))
        if close == len(listed):
            return b"", 0
        lines = as_lines(elements.select(elements.starts <= close))
        behind = opened + close + 1
    size = _end_of(window[behind:], levels)
    if size is None:
        return b"", 0
    behind_list = window[behind : behind + size]
    said = said_beside(window[:opened].removeprefix(_MARK), behind_list, levels, kept)
    tail = _wrong_tail(behind_list, levels)
    return with_said(lines, said) + tail, behind + size


def _is_other(window: bytes) -> bool:
    """Whether bytes begin with something that is no such document, however they go on."""
    text = window.removeprefix(_MARK).lstrip(_BLANK)
    _, depths = nesting(np.frombuffer(text, np.uint8))
    return not text.startswith(b"{") or bool((depths <= 0).any())


class _Document:
    """Reads the list of a document; `rest` is what was read behind the document."""

    def __init__(self, source: Source, size: int, levels: int) -> None:
        self.rest = b""
        self._source, self._size, self._levels = source, size, levels

    def elements(self, data: bytes) -> Iterator[bytes]:
        """The elements as lines; then what stands behind the list, if it is nothing that ends a document."""
        if data.startswith(_NULL):
            yield from self._behind(data[len(_NULL) :])
            return
        while True:
            more = self._source.read(max(self._size - len(data), 0))
            data += more
            elements, close = split(np.frombuffer(data, np.uint8))
            if close < len(data):
                yield as_lines(elements.select(elements.starts <= close))
                yield from self._behind(data[close + 1 :])
                return
            if not more and len(data) < self._size:
                yield as_lines(elements)  # the document breaks inside the last one
                return
            last = int(elements.starts[-1]) if len(elements) > 1 else len(data)
            yield as_lines(elements.select(np.arange(max(len(elements) - 1, 1))))
            data = b"[" + data[last:]

    def _behind(self, data: bytes) -> Iterator[bytes]:
        data += self._source.read(max(self._size - len(data), 0))
        ends = _end_of(data, self._levels)
        if ends is None:
            self.rest = data.lstrip(_BLANK)
            return
        self.rest = data[ends:].lstrip(_BLANK)
        self.rest += self._source.read(max(self._size - len(self.rest), 0))
        yield _wrong_tail(data[:ends], self._levels)


def _end_of(data: bytes, levels: int) -> int | None:
    """How many bytes close the document whose list was read in so many objects; None: none of them does."""
    brackets, depths = nesting(np.frombuffer(data[:HEAD], np.uint8))
    closing = brackets[depths <= -levels]
    return int(closing[0]) + 1 if len(closing) else None


def _wrong_tail(data: bytes, levels: int) -> bytes:
    """A line of what stands behind a list up to the document's end; nothing where that is other members and the end."""
    try:
        json.loads(b'{"":' * levels + b"[]" + data)
    except (ValueError, RecursionError):
        return data.translate(_OF_SEQUENCE) + b"\n"
    return b""


def _separator_border(data: bytes) -> int:
    """How many bytes are whole records of a sequence: those in front of the last separator."""
    return max(data.rfind(_SEPARATOR), 0)


# --- what a document says beside its list ---

DOCUMENT = "document"
"""The key of a record under which it has what its document says."""
ROW = "row"
"""The key of a record that is an array."""
_PLAIN = (str, int, float, bool)


def said_beside(
    head: bytes, tail: bytes | None, levels: int, kept: Sequence[str]
) -> bytes:
    """The member that records are given, with a comma behind; nothing where the document says none of it.

    Args:
        head: the document up to its list.
        tail: what stands behind the list; None: nobody knows yet.
        levels: how many objects the list lies in.
        kept: the paths of what is given to records.
    """
    if not kept:
        return b""
    try:
        document = json.loads(head + b"[]" + (b"}" * levels if tail is None else tail))
    except (ValueError, RecursionError):
        return b""
    said: dict[str, Any] = {}
    for path in kept:
        _put(said, path.split("."), document)
    return f'"{DOCUMENT}":{json.dumps(said)},'.encode() if said else b""


def _put(said: dict[str, Any], path: Sequence[str], document: Any) -> None:
    """Puts the value at a path of the document where it stands there."""
    *outer, name = path
    for step in outer:
        document = document.get(step) if isinstance(document, dict) else None
    value = document.get(name) if isinstance(document, dict) else None
    if not isinstance(value, _PLAIN) or _is_no_number(value):
        return
    for step in outer:
        said = said.setdefault(step, {})
    said[name] = value


def with_said(elements: bytes, said: bytes) -> bytes:
    """Lines of elements, each object with that member in front of its own; an array stands behind it."""
    if not said or not elements:
        return elements
    texts = lines(np.frombuffer(elements, np.uint8)).texts()
    inside = said.replace(b"\\", b"\\\\")
    empty = pc.replace_substring_regex(
        texts, r"^[ \t]*\{[ \t]*\}", b"{" + inside.removesuffix(b",") + b"}"
    )
    is_empty = pc.not_equal(empty, texts)
    filled = pc.replace_substring_regex(texts, r"^[ \t]*\{", b"{" + inside)
    row = b"{" + inside + f'"{ROW}":'.encode() + rb"\1}"
    filled = pc.replace_substring_regex(filled, r"^[ \t]*(\[(?s:.*))$", row)
    joined = pc.binary_join(
        pa.ListArray.from_arrays(
            pa.array([0, len(texts)], pa.int32()), pc.if_else(is_empty, empty, filled)
        ),
        b"\n",
    )
    whole: bytes = joined[0].as_py()
    return whole + b"\n"


def _is_no_number(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
