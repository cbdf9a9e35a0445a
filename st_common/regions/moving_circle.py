"""Circles that go with an object (GPAC section 5: `('M', id, radius)`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from st_common.regions.circle import Circle
from st_common.regions.region import AroundObject, Checks, Extents, Limits, MovingExits
from st_common.written import number, text_literal

if TYPE_CHECKING:
    from st_common.geometry.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingCircle(AroundObject):
    """All points within a radius of an object, closed (GPAC `('M', id, radius)`, SPEC G4).

    Attributes:
        focal: the id of the object.
        radius_m: metres; on a stream in a plane, once `in_units` was asked, its unit.
    """

    kind = "moving_circle"
    noun = "moving circle"
    limits: ClassVar[Limits] = {"radius_m": {"minimum": 0}, "focal": {"minLength": 1}}
    drawn = "ellipse"

    focal: str
    radius_m: float

    def text(self) -> str:
        """`('M', 'a', 500 m)`."""
        return f"('M', {text_literal(self.focal)}, {number(self.radius_m)} m)"

    def words(self) -> str:
        """`circle of 500 m around a`."""
        return f"circle of {number(self.radius_m)} m around {self.focal}"

    def holds(self) -> str:
        """`within 500 m of a`."""
        return f"within {self.radius_m:g} m of {self.focal}"

    def checked(self, checks: Checks) -> "MovingCircle":
        """The circle with its radius in metres."""
        return MovingCircle(
            focal=checks.text(self.focal, "the id of an object"),
            radius_m=checks.metres(self.radius_m, "a radius"),
        )

    def in_units(self, unit_m: float) -> "MovingCircle":
        """The circle with its radius in a unit of so many metres."""
        return replace(self, radius_m=self.radius_m / unit_m)

    @property
    def extents(self) -> Extents:
        """Its radius."""
        return Extents(radius_m=self.radius_m)

    def at_place(self, x: float, y: float, *, space: "Space") -> Circle:  # noqa: ARG002 - the same in every space
        """The circle around a place."""
        return Circle(x=x, y=y, radius_m=self.radius_m)

    @classmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> MovingExits:
        """Until the two are so far from each other, in the plane that touches the globe at the focal object."""
        import numpy as np

        from st_common.geometry.exits import MovingCircleExits

        radius_m = np.array([circle.radius_m for circle in regions], float)
        return MovingCircleExits(radius_m=radius_m, space=space)
