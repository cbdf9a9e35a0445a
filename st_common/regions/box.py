"""Rectangles that stand still (GPAC section 5, SPEC G4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from st_common.regions.earth import HALF_TURN, off_earth
from st_common.regions.region import Borders, Checks, Exits, Index, StillRegion, Wrong
from st_common.written import number

if TYPE_CHECKING:
    import numpy as np
    import shapely

    from st_common.geometry.elements import Tested
    from st_common.geometry.space import Space

Corners = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box(StillRegion):
    """A closed rectangle that stands still, in the stream's CRS.

    Attributes:
        minx: its least x, not more than `maxx`; `miny` likewise.
        westwards: corners were given from east to west; no part of the value.
    """

    kind = "box"
    noun = "box"
    takes_extents: ClassVar[bool] = True
    drawn = "rectangle"

    minx: float
    miny: float
    maxx: float
    maxy: float
    westwards: bool = field(
        default=False, compare=False, repr=False
    )  # how corners were given: no part of the value

    @staticmethod
    def of_corners(x1: float, y1: float, x2: float, y2: float) -> "Box":
        """The box between two corners, given in either order; it may have no extent (GPAC, SPEC G4).

        Args:
            x1: of one corner; `y1` likewise.
            y1: see `x1`.
            x2: of the opposite corner. West of `x1` it is noted that corners were given from east to west: on degrees
                more than half a turn is refused then (`wrong_in`).
            y2: see `x2`.
        """
        return Box(
            minx=min(x1, x2),
            miny=min(y1, y2),
            maxx=max(x1, x2),
            maxy=max(y1, y2),
            westwards=x1 > x2,
        )

    @property
    def corners(self) -> Corners:
        """minx, miny, maxx, maxy."""
        return self.minx, self.miny, self.maxx, self.maxy

    def text(self) -> str:
        """Two corners in parentheses."""
        return corners_text(self.corners)

    def words(self) -> str:
        """`box 0 0, 5 5`."""
        west, south, east, north = map(number, self.corners)
        return f"box {west} {south}, {east} {north}"

    def holds(self) -> str:
        """`inside the rectangle (0, 0) to (5, 5)`."""
        return f"inside the rectangle ({self.minx:g}, {self.miny:g}) to ({self.maxx:g}, {self.maxy:g})"

    def checked(self, checks: Checks) -> "Box":
        """The box between its corners, which may have been given in another order."""
        return Box.of_corners(
            *(checks.number(edge, "a corner") for edge in self.corners)
        )

    def wrong_anywhere(self) -> Iterator[Wrong]:
        """Corners that could be degrees, and could be meant the other way around."""
        if not any(off_earth("box", self._places())):
            yield from self._other_way()

    def wrong_in(self, space: "Space") -> Iterator[Wrong]:
        """Corners off the Earth, or meant the other way around."""
        if not space.is_flat:
            yield from off_earth("box", self._places())
            yield from self._other_way()

    def _places(self) -> list[tuple[float, float]]:
        return [(self.minx, self.miny), (self.maxx, self.maxy)]

    def _other_way(self) -> Iterator[Wrong]:
        """Corners from east to west more than half a turn apart: who means the way over 180 degrees writes them so."""
        if self.westwards and self.maxx - self.minx > HALF_TURN:
            west, east, south, north = (
                f"{value:.15g}"
                for value in (self.maxx, self.minx, self.miny, self.maxy)
            )
            yield Wrong(
                f"from {west} to {east} degrees: over 180, or the other way around?",
                f"({west}, {south}, {east}, {north}) CROSSING 180, or ({east}, {south}, {west}, {north})",
            )

    @classmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:  # noqa: ARG003 - a box has the edges that it has
        """A grid of boxes."""
        from st_common.geometry.grid import BoxIndex  # with NumPy: slow to import

        return BoxIndex(_edges(regions))

    @classmethod
    def for_extents(cls, regions: Sequence[Self], *, space: "Space") -> "Tested":  # noqa: ARG003
        """The rectangles."""
        from st_common.geometry.elements import Rectangles

        return Rectangles(_edges(regions))

    @classmethod
    def borders(cls, regions: Sequence[Self], *, space: "Space") -> Borders:
        """Rectangles as polygons; one without extent is the line or the point that it is."""
        import numpy as np
        import shapely

        from st_common.geometry.borders import Areas

        return Areas(np.array(shapely.box(*_edges(regions).T), object), space=space)

    @classmethod
    def bounds(cls, regions: Sequence[Self], *, space: "Space") -> "np.ndarray":  # noqa: ARG003
        """Its own corners."""
        return _edges(regions)

    def outline(self, *, space: "Space") -> "shapely.Geometry":  # noqa: ARG002
        """The rectangle."""
        import shapely

        return shapely.box(*self.corners)

    @classmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> Exits:  # noqa: ARG003 - edges are in coordinates
        """Until the first edge is reached."""
        from st_common.geometry.exits import BoxExits

        return BoxExits(edges=_edges(regions).T)


def corners_text(corners: Corners) -> str:
    """Two corners in parentheses."""
    return f"({', '.join(number(value) for value in corners)})"


def _edges(boxes: Sequence[Box]) -> "np.ndarray":
    """float64[n, 4]."""
    import numpy as np

    columns = (
        [box.minx for box in boxes],
        [box.miny for box in boxes],
        [box.maxx for box in boxes],
        [box.maxy for box in boxes],
    )
    return np.array(columns, float).T
