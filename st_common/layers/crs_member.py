"""The member `crs` of GeoJSON of 2008, as ogr2ogr and QGIS write it: in which system coordinates are."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from st_common.errors import LayerError

_SHOWN = 80


def system_of(members: Sequence[Any], file: Path) -> str | None:
    """The system that the members of a file say, as pyproj understands it; None: none says one.

        {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}   ->   urn:ogc:def:crs:EPSG::25832
        {"type": "EPSG", "properties": {"code": 25832}}                           ->   EPSG:25832

    Args:
        members: the values of `crs`, of the document or of its lines; null says nothing.
        file: names the file in errors.

    Raises:
        LayerError: one says its system in no way that is known, or two say different ones.
    """
    names = sorted({_name(one, file) for one in members if one is not None})
    if len(names) > 1:
        raise LayerError(
            f"{file} says several systems of coordinates: {', '.join(names)}",
            hint="make a file of each, with ogr2ogr",
        )
    return names[0] if names else None


def _name(member: Any, file: Path) -> str:
    """What a member says.

    Raises:
        LayerError: it is none of the two kinds that name a system.
    """
    properties = member.get("properties") if isinstance(member, dict) else None
    said = properties if isinstance(properties, dict) else {}
    name, code = said.get("name"), said.get("code")
    if isinstance(name, str) and name.strip():
        return name.strip()
    if isinstance(code, int) and not isinstance(code, bool):
        return f"EPSG:{code}"
    shown = json.dumps(member, default=str)[:_SHOWN]
    raise LayerError(
        f"{file}: its member crs names no system of coordinates: {shown}",
        hint="--source-crs EPSG:.. says it",
    )
