"""State vectors of the OpenSky network: documents whose `states` are arrays, one for each aircraft.

{"time":1533101250,"states":[["3003ae","DLH8JW  ",..],["4b1806",..]]}   ->   ["3003ae","DLH8JW  ",..]
                                                                             ["4b1806",..]
"""

import io
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

_LEAST_CHUNK = 1 << 18  # bytes
_MEMBER = "states"
NAMES: "Mapping[str, str]" = MappingProxyType(
    {
        "icao24": "string",
        "callsign": "string",
        "origin_country": "string",
        "time_position": "long",
        "last_contact": "long",
        "longitude": "double",
        "latitude": "double",
        "baro_altitude": "double m",
        "on_ground": "bool",
        "velocity": "double m/s",
        "true_track": "double",
        "vertical_rate": "double m/s",
        "sensors": "string",
        "geo_altitude": "double m",
        "squawk": "string",
        "spi": "bool",
        "position_source": "long",
        "category": "long",
    }
)
"""What stands in a state vector, in its order; metres, metres per second, degrees, seconds."""


class OpenSky(Format):
    """State vectors; the columns have the names of OpenSky's documentation."""

    is_lines = False

    takes = frozenset({"time_unit", "time_zone"})
    crs = "EPSG:4326"

    defaults = MappingProxyType({"time_unit": "s"})
    columns = MappingProxyType({"x": "longitude", "y": "latitude"})
    known = NAMES
    offers = some_of(
        NAMES, "callsign", "baro_altitude", "velocity", "true_track", "on_ground"
    )

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of state vectors, each on a line; of at most `size` bytes, raised to 256 KiB where it is less."""
        from st_common.formats.member_lines import member_lines
        from st_common.formats.ndjson_chunks import chunks_of_lines

        size = max(size, _LEAST_CHUNK)
        return chunks_of_lines(member_lines(source, _MEMBER, size=size))

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The state vectors of a payload: of documents, or one a line."""
        from st_common.formats.member_lines import member_lines
        from st_common.formats.ndjson_records import read_lines
        from st_common.formats.records import columns_read

        paths = {name: _path(name) for name in columns_read(stream)}
        lines = member_lines(io.BytesIO(payload), _MEMBER, size=len(payload) + 1)
        return read_lines(b"".join(lines), paths, opening=b"[")

    def whole_bytes(self, payload: bytes) -> int:
        """All of them: a state vector shows by itself that it is cut."""
        return len(payload)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """A column that no state vector has."""
        for key, name in named_columns(stream):
            if name not in NAMES:
                wrong = f"{key} = {name!r} is no part of a state vector"
                return wrong, f"there are {', '.join(NAMES)}"
        return None


def _path(column: str) -> str:
    """Where a column stands in a state vector; what no vector has is found in none."""
    return str(list(NAMES).index(column)) if column in NAMES else column
