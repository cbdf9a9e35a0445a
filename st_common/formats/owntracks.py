r"""OwnTracks: what the apps and the recorder write, an object a line, or a line of a `.rec` file.

    {"_type":"location","topic":"owntracks/ana/phone","tid":"ap","tst":1700000000,"lat":52.5,"lon":13.4}    a fix
    {"_type":"waypoint","tst":1700000070,"lat":60.1,"lon":24.9,"desc":"cabin"}         no_position: nobody is there
    2015-08-17T12:34:56Z\t*                 \t{"_type":"location",..}                                      a fix

Waypoints and transitions have coordinates of a place that somebody knows of; they never move anyone.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.formats.format_settings import FormatSettings
from st_common.formats.json_feed import Fields, JsonFeed

if TYPE_CHECKING:
    from st_common.formats.records import Reason, Records
    from st_common.formats.spans import Mask

_RECORDED = re.compile(
    rb"^([0-9][0-9A-Za-z:.+-]*)[ \t]+[^\t{\n]*\t[ \t]*\{", re.MULTILINE
)
_DEVICE = "device_id"
_LOCATION = "location"


class OwnTracks(JsonFeed):
    """Locations; columns are the keys of their JSON, `device_id` (its topic, else `tid`) and `received` of a `.rec`."""

    defaults = MappingProxyType({"time_unit": "s"})
    columns = MappingProxyType({"x": "lon", "y": "lat"})

    offers = MappingProxyType(
        {
            "acc": "double m",
            "alt": "double m",
            "vel": "double km/h",
            "cog": "double",
            "batt": "double",
            "t": "string",
        }
    )

    lists = ("data",)
    own = MappingProxyType({"type": ("_type",)})

    def paths(self, column: str) -> Sequence[str]:
        """The keys of the JSON."""
        return ("topic", "tid") if column == _DEVICE else (column,)

    def reasons(self, fields: Fields) -> "Mapping[Reason, Mask]":
        """All but locations are about something else."""
        import pyarrow.compute as pc

        from st_common.formats.numbers import mask
        from st_common.formats.records import Reason

        return {Reason.NO_POSITION: ~mask(pc.equal(fields["type"], _LOCATION))}

    def plain(self, lines: bytes) -> bytes:
        """The JSON of each line of a `.rec` file, with the time in front of it as `received`."""
        return _RECORDED.sub(rb'{"received":"\1",', lines)

    def shared_head(self, payload: bytes, stream: FormatSettings) -> bytes | None:
        """No header."""
        return b""

    def joined_records(
        self, payload: bytes, stream: FormatSettings
    ) -> "Records | None":
        """The records of lines."""
        return self.records(payload, stream)

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What other JSON needs."""
        if reason == "no_position":
            return 'only records with "_type":"location" say where somebody is'
        return None
