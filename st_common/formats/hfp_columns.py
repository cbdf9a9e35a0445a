"""The columns of HFP."""

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
COLUMNS = ("received", *OF_TOPIC, *OF_PAYLOAD)
