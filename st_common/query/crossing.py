"""Rectangles across 180 degrees: an area of two parts, one on either side."""

import re

from st_common.query.region import Area

_NUMBER = r"(-?\d+\.?\d*(?:e[+-]?\d+)?)"
_PLACE = rf"{_NUMBER} {_NUMBER}"
_RING = rf"\(\({_PLACE}, {_PLACE}, {_PLACE}, {_PLACE}, {_PLACE}\)\)"
_TWO_RINGS = re.compile(rf"MULTIPOLYGON \({_RING}, {_RING}\)")
_MERIDIAN = 180.0
_CORNERS = 4  # two numbers each, then the first one again

Corners = tuple[float, float, float, float]


def area_across(west: float, south: float, east: float, north: float) -> Area:
    """The closed rectangle from `west` eastwards over 180 degrees to `east`, as an area of two parts.

    Raises:
        ValueError: it does not cross 180 degrees, or has no extent on one side of it.
    """
    import shapely  # slow to import, and seldom needed

    if not (-_MERIDIAN < east < west < _MERIDIAN and south < north):
        raise ValueError(
            f"({west}, {south}, {east}, {north}) has no extent on both sides of 180 degrees"
        )
    both = shapely.MultiPolygon(
        [
            shapely.box(west, south, _MERIDIAN, north),
            shapely.box(-_MERIDIAN, south, east, north),
        ]
    )
    return Area(wkt=shapely.to_wkt(shapely.normalize(both), rounding_precision=-1))


def corners_across(area: Area) -> Corners | None:
    """West, south, east and north of the rectangle across 180 degrees that an area is; None for any other area."""
    found = _TWO_RINGS.fullmatch(area.wkt)
    if found is None:
        return None
    numbers = [float(number) for number in found.groups()]
    half = 2 * (_CORNERS + 1)
    xs, ys = sorted(set(numbers[0::2])), sorted(set(numbers[1::2]))
    if len(xs) != _CORNERS or len(ys) != 2 or len(set(numbers[:half:2])) != 2:
        return None
    corners = xs[2], ys[0], xs[1], ys[1]
    inside = (
        xs[0] == -_MERIDIAN and xs[3] == _MERIDIAN and area_across(*corners) == area
    )
    return corners if inside else None
