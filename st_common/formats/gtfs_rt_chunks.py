"""FeedMessages cut into their entities."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from st_common.formats.chunk import Around, Chunk
from st_common.formats.format_settings import Source
from st_common.formats.spans import Ints, Spans
from st_common.formats.wire import MOST_FIELDS

_LEAST_CHUNK = 1 << 20  # bytes
_HEADER, _ENTITY = 0x0A, 0x12  # the tags of field 1 and field 2 of a FeedMessage
_MORE = 0x80  # in a byte of a varint: another one follows
_WIRE, _WIRES, _BYTES, _FIXED = 7, (0, 1, 2, 5), 2, {1: 8, 5: 4}
_LONGEST = 10  # bytes of a varint
_LEAST_TAG = 8  # of field 1


@dataclass(slots=True)
class Parts:
    """The fields of FeedMessages: where headers and entities start and end, and up to where all is whole.

    `breaks` tells that what follows `end` is no field, however it goes on.
    """

    headers: list[tuple[int, int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    end: int = 0
    breaks: bool = False

    def header_of(self) -> Ints:
        """Which of the headers holds for each entity, the last one in front of it; -1 for none."""
        headers = np.array([start for start, _ in self.headers], np.int64)
        return np.searchsorted(headers, np.array(self.starts, np.int64)) - 1


def parts_of(data: bytes) -> Parts:
    """The fields of the FeedMessages in some bytes; one that is cut at the end is left out.

    It goes from field to field, which nothing can do at once: each says where the next begins.
    """
    parts, at, unknown = Parts(), 0, 0
    while True:
        parts.end = at = _entities(data, at, parts)
        if at == len(data):
            return parts
        tag, end = _field(data, at)
        unknown += tag not in (_HEADER, _ENTITY)
        if unknown > MOST_FIELDS:
            parts.breaks = True
            return parts
        if tag == 0 or end > len(data):
            parts.breaks = tag == 0 and (end <= len(data) or at + _LONGEST <= len(data))
            return parts
        if tag == _HEADER:
            parts.headers.append((at, end))
        elif tag == _ENTITY:
            parts.starts.append(at)
            parts.ends.append(end)
        at = end


def _field(data: bytes, at: int) -> tuple[int, int]:
    """The tag of a field, 0 where there is none that is known, and its end: behind the data, where it is cut."""
    tag, body = _varint(data, at)
    wire, size = tag & _WIRE, _FIXED.get(tag & _WIRE, 0)
    if tag < _LEAST_TAG or wire not in _WIRES:
        return 0, body
    if wire == _BYTES:
        size, body = _varint(data, body)
    elif wire == 0:
        _, body = _varint(data, body)
    return tag, body + size


def _entities(data: bytes, at: int, parts: Parts) -> int:
    """Takes adjacent entities below 16 KiB, which nearly all fields are; gives where the last one ends."""
    starts, ends, last = parts.starts, parts.ends, len(data) - 2
    while at < last and data[at] == _ENTITY:
        end, high = at + 2 + data[at + 1], data[at + 2]
        if data[at + 1] >= _MORE:
            end += 1 + _MORE * (high - 1)
            if high >= _MORE:
                break
        if end > len(data):
            break
        starts.append(at)
        ends.append(end)
        at = end
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and where it ends: behind the data, where it is cut."""
    value = shift = 0
    for place in range(at, min(at + _LONGEST, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value, place + 1
        shift += 7
    return 0, len(data) + 1


def gtfs_rt_chunks(source: Source, *, size: int) -> Iterator[Chunk]:
    """Chunks of at most `size` bytes, raised to 1 MiB where it is less, that end behind an entity.

    Where the source breaks, or a field is longer than that, one more record stands for all that follows.
    """
    size, header, rest = max(size, _LEAST_CHUNK), b"", b""
    while True:
        more = source.read(size - len(rest))
        data = rest + more
        parts = parts_of(data)
        is_last = not more or parts.breaks or parts.end == 0
        yield from _cut(data, parts, header, with_rest=is_last)
        if is_last:
            return
        if parts.headers:
            start, end = parts.headers[-1]
            header = data[start:end]
        rest = data[parts.end :]


def _cut(
    data: bytes, parts: Parts, header: bytes, *, with_rest: bool
) -> Iterator[Chunk]:
    """A chunk for the entities behind each header; bytes behind the last whole field are a record of the last one."""
    buffer = np.frombuffer(data, np.uint8)
    header_of = parts.header_of()
    starts, ends = (np.array(each, np.int64) for each in (parts.starts, parts.ends))
    for number in range(-1, len(parts.headers)):
        if number >= 0:
            start, end = parts.headers[number]
            header = data[start:end]
        mine = header_of == number
        spans = Spans(buffer, starts[mine], ends[mine])
        last = number == len(parts.headers) - 1
        stop = parts.end if last else parts.headers[number + 1][0]
        if last and with_rest and parts.end < len(data):
            stop = len(data)
            spans = Spans(
                buffer,
                np.append(spans.starts, parts.end),
                np.append(spans.ends, stop),
            )
        if len(spans):
            bounded = Spans(buffer[:stop], spans.starts, spans.ends)
            yield Chunk(header, bounded, line_end=b"", around=Around(header))
