"""Rectangles that go with an object (GPAC section 5: `('M', id, x, y)`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from st_common.regions.box import Box
from st_common.regions.region import AroundObject, Checks, Extents, Limits, MovingExits
from st_common.written import number, text_literal

if TYPE_CHECKING:
    from st_common.geometry.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingBox(AroundObject):
    """A closed rectangle centred on an object (GPAC `('M', id, x, y)`, SPEC G4).

    Attributes:
        focal: the id of the object.
        width: full side length along x; `height` along y.
        metres: whether these are metres; else they are in the stream's coordinates.
    """

    kind = "moving_box"
    noun = "moving box"
    limits: ClassVar[Limits] = {
        "width": {"minimum": 0},
        "height": {"minimum": 0},
        "focal": {"minLength": 1},
    }
    drawn = "rectangle"

    focal: str
    width: float
    height: float
    metres: bool = False

    @property
    def _sides(self) -> tuple[str, str]:
        unit = " m" if self.metres else ""
        return f"{number(self.width)}{unit}", f"{number(self.height)}{unit}"

    def text(self) -> str:
        """`('M', 'a', 500 m, 300 m)`, or without units in coordinates."""
        return f"('M', {text_literal(self.focal)}, {', '.join(self._sides)})"

    def words(self) -> str:
        """`box 500 m by 300 m around a`."""
        return f"box {' by '.join(self._sides)} around {self.focal}"

    def holds(self) -> str:
        """`inside the rectangle of 500 x 300 m around a`."""
        unit = " m" if self.metres else ""
        return f"inside the rectangle of {self.width:g} x {self.height:g}{unit} around {self.focal}"

    def checked(self, checks: Checks) -> "MovingBox":
        """The rectangle with sides that are not negative."""
        wide, high = (
            checks.number(side, "a side") for side in (self.width, self.height)
        )
        checks.refuse_unless(min(wide, high) >= 0, "a side is 0 or more")
        focal = checks.text(self.focal, "the id of an object")
        return MovingBox(focal=focal, width=wide, height=high, metres=self.metres)

    def in_units(self, unit_m: float) -> "MovingBox":
        """The rectangle with sides in a unit of so many metres, where they are metres."""
        if not self.metres:
            return self
        return replace(self, width=self.width / unit_m, height=self.height / unit_m)

    @property
    def extents(self) -> Extents:
        """Its sides."""
        return Extents(width=self.width, height=self.height, metres=self.metres)

    def at_place(self, x: float, y: float, *, space: "Space") -> Box:
        """The rectangle around a place; metres on degrees are those at its latitude.

        Example:
            500 m by 300 m around (24.94, 60.17):  24.93550 .. 24.94450 and 60.16865 .. 60.17135
        """
        import numpy as np  # with kernels: slow to import

        across = along = 1.0
        if self.metres:
            across, along = (float(scale[0]) for scale in space.scale(np.array([y])))
        half_x, half_y = self.width / 2 / across, self.height / 2 / along
        return Box(minx=x - half_x, miny=y - half_y, maxx=x + half_x, maxy=y + half_y)

    @classmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> MovingExits:
        """Until the first edge is reached."""
        import numpy as np

        from st_common.geometry.exits import MovingBoxExits

        return MovingBoxExits(
            width=np.array([box.width for box in regions], float),
            height=np.array([box.height for box in regions], float),
            metres=np.array([box.metres for box in regions], bool),
            space=space,
        )
