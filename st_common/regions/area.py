"""Polygons that stand still, as canonical text: one area has one plan (SPEC G4, P4)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from st_common.regions.box import Corners, corners_text
from st_common.regions.earth import HALF_TURN, beyond, leaps, off_earth
from st_common.regions.region import (
    Borders,
    Checks,
    Exits,
    Index,
    ShapeError,
    StillRegion,
    Wrong,
)
from st_common.regions.shapes import shape_of, short, text_of, why_invalid
from st_common.written import name_quoted, number, text_literal

if TYPE_CHECKING:
    import numpy as np
    import shapely

    from st_common.geometry.elements import Tested
    from st_common.geometry.space import Space

_LIKE = "'POLYGON ((x y, x y, x y, x y))'"
_NUMBER = r"(-?\d+\.?\d*(?:e[+-]?\d+)?)"
_PLACE = rf"{_NUMBER} {_NUMBER}"
_RING = rf"\(\({_PLACE}, {_PLACE}, {_PLACE}, {_PLACE}, {_PLACE}\)\)"
_TWO_RINGS = re.compile(rf"MULTIPOLYGON \({_RING}, {_RING}\)")
_CORNERS = 4  # two numbers each, then the first one again


@dataclass(frozen=True, slots=True, kw_only=True)
class Area(StillRegion):
    """A polygon or multipolygon that stands still; its border belongs to it.

    Of a feature it is the surface in some version of its layer: queries go over to its surface in the next version
    (docs/adr/0032).

    Attributes:
        wkt: canonical WKT in the stream's CRS, as `of_wkt` makes it.
        layer: the layer of the feature that it is, None for any other area.
        fid: the id of that feature.
    """

    kind = "area"
    noun = "area"
    takes_extents: ClassVar[bool] = True
    drawn = "outline"

    wkt: str
    layer: str | None = None
    fid: str | None = None

    @staticmethod
    def of_wkt(wkt: str) -> "Area":
        """The area of a text: its rings in one order, numbers as short as they are.

        Args:
            wkt: a polygon or multipolygon, as somebody wrote it.

        Raises:
            ShapeError: it is no WKT, or no valid polygon or multipolygon.

        Example:
            a square from whichever corner, in either direction:  POLYGON ((0 0, 0 10, 10 10, 10 0, 0 0))
        """
        import shapely  # slow to import, and seldom needed

        shape = shape_of(
            wkt, ("Polygon", "MultiPolygon"), "a polygon or multipolygon", _LIKE
        )
        if not shapely.is_valid(shape):
            raise ShapeError(f"the area is not valid: {why_invalid(shape)}")
        return Area(wkt=text_of(shape))

    @staticmethod
    def across(west: float, south: float, east: float, north: float) -> "Area":
        """The closed rectangle across 180 degrees, as an area of two parts.

        Args:
            west: its western side, which is east of `east`, in degrees.
            south: latitude in degrees.
            east: its eastern side.
            north: latitude in degrees.

        Raises:
            ValueError: it does not cross 180 degrees, or has no extent on one side of it.
        """
        import shapely

        if not (-HALF_TURN < east < west < HALF_TURN and south < north):
            raise ValueError(
                f"({west}, {south}, {east}, {north}) has no extent on both sides of 180 degrees"
            )
        parts = (west, south, HALF_TURN, north), (-HALF_TURN, south, east, north)
        both = shapely.MultiPolygon([shapely.box(*part) for part in parts])
        return Area(wkt=text_of(both))

    @property
    def corners_across(self) -> Corners | None:
        """West, south, east and north of the rectangle across 180 degrees that it is; None for any other area."""
        parts = _TWO_RINGS.fullmatch(self.wkt)
        if parts is None:
            return None
        numbers = [float(number) for number in parts.groups()]
        half = 2 * (_CORNERS + 1)
        xs, ys = sorted(set(numbers[0::2])), sorted(set(numbers[1::2]))
        # Two rectangles side by side have four x and two y in all, and two x in the first.
        if len(xs) != _CORNERS or len(ys) != 2 or len(set(numbers[:half:2])) != 2:
            return None
        corners = xs[2], ys[0], xs[1], ys[1]
        whole = xs[0] == -HALF_TURN and xs[3] == HALF_TURN
        # Made again and compared, so that no other area with such coordinates is taken for a rectangle.
        return corners if whole and Area.across(*corners).wkt == self.wkt else None

    @property
    def feature(self) -> tuple[str, str] | None:
        """The layer and the fid of the feature whose surface it is; None for any other area."""
        if self.layer is None or self.fid is None:
            return None
        return self.layer, self.fid

    def text(self) -> str:
        """The feature that it is, else its WKT in quotes, or its corners where it is a rectangle across 180 degrees."""
        if self.feature is not None:
            layer, fid = self.feature
            return f"FEATURE ({name_quoted(layer)}, {text_literal(fid)})"
        corners = self.corners_across
        if corners is None:
            return text_literal(self.wkt)
        return f"{corners_text(corners)} CROSSING 180"

    def words(self) -> str:
        """The feature that it is, else its WKT, shortened, or its corners if it is a rectangle across 180 degrees."""
        if self.feature is not None:
            return f"feature {self.fid} of {self.layer}"
        if self.corners_across is None:
            return short(self.wkt)
        west, south, east, north = map(number, self.corners_across)
        return f"box {west} {south}, {east} {north} across 180 degrees"

    def holds(self) -> str:
        """`inside the polygon of the query`, `inside feature w1 of parks`."""
        if self.feature is not None:
            return f"inside feature {self.fid} of {self.layer}"
        return f"inside the {self.wkt.split('(')[0].strip().lower()} of the query"

    def checked(self, checks: Checks) -> "Area":
        """The area of its text in canonical form; a feature has a layer and a fid."""
        both = (self.layer is None) == (self.fid is None)
        checks.refuse_unless(both, "the area of a feature has a layer and a fid")
        area = Area.of_wkt(checks.text(self.wkt, "an area"))
        return replace(area, layer=self.layer, fid=self.fid)

    def wrong_in(self, space: "Space") -> Iterator[Wrong]:
        """Corners off the Earth and sides with two readings; on a plane a rectangle across 180 degrees."""
        across = self.corners_across is not None
        if space.is_flat and across:
            hint = "it is for streams in degrees; give the plane's own coordinates"
            yield Wrong("CROSSING 180 has no meaning on a plane", hint)
        if space.is_flat:
            return
        import shapely

        shape = shapely.from_wkt(self.wkt)
        yield from off_earth("area", beyond(shapely.get_coordinates(shape)))
        if not across and leaps(shapely.get_rings(shapely.get_parts(shape))):
            hint = "split it at 180 degrees into a MULTIPOLYGON, or give long sides more corners"
            yield Wrong(
                "a side of the area is longer than 180 degrees: which way around?", hint
            )

    @property
    def no_until(self) -> str:
        """A way over 180 degrees ends at the border of its part."""
        return "" if self.corners_across is None else "CROSSING 180"

    @classmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:  # noqa: ARG003 - it has the corners that it has
        """Boxes around areas, then prepared shapes."""
        from st_common.geometry.areas import AreaIndex  # with shapely: slow to import

        return AreaIndex([area.wkt for area in regions])

    @classmethod
    def for_extents(cls, regions: Sequence[Self], *, space: "Space") -> "Tested":  # noqa: ARG003
        """The polygons."""
        from st_common.geometry.areas import prepared
        from st_common.geometry.elements import Surfaces

        return Surfaces(prepared([area.wkt for area in regions]))

    @classmethod
    def borders(cls, regions: Sequence[Self], *, space: "Space") -> Borders:
        """The polygons."""
        from st_common.geometry.areas import prepared
        from st_common.geometry.borders import Areas

        return Areas(prepared([area.wkt for area in regions]), space=space)

    @classmethod
    def bounds(cls, regions: Sequence[Self], *, space: "Space") -> "np.ndarray":  # noqa: ARG003
        """The box around all parts of each."""
        import numpy as np
        import shapely

        from st_common.geometry.areas import prepared

        return np.asarray(shapely.bounds(prepared([area.wkt for area in regions])))

    def outline(self, *, space: "Space") -> "shapely.Geometry":  # noqa: ARG002
        """The polygon."""
        import shapely

        return shapely.from_wkt(self.wkt)

    @classmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> Exits:  # noqa: ARG003 - ways are straight in coordinates
        """Until the way of a member first crosses the border."""
        from st_common.geometry.areas import prepared
        from st_common.geometry.exits import AreaExits

        return AreaExits(areas=prepared([area.wkt for area in regions]))
