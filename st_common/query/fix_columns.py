"""The columns that every fix has, whatever its stream. It imports nothing, for `fairway --help` reads it too."""

from types import MappingProxyType

BUILTINS = MappingProxyType(
    {
        "object": "VARCHAR",
        "event_ts": "TIMESTAMP",
        "x": "DOUBLE",
        "y": "DOUBLE",
        "elapsed_s": "DOUBLE",
        "speed_mps": "DOUBLE",
        "heading_deg": "DOUBLE",
        "acceleration_mps2": "DOUBLE",
    }
)
"""What every fix has beside its attributes; all from `elapsed_s` on are against readings before."""

OBJECT_NAMES = ("id", "oid", "objectid")
"""What the papers call the object, and a feature's id."""
