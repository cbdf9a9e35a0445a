"""Regions that are asked about the extents of elements: which these meet, and in which they lie wholly (SPEC B1, B8).

```
    +-----------+
    |  +--+   +--+--+      INTERSECTS r:  a, b and c, which touches
    |  | a|   | b|  |      INSIDE r:      a
    |  +--+   +--+--+---+
    |  r        |   | c |
    +-----------+---+---+
```

On a stream whose elements are places both are the same, and the region stands by itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

from st_common.errors import StateError
from st_common.regions.combining import OfOne
from st_common.regions.region import Checks, Index, StillRegion, Wrong

if TYPE_CHECKING:
    import numpy as np
    import shapely

    from st_common.geometry.elements import ElementIndex
    from st_common.geometry.space import Space

How = Literal["intersects", "covered"]
Extent = Literal["", "shape", "box", "interval"]
"""What the elements of a stream are: places, geometries, boxes, or boxes of one dimension."""

_OTHERS = "only a rectangle, a circle, a polygon or a feature is held against the extents of elements"


@dataclass(frozen=True, slots=True, kw_only=True)
class ByExtent(OfOne):
    """The elements that meet a region, or lie wholly in it; both are closed.

    Attributes:
        part: a rectangle, a circle, or an area.
        how: `intersects`, a point in common is enough; `covered`, all of the element is in the region.
        extent: what the elements of the stream are: a `shape`, in the attribute `geometry`; a `box`, of which the first
            two dimensions count; an `interval`, a box of one dimension, whose y is 0. Empty until a stream says it.
    """

    kind = "by_extent"
    noun = "region of extents"
    asks_beyond_place: ClassVar[bool] = True

    how: How
    extent: Extent = ""

    def text(self) -> str:
        """`INTERSECTS (0, 0, 5, 5)`, or `INSIDE (0, 0, 5, 5)`: a clause by itself, in no other region."""
        return self.operation()

    def clause(self) -> str:
        """See `text`."""
        return self.text()

    def operation(self) -> str:
        """See `text`."""
        word = "INTERSECTS" if self.how == "intersects" else "INSIDE"
        return f"{word} {self.part.text()}"

    def words(self) -> str:
        """`what meets box 0 0, 5 5`, `what lies wholly in box 0 0, 5 5`."""
        said = "meets" if self.how == "intersects" else "lies wholly in"
        return f"what {said} {self.part.words()}"

    def holds(self) -> str:
        """`with a point at least inside the rectangle ..`, `wholly inside the rectangle ..`."""
        said = "with a point at least" if self.how == "intersects" else "wholly"
        return f"{said} {self.part.holds()}"

    def checked(self, checks: Checks) -> Self:
        """The same of a region in its canonical form."""
        checks.refuse_unless(self.how in get_args(How), f"how {self.how!r}")
        known = self.extent in get_args(Extent)
        checks.refuse_unless(known, f"extent {self.extent!r}")
        return OfOne.checked(self, checks)

    def wrong_in(self, space: "Space") -> Iterator[Wrong]:
        """What is wrong with its region, and that it is of a kind that is not held against extents."""
        if not self._has_such_part:
            yield Wrong(_OTHERS, "x and y are the place of an element, for WHERE")
        yield from self.part.wrong_in(space)

    @property
    def no_until(self) -> str:
        """Velocities are of places."""
        return "extents of elements"

    @property
    def no_border(self) -> str:
        """How far an extent is from a border, and which ways meet it, is not known."""
        return "extents of elements"

    @classmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:  # noqa: ARG003
        """Refused: a place does not say where all of an element is.

        Raises:
            StateError: always; who matches asks `elements`.
        """
        raise StateError(
            "a region of extents was asked about places alone",
            hint="a newer version of Fairway registered the query: go on with that version",
        )

    @classmethod
    def elements(cls, regions: Sequence[Self], *, space: "Space") -> "ElementIndex":
        """An index of many such regions, exact; pairs name them by their places.

        Raises:
            StateError: one of them is of a kind that is not held against extents.
        """
        import numpy as np

        from st_common.geometry.elements import Asked, ElementIndex

        groups: dict[tuple[type[StillRegion], How], list[int]] = {}
        parts = [one.part_that_stands for one in regions]
        for place, (one, part) in enumerate(zip(regions, parts, strict=True)):
            groups.setdefault((type(part), one.how), []).append(place)
        return ElementIndex(
            [
                Asked(
                    number=np.array(places, np.int64),
                    regions=kind.for_extents([parts[at] for at in places], space=space),
                    wholly=how == "covered",
                )
                for (kind, how), places in groups.items()
            ]
        )

    @property
    def part_that_stands(self) -> StillRegion:
        """The region that extents are held against.

        Raises:
            StateError: it goes with an object.
        """
        if isinstance(self.part, StillRegion):
            return self.part
        raise StateError(_OTHERS)

    @property
    def _has_such_part(self) -> bool:
        return isinstance(self.part, StillRegion) and self.part.takes_extents

    def bounds_of_one(self, space: "Space") -> "np.ndarray":
        """Those of the region."""
        from st_common.regions.combined_shapes import bounds_of

        return bounds_of(self.part, space)

    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """That of the region."""
        from st_common.regions.combined_shapes import drawn_shape

        return drawn_shape(self.part, space)
