"""Regions as text, as they stand behind INSIDE, in a window and in CREATE AREA."""

from collections.abc import Callable
from typing import Any

from st_common.query.crossing import Corners, corners_across
from st_common.query.grammar.words import number, text_literal
from st_common.query.region import Area, Box, Circle, MovingBox, MovingCircle, Region


def region_text(region: Region) -> str:
    """A region as it stands behind INSIDE."""
    return _REGIONS[type(region)](region)


def box_text(box: Box) -> str:
    """Two corners in parentheses."""
    return _corners((box.minx, box.miny, box.maxx, box.maxy))


def _corners(corners: Corners) -> str:
    return f"({', '.join(number(value) for value in corners)})"


def _circle(circle: Circle) -> str:
    return (
        f"CIRCLE ({number(circle.x)}, {number(circle.y)}, {number(circle.radius_m)} m)"
    )


def _area(area: Area) -> str:
    corners = corners_across(area)
    return (
        text_literal(area.wkt)
        if corners is None
        else f"{_corners(corners)} CROSSING 180"
    )


def _moving_box(box: MovingBox) -> str:
    unit = " m" if box.metres else ""
    return f"('M', {text_literal(box.focal)}, {number(box.width)}{unit}, {number(box.height)}{unit})"


def _moving_circle(circle: MovingCircle) -> str:
    return f"('M', {text_literal(circle.focal)}, {number(circle.radius_m)} m)"


_REGIONS: dict[type[Region], Callable[[Any], str]] = {
    Box: box_text,
    Circle: _circle,
    Area: _area,
    MovingBox: _moving_box,
    MovingCircle: _moving_circle,
}
