"""Regions made of others: the intersection (AND), the union (OR) and the complement (NOT) of regions that stand still.

```
    a AND NOT b       +--------+         borders belong to regions, so that of b does not belong to NOT b
                      |  a  +--|----+
                      |     |  |  b |    what contains a point is what its parts say, joined
                      +-----+--+    |
                            +-------+
```
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from st_common.regions.combining import Combined, OfOne
from st_common.regions.region import Borders, Limits, Region

if TYPE_CHECKING:
    import numpy as np
    import shapely

    from st_common.geometry.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class _Several(Combined):
    """A region made of several others, joined by one word.

    Attributes:
        parts: at least two regions that stand still.
        word: what stands between them in texts.
    """

    limits: ClassVar[Limits] = {"parts": {"minItems": 2}}
    word: ClassVar[str]

    parts: tuple[Region, ...]

    @property
    def operands(self) -> tuple[Region, ...]:
        """See `Region`."""
        return self.parts

    def with_operands(self, operands: tuple[Region, ...]) -> Self:
        """See `Combined`."""
        return replace(self, parts=operands)

    def operation(self) -> str:
        """`(0, 0, 5, 5) AND NOT CIRCLE (3, 4, 500 m)`, `(0, 0, 5, 5) OR depot`."""
        return f" {self.word} ".join(map(_operand, self.parts))

    def words(self) -> str:
        """`box 0 0, 5 5 and not circle of 500 m around 3 4`."""
        return self._joined(_said(part, part.words()) for part in self.parts)

    def holds(self) -> str:
        """`inside the rectangle (0, 0) to (5, 5) and not within 500 m of (3, 4)`."""
        return self._joined(_said(part, part.holds()) for part in self.parts)

    def _joined(self, words: Iterable[str]) -> str:
        return f" {self.word.lower()} ".join(words)

    def _bounds_of_parts(self, space: "Space") -> "np.ndarray":
        """Float64[n, 4], a row for each part."""
        import numpy as np

        from st_common.regions.combined_shapes import bounds_of

        return np.array([bounds_of(part, space) for part in self.parts])

    def _drawn_parts(self, space: "Space") -> "list[shapely.Geometry]":
        from st_common.regions.combined_shapes import drawn_shape

        return [drawn_shape(part, space) for part in self.parts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intersection(_Several):
    """All points that are in each of some regions: a AND b."""

    kind = "intersection"
    joined_by = "all"
    noun = "region of AND"
    word = "AND"

    def bounds_of_one(self, space: "Space") -> "np.ndarray":
        """What the bounds of its parts have in common."""
        import numpy as np

        boxes = self._bounds_of_parts(space)
        low, high = boxes[:, :2].max(axis=0), boxes[:, 2:].min(axis=0)
        if (low > high).any():
            return np.array([np.inf, np.inf, -np.inf, -np.inf])
        return np.concatenate([low, high])

    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """What its parts have in common, drawn."""
        import shapely

        return shapely.intersection_all(self._drawn_parts(space))


@dataclass(frozen=True, slots=True, kw_only=True)
class Union(_Several):
    """All points that are in one of some regions at least: a OR b."""

    kind = "union"
    joined_by = "any"
    noun = "region of OR"
    word = "OR"

    @property
    def no_border(self) -> str:
        """What is near to one of its parts is near to it: it has a border where all of them have."""
        return next((why for part in self.parts if (why := part.no_border)), "")

    @classmethod
    def borders(cls, regions: Sequence[Self], *, space: "Space") -> Borders:
        """Those of its parts together."""
        from st_common.regions.united import United

        return United(regions, space=space)

    def bounds_of_one(self, space: "Space") -> "np.ndarray":
        """The box around the bounds of its parts."""
        import numpy as np

        boxes = self._bounds_of_parts(space)
        return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])

    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """Its parts together, drawn."""
        import shapely

        return shapely.union_all(self._drawn_parts(space))


@dataclass(frozen=True, slots=True, kw_only=True)
class Complement(OfOne):
    """All points that are not in a region: NOT a. The border of `a` belongs to `a`, and not to it.

    Attributes:
        part: a region that stands still.
    """

    kind = "complement"
    joined_by = "not"
    noun = "region of NOT"

    def operation(self) -> str:
        """`NOT (0, 0, 5, 5)`."""
        return f"NOT {self.part.text()}"

    def words(self) -> str:
        """`not box 0 0, 5 5`."""
        return f"not {_said(self.part, self.part.words())}"

    def holds(self) -> str:
        """`not inside the rectangle (0, 0) to (5, 5)`."""
        return f"not {_said(self.part, self.part.holds())}"

    def bounds_of_one(self, space: "Space") -> "np.ndarray":
        """Everywhere."""
        import numpy as np

        from st_common.regions.combined_shapes import everywhere

        return np.array(everywhere(space, np.inf))

    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """All but its part, drawn."""
        import shapely

        from st_common.regions.combined_shapes import FAR, drawn_shape, everywhere

        around = shapely.box(*everywhere(space, FAR))
        return shapely.difference(around, drawn_shape(self.part, space))


def _operand(part: Region) -> str:
    """A part as it stands beside AND and OR: NOT binds more than these."""
    return part.operation() if isinstance(part, Complement) else part.text()


def _said(part: Region, words: str) -> str:
    """The words of a part among others."""
    several = isinstance(part, Combined) and not isinstance(part, Complement)
    return f"({words})" if several else words
