"""SBS-1, the lines of BaseStation and of dump1090's port 30003: what aircraft say by ADS-B.

A line says a part: who it is (type 1), where it is (2 on the ground, 3 in the air), how fast (4). A line of type 2 or 3
is a fix; its other columns are what the aircraft said last, up to there:

    MSG,1,..,A955D1,..,N700NY,..                     no_position
    MSG,4,..,A955D1,..,,,443,311,..                  no_position
    MSG,3,..,A955D1,..,,40025,,,48.43,9.71,..   ->   A955D1 at 9.71 48.43: N700NY, 40025 ft, 443 kn, 311 degrees

What was said before a payload stands in front of it, where it was captured so (`said_before`). So each payload means
the same whenever and by whomever it is decoded.
"""

from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.formats.format import Format, some_of
from st_common.formats.format_settings import (
    FormatSettings,
    Source,
    named_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records
    from st_common.formats.said_before import Said

COLUMNS: "Mapping[str, str]" = MappingProxyType(
    {
        "hex": "string",
        "callsign": "string",
        "time": "string",
        "received": "string",
        "latitude": "double",
        "longitude": "double",
        "altitude": "double ft",
        "ground_speed": "double knots",
        "track": "double",
        "vertical_rate": "double",
        "squawk": "string",
        "alert": "bool",
        "emergency": "bool",
        "spi": "bool",
        "on_ground": "bool",
    }
)
"""The columns of a fix: feet, knots, degrees, feet a minute; `time` is when the message was made, by the receiver.

`received` is the stamp in front of a line, where somebody has logged lines with stamps.
"""


class Sbs1(Format):
    """Lines; see `sbs1_records`."""

    takes = frozenset({"time_unit", "time_zone"})
    crs = "EPSG:4326"

    columns = MappingProxyType({"x": "longitude", "y": "latitude"})
    known = COLUMNS
    offers = some_of(
        COLUMNS, "callsign", "altitude", "ground_speed", "track", "vertical_rate"
    )

    remembers = True

    is_local = True

    defaults = MappingProxyType({"time_unit": "%Y/%m/%d %H:%M:%S"})

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of lines."""
        from st_common.formats.csv_records import csv_chunks
        from st_common.formats.sbs1_records import LINES

        return csv_chunks(source, LINES, size=size)

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The lines of a payload; those that are about something else than a position are `no_position`."""
        from st_common.formats.sbs1_records import read_sbs1

        return read_sbs1(payload, stream)

    def said(self, payload: bytes, stream: FormatSettings) -> "Said":
        """What aircraft say of themselves beside where they are."""
        from st_common.formats.sbs1_records import said_in

        return said_in(payload, stream)

    def made_at(self, payload: bytes, stream: FormatSettings) -> "pa.Array":
        """Each line says when it was made."""
        from st_common.formats.sbs1_records import made_at

        return made_at(payload, stream)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """Columns that no line has, and coordinates that are none."""
        columns = stream.columns
        if (columns.x, columns.y) != ("longitude", "latitude"):
            wrong = f"columns: x and y are {columns.x!r} and {columns.y!r}"
            return wrong, 'SBS-1 has x = "longitude" and y = "latitude"'
        if columns.event_ts not in (None, "time", "received"):
            return (
                f"columns: event_ts is {columns.event_ts!r}",
                'SBS-1 has "time", and "received" of the stamp in front of a line',
            )
        for _, name in named_columns(stream):
            if name not in COLUMNS:
                wrong = f"{name!r} is no column of SBS-1"
                return wrong, f"it has {', '.join(COLUMNS)}"
        return None

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What lines of another kind need."""
        if reason in ("ragged", "unreadable"):
            return "a line of SBS-1 has 22 fields, and starts with MSG"
        if reason == "bad_time":
            return 'time_unit is for date and time with a blank between, as "%d/%m/%Y %H:%M:%S"'
        return None
