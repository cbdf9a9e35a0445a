"""WILL ENTER: who is not in a region yet, and meets it within a time if it goes on as it does (docs/adr/0033).

```
    BY HEADING                                 BY SPEED
                     +--------+                    . - - - - .
    o ----------------->  r   |                .  +--------+   .     who can be there in time, wherever it turns:
      v * within     |        |                .  |   r    |  o      as near to the border as it goes in that time
                     +--------+                 ' +--------+ '
```
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from st_common.errors import StateError
from st_common.regions.combining import OfOne
from st_common.regions.region import Checks, Index, Limits, MovingRegion, Wrong
from st_common.written import number

if TYPE_CHECKING:
    import numpy as np
    import shapely

    from st_common.geometry.space import Space

By = Literal["heading", "speed"]

STANDS = (
    "WILL ENTER asks about a region that stands still, and this one goes with an object"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast(OfOne):
    """The fixes outside of a region that meet it within a time.

    Attributes:
        part: a region that stands still and has a border.
        within_s: seconds from the fix on, above 0.
        by: `heading`, straight on with the velocity since the reading before; `speed`, anywhere that it can be.
    """

    kind = "forecast"
    noun = "forecast of a region"
    asks_beyond_place: ClassVar[bool] = True
    limits: ClassVar[Limits] = {"within_s": {"exclusiveMinimum": 0}}

    within_s: float
    by: By = "heading"

    def text(self) -> str:
        """`WILL ENTER (0, 0, 5, 5) WITHIN 600 s`: a clause by itself, in no other region."""
        return self.operation()

    def clause(self) -> str:
        """See `text`."""
        return self.text()

    def operation(self) -> str:
        """See `text`."""
        by = " BY SPEED" if self.by == "speed" else ""
        return f"WILL ENTER {self.part.text()} WITHIN {number(self.within_s)} s{by}"

    def words(self) -> str:
        """`what enters box 0 0, 5 5 within 600 s by its heading`."""
        return f"what enters {self.part.words()} within {number(self.within_s)} s by its {self.by}"

    def holds(self) -> str:
        """`not yet, but within 600 s by its heading, inside the rectangle (0, 0) to (5, 5)`."""
        return f"not yet, but within {self.within_s:g} s by its {self.by}, {self.part.holds()}"

    def checked(self, checks: Checks) -> Self:
        """The same of a region in its canonical form."""
        within_s = checks.number(self.within_s, "a time")
        checks.refuse_unless(within_s > 0, "WITHIN is a time above 0")
        checks.refuse_unless(self.by in ("heading", "speed"), f"by {self.by!r}")
        checks.refuse_unless(not isinstance(self.part, MovingRegion), STANDS)
        known = OfOne.checked(self, checks)
        return replace(known, within_s=within_s)

    def wrong_in(self, space: "Space") -> Iterator[Wrong]:
        """What is wrong with its region, and that it goes with an object."""
        if isinstance(self.part, MovingRegion):
            yield Wrong(STANDS)
        yield from self.part.wrong_in(space)

    @property
    def no_until(self) -> str:
        """Who is in it is not in the region yet."""
        return "WILL ENTER"

    @property
    def no_border(self) -> str:
        """It is of places with velocities, and has no border among places alone."""
        return "WILL ENTER"

    @classmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:  # noqa: ARG003
        """Refused: a place says nothing without its velocity.

        Raises:
            StateError: always; who matches asks `operators.matching.forecasts`.
        """
        raise StateError(
            "WILL ENTER asks of velocities, and places alone were given",
            hint="a newer version of Fairway registered the query: go on with that version",
        )

    def bounds_of_one(self, space: "Space") -> "np.ndarray":
        """Those of the region."""
        from st_common.regions.combined_shapes import bounds_of

        return bounds_of(self.part, space)

    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """That of the region."""
        from st_common.regions.combined_shapes import drawn_shape

        return drawn_shape(self.part, space)
