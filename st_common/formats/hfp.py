r"""HFP, the high-frequency positioning of public transport in Helsinki: messages of MQTT, one a line.

    2018-10-09T04:32:52.549+0000 /hfp/v1/journey/ongoing/bus/0018/00640/1057/1/Munkkiniemi/.. {"VP":{"veh":640,..}}
    received                     topic                                                        payload

The time and the topic may be absent, as in what a broker brings. A line is a record, and a fix where its payload is a
vehicle position (`VP`).
"""

from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.formats.format import Format, some_of
from st_common.formats.format_settings import (
    FormatSettings,
    Source,
    named_columns,
)
from st_common.formats.hfp_columns import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records


class Hfp(Format):
    """Lines; see `hfp_records`."""

    takes = frozenset({"time_unit", "time_zone"})
    crs = "EPSG:4326"

    columns = MappingProxyType({"x": "long", "y": "lat"})
    known = COLUMNS
    offers = some_of(COLUMNS, "transport_mode", "route_id", "headsign", "spd", "hdg")

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of lines."""
        from st_common.formats.ndjson_chunks import chunks_of_whole_lines

        return chunks_of_whole_lines(source, size=size)

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The lines of a payload; those about something else than a position are `no_position`."""
        from st_common.formats.hfp_records import read_hfp

        return read_hfp(payload, stream)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """A column that no line has."""
        for key, name in named_columns(stream):
            if name not in COLUMNS:
                wrong = f"{key} = {name!r} is no column of HFP"
                return wrong, f"it has {', '.join(COLUMNS)}"
        return None

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What lines of another kind need."""
        if reason == "unreadable":
            return 'a line of HFP ends in its payload, as {"VP":{..}}'
        return None
