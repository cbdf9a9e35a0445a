"""Aircraft as readsb, tar1090, dump1090 and the services built on them publish them, and their traces.

{"now":1753571941.0,"aircraft":[{"hex":"3c0001","lat":41.9,"lon":-71.9,"seen_pos":6.0}]}    seen at 1753571935.0
{"now":1753571941000,"ac":[{"hex":"3c0001",..}]}                                            adsb.lol and the like
{"icao":"3c0001","timestamp":1753570000.5,"trace":[[6.0,41.9,-71.9,37000,450.1,..]]}        seen at 1753570006.5

The time of a position is that of its document, less how long ago the aircraft was seen there. One without a position
is `no_position`.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.formats.json_feed import Fields, JsonFeed

if TYPE_CHECKING:
    import pyarrow as pa

    from st_common.formats.records import Reason
    from st_common.formats.spans import Mask

_GROUND = "ground"
_LEAST_MS = (
    1e11  # a document that is younger than 1973 and says so says it in milliseconds
)
_LATEST_S = float(1 << 40)
_OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "hex": ("hex", "document.icao"),
    "r": ("r", "document.r"),
    "t": ("t", "document.t"),
    "lat": ("lat", "row[1]"),
    "lon": ("lon", "row[2]"),
    "alt_baro": ("alt_baro", "altitude", "row[3]"),
    "gs": ("gs", "speed", "row[4]"),
    "track": ("track", "row[5]"),
    "baro_rate": ("baro_rate", "vert_rate", "row[7]"),
    "flight": ("flight", "row[8].flight"),
    "squawk": ("squawk", "row[8].squawk"),
    "category": ("category", "row[8].category"),
    "type": ("type", "row[9]"),
    "alt_geom": ("alt_geom", "row[10]"),
}
"""Where columns stand that have several names, or one in a trace."""


class Readsb(JsonFeed):
    """Aircraft; columns are the keys of their JSON, `time` and `on_ground`; feet, knots, degrees, feet a minute."""

    is_lines = False

    columns = MappingProxyType({"x": "lon", "y": "lat"})

    offers = MappingProxyType(
        {
            "flight": "string",
            "r": "string",
            "t": "string",
            "alt_baro": "double ft",
            "alt_geom": "double ft",
            "on_ground": "bool",
            "gs": "double knots",
            "track": "double",
            "baro_rate": "double",
            "squawk": "string",
        }
    )

    lists = ("aircraft", "ac", "trace")
    kept = ("now", "icao", "timestamp", "r", "t")
    own = MappingProxyType(
        {
            "lat": _OTHER_NAMES["lat"],
            "altitude": _OTHER_NAMES["alt_baro"],
            "now": ("document.now",),
            "ago": ("seen_pos",),
            "start": ("document.timestamp",),
            "behind": ("row[0]",),
        }
    )

    def paths(self, column: str) -> Sequence[str]:
        """The keys of an aircraft, or places in a row of a trace."""
        return _OTHER_NAMES.get(column, (column,))

    def reasons(self, fields: Fields) -> "Mapping[Reason, Mask]":
        """An aircraft that nobody knows the place of."""
        from st_common.formats.numbers import mask
        from st_common.formats.records import Reason

        return {Reason.NO_POSITION: ~mask(fields["lat"].is_valid())}

    def column(self, name: str, values: "pa.Array", fields: Fields) -> "pa.Array":
        """The time, and what is made of an altitude that is `ground`."""
        import pyarrow.compute as pc

        if name == "time":
            return _times(fields)
        is_on_ground = pc.equal(fields["altitude"], _GROUND)
        if name == "on_ground":
            return is_on_ground
        return pc.if_else(is_on_ground, None, values) if name == "alt_baro" else values


def _times(fields: Fields) -> "pa.Array":
    """When each aircraft was where it is said to be, to the millisecond; null where its document does not say it."""
    import numpy as np
    import pyarrow as pa

    from st_common.formats.numbers import doubles

    now, ago, start, behind = (
        doubles(fields[name]).values for name in ("now", "ago", "start", "behind")
    )
    now = np.where(now >= _LEAST_MS, now / 1000, now)
    seconds = np.where(np.isnan(now), start + behind, now - ago)
    known = np.isfinite(seconds)
    milliseconds = np.round(np.clip(np.where(known, seconds, 0), -1, _LATEST_S) * 1000)
    us = milliseconds.astype(np.int64) * 1000
    return pa.array(us, pa.timestamp("us", "UTC"), mask=~known)
