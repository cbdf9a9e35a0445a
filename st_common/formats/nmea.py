r"""NMEA 0183: what a GPS receiver says of itself, as `$GPRMC`, `$GNGGA` and the like, a sentence a line.

    $GPRMC,172356.000,A,5051.8400,N,00510.3100,E,0.188,11.19,250820,,,A*65      a fix at 17:23:56, of 2020-08-25
    $GPGGA,172356.000,5051.8400,N,00510.3100,E,1,7,1.23,32.6,M,47.4,M,,*64      of the same fix: its altitude
    $GPRMC,172405.000,V,,,,,,,250820,,,N*45                                     missing_position

A sentence is a record. RMC and GGA of one moment are one fix: the first that has a place; the other is `no_position`.
GGA says no date: it has that of the RMC or ZDA before it, also of one in an earlier payload (`said_before`).
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

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records
    from st_common.formats.said_before import Said

COLUMNS: "Mapping[str, str]" = MappingProxyType(
    {
        "device": "string",
        "talker": "string",
        "received": "string",
        "time": "string",
        "latitude": "double",
        "longitude": "double",
        "speed": "double knots",
        "course": "double",
        "altitude": "double m",
        "satellites": "long",
        "hdop": "double",
        "quality": "long",
    }
)
"""The columns of a fix: knots, degrees from north, metres above the sea; `device` is always `gps`."""


class Nmea(Format):
    """Sentences; see `nmea_records`."""

    takes = frozenset({"time_unit"})
    crs = "EPSG:4326"

    columns = MappingProxyType({"x": "longitude", "y": "latitude"})
    known = COLUMNS
    offers = some_of(COLUMNS, "speed", "course", "altitude", "satellites", "hdop")

    remembers = True

    drops_null_island = True

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of lines that end behind a fix, so that what is said of it stays together."""
        from st_common.formats.nmea_records import nmea_chunks

        return nmea_chunks(source, size=size)

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The sentences of a payload; those that are about something else than a position are `no_position`."""
        from st_common.formats.nmea_records import read_nmea

        return read_nmea(payload, stream)

    def said(self, payload: bytes, stream: FormatSettings) -> "Said":
        """The date, and the time of the last fix, of which more may come."""
        from st_common.formats.nmea_records import said_in

        return said_in(payload)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """Columns that no sentence has, and coordinates that are none."""
        columns = stream.columns
        if (columns.x, columns.y) != ("longitude", "latitude"):
            wrong = f"columns: x and y are {columns.x!r} and {columns.y!r}"
            return wrong, 'NMEA has x = "longitude" and y = "latitude"'
        for _, name in named_columns(stream):
            if name not in COLUMNS:
                wrong = f"{name!r} is no column of NMEA"
                return wrong, f"it has {', '.join(COLUMNS)}"
        return None

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What lines of another kind need."""
        if reason == "unreadable":
            return "a line of NMEA has a sentence such as $GPRMC,172356.000,A,.."
        if reason == "missing_time":
            return "GGA has no date: RMC or ZDA say it; leave out columns.event_ts, and the arrival is the time"
        return None
