"""What everybody may ask of a region: one that stands still at a place, or one that goes with an object.

```
    Region        its text, its words, its lengths, what is wrong with it
    ├── StillRegion     indexes over many, borders, bounds, an outline: box, circle, area
    └── Moving    its object, its size, the region that it is now:   moving box, moving circle
```

A new region is a module here that has one of the two, its reference beside it, and a line in the registry.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self

if TYPE_CHECKING:  # values are read and written by programs that never start a kernel
    import numpy as np
    import shapely

    from st_common.geometry.borders import Segments
    from st_common.geometry.space import Space
    from st_common.geometry.until import Motion

Drawn = Literal["rectangle", "ellipse", "outline"]
"""How a map shows a region: within its bounds, or along its outline."""


Limits = Mapping[str, dict[str, Any]]
"""What values fields take, as JSON Schema says it, by field."""


class Wrong(NamedTuple):
    """What is wrong with a region, and what to do."""

    message: str
    hint: str = ""


class ShapeError(ValueError):
    """A text that is no shape, or none of a region: what is wrong, and what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Checks(Protocol):
    """Makes values of what a program gave, or refuses it with an error that names the step of the program."""

    def number(self, value: Any, what: str) -> float:
        """A finite number."""

    def metres(self, value: Any, what: str) -> float:
        """A length of 0 or more, in metres."""

    def text(self, value: Any, what: str) -> str:
        """A text that is not empty."""

    def refuse_unless(self, fits: bool, message: str, hint: str = "") -> None:  # noqa: FBT001 - it reads as `unless x`
        """Refuses the value unless all is well."""


class Index(Protocol):
    """Finds which of many regions contain points."""

    def probe(
        self, x: "np.ndarray", y: "np.ndarray"
    ) -> "tuple[np.ndarray, np.ndarray]":
        """All pairs `(point_idx, region_idx)`, int64, sorted; each once. Borders belong to regions."""


class Borders(Protocol):
    """The borders of many regions of one kind, in the order in which they are given."""

    def near(
        self,
        which: "np.ndarray",
        x: "np.ndarray",
        y: "np.ndarray",
        distance_m: "np.ndarray",
    ) -> "np.ndarray":
        """For each pair of a region and a point outside it whether the point is so near to it; bool[n]."""

    def met_by(self, segments: "Segments") -> "tuple[np.ndarray, np.ndarray]":
        """All pairs of a segment and a region that have a point in common, sorted; each once."""


class Extents(NamedTuple):
    """How large a region around an object is: two sides, in metres or in coordinates, or a radius."""

    width: float = 0.0
    height: float = 0.0
    metres: bool = False
    radius_m: float = 0.0


class Region(ABC):
    """A region of a query, as a value: equal regions are one.

    Attributes:
        kind: its name in JSON; of one that moves also that of its kind of the skeleton.
        noun: what it is called in `explain`.
        limits: what values its fields take in JSON, as JSON Schema says it, by field.
        drawn: how a map shows it.
        no_until: what cannot be said together with WITH VALID UNTIL; empty where that can be said.
    """

    __slots__ = ()
    kind: ClassVar[str]
    noun: ClassVar[str]
    limits: ClassVar[Limits] = {}
    drawn: ClassVar[Drawn]

    @abstractmethod
    def text(self) -> str:
        """The region as it stands behind INSIDE; read again it is equal."""

    @abstractmethod
    def words(self) -> str:
        """The region in words, for `explain`: "circle of 500 m around 3 4"."""

    @abstractmethod
    def holds(self) -> str:
        """What is so of an object in it, for `why`: "within 500 m of (3, 4)"."""

    @abstractmethod
    def checked(self, checks: Checks) -> "Region":
        """The region in its canonical form, when a program made it by hand."""

    def wrong_anywhere(self) -> Iterable[Wrong]:
        """What is wrong with it while nobody knows whether its numbers are degrees."""
        return ()

    def wrong_in(self, space: "Space") -> Iterable[Wrong]:  # noqa: ARG002 - most have no places of their own
        """What is wrong with it on a stream of this space."""
        return ()

    def in_units(self, unit_m: float) -> "Region":  # noqa: ARG002 - most have no lengths
        """The region with its lengths in a unit of so many metres: as coordinates of a plane are."""
        return self

    @property
    def no_until(self) -> str:
        """What of it excludes WITH VALID UNTIL; empty where it can be said until when a member stays."""
        return ""


class StillRegion(Region):
    """A region whose anchor is a place: it stands still."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:
        """An index of many regions of this kind, exact."""

    @classmethod
    @abstractmethod
    def borders(cls, regions: Sequence[Self], *, space: "Space") -> Borders:
        """The borders of many regions of this kind."""

    @classmethod
    @abstractmethod
    def bounds(cls, regions: Sequence[Self], *, space: "Space") -> "np.ndarray":
        """The boxes around regions, float64[n, 4]: minx, miny, maxx, maxy, in coordinates."""

    @abstractmethod
    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """The region as a shape to draw, in coordinates."""

    @abstractmethod
    def until(
        self, members: "Motion", at_s: "np.ndarray", *, space: "Space"
    ) -> "np.ndarray":
        """The second until which each member, as it goes on, stays inside; float64[n], infinite for ever, NaN unknown.

        Nobody asks where `no_until` says something.
        """


class MovingRegion(Region):
    """A region whose anchor is an object: it goes with its `focal` object, in whose place it has its middle."""

    __slots__ = ()
    focal: str

    @property
    @abstractmethod
    def extents(self) -> Extents:
        """How large it is."""

    @abstractmethod
    def standing(self, x: float, y: float, *, space: "Space") -> StillRegion:
        """The region while its object is at a place."""

    @abstractmethod
    def until(
        self, members: "Motion", focal: "Motion", at_s: "np.ndarray", *, space: "Space"
    ) -> "np.ndarray":
        """As of `StillRegion`, while the focal object goes on as well; one motion of it for each member."""
