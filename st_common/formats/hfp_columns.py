"""The columns of HFP."""

OF_TOPIC = (
    "journey_type",
    "temporal_type",
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
"""Columns of the topic, in its order; from the route on they are absent where a vehicle is on no journey."""
OF_PAYLOAD = (
    *("desi", "dir", "oper", "veh", "tst", "tsi", "spd", "hdg", "lat", "long"),
    *("acc", "dl", "odo", "drst", "oday", "jrn", "line", "start"),
)
"""Columns of the payload."""
COLUMNS = ("received", *OF_TOPIC, *OF_PAYLOAD)
