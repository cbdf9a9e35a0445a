"""Corridors: all places within a width of a line that stands still (SPEC X9)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from st_common.errors import StateError
from st_common.regions.earth import beyond, leaps, off_earth
from st_common.regions.region import (
    Borders,
    Checks,
    Exits,
    Index,
    Limits,
    ShapeError,
    StillRegion,
    Wrong,
)
from st_common.regions.shapes import shape_of, short, text_of, why_invalid
from st_common.written import number, text_literal

if TYPE_CHECKING:
    import numpy as np
    import shapely

    from st_common.geometry.space import Space

_LIKE = "'LINESTRING (x y, x y)'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corridor(StillRegion):
    """All points within a width of a line, on either side of it and around its ends, closed (SPEC X9).

    Attributes:
        wkt: a line or multiline as canonical WKT in the stream's CRS; its sides are straight in the coordinates.
        width_m: metres on either side, geodesic on longitude and latitude.
    """

    kind = "corridor"
    noun = "corridor"
    limits: ClassVar[Limits] = {"width_m": {"minimum": 0}}
    drawn = "outline"

    wkt: str
    width_m: float

    @staticmethod
    def along(wkt: str, width_m: float) -> "Corridor":
        """The corridor along the line of a text.

        Args:
            wkt: a line or multiline.
            width_m: metres on either side of it.

        Raises:
            ShapeError: it is no WKT, or no line.
        """
        import shapely  # slow to import, and seldom needed

        kinds = ("LineString", "MultiLineString")
        shape = shape_of(wkt, kinds, "a line or multiline", _LIKE)
        if not shapely.is_valid(shape):
            raise ShapeError(f"the line is not valid: {why_invalid(shape)}", _LIKE)
        return Corridor(wkt=text_of(shape), width_m=width_m)

    def text(self) -> str:
        """`CORRIDOR ('LINESTRING (0 0, 5 0)', 50 m)`."""
        return f"CORRIDOR ({text_literal(self.wkt)}, {number(self.width_m)} m)"

    def words(self) -> str:
        """`corridor of 50 m along LINESTRING (0 0, 5 0)`."""
        return f"corridor of {number(self.width_m)} m along {short(self.wkt)}"

    def holds(self) -> str:
        """`within 50 m of the line of the query`."""
        return f"within {self.width_m:g} m of the line of the query"

    def checked(self, checks: Checks) -> "Corridor":
        """The corridor of its line in canonical form, with its width in metres."""
        width_m = checks.metres(self.width_m, "a width")
        return Corridor.along(checks.text(self.wkt, "a line"), width_m)

    def wrong_in(self, space: "Space") -> Iterator[Wrong]:
        """Places off the Earth, and sides with two readings."""
        if space.is_flat:
            return
        import shapely

        shape = shapely.from_wkt(self.wkt)
        yield from off_earth("line", beyond(shapely.get_coordinates(shape)))
        if leaps(shapely.get_parts(shape)):
            hint = "split it at 180 degrees into a MULTILINESTRING, or give long sides more corners"
            yield Wrong(
                "a side of the line is longer than 180 degrees: which way around?", hint
            )

    def in_units(self, unit_m: float) -> "Corridor":
        """The corridor with its width in a unit of so many metres."""
        return replace(self, width_m=self.width_m / unit_m)

    @classmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:
        """Boxes around pieces of lines, then the distances."""
        from st_common.geometry.corridors import CorridorIndex  # slow to import

        return CorridorIndex(*_columns(regions), space=space)

    @classmethod
    def borders(cls, regions: Sequence[Self], *, space: "Space") -> Borders:
        """The corridors."""
        from st_common.geometry.corridors import Corridors

        return Corridors(*_columns(regions), space=space)

    @classmethod
    def bounds(cls, regions: Sequence[Self], *, space: "Space") -> "np.ndarray":
        """The box around each; across 180 degrees it is as wide as both of its parts together."""
        from st_common.geometry.corridors import corridor_bounds

        return corridor_bounds(*_columns(regions), space=space)

    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """The corridor as a polygon; on degrees in the plane that touches the globe at the middle of the line."""
        import numpy as np
        import shapely

        line = shapely.from_wkt(self.wkt)
        _, south, _, north = shapely.bounds(line)
        scale = np.array(space.scale(np.array((south + north) / 2)), float)
        flat = shapely.transform(line, lambda places: places * scale)
        around = shapely.buffer(flat, self.width_m)
        return shapely.transform(around, lambda places: places / scale)

    @property
    def no_until(self) -> str:
        """A way may leave a corridor and come back: nobody says yet until when it is in it."""
        return "a CORRIDOR"

    @classmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> Exits:  # noqa: ARG003
        """Refused.

        Raises:
            StateError: always; who registers queries asks `no_until` before.
        """
        raise StateError(
            "WITH VALID UNTIL and a CORRIDOR exclude each other",
            hint="a newer version of Fairway registered the query: go on with that version",
        )


def _columns(corridors: Sequence[Corridor]) -> "tuple[np.ndarray, np.ndarray]":
    """Lines and widths, [n] each."""
    import numpy as np

    from st_common.geometry.areas import prepared

    lines = prepared([corridor.wkt for corridor in corridors])
    return lines, np.array([corridor.width_m for corridor in corridors], float)
