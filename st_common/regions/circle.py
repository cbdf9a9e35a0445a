"""Circles that stand still (GPAC section 5, SPEC G4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from st_common.regions.earth import off_earth
from st_common.regions.region import (
    Borders,
    Checks,
    Exits,
    Index,
    Limits,
    StillRegion,
    Wrong,
)
from st_common.written import number

if TYPE_CHECKING:
    import numpy as np
    import shapely

    from st_common.geometry.elements import Tested
    from st_common.geometry.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle(StillRegion):
    """All points within a radius of a centre, closed; metres are geodesic on longitude and latitude.

    Attributes:
        x: the centre, in the stream's CRS; `y` likewise.
        radius_m: metres; on a stream in a plane, once `in_units` was asked, its unit.
    """

    kind = "circle"
    noun = "circle"
    takes_extents: ClassVar[bool] = True
    limits: ClassVar[Limits] = {"radius_m": {"minimum": 0}}
    drawn = "ellipse"

    x: float
    y: float
    radius_m: float

    def text(self) -> str:
        """`CIRCLE (3, 4, 500 m)`."""
        return f"CIRCLE ({number(self.x)}, {number(self.y)}, {number(self.radius_m)} m)"

    def words(self) -> str:
        """`circle of 500 m around 3 4`."""
        return f"circle of {number(self.radius_m)} m around {number(self.x)} {number(self.y)}"

    def holds(self) -> str:
        """`within 500 m of (3, 4)`."""
        return f"within {self.radius_m:g} m of ({self.x:g}, {self.y:g})"

    def checked(self, checks: Checks) -> "Circle":
        """The circle with its radius in metres."""
        x, y = (checks.number(part, "the centre") for part in (self.x, self.y))
        return Circle(x=x, y=y, radius_m=checks.metres(self.radius_m, "a radius"))

    def wrong_in(self, space: "Space") -> Iterator[Wrong]:
        """A centre off the Earth."""
        if not space.is_flat:
            yield from off_earth("centre of the circle", [(self.x, self.y)])

    def in_units(self, unit_m: float) -> "Circle":
        """The circle with its radius in a unit of so many metres."""
        return replace(self, radius_m=self.radius_m / unit_m)

    @classmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:
        """Boxes around circles, then the distances."""
        from st_common.geometry.circles import CircleIndex  # with NumPy: slow to import

        return CircleIndex(*_columns(regions), space=space)

    @classmethod
    def for_extents(cls, regions: Sequence[Self], *, space: "Space") -> "Tested":
        """The circles."""
        from st_common.geometry.elements import Discs

        return Discs(*_columns(regions), space=space)

    @classmethod
    def borders(cls, regions: Sequence[Self], *, space: "Space") -> Borders:
        """The circles."""
        from st_common.geometry.borders import Circles

        return Circles(*_columns(regions), space=space)

    @classmethod
    def bounds(cls, regions: Sequence[Self], *, space: "Space") -> "np.ndarray":
        """One box around each; across 180 degrees it is as wide as both of its parts together."""
        from st_common.geometry.circles import box_around

        return box_around(*_columns(regions), space=space)

    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """Its box: `drawn` says that it is an ellipse in it."""
        import shapely

        (box,) = Circle.bounds([self], space=space).tolist()
        return shapely.Polygon.from_bounds(*box)

    @classmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> Exits:
        """Until the border is reached, in the plane that touches the globe at the centre."""
        from st_common.geometry.exits import CircleExits

        x, y, radius_m = _columns(regions)
        return CircleExits(x=x, y=y, radius_m=radius_m, space=space)


def _columns(
    circles: Sequence[Circle],
) -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """x, y and radius, float64[n] each."""
    import numpy as np

    x, y, radius_m = (
        np.array([getattr(circle, name) for circle in circles], float)
        for name in ("x", "y", "radius_m")
    )
    return x, y, radius_m
