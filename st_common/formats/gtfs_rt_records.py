r"""The entities of GTFS-realtime: cut out of FeedMessages here, read by the bindings of its authors; and those in JSON.

Fields of a FeedMessage are told apart here, for the bindings do not say where an entity starts and ends, and a reject
has its own bytes; nor which of several headers holds for it. In the JSON mapping names are `tripId` or `trip_id`:

    {"header":{"timestamp":"17"},       {"document":{"header":{"timestamp":"17"}},"id":"v0","vehicle":{..}}
     "entity":[{"id":"v0",..},      ->  {"document":{"header":{"timestamp":"17"}},"id":"v1","vehicle":{..}}
               {"id":"v1",..}]}

Each entity carries the time of its header, so that it means the same wherever the list is cut.
"""

import io
import re
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError, Message
from google.transit.gtfs_realtime_pb2 import (
    FeedEntity,
    FeedMessage,
    TripDescriptor,
    VehiclePosition,
)
from numpy.typing import NDArray

from st_common.formats.chunk import Around, Chunk
from st_common.formats.format_settings import FormatSettings, Source
from st_common.formats.member_lines import DOCUMENT, member_lines
from st_common.formats.ndjson_chunks import chunks_of_lines
from st_common.formats.ndjson_records import read_columns, without
from st_common.formats.numbers import doubles, mask
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import Ints, Spans

_VEHICLE_FIELDS = {
    "trip": "trip_id start_time start_date schedule_relationship route_id direction_id",
    "position": "latitude longitude bearing odometer speed",
    "": "current_stop_sequence current_status timestamp congestion_level stop_id"
    " occupancy_status occupancy_percentage",
}
_PLACES: Mapping[str, tuple[str, str]] = {
    "id": ("", "id"),
    "is_deleted": ("", "is_deleted"),
    **{
        name: (f"vehicle.{message}".rstrip("."), name)
        for message, names in _VEHICLE_FIELDS.items()
        for name in names.split()
    },
    "vehicle_id": ("vehicle.vehicle", "id"),
    "label": ("vehicle.vehicle", "label"),
    "license_plate": ("vehicle.vehicle", "license_plate"),
}
"""Of each column the path of the message in an entity that has it, and its name there."""

_WORDS: Mapping[str, Mapping[int | None, str]] = {
    column: {
        value.number: value.name
        for value in message.DESCRIPTOR.fields_by_name[column].enum_type.values
    }
    for message, column in (
        (TripDescriptor, "schedule_relationship"),
        (VehiclePosition, "current_status"),
        (VehiclePosition, "congestion_level"),
        (VehiclePosition, "occupancy_status"),
    )
}
"""By column of an enumeration the names of its values; a value without one is null."""

_KINDS = {
    "is_deleted": pa.bool_(),
    **dict.fromkeys(_VEHICLE_FIELDS["position"].split(), pa.float64()),
    **dict.fromkeys(
        ("direction_id", "current_stop_sequence", "occupancy_percentage"), pa.int64()
    ),
}
"""Types of columns; all others are texts."""

_LATEST_S = 1 << 40  # so that microseconds fit into int64, and far out of any range
_FULL_CIRCLE = 360.0


# --- FeedMessages of Protocol Buffers, cut into their entities ---

_CHUNK = 1 << 20  # bytes at least
_PORTION = 1 << 15  # bytes of entities that are objects at once: more are slower,
_MOST = 512  # and so are more of them
_LARGEST = 1 << 20  # bytes of an entity that is read; its objects take many times that
_HEADER, _ENTITY = 0x0A, 0x12  # the tags of field 1 and field 2 of a FeedMessage
_MORE = 0x80  # in a byte of a varint: another one follows
_WIRE, _WIRES, _BYTES, _FIXED = 7, (0, 1, 2, 5), 2, {1: 8, 5: 4}
_LONGEST = 10  # bytes of a varint
_LEAST_TAG = 8  # of field 1
_MOST_UNKNOWN = 1000  # fields between entities: more are noise, which takes minutes


@dataclass(slots=True)
class _Parts:
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


def _parts_of(data: bytes) -> _Parts:
    """The fields of the FeedMessages in some bytes; one that is cut at the end is left out.

    It goes from field to field, which nothing can do at once: each says where the next begins.
    """
    parts, at, unknown = _Parts(), 0, 0
    while True:
        parts.end = at = _entities(data, at, parts)
        if at == len(data):
            return parts
        tag, end = _field(data, at)
        unknown += tag not in (_HEADER, _ENTITY)
        if unknown > _MOST_UNKNOWN:
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


def _entities(data: bytes, at: int, parts: _Parts) -> int:
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
    size, header, rest = max(size, _CHUNK), b"", b""
    while True:
        more = source.read(size - len(rest))
        data = rest + more
        parts = _parts_of(data)
        is_last = not more or parts.breaks or parts.end == 0
        yield from _cut(data, parts, header, with_rest=is_last)
        if is_last:
            return
        if parts.headers:
            start, end = parts.headers[-1]
            header = data[start:end]
        rest = data[parts.end :]


def _cut(
    data: bytes, parts: _Parts, header: bytes, *, with_rest: bool
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


# --- entities, read by the bindings ---


def read_gtfs_rt(payload: bytes, stream: FormatSettings) -> Records:
    """The entities of a payload (see `gtfs_rt`); where it breaks, one more record stands for the rest."""
    parts = _parts_of(payload)
    of_header = _header_times(payload, parts.headers)[parts.header_of()]
    batches = [
        _read(payload, parts.starts[some], parts.ends[some], of_header[some], stream)
        for some in _portions(parts.starts, parts.ends)
    ]
    fault = np.concatenate([batch.fault for batch in batches])
    good = pa.array(fault == Reason.NONE)
    fields = {
        name: pa.concat_arrays([batch.columns[name] for batch in batches]).filter(good)
        for name in columns_read(stream)
    }
    starts, ends = parts.starts, parts.ends
    if parts.end < len(payload) or not payload:
        fault = np.append(fault, np.int8(Reason.UNREADABLE))
        starts, ends = [*starts, parts.end], [*ends, len(payload)]
    places = (np.array(each, np.int64) for each in (starts, ends))
    entities = Spans(np.frombuffer(payload, np.uint8), *places)
    return Records(
        fault=fault,
        fields=fields,
        raw=lambda rows: entities.select(rows).texts(RAW_LIMIT),
    )


def joined_starts(bodies: bytes, ends: Ints) -> Ints | None:
    """Where the entities of whole messages start; None where something breaks, or a message has no header.

    Args:
        bodies: some payloads.
        ends: where each of them ends.
    """
    parts = _parts_of(bodies)
    headers = np.array([start for start, _ in parts.headers], np.int64)
    is_whole = parts.end == len(bodies) and np.isin(ends[:-1], headers).all()
    return np.array(parts.starts, np.int64) if is_whole else None


def _portions(starts: Sequence[int], ends: Sequence[int]) -> Iterator[slice]:
    """Which entities are held as objects at once; one portion at least, though it may be empty."""
    first = 0
    while True:
        room = starts[first] + _PORTION if starts else 0
        last = min(max(bisect(ends, room), first + 1), first + _MOST, len(ends))
        yield slice(first, last)
        if last == len(ends):
            return
        first = last


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some entities: why some of them are no records, and the columns of all."""

    fault: NDArray[np.int8]
    columns: Mapping[str, pa.Array]


def _read(
    payload: bytes,
    starts: Sequence[int],
    ends: Sequence[int],
    of_header: Ints,
    stream: FormatSettings,
) -> _Batch:
    """The entities that stand there; `of_header` is the time (s) of the header of each."""
    entities, fault = _entities_in(payload, starts, ends)
    is_one = np.array([one.HasField("vehicle") for one in entities], bool)
    if stream.columns.gone == "is_deleted":
        is_one |= np.array([one.is_deleted for one in entities], bool)
    fault[~is_one & (fault == Reason.NONE)] = Reason.NO_POSITION
    messages: dict[str, Sequence[Message]] = {"": entities}
    columns = {}
    for name in columns_read(stream):
        path, called = _PLACES.get(name, ("", ""))
        if path not in messages:
            messages[path] = list(map(attrgetter(path), entities))
        if name == "timestamp":
            columns[name] = _times(messages[path], of_header)
        else:
            columns[name] = _column(name, called, messages[path], fault)
    return _Batch(fault, columns)


def _entities_in(
    payload: bytes, starts: Sequence[int], ends: Sequence[int]
) -> tuple[Sequence[FeedEntity], NDArray[np.int8]]:
    """The entities that stand there, and why some break: empty ones are in their place."""
    fault = np.zeros(len(starts), np.int8)
    if starts and ends[-1] - starts[0] <= _PORTION:
        with suppress(DecodeError):  # all at once, unless one breaks
            together = payload[starts[0] : ends[-1]]
            return list(FeedMessage.FromString(together).entity), fault
    entities = []
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        entity = None
        if end - start <= _LARGEST:
            with suppress(DecodeError):
                (entity,) = FeedMessage.FromString(payload[start:end]).entity
        if entity is None:
            entity, fault[row] = FeedEntity(), Reason.UNREADABLE
        entities.append(entity)
    return entities, fault


def _column(
    name: str, called: str, messages: Sequence[Message], fault: NDArray[np.int8]
) -> pa.Array:
    """A column; the bindings give bytes for a text that is no UTF-8, which costs its own entity."""
    if not called:
        return pa.nulls(len(messages), pa.string())
    values = [
        getattr(one, called) if one.HasField(called) else None for one in messages
    ]
    if name in _WORDS:
        words = _WORDS[name]
        return pa.array([words.get(value) for value in values], pa.string())
    kind = _KINDS.get(name, pa.string())
    try:
        column = pa.array(values, kind)
    except pa.ArrowInvalid:
        bad = np.array([isinstance(value, bytes) for value in values])
        fault[bad & (fault == Reason.NONE)] = Reason.BAD_UTF8
        column = pa.array(values, kind, mask=bad)
    return _within_circle(column) if name == "bearing" else column


def _header_times(payload: bytes, headers: Sequence[tuple[int, int]]) -> Ints:
    """The time of each header (s), 0 of one that breaks; and 0 behind them, for entities that have none."""
    times = [0] * (len(headers) + 1)
    for number, (start, end) in enumerate(headers):
        with suppress(DecodeError):
            times[number] = FeedMessage.FromString(payload[start:end]).header.timestamp
    return _clipped(times)


def _times(vehicles: Sequence[VehiclePosition], of_header: Ints) -> pa.Array:
    """The time of each vehicle, else that of the header in front of it."""
    own = _clipped([one.timestamp for one in vehicles])
    seconds = np.where(own == 0, of_header, own)
    return pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC"), mask=seconds == 0)


def _clipped(seconds: Sequence[int]) -> Ints:
    times: Ints = np.minimum(np.array(seconds, np.uint64), _LATEST_S).astype(np.int64)
    return times


def _within_circle(degrees: pa.Array) -> pa.Array:
    """Bearings; null where one is none, as 65535."""
    inside = pc.and_(
        pc.greater_equal(degrees, 0.0), pc.less_equal(degrees, _FULL_CIRCLE)
    )
    return pc.if_else(inside, degrees, pa.scalar(None, pa.float64()))


# --- entities in JSON ---

_DOCUMENT = 8 << 20  # bytes: a document below may have its header behind its list
_LIST = "entity"
_TIMES = ("header.timestamp",)
_HEADER_ALONE = re.compile(
    rb'^[ \t]*\{\s*"header"\s*:\s*\{[^{}]*\}\s*\}\s*$', re.MULTILINE
)
_EMPTY = (
    b'{"header":{}}\n'  # in front of what is JSON, also where its first line breaks
)
_OF_VEHICLE, _OF_HEADER = " vehicle", " header"  # no column is called so


def json_chunks(source: Source, *, size: int) -> Iterator[Chunk]:
    """Chunks of entities, each on a line; of at most `size` bytes, raised to 16 MiB where it is less."""
    for chunk in chunks_of_lines(_lines(source, max(size, _DOCUMENT))):
        yield Chunk(_EMPTY, chunk.spans)


def read_json(payload: bytes, stream: FormatSettings) -> Records:
    """The entities of a payload: of documents, or one a line."""
    size = max(len(payload) + 1, _DOCUMENT)
    lines = b"".join(_lines(io.BytesIO(payload), size))
    wanted = columns_read(stream)
    paths = {
        name: _paths(".".join(filter(None, _PLACES[name])))
        for name in wanted
        if name in _PLACES
    }
    own = {
        _OF_VEHICLE: ("vehicle",),
        _OF_HEADER: (f"{DOCUMENT}.header.timestamp",),
        "is_deleted": _paths("is_deleted"),
    }
    records = read_columns(lines, {**own, **paths})
    is_other = ~mask(records.fields[_OF_VEHICLE].is_valid())
    if stream.columns.gone == "is_deleted":
        is_other &= ~mask(pc.equal(records.fields["is_deleted"], "true"))
    records = without(records, {Reason.NO_POSITION: is_other})
    fields = {name: _json_column(name, records.fields) for name in wanted}
    return Records(fault=records.fault, fields=fields, raw=records.raw)


def _lines(source: Source, size: int) -> Iterator[bytes]:
    """Entities as lines; a header without any is none."""
    return member_lines(_WithEntities(source), _LIST, size=size, kept=_TIMES)


class _WithEntities:
    """Gives the bytes of a source without the documents that have a header alone, as feeds are at night."""

    def __init__(self, source: Source) -> None:
        self._source, self._read, self._given = source, b"", b""

    def read(self, size: int) -> bytes:
        """The next bytes, `size` unless the source ends; none at the end."""
        while len(self._given) < size and (more := self._source.read(size)):
            self._read += more
            end = self._read.rfind(b"\n{") + 1  # behind a whole document
            if not end and len(self._read) >= size:
                end = len(self._read)
            self._take(end)
        if len(self._given) < size:
            self._take(len(self._read))
        given, self._given = self._given[:size], self._given[size:]
        return given

    def _take(self, end: int) -> None:
        lines, self._read = self._read[:end], self._read[end:]
        self._given += _HEADER_ALONE.sub(b"", lines)


def _paths(path: str) -> tuple[str, ...]:
    """A path by the specification's names, and by those of the JSON mapping."""
    outer, dot, name = path.rpartition(".")
    first, *others = name.split("_")
    camel = first + "".join(other.capitalize() for other in others)
    return (path,) if camel == name else (f"{outer}{dot}{camel}", path)


def _json_column(name: str, fields: Mapping[str, pa.Array]) -> pa.Array:
    if name not in _PLACES:
        return pa.nulls(len(fields[_OF_VEHICLE]), pa.string())
    values = fields[name]
    if name == "timestamp":
        return _json_times(values, fields[_OF_HEADER])
    if name in _WORDS:
        words = _WORDS[name]
        numbers = pa.array([str(number) for number in words])
        known = pa.array(words.values()).take(pc.index_in(values, numbers))
        return pc.coalesce(known, values)
    if name == "bearing":
        return _within_circle(pa.array(doubles(values).values))
    return values


def _json_times(own: pa.Array, of_header: pa.Array) -> pa.Array:
    """The time of each vehicle, else that of its header; what is no number is before all times."""
    seconds = pa.nulls(len(own), pa.float64())
    for texts in (own, of_header):
        parsed = doubles(texts)
        numbers = np.nan_to_num(np.where(parsed.bad, -1.0, parsed.values), nan=0.0)
        lacking = parsed.missing | (numbers == 0)
        seconds = pc.coalesce(seconds, pa.array(numbers, mask=lacking))
    values = seconds.fill_null(0).to_numpy(zero_copy_only=False)
    us = np.clip(values, -1.0, float(_LATEST_S)) * 1e6
    return pa.array(
        us.astype(np.int64),
        pa.timestamp("us", "UTC"),
        mask=~mask(seconds.is_valid()),
    )
