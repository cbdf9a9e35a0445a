"""Where a query looks, and which objects are near (SPEC G4, G5, G8)."""

from collections.abc import Sequence
from typing import Any, Literal, Self, get_args

from st_common.query.builder.amounts import number_of, whole_of
from st_common.query.builder.refusing import refuse_unless, text_of_user
from st_common.query.builder.regions import RegionLike, region_of
from st_common.query.builder.step import Step
from st_common.query.lowering.space import MOST_NEIGHBOURS
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.regions.by_extent import ByExtent

Total = Literal["sum", "max", "min"]


class PlaceSteps(Step):
    """A place is two coordinates, or the id of an object that it goes with."""

    __slots__ = ()

    def inside(self, region: RegionLike) -> Self:
        """Objects inside a region: corners, WKT, or what `circle`, `around` and `box_around` make."""
        step = "inside(..)"
        return self._next(step, inside=region_of(region, step))

    def intersects(self, region: RegionLike) -> Self:
        """Elements that have a point in a region, touching included; of a stream of places what `inside` gives."""
        step = "intersects(..)"
        asked = ByExtent(part=region_of(region, step), how="intersects")
        return self._next(step, inside=asked)

    def nearest(
        self,
        k: int,
        x: float | None = None,
        y: float | None = None,
        *,
        to: str | None = None,
    ) -> Self:
        """The k objects nearest to a place; with `inside` the nearest among those inside."""
        step = "nearest(..)"
        count = whole_of(k, "k", MOST_NEIGHBOURS, step)
        return self._next(
            step, neighbours=Nearest(k=count, place=_place(x, y, to, step))
        )

    def reverse_nearest(
        self, x: float | None = None, y: float | None = None, *, to: str | None = None
    ) -> Self:
        """The objects to which no other object is nearer than the place is."""
        step = "reverse_nearest(..)"
        return self._next(step, neighbours=ReverseNearest(place=_place(x, y, to, step)))

    def group_nearest(
        self, k: int, total: Total, places: Sequence[tuple[float, float] | str]
    ) -> Self:
        """The k objects with the least sum, maximum or minimum of distances to several places."""
        step = "group_nearest(..)"
        refuse_unless(
            total in get_args(Total), step, f"expected sum, max or min, not {total!r}"
        )
        refuse_unless(
            len(places) > 0 and not isinstance(places, str),
            step,
            "expected a list of at least one place",
        )
        wanted = tuple([_place_of(place, step) for place in places])
        count = whole_of(k, "k", MOST_NEIGHBOURS, step)
        return self._next(
            step, neighbours=GroupNearest(k=count, total=total, places=wanted)
        )


def _place_of(place: Any, step: str) -> Place:
    if isinstance(place, str):
        return _place(None, None, place, step)
    right = isinstance(place, Sequence) and len(place) == 2
    refuse_unless(
        right, step, f"a place is (x, y) or the id of an object, not {place!r}"
    )
    return _place(place[0], place[1], None, step)


def _place(x: float | None, y: float | None, to: str | None, step: str) -> Place:
    if to is not None:
        refuse_unless(
            x is None and y is None, step, "a place is (x, y) or an object, not both"
        )
        return Place(focal=text_of_user(to, "the id of an object", step))
    if x is None or y is None:
        refuse_unless(False, step, "a place is needed", 'x, y, or to="id of an object"')  # noqa: FBT003 - as it reads
    return Place(x=number_of(x or 0.0, "x", step), y=number_of(y or 0.0, "y", step))
