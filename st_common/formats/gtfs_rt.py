"""GTFS-realtime: the positions of vehicles, as FeedMessages of Protocol Buffers, or in their JSON mapping.

A payload holds a FeedMessage, or several one behind the other (as `cat` makes of files): each header holds for the
entities behind it. So a file is cut between its entities, and each segment begins with their header:

    header  entity 1  entity 2  entity 3   ->   header  entity 1  entity 2   |   header  entity 3

An entity is a record. Its columns are those of COLUMNS. What is no position of a vehicle (a trip update, an alert) is
a reject `no_position`; from where a payload breaks, one more record stands for the rest, `unreadable`. A position at
0, 0 is what feeds write when they have none (`drop_null_island`).
"""

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.errors import ConfigError
from st_common.formats.format import Format, some_of
from st_common.formats.format_settings import (
    FormatSettings,
    Source,
    named_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records
    from st_common.formats.spans import Ints

_HEADER = b"\n"  # the tag of the header
_HEAD = 1 << 10  # bytes that show whether it is JSON
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*[\"}]")

COLUMNS: "Mapping[str, str]" = MappingProxyType(
    {
        "id": "string",
        "is_deleted": "bool",
        "trip_id": "string",
        "start_time": "string",
        "start_date": "string",
        "schedule_relationship": "string",
        "route_id": "string",
        "direction_id": "long",
        "latitude": "double",
        "longitude": "double",
        "bearing": "double",
        "odometer": "double m",
        "speed": "double m/s",
        "current_stop_sequence": "long",
        "current_status": "string",
        "timestamp": "string",
        "congestion_level": "string",
        "stop_id": "string",
        "vehicle_id": "string",
        "label": "string",
        "license_plate": "string",
        "occupancy_status": "string",
        "occupancy_percentage": "long",
    }
)
"""The columns of an entity, as GTFS-realtime names its fields; `vehicle_id` is the id of the vehicle's descriptor."""


class GtfsRt(Format):
    """Entities; see `gtfs_rt_records`."""

    is_lines = False

    crs = "EPSG:4326"

    drops_null_island = True

    columns = MappingProxyType({"x": "longitude", "y": "latitude"})
    known = COLUMNS
    offers = some_of(
        COLUMNS, "trip_id", "route_id", "bearing", "speed", "current_status"
    )

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of entities with one header, of about `size` bytes, raised to 1 MiB (JSON: 8) at least."""
        from st_common.formats.chunk import Begun
        from st_common.formats.gtfs_rt_records import gtfs_rt_chunks, json_chunks

        begun = Begun(source, size=_HEAD)
        return (json_chunks if _is_json(begun.head) else gtfs_rt_chunks)(
            begun, size=size
        )

    def check_whole(self, source: Source) -> None:
        """Looks whether there is anything.

        Raises:
            ConfigError: there is not a byte.
        """
        if not source.read(1):
            raise ConfigError(
                "the file is empty, and no FeedMessage is",
                hint="fetch it again; a feed without vehicles has a header still",
            )

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The entities of a payload; one of no bytes is a record that is `unreadable`."""
        from st_common.formats.gtfs_rt_records import read_gtfs_rt, read_json

        return (read_json if _is_json(payload) else read_gtfs_rt)(payload, stream)

    def whole_bytes(self, payload: bytes) -> int:
        """All of them: where the payload breaks is seen when it is read."""
        return len(payload)

    line_end = b""
    small_bytes = 1 << 17  # some 1,000 entities

    def shared_head(self, payload: bytes, stream: FormatSettings) -> bytes | None:
        """None to be shared, for each message has its own; without one it must be read by itself."""
        is_message = payload.startswith(_HEADER) and not _is_json(payload)
        return b"" if is_message else None

    def joined_records(
        self, payload: bytes, stream: FormatSettings
    ) -> "Records | None":
        """The entities of some messages."""
        return self.records(payload, stream)

    def joined_starts(self, bodies: bytes, ends: "Ints") -> "Ints | None":
        """Where entities start, if a header stands where each payload does, and all of them are whole."""
        from st_common.formats.gtfs_rt_records import joined_starts

        return joined_starts(bodies, ends)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """Columns that no entity has, and coordinates that are none."""
        columns = stream.columns
        if (columns.x, columns.y) != ("longitude", "latitude"):
            wrong = f"columns: x and y are {columns.x!r} and {columns.y!r}"
            return wrong, 'GTFS-realtime has x = "longitude" and y = "latitude"'
        if columns.event_ts not in (None, "timestamp"):
            wrong = f"columns: event_ts is {columns.event_ts!r}"
            return wrong, 'GTFS-realtime has event_ts = "timestamp"'
        for _, name in named_columns(stream):
            if name not in COLUMNS:
                wrong = f"{name!r} is no column of GTFS-realtime"
                return wrong, f"it has {', '.join(COLUMNS)}"
        return None

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What a feed of something else needs."""
        if reason == "no_position":
            return (
                "the feed holds trip updates or alerts: take that of vehicle positions"
            )
        if reason == "unreadable":
            return (
                "the file is no GTFS-realtime, neither in Protocol Buffers nor in JSON"
            )
        if reason == "bad_time":
            return "times must be in seconds since 1970"
        return None


def _is_json(payload: bytes) -> bool:
    """Whether bytes begin like a JSON object; a FeedMessage of Protocol Buffers never does."""
    return _JSON.match(payload, 0, _HEAD) is not None
