"""The filters that are built in: their names, and what their custom values must look like (SPEC B10, B12)."""

import json
from collections.abc import Callable

from st_common.regions.shapes import why_invalid

NEAR, STRICT = "geojson_near", "geojson_strict"
"""`geojson`, and of a join what lies within a distance of its feature, or on it: as the fix is, not its box."""
NEAR_M = 5.0
"""The distance of `geojson_near` where a query gives none, in metres."""


def name_and_value(text: str | None) -> tuple[str, str] | None:
    """`attribute:value` taken apart at the first colon; None for anything else."""
    name, colon, value = (text or "").partition(":")
    return (name.strip(), value) if colon and name.strip() else None


def is_geojson(text: str) -> bool:
    """Whether a value of the filter `geojson` is meant as GeoJSON, not as `key:value`."""
    return text.lstrip().startswith("{")


def complaint(name: str, value: str | None) -> str | None:
    """What is wrong with the custom value of a built-in filter, None when nothing is.

    Raises:
        KeyError: there is no such filter.
    """
    return BUILT_IN[name](value)


def _key(value: str | None) -> str | None:
    return None if value else "it needs the id of an object"


def _property(value: str | None) -> str | None:
    return None if name_and_value(value) else "it needs 'attribute:value'"


def _wkt(value: str | None) -> str | None:
    import shapely  # slow to import, and seldom needed

    try:
        shape = shapely.from_wkt(value) if value else None
    except (shapely.errors.GEOSException, NotImplementedError):
        return "its value is no WKT"
    return _shape(shape, "it needs a geometry as WKT")


def _geojson(value: str | None) -> str | None:
    if value is None:
        return None
    if not is_geojson(value):
        return (
            None
            if name_and_value(value)
            else "it needs a geometry as GeoJSON, or 'key:value'"
        )
    import shapely  # slow to import, and seldom needed

    try:
        json.loads(
            value
        )  # says what is wrong with brackets and quotes before GEOS is asked
        shape = shapely.from_geojson(value)
    except (ValueError, NotImplementedError, shapely.errors.GEOSException):
        return "its value is no GeoJSON geometry or feature"
    return _shape(shape, "it needs a geometry as GeoJSON, or 'key:value'")


def _shape(shape: object, needed: str) -> str | None:
    import shapely

    if not isinstance(shape, shapely.Geometry):
        return needed
    if shapely.is_empty(shape):
        return "its geometry is empty"
    return (
        None
        if shapely.is_valid(shape)
        else f"its geometry is not valid: {why_invalid(shape)}"
    )


BUILT_IN: dict[str, Callable[[str | None], str | None]] = {
    "geojson": _geojson,
    NEAR: _geojson,
    STRICT: _geojson,
    "key": _key,
    "property": _property,
    "wkt": _wkt,
}

NAMES = tuple(BUILT_IN)
"""The names of built-in filters, as queries name them."""
