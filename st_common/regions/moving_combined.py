"""AND, OR and NOT of regions of which some go with objects (docs/adr/0033).

```
    park AND ('M', 'a', 500 m)        +-----------+
                                      |  park  .--|--.        who is in the park and near `a`: not `a` itself, and
                                      |       ( a |   )       nobody while `a` is not there
                                      +--------`--|--'
```
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from st_common.regions.combining import Combined, refused
from st_common.regions.region import (
    Checks,
    MovingExits,
    MovingRegion,
    Places,
    Region,
    StillRegion,
    Wrong,
)

if TYPE_CHECKING:
    from st_common.geometry.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingCombined(MovingRegion):
    """A region made of others of which one at least goes with an object; made by `joined_region`.

    None of the objects that it goes with is ever in it, as none is in the region around it alone. While one of them is
    not alive nobody is in it, also not by NOT or OR: where the region would be is not known.

    Attributes:
        of: AND, OR, NOT of regions.
    """

    kind = "moving_combined"
    noun = "AND, OR, NOT with a region that goes with an object"
    drawn = "outline"

    of: Combined

    @property
    def operands(self) -> tuple[Region, ...]:
        """See `Region`."""
        return self.of.operands

    def text(self) -> str:
        """`((0, 0, 5, 5) AND ('M', 'a', 500 m))`."""
        return self.of.text()

    def words(self) -> str:
        """`box 0 0, 5 5 and circle of 500 m around a`."""
        return self.of.words()

    def holds(self) -> str:
        """`inside the rectangle (0, 0) to (5, 5) and within 500 m of a`."""
        return self.of.holds()

    def leaves(self) -> Iterator[Region]:
        """See `Region`: those of its parts, in the order in which they are written."""
        return self.of.leaves()

    def with_parts(self, change: Callable[[Region], Region]) -> Region:
        """See `Region`; it may be that nothing of it moves any more."""
        return joined_region(self.of.with_parts(change))

    def in_units(self, unit_m: float) -> "MovingCombined":
        """The same of its parts in that unit."""
        return MovingCombined(of=self.of.in_units(unit_m))

    def checked(self, checks: Checks) -> Region:
        """The same of its parts in their canonical form."""
        return joined_region(self.of.checked(checks))

    def wrong_anywhere(self) -> Iterable[Wrong]:
        """What is wrong with its parts."""
        return self.of.wrong_anywhere()

    def wrong_in(self, space: "Space") -> Iterable[Wrong]:
        """What is wrong with its parts."""
        for leaf in self.leaves():
            yield from leaf.wrong_in(space)

    @property
    def no_until(self) -> str:
        """See `Combined`."""
        return self.of.no_until

    @property
    def no_border(self) -> str:
        """Where a border is that some of it goes with objects, nobody has asked yet."""
        return "AND, OR, NOT of regions that go with an object"

    @property
    def focals(self) -> tuple[str, ...]:
        """See `MovingRegion`."""
        moving = [leaf for leaf in self.leaves() if isinstance(leaf, MovingRegion)]
        return tuple(dict.fromkeys(focal for leaf in moving for focal in leaf.focals))

    def standing(self, places: Places, *, space: "Space") -> StillRegion:
        """See `MovingRegion`: AND, OR, NOT of the regions around these places."""

        def stood(part: Region) -> Region:
            if isinstance(part, MovingRegion):
                return part.standing(places, space=space)
            return part.with_parts(stood)

        return self.of.with_parts(stood)

    @classmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> MovingExits:  # noqa: ARG003
        """Refused.

        Raises:
            StateError: always; who registers queries asks `no_until` before.
        """
        raise refused("WITH VALID UNTIL")


def joined_region(region: Region) -> Region:
    """A region whose parts may go with objects: as a whole it goes with objects then, or else stands still."""
    bare = _bare(region)
    if not isinstance(bare, Combined) or bare.asks_beyond_place:
        return bare
    moves = any(isinstance(leaf, MovingRegion) for leaf in bare.leaves())
    return MovingCombined(of=bare) if moves else bare


def _bare(region: Region) -> Region:
    """The region without what says of its parts that they move."""
    if isinstance(region, MovingCombined):
        return region.of
    return region.with_parts(_bare)
