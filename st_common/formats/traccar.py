"""Traccar: positions as its API gives them, and as it forwards them.

[{"deviceId":7,"fixTime":"2026-05-01T08:00:00Z","latitude":52.5,"longitude":13.4,"valid":true,"attributes":{..}}]
{"positions":[{"deviceId":7,..}]}                                                       what its WebSocket says
{"position":{"deviceId":7,..},"device":{"id":7,"name":"Van 7","uniqueId":"8612345"}}    what it forwards

A position that its device calls invalid, or that is the last known one once more (`outdated`), moves nobody.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.formats.format_settings import FormatSettings
from st_common.formats.json_feed import Fields, JsonFeed

if TYPE_CHECKING:
    import pyarrow as pa

    from st_common.formats.records import Reason, Records
    from st_common.formats.spans import Mask

_LIST = "positions"
_OF_DEVICE = ("name", "uniqueId", "status", "phone", "model", "contact", "category")
_TIMES = ("fixTime", "deviceTime", "serverTime")
_MILLISECONDS = r"^[0-9]{12,14}$"


class Traccar(JsonFeed):
    """Positions; columns are the keys of one, by path `attributes.ignition`, and of its device: `name`, `uniqueId`."""

    is_lines = False

    defaults = MappingProxyType({"time_unit": "iso"})
    columns = MappingProxyType({"x": "longitude", "y": "latitude"})

    offers = MappingProxyType(
        {
            "speed": "double knots",
            "course": "double",
            "altitude": "double m",
            "accuracy": "double m",
            "address": "string",
        }
    )

    lists = (_LIST,)
    own = MappingProxyType(
        {name: (f"position.{name}", name) for name in ("latitude", "valid", "outdated")}
    )

    def paths(self, column: str) -> Sequence[str]:
        """The keys of a position that stands alone, or in an object beside its device."""
        if column in _OF_DEVICE:
            return (f"device.{column}",)
        if column == "deviceId":
            return ("position.deviceId", "deviceId", "device.id")
        return (f"position.{column}", column)

    def reasons(self, fields: Fields) -> "Mapping[Reason, Mask]":
        """What is no position, an invalid one, or one that was known before."""
        import pyarrow.compute as pc

        from st_common.formats.numbers import mask
        from st_common.formats.records import Reason

        is_none = ~mask(fields["latitude"].is_valid())
        is_none |= mask(pc.equal(fields["valid"], "false"))
        is_none |= mask(pc.equal(fields["outdated"], "true"))
        return {Reason.NO_POSITION: is_none}

    def column(self, name: str, values: "pa.Array", fields: Fields) -> "pa.Array":
        """Times in milliseconds, as older versions forward them, become texts as all others."""
        if name not in _TIMES:
            return values
        import pyarrow as pa
        import pyarrow.compute as pc

        counted = pc.match_substring_regex(values, _MILLISECONDS)
        if not pc.any(counted).as_py():
            return values
        numbers = pc.if_else(counted, values, None).cast(pa.int64())
        instants = numbers.cast(pa.timestamp("ms"))
        texts = pc.strftime(instants, format="%Y-%m-%dT%H:%M:%SZ")
        return pc.if_else(pc.fill_null(counted, False), texts, values)  # noqa: FBT003 - Arrow's argument

    def shared_head(self, payload: bytes, stream: FormatSettings) -> bytes | None:
        """No header where a position stands on each line; else a payload must be read by itself."""
        is_alone = f'"{_LIST}"'.encode() in payload or payload.lstrip()[:1] != b"{"
        return None if is_alone else b""

    def joined_records(
        self, payload: bytes, stream: FormatSettings
    ) -> "Records | None":
        """The positions of lines."""
        return self.records(payload, stream)
