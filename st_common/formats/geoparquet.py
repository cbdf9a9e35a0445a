"""What GeoParquet says in the metadata of a file: which column is the geometry, and in which system it is."""

import json
from collections.abc import Mapping
from typing import Any

Metadata = Mapping[bytes, bytes] | None

WGS84 = "EPSG:4326"
_DEGREES = (WGS84, "OGC:CRS84")  # of both x is the longitude here


def primary_column(metadata: Metadata) -> str | None:
    """The column that is the geometry of a row; None: the file says of none."""
    name = _geo(metadata).get("primary_column")
    return name if isinstance(name, str) else None


def system_of(metadata: Metadata, column: str) -> str | None:
    """The system of a column of geometries.

        no `crs`                      EPSG:4326, as GeoParquet has it
        `crs` null, no GeoParquet     None: nobody knows
        PROJJSON without a number     EPSG:3067, if it is that; else its name

    Args:
        metadata: of the file's schema.
        column: the column; a path inside of one counts by its first part.
    """
    columns = _geo(metadata).get("columns")
    about = columns.get(column.partition(".")[0]) if isinstance(columns, dict) else None
    if not isinstance(about, dict):
        return None
    if "crs" not in about:
        return WGS84
    return None if about["crs"] is None else _named(about["crs"])


def _named(crs: Any) -> str | None:
    said = crs.get("id") if isinstance(crs, dict) else None
    if isinstance(said, dict) and {"authority", "code"} <= said.keys():
        system = f"{said['authority']}:{said['code']}"
        return WGS84 if system in _DEGREES else system
    import pyproj  # slow to import, and seldom needed

    try:
        known = pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError:
        return "a system that is not known"
    number = known.to_epsg()
    return known.name if number is None else f"EPSG:{number}"


def _geo(metadata: Metadata) -> Mapping[str, Any]:
    try:
        said = json.loads((metadata or {}).get(b"geo", b"{}"))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
