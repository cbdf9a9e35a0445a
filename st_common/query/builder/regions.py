"""Regions for builders: made by words, and checked whoever made them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from st_common.query.builder.amounts import Amount, metres_of, number_of
from st_common.query.builder.refusing import refuse_unless, text_of_user, told_by
from st_common.regions.region import MovingRegion, Region
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    Complement,
    Corridor,
    Intersection,
    MovingBox,
    MovingCircle,
    Union,
    joined_region,
    known,
)

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


def corridor(line: str, width: Amount) -> Corridor:
    """All points within a width of a line (its WKT), on either side; the width is metres, or a text with its unit."""
    checks = Checked("corridor(..)")
    width_m = checks.metres(width, "a width")
    with told_by(checks.step):
        return Corridor.along(checks.text(line, "a line"), width_m)


def all_of(*regions: RegionLike) -> Region:
    """All points that are in each of some regions: AND. It goes with the objects that one of them goes with.

    Args:
        regions: at least two.

    Raises:
        QueryError: it is fewer.
    """
    return _joined(Intersection, regions, "all_of(..)")


def any_of(*regions: RegionLike) -> Region:
    """All points that are in one of some regions at least: OR. It goes with the objects that one of them goes with.

    Args:
        regions: at least two.

    Raises:
        QueryError: it is fewer.
    """
    return _joined(Union, regions, "any_of(..)")


def outside(region: RegionLike) -> Region:
    """All points that are not in a region: NOT. The border of the region belongs to the region, and not to it."""
    step = "outside(..)"
    return Checked(step).told(Complement(part=region_of(region, step)))


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
    return MovingBox(focal=focal, width=wide, height=high).checked(Checked(step))


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
    return Area.across(x1, y1, x2, y2)


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
    checks = Checked(step)
    if isinstance(value, str):
        return checks.told(Area(wkt=value))
    if not isinstance(value, Region):
        return box_of(value, step)
    refuse_unless(
        moving or not isinstance(value, MovingRegion),
        step,
        "a region of a window stands still",
        "inside(around(..)) goes with an object",
    )
    return checks.told(value)


@dataclass(frozen=True, slots=True)
class Checked:
    """Values of a step of the builder (`Checks`)."""

    step: str

    def told(self, region: Region) -> Region:
        """A region in its canonical form, its mistakes as those of the step."""
        known(type(region))
        with told_by(self.step):
            return joined_region(region.checked(self))

    def number(self, value: Any, what: str) -> float:
        """A finite number."""
        return number_of(value, what, self.step)

    def metres(self, value: Any, what: str) -> float:
        """A length of 0 or more, in metres."""
        return metres_of(value, what, self.step)

    def text(self, value: Any, what: str) -> str:
        """A text that is not empty."""
        return text_of_user(value, what, self.step)

    def refuse_unless(self, fits: bool, message: str, hint: str = "") -> None:  # noqa: FBT001 - it reads as `unless x`
        """Refuses the value unless all is well."""
        refuse_unless(fits, self.step, message, hint)


def _joined(
    kind: type[Intersection | Union], regions: Sequence[RegionLike], step: str
) -> Region:
    """Regions joined by AND or OR."""
    parts = tuple(region_of(one, step) for one in regions)
    return Checked(step).told(kind(parts=parts))


def _focal(focal: str, step: str) -> str:
    return text_of_user(focal, "the id of an object", step)
