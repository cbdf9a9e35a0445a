"""What regions made of others have in common: AND, OR and NOT of regions (docs/adr/0033).

How far one is from a place, and which ways meet it, is not known: its border is not those of its parts.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from st_common.errors import StateError
from st_common.regions.region import (
    Borders,
    Checks,
    Exits,
    Index,
    MovingRegion,
    Region,
    StillRegion,
    Wrong,
)

if TYPE_CHECKING:
    import numpy as np
    import shapely

    from st_common.geometry.space import Space

DEEPEST = 32  # levels of AND, OR and NOT in each other
MOVES = "a part of it goes with an object, and it does not"


class Combined(StillRegion):
    """A region that is made of others.

    Attributes:
        fewest: of how many others at least.
    """

    __slots__ = ()
    drawn = "outline"
    fewest: ClassVar[int] = 2

    @abstractmethod
    def with_operands(self, operands: tuple[Region, ...]) -> Self:
        """The same of other regions."""

    @abstractmethod
    def operation(self) -> str:
        """What stands behind INSIDE, without the parentheses around it."""

    def text(self) -> str:
        """`((0, 0, 5, 5) AND NOT CIRCLE (3, 4, 500 m))`."""
        return f"({self.operation()})"

    def leaves(self) -> Iterator[Region]:
        """See `Region`: those of its parts, in the order in which they are written."""
        for part in self.operands:
            yield from part.leaves()

    def with_parts(self, change: Callable[[Region], Region]) -> Self:
        """See `Region`."""
        return self.with_operands(tuple(change(part) for part in self.operands))

    def in_units(self, unit_m: float) -> Self:
        """The same of its parts in that unit."""
        return self.with_parts(lambda part: part.in_units(unit_m))

    def checked(self, checks: Checks) -> Self:
        """The same of its parts in their canonical form; at least two for AND and OR."""
        checks.refuse_unless(depth_of(self) <= DEEPEST, "nested too deeply")
        enough = len(self.operands) >= self.fewest
        checks.refuse_unless(enough, f"a {self.noun} is of two regions at least")
        for part in self.operands:
            checks.refuse_unless(isinstance(part, Region), f"no region: {part!r}")
        return self.with_parts(lambda part: part.checked(checks))

    def wrong_anywhere(self) -> Iterator[Wrong]:
        """What is wrong with its parts."""
        for part in self.operands:
            yield from part.wrong_anywhere()

    def wrong_in(self, space: "Space") -> Iterator[Wrong]:
        """What is wrong with its parts, and that one of them goes with an object: that is a `MovingCombined`."""
        for part in self.operands:
            if isinstance(part, MovingRegion):
                yield Wrong(MOVES, "joined_region(..) makes one that goes with objects")
            yield from part.wrong_in(space)

    @property
    def no_until(self) -> str:
        """A way may leave it and come back: nobody says yet until when it is in it."""
        return "AND, OR, NOT of regions"

    @property
    def no_border(self) -> str:
        """Its border is not those of its parts, but for OR (see `united`)."""
        return "AND, NOT of regions"

    @classmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:
        """The indexes of its leaves, kind by kind, then AND, OR and NOT over pairs."""
        from st_common.geometry.combined import CombinedIndex  # slow to import
        from st_common.regions.combined_trees import Leaves, planted

        trees, leaves = planted(regions)
        return CombinedIndex(trees, Leaves(leaves, space=space).probe)

    @classmethod
    def borders(cls, regions: Sequence[Self], *, space: "Space") -> Borders:  # noqa: ARG003
        """Refused.

        Raises:
            StateError: always; who registers fences asks `no_border` before.
        """
        raise refused("a border")

    @classmethod
    def bounds(cls, regions: Sequence[Self], *, space: "Space") -> "np.ndarray":
        """What is known from the bounds of its parts: it may be smaller.

        Without end it has the bounds of the globe, on a plane infinite ones. One that is empty by its bounds reaches
        from infinity to minus infinity.
        """
        import numpy as np

        return np.array([region.bounds_of_one(space) for region in regions]).reshape(
            -1, 4
        )

    @abstractmethod
    def bounds_of_one(self, space: "Space") -> "np.ndarray":
        """Its bounds, float64[4]."""

    @abstractmethod
    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """The region, as it is drawn: circles are ellipses of some sides, and what has no end ends far away."""

    @classmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> Exits:  # noqa: ARG003
        """Refused.

        Raises:
            StateError: always; who registers queries asks `no_until` before.
        """
        raise refused("WITH VALID UNTIL")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfOne(Combined):
    """A region that is made of one other.

    Attributes:
        part: a region that stands still.
    """

    fewest: ClassVar[int] = 1

    part: Region

    @property
    def operands(self) -> tuple[Region, ...]:
        """See `Region`."""
        return (self.part,)

    def with_operands(self, operands: tuple[Region, ...]) -> Self:
        """See `Combined`."""
        (part,) = operands
        return replace(self, part=part)


def refused(what: str) -> StateError:
    """That something is not known of these regions, though the query was registered."""
    return StateError(
        f"{what} and AND, OR, NOT of regions exclude each other",
        hint="a newer version of Fairway registered the query: go on with that version",
    )


def depth_of(region: Region) -> int:
    """How many levels of AND, OR and NOT there are: 0 of any other region."""
    if not isinstance(region, Combined):
        return 0
    return 1 + max((depth_of(part) for part in region.operands), default=0)
