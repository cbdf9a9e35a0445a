"""The entities of FeedMessages, with typed columns."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.format_settings import FormatSettings
from st_common.formats.gtfs_rt_chunks import Parts, parts_of
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import Bytes, Ints, Mask, Spans
from st_common.formats.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    PADDING,
    VARINT,
    Field,
    doubles,
    floats,
    inner,
    longs,
    read_fields,
    texts,
    varints,
)

_TRIP, _POSITION, _VEHICLE = 1, 2, 8  # the messages in a VehiclePosition
_HEADER_TIME, _ENTITY_VEHICLE, _ENTITY_DELETED = 3, 4, 2
_NO_MESSAGE = 0
_ENTITY = -1
_PLACES: Mapping[str, tuple[int, int, int]] = {
    "id": (_ENTITY, 1, BYTES),
    "is_deleted": (_ENTITY, _ENTITY_DELETED, VARINT),
    "trip_id": (_TRIP, 1, BYTES),
    "start_time": (_TRIP, 2, BYTES),
    "start_date": (_TRIP, 3, BYTES),
    "schedule_relationship": (_TRIP, 4, VARINT),
    "route_id": (_TRIP, 5, BYTES),
    "direction_id": (_TRIP, 6, VARINT),
    "latitude": (_POSITION, 1, FIXED32),
    "longitude": (_POSITION, 2, FIXED32),
    "bearing": (_POSITION, 3, FIXED32),
    "odometer": (_POSITION, 4, FIXED64),
    "speed": (_POSITION, 5, FIXED32),
    "current_stop_sequence": (_NO_MESSAGE, 3, VARINT),
    "current_status": (_NO_MESSAGE, 4, VARINT),
    "timestamp": (_NO_MESSAGE, 5, VARINT),
    "congestion_level": (_NO_MESSAGE, 6, VARINT),
    "stop_id": (_NO_MESSAGE, 7, BYTES),
    "vehicle_id": (_VEHICLE, 1, BYTES),
    "label": (_VEHICLE, 2, BYTES),
    "license_plate": (_VEHICLE, 3, BYTES),
    "occupancy_status": (_NO_MESSAGE, 9, VARINT),
    "occupancy_percentage": (_NO_MESSAGE, 10, VARINT),
}
"""Of each column: the message that has it (0: the VehiclePosition itself), its number there, its wire type."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "schedule_relationship": (
        "SCHEDULED",
        "ADDED",
        "UNSCHEDULED",
        "CANCELED",
        "",
        "REPLACEMENT",
        "DUPLICATED",
        "DELETED",
        "NEW",
    ),
    "current_status": ("INCOMING_AT", "STOPPED_AT", "IN_TRANSIT_TO"),
    "congestion_level": (
        "UNKNOWN_CONGESTION_LEVEL",
        "RUNNING_SMOOTHLY",
        "STOP_AND_GO",
        "CONGESTION",
        "SEVERE_CONGESTION",
    ),
    "occupancy_status": (
        "EMPTY",
        "MANY_SEATS_AVAILABLE",
        "FEW_SEATS_AVAILABLE",
        "STANDING_ROOM_ONLY",
        "CRUSHED_STANDING_ROOM_ONLY",
        "FULL",
        "NOT_ACCEPTING_PASSENGERS",
        "NO_DATA_AVAILABLE",
        "NOT_BOARDABLE",
    ),
}
"""The names of the values of enumerations; a value without one is null."""

_LATEST_S = 1 << 40  # so that microseconds fit into int64, and far out of any range
_FULL_CIRCLE = 360.0


def read_gtfs_rt(payload: bytes, stream: FormatSettings) -> Records:
    """The entities of a payload (see `gtfs_rt`); where it breaks, one more record stands for the rest."""
    buffer = np.frombuffer(payload + bytes(PADDING), np.uint8)
    parts = parts_of(payload)
    starts, ends = (np.array(each, np.int64) for each in (parts.starts, parts.ends))
    _, bodies = varints(buffer, starts + 1)
    entities = Spans(buffer, starts, ends)
    read = _Entities(Spans(buffer, bodies, ends), parts, stream)
    fields = {name: read.column(name) for name in columns_read(stream)}
    fault = read.fault
    if parts.end < len(payload) or not payload:
        fault = np.append(fault, np.int8(Reason.UNREADABLE))
        entities = Spans(
            buffer, np.append(starts, parts.end), np.append(ends, len(payload))
        )
    good = pa.array(read.fault == Reason.NONE)
    return Records(
        fault=fault,
        fields={name: values.filter(good) for name, values in fields.items()},
        raw=lambda rows: entities.select(rows).texts(RAW_LIMIT),
    )


def joined_starts(bodies: bytes, ends: Ints) -> Ints | None:
    """Where the entities of whole messages start; None where something breaks, or a message has no header.

    Args:
        bodies: some payloads.
        ends: where each of them ends.
    """
    parts = parts_of(bodies)
    headers = np.array([start for start, _ in parts.headers], np.int64)
    is_whole = parts.end == len(bodies) and np.isin(ends[:-1], headers).all()
    return np.array(parts.starts, np.int64) if is_whole else None


class _Entities:
    """The fields of entities that a stream asks for.

    Args:
        bodies: the entities, without tags.
        parts: the headers, and which is whose.
        stream: its columns, and what says that an object is gone.
    """

    def __init__(self, bodies: Spans, parts: Parts, stream: FormatSettings) -> None:
        self._buffer, self._parts = bodies.buffer, parts
        self.fault = np.zeros(len(bodies), np.int8)
        asked = {name for name in columns_read(stream) if name in _PLACES}
        own = {_ENTITY_DELETED: VARINT, _ENTITY_VEHICLE: BYTES}
        outer = self._read(bodies, own | _wanted(asked, _ENTITY))
        vehicle = outer[_ENTITY_VEHICLE]
        inside = {_TRIP: BYTES, _POSITION: BYTES, _VEHICLE: BYTES}
        positions = inner(self._buffer, vehicle)
        said = self._read(positions, _wanted(asked, _NO_MESSAGE) | inside)
        self._fields = {_ENTITY: outer, _NO_MESSAGE: said}
        for message in inside:
            if wanted := _wanted(asked, message):
                held = inner(self._buffer, said[message])
                self._fields[message] = self._read(held, wanted)
        is_gone = outer[_ENTITY_DELETED].values > 0
        is_other = ~vehicle.present
        if stream.columns.gone == "is_deleted":
            is_other &= ~is_gone
        self._mark(is_other, Reason.NO_POSITION)

    def column(self, name: str) -> pa.Array:
        """The values of a column, one for each entity."""
        if name not in _PLACES:
            return pa.nulls(len(self.fault), pa.string())
        message, number, wire = _PLACES[name]
        field = self._fields[message][number]
        if name == "timestamp":
            return self._times(field)
        if wire == BYTES:
            values, bad = texts(self._buffer, field)
            self._mark(bad, Reason.BAD_UTF8)
            return values
        if name == "bearing":
            return _within_circle(floats(self._buffer, field))
        return self._number(name, field, wire)

    def _number(self, name: str, field: Field, wire: int) -> pa.Array:
        if name in WORDS:
            return _words(field, WORDS[name])
        if name == "is_deleted":
            return pa.array(field.values > 0, mask=~field.present)
        if wire == VARINT:
            return longs(field)
        read = floats if wire == FIXED32 else doubles
        return pa.array(read(self._buffer, field))

    def _read(self, messages: Spans, wanted: Mapping[int, int]) -> dict[int, Field]:
        fields, broken = read_fields(messages, wanted)
        self._mark(broken, Reason.UNREADABLE)
        return fields

    def _mark(self, where: Mask, reason: Reason) -> None:
        self.fault[where & (self.fault == Reason.NONE)] = reason

    def _times(self, field: Field) -> pa.Array:
        """The time of each vehicle, else that of the header in front of it."""
        own = np.where(field.present, field.values, 0)
        of_header = np.append(_header_times(self._buffer, self._parts), 0)
        seconds = np.where(own == 0, of_header[self._parts.header_of()], own)
        whole = np.clip(seconds, -1, _LATEST_S) * 1_000_000
        return pa.array(whole, pa.timestamp("us", "UTC"), mask=seconds == 0)


def _wanted(asked: set[str], message: int) -> dict[int, int]:
    places = (_PLACES[name] for name in asked)
    return {number: wire for where, number, wire in places if where == message}


def _header_times(buffer: Bytes, parts: Parts) -> NDArray[np.int64]:
    """The time of each header (s); 0 for none."""
    starts, ends = np.array(parts.headers, np.int64).reshape(-1, 2).T
    fields, _ = read_fields(Spans(buffer, starts, ends), {1: BYTES})
    inside, _ = read_fields(inner(buffer, fields[1]), {_HEADER_TIME: VARINT})
    return inside[_HEADER_TIME].values


def _words(field: Field, names: tuple[str, ...]) -> pa.Array:
    known = field.present & (field.values >= 0) & (field.values < len(names))
    return pa.array(names).take(pa.array(field.values, mask=~known))


def _within_circle(degrees: NDArray[np.float64]) -> pa.Array:
    """Bearings; null where one is none, as 65535."""
    values = pa.array(degrees)
    inside = pc.and_(pc.greater_equal(values, 0.0), pc.less_equal(values, _FULL_CIRCLE))
    return pc.if_else(inside, values, pa.scalar(None, pa.float64()))
