"""The columns of HFP."""

from collections.abc import Mapping
from types import MappingProxyType

OF_TOPIC = (
    "journey_type",
    "temporal_type",
    "event_type",
    "transport_mode",
    "operator_id",
    "vehicle_number",
    "route_id",
    "direction_id",
    "headsign",
    "start_time",
    "next_stop",
    "geohash_level",
    "geohash",
)
"""Columns of the topic, in its order; null in version 1: `event_type`, without a journey: those from the route on."""
OF_PAYLOAD = (
    *("desi", "dir", "oper", "veh", "tst", "tsi", "spd", "hdg", "lat", "long"),
    *("acc", "dl", "odo", "drst", "oday", "jrn", "line", "start"),
    *("loc", "stop", "route", "occu"),
)
"""Columns of the payload."""
_TYPES = {
    "tsi": "long",
    "spd": "double m/s",
    "hdg": "double",
    "lat": "double",
    "long": "double",
    "acc": "double",
    "dl": "long s",
    "odo": "double m",
    "drst": "long",
    "veh": "long",
    "oper": "long",
    "jrn": "long",
    "occu": "long",
}
COLUMNS: Mapping[str, str] = MappingProxyType(
    {name: _TYPES.get(name, "string") for name in ("received", *OF_TOPIC, *OF_PAYLOAD)}
)
