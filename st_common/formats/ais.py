r"""AIS: what ships say, as NMEA sentences (`!AIVDM`, `!BSVDO` and the like) with or without a time.

A sentence is a record. One with a position (types 1 to 4, 9, 18, 19, 21, 27) is a fix; what its ship said last of its
name, kind, size and voyage (types 5, 19, 21, 24), up to there, are its other columns:

    !AIVDM,2,1,3,B,55NBjP01m..,0*66   part of type 5         ->   no_position
    !AIVDM,2,2,3,B,88888888880,2*25   its end: name, kind    ->   no_position
    !AIVDM,1,1,,A,15NBjP0P1..,0*2C    type 1, same MMSI      ->   a fix with that name and kind

What was said before a payload stands in front of it, where it was captured so (`said_before`): names, and the parts of
messages that end in it. So each payload means the same whenever and by whomever it is decoded.

The time of a sentence is that of its tag block (`\c:1418172113*..\`), else of a last column (`..*2C,b00366,1272412827`)
or a first one (`1272412827,!AIVDM..`), else of the line `$PGHP` in front of it. Comments (`#`) and `$PGHP` are no
records of their own.
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
        "mmsi": "long",
        "type": "long",
        "time": "string",
        "latitude": "double",
        "longitude": "double",
        "sog": "double knots",
        "cog": "double",
        "heading": "long",
        "status": "long",
        "accuracy": "bool",
        "altitude": "double m",
        "name": "string",
        "callsign": "string",
        "shiptype": "long",
        "imo": "long",
        "draught": "double m",
        "destination": "string",
        "length": "long m",
        "width": "long m",
    }
)
"""The columns of a fix: knots, degrees, metres; null for the values that stand for "not available"."""


class Ais(Format):
    """Sentences; see `ais_records`."""

    crs = "EPSG:4326"

    columns = MappingProxyType({"x": "longitude", "y": "latitude"})
    known = COLUMNS
    offers = some_of(COLUMNS, "type", "sog", "cog", "name", "shiptype", "length")

    remembers = True

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of sentences, of about `size` bytes, raised to 256 KiB where it is less."""
        from st_common.formats.ais_sentences import ais_chunks

        return ais_chunks(source, size=size)

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The sentences of a payload; those that hold no position are `no_position`."""
        from st_common.formats.ais_records import read_ais

        return read_ais(payload, stream)

    def said(self, payload: bytes, stream: FormatSettings) -> "Said":
        """The names of ships and the like, and messages whose end is still to come."""
        from st_common.formats.ais_records import said_in

        return said_in(payload, stream)

    def made_at(self, payload: bytes, stream: FormatSettings) -> "pa.Array":
        """When each sentence was received; parts of a message when one of them was."""
        from st_common.formats.ais_records import made_at

        return made_at(payload)

    def record_count(self, payload: bytes) -> int:
        """Its lines, without comments and times."""
        from st_common.formats.ais_sentences import lines_of

        return len(lines_of(payload).records)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """Columns that no sentence has, and coordinates that are none."""
        columns = stream.columns
        if (columns.x, columns.y) != ("longitude", "latitude"):
            wrong = f"columns: x and y are {columns.x!r} and {columns.y!r}"
            return wrong, 'AIS has x = "longitude" and y = "latitude"'
        if columns.event_ts not in (None, "time"):
            return f"columns: event_ts is {columns.event_ts!r}", 'AIS has "time"'
        for _, name in named_columns(stream):
            if name not in COLUMNS:
                return f"{name!r} is no column of AIS", f"it has {', '.join(COLUMNS)}"
        return None

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What lines of another kind need."""
        if reason == "unreadable":
            return "a line of AIS has a sentence such as !AIVDM,1,1,,A,..,0*2C"
        if reason == "missing_time":
            return "the sentences have no time: leave out columns.event_ts, and their arrival is it"
        return None
