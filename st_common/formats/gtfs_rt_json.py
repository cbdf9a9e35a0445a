r"""GTFS-realtime in its JSON mapping, with names as `tripId` or as `trip_id`.

    {"header":{"timestamp":"17"},       {"document":{"header":{"timestamp":"17"}},"id":"v0","vehicle":{..}}
     "entity":[{"id":"v0",..},      ->  {"document":{"header":{"timestamp":"17"}},"id":"v1","vehicle":{..}}
               {"id":"v1",..}]}

Each entity carries the time of its header, so that it means the same wherever the list is cut.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.chunk import Chunk
from st_common.formats.format_settings import FormatSettings, Source
from st_common.formats.json_columns import read_columns, without
from st_common.formats.json_document import DOCUMENT
from st_common.formats.member_lines import member_lines
from st_common.formats.ndjson_chunks import chunks_of_lines
from st_common.formats.numbers import doubles, mask
from st_common.formats.records import Reason, Records, columns_read

_LEAST_CHUNK = 8 << 20  # bytes: a document below may have its header behind its list
_LIST = "entity"
_TIMES = ("header.timestamp",)
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*[\"}]")
_HEADER_ALONE = re.compile(
    rb'^[ \t]*\{\s*"header"\s*:\s*\{[^{}]*\}\s*\}\s*$', re.MULTILINE
)
_EMPTY = (
    b'{"header":{}}\n'  # in front of what is JSON, also where its first line breaks
)
_LATEST_S = float(1 << 40)
_PLACES: Mapping[str, str] = {
    "id": "id",
    "is_deleted": "is_deleted",
    **{
        name: f"vehicle.trip.{name}"
        for name in (
            *("trip_id", "start_time", "start_date", "schedule_relationship"),
            *("route_id", "direction_id"),
        )
    },
    **{
        name: f"vehicle.position.{name}"
        for name in ("latitude", "longitude", "bearing", "odometer", "speed")
    },
    **{
        name: f"vehicle.{name}"
        for name in (
            *("current_stop_sequence", "current_status", "timestamp"),
            *("congestion_level", "stop_id", "occupancy_status"),
            "occupancy_percentage",
        )
    },
    "vehicle_id": "vehicle.vehicle.id",
    "label": "vehicle.vehicle.label",
    "license_plate": "vehicle.vehicle.license_plate",
}
"""Where each column stands, as the specification names it."""
_VEHICLE, _HEADER_TIME = " vehicle", " header"  # no column is called so


def is_json(head: bytes) -> bool:
    """Whether bytes begin like a JSON object; a FeedMessage of Protocol Buffers never does."""
    return _JSON.match(head) is not None


def json_chunks(source: Source, *, size: int) -> Iterator[Chunk]:
    """Chunks of entities, each on a line; of at most `size` bytes, raised to 16 MiB where it is less."""
    for chunk in chunks_of_lines(_lines(source, max(size, _LEAST_CHUNK))):
        yield Chunk(_EMPTY, chunk.spans)


def read_json(
    payload: bytes, stream: FormatSettings, words: Mapping[str, Sequence[str]]
) -> Records:
    """The entities of a payload: of documents, or one a line.

    Args:
        payload: the bytes.
        stream: its columns, and what says that an object is gone.
        words: the names of the values of enumerations, by column.
    """
    size = max(len(payload) + 1, _LEAST_CHUNK)
    lines = b"".join(_lines(io.BytesIO(payload), size))
    wanted = columns_read(stream)
    paths = {name: _paths(_PLACES[name]) for name in wanted if name in _PLACES}
    own = {
        _VEHICLE: ("vehicle",),
        _HEADER_TIME: (f"{DOCUMENT}.header.timestamp",),
        "is_deleted": _paths("is_deleted"),
    }
    records = read_columns(lines, {**own, **paths})
    is_other = ~mask(records.fields[_VEHICLE].is_valid())
    if stream.columns.gone == "is_deleted":
        is_other &= ~mask(pc.equal(records.fields["is_deleted"], "true"))
    records = without(records, {Reason.NO_POSITION: is_other})
    fields = {name: _column(name, records.fields, words) for name in wanted}
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


def _column(
    name: str, fields: Mapping[str, pa.Array], words: Mapping[str, Sequence[str]]
) -> pa.Array:
    if name not in _PLACES:
        return pa.nulls(len(fields[_VEHICLE]), pa.string())
    values = fields[name]
    if name == "timestamp":
        return _times(values, fields[_HEADER_TIME])
    if name in words:
        numbers = pa.array([str(number) for number in range(len(words[name]))])
        known = pa.array(words[name]).take(pc.index_in(values, numbers))
        return pc.coalesce(known, values)
    if name == "bearing":
        degrees = doubles(values).values
        with np.errstate(invalid="ignore"):
            inside = (degrees >= 0) & (degrees <= 360)
        return pa.array(degrees, mask=~inside)
    return values


def _times(own: pa.Array, of_header: pa.Array) -> pa.Array:
    """The time of each vehicle, else that of its header; what is no number is before all times."""
    seconds = pa.nulls(len(own), pa.float64())
    for texts in (own, of_header):
        parsed = doubles(texts)
        numbers = np.nan_to_num(np.where(parsed.bad, -1.0, parsed.values), nan=0.0)
        lacking = parsed.missing | (numbers == 0)
        seconds = pc.coalesce(seconds, pa.array(numbers, mask=lacking))
    values = seconds.fill_null(0).to_numpy(zero_copy_only=False)
    us = np.clip(values, -1.0, _LATEST_S) * 1e6
    return pa.array(
        us.astype(np.int64),
        pa.timestamp("us", "UTC"),
        mask=~mask(seconds.is_valid()),
    )
