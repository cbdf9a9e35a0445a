"""Regions for builders: made by words, and checked whoever made them."""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from st_common.query.builder.amounts import Amount, metres_of, number_of
from st_common.query.builder.refusing import refuse_unless, text_of_user, told_by
from st_common.query.crossing import area_across
from st_common.query.lowering.area import area_of
from st_common.query.region import Area, Box, Circle, MovingBox, MovingCircle, Region

Corners = tuple[float, float, float, float]
BoxLike = Box | Corners
RegionLike = Region | Corners | str
"""A region, two corners (x1, y1, x2, y2) in any order, or the WKT of a polygon or multipolygon."""


def circle(x: float, y: float, radius: Amount) -> Circle:
    """All points within a radius of a centre; the radius is metres, or a text with its unit."""
    step = "circle(..)"
    centre = number_of(x, "x", step), number_of(y, "y", step)
    return Circle(
        x=centre[0], y=centre[1], radius_m=metres_of(radius, "a radius", step)
    )


def around(focal: str, radius: Amount) -> MovingCircle:
    """All points within a radius of an object, wherever it goes."""
    step = "around(..)"
    return MovingCircle(
        focal=_focal(focal, step), radius_m=metres_of(radius, "a radius", step)
    )


def box_around(focal: str, width: Amount, height: Amount) -> MovingBox:
    """A rectangle with an object in its middle: numbers are coordinates, texts say a unit of length."""
    step = "box_around(..)"
    metres = isinstance(width, str), isinstance(height, str)
    refuse_unless(
        metres[0] == metres[1], step, "both sides have a unit, or neither has one"
    )
    if metres[0]:
        wide, high = (metres_of(side, "a side", step) for side in (width, height))
        return MovingBox(
            focal=_focal(focal, step), width=wide, height=high, metres=True
        )
    wide, high = (number_of(float(side), "a side", step) for side in (width, height))
    return _checked_box_around(
        MovingBox(focal=_focal(focal, step), width=wide, height=high), step
    )


def box_across(west: float, south: float, east: float, north: float) -> Area:
    """The rectangle from `west` eastwards over 180 degrees to `east`, in degrees: (170, -20, -170, -10)."""
    step = "box_across(..)"
    x1, y1, x2, y2 = (
        number_of(corner, "a corner", step) for corner in (west, south, east, north)
    )
    crosses = -180.0 < x2 < x1 < 180.0 and -90.0 <= y1 < y2 <= 90.0
    hint = "west of 180 degrees first, then east of it: box_across(170, -20, -170, -10)"
    refuse_unless(
        crosses,
        step,
        f"({x1:g}, {y1:g}, {x2:g}, {y2:g}) does not cross 180 degrees",
        hint,
    )
    return area_across(x1, y1, x2, y2)


def box_of(value: BoxLike, step: str) -> Box:
    """A box, or one of two corners in any order."""
    corners: Any = (
        (value.minx, value.miny, value.maxx, value.maxy)
        if isinstance(value, Box)
        else value
    )
    right = (
        isinstance(corners, Sequence)
        and not isinstance(corners, str)
        and len(corners) == 4
    )
    refuse_unless(right, step, f"expected a Box or (x1, y1, x2, y2), not {value!r}")
    return Box.of_corners(*(number_of(corner, "a corner", step) for corner in corners))


def region_of(value: RegionLike, step: str, *, moving: bool = True) -> Region:
    """A region in its canonical form; with `moving` false one that stands still."""
    if isinstance(value, str | Area):
        wkt = value if isinstance(value, str) else value.wkt
        with told_by(step):
            return area_of(exp.Literal.string(text_of_user(wkt, "an area", step)))
    if isinstance(value, Circle):
        x, y = (number_of(part, "the centre", step) for part in (value.x, value.y))
        return Circle(x=x, y=y, radius_m=metres_of(value.radius_m, "a radius", step))
    if isinstance(value, MovingBox | MovingCircle):
        refuse_unless(
            moving,
            step,
            "a region of a window stands still",
            "inside(around(..)) goes with an object",
        )
        return _moving_of(value, step)
    return box_of(value, step)


def _moving_of(value: MovingBox | MovingCircle, step: str) -> Region:
    focal = _focal(value.focal, step)
    if isinstance(value, MovingBox):
        return _checked_box_around(value, step)
    return MovingCircle(
        focal=focal, radius_m=metres_of(value.radius_m, "a radius", step)
    )


def _checked_box_around(box: MovingBox, step: str) -> MovingBox:
    sides = [number_of(side, "a side", step) for side in (box.width, box.height)]
    refuse_unless(min(sides) >= 0, step, "a side is 0 or more")
    return MovingBox(
        focal=_focal(box.focal, step),
        width=sides[0],
        height=sides[1],
        metres=box.metres,
    )


def _focal(focal: str, step: str) -> str:
    return text_of_user(focal, "the id of an object", step)
