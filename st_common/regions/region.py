"""What everybody may ask of a region: one that stands still at a place, or one that goes with an object.

```
    Region        its text, its words, its lengths, what is wrong with it
    ├── StillRegion     indexes over many, borders, bounds, an outline:      box, circle, area
    └── MovingRegion    its objects, the region that it is now:              AND, OR, NOT with such regions
        └── AroundObject    its object, its size:                            moving box, moving circle
```

A new region is a module here that has one of the two, its reference beside it, and a line in the registry.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self

from st_common.errors import StateError

if TYPE_CHECKING:  # values are read and written by programs that never start a kernel
    import numpy as np
    import shapely

    from st_common.geometry.borders import Segments
    from st_common.geometry.elements import Tested
    from st_common.geometry.space import Space
    from st_common.geometry.until import Motion

Drawn = Literal["rectangle", "ellipse", "outline"]
"""How a map shows a region: within its bounds, or along its outline."""


Places = Mapping[str, tuple[float, float]]
"""Where objects are, by id: x and y in coordinates."""


Limits = Mapping[str, dict[str, Any]]
"""What values fields take, as JSON Schema says it, by field."""


class Wrong(NamedTuple):
    """What is wrong with a region, and what to do."""

    message: str
    hint: str = ""


class ShapeError(ValueError):
    """A text that is no shape, or none of a region.

    Attributes:
        message: what is wrong.
        hint: what to do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Checks(Protocol):
    """Makes values of what a program gave, or refuses it with an error that names the step of the program.

    `what` says in words what the value is for: "a radius".
    """

    def number(self, value: Any, what: str) -> float:
        """The value as a finite number."""

    def metres(self, value: Any, what: str) -> float:
        """The value as a length of 0 or more, in metres."""

    def text(self, value: Any, what: str) -> str:
        """The value as a text that is not empty."""

    def refuse_unless(self, fits: bool, message: str, hint: str = "") -> None:  # noqa: FBT001 - it reads as `unless x`
        """Refuses the value unless all is well."""


class Index(Protocol):
    """Finds which of many regions contain points; immutable, built once."""

    def probe(
        self, x: "np.ndarray", y: "np.ndarray"
    ) -> "tuple[np.ndarray, np.ndarray]":
        """All pairs of a point and a region that contains it; borders belong to regions.

        Args:
            x: float64[m], any values; NaN lies nowhere.
            y: float64[m].

        Returns:
            `(point_idx, region_idx)`, int64, sorted by point, then region; each pair once.
        """


class Borders(Protocol):
    """The borders of many regions of one kind, in the order in which they are given."""

    def near(
        self,
        which: "np.ndarray",
        x: "np.ndarray",
        y: "np.ndarray",
        distance_m: "np.ndarray",
    ) -> "np.ndarray":
        """Whether the point of each pair is so near to the region; bool[n]. Points inside are not asked about.

        Args:
            which: int64[n], the region of each pair, by its place.
            x: float64[n], outside of that region; `y` likewise.
            y: see `x`.
            distance_m: float64[n], metres, of planes in their unit; closed.
        """

    def met_by(self, segments: "Segments") -> "tuple[np.ndarray, np.ndarray]":
        """All pairs of a segment and a region that have a point in common.

        Returns:
            Two int64 arrays, sorted by segment, then region; each pair once.
        """

    def meet(self, which: "np.ndarray", segments: "Segments") -> "np.ndarray":
        """Whether the segment of each pair has a point in common with its region (int64[n], by place); bool[n]."""


class Exits(Protocol):
    """The ways out of many regions of one kind that stand still, in the order in which they are given."""

    def until(
        self, which: "np.ndarray", members: "Motion", at_s: "np.ndarray"
    ) -> "np.ndarray":
        """Until when each member stays in its region, as it goes on.

        Args:
            which: int64[n], the region of each member, by its place.
            members: n members, as they are at `at_s`, in their regions.
            at_s: float64[n], seconds.

        Returns:
            float64[n], seconds: infinite for one that stays for ever, NaN where its velocity is not known.
        """


class MovingExits(Protocol):
    """The ways out of many regions of one kind that go with objects, in the order in which they are given."""

    def until(
        self,
        which: "np.ndarray",
        members: "Motion",
        focal: "Motion",
        at_s: "np.ndarray",
    ) -> "np.ndarray":
        """Until when each member stays in its region, while the focal object goes on as well.

        Args:
            which: int64[n], the region of each member, by its place.
            members: n members, as they are at `at_s`, in their regions.
            focal: n motions, of the focal object of each member's region.
            at_s: float64[n], seconds.

        Returns:
            float64[n], as of `Exits.until`.
        """


class Extents(NamedTuple):
    """How large a region around an object is.

    Attributes:
        width: of a rectangle, its full side along x; `height` along y.
        metres: whether these are metres; else they are coordinates.
        radius_m: of a circle, metres or the unit of the plane.
    """

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
        no_border: what cannot be said together with a hysteresis and CROSS; empty where these can be said.
        asks_beyond_place: whether the place of a fix alone does not say if it is in: where it came from, or its extent,
            does.
        joined_by: how it is made of others, its `operands`: those that are in all, in any, or not in one of them.
    """

    __slots__ = ()
    kind: ClassVar[str]
    noun: ClassVar[str]
    limits: ClassVar[Limits] = {}
    drawn: ClassVar[Drawn]
    asks_beyond_place: ClassVar[bool] = False
    joined_by: ClassVar[Literal["", "all", "any", "not"]] = ""

    @property
    def operands(self) -> "tuple[Region, ...]":
        """The regions that it is made of, as they are written; none of most."""
        return ()

    @abstractmethod
    def text(self) -> str:
        """The region as it stands behind INSIDE; read again it is equal."""

    def clause(self) -> str:
        """The clause that says it: `INSIDE` and its text, for most."""
        return f"INSIDE {self.text()}"

    @abstractmethod
    def words(self) -> str:
        """The region in words, for `explain`: "circle of 500 m around 3 4"."""

    @abstractmethod
    def holds(self) -> str:
        """What is so of an object in it, for `why`: "within 500 m of (3, 4)"."""

    @abstractmethod
    def checked(self, checks: Checks) -> "Region":
        """The region in its canonical form, when a program made it by hand.

        Args:
            checks: makes numbers, lengths and texts of its fields, or refuses them.
        """

    def wrong_anywhere(self) -> Iterable[Wrong]:
        """What is wrong with it while nobody knows whether its numbers are degrees."""
        return ()

    def wrong_in(self, space: "Space") -> Iterable[Wrong]:  # noqa: ARG002 - most have no places of their own
        """What is wrong with it on a stream of this space."""
        return ()

    def in_units(self, unit_m: float) -> "Region":  # noqa: ARG002 - most have no lengths
        """The region with its lengths in the unit of a plane; coordinates stay as they are.

        Args:
            unit_m: how many metres a unit is: in feet a radius of 3.048 m becomes 10 where it is 0.3048.
        """
        return self

    @property
    def no_until(self) -> str:
        """What of it excludes WITH VALID UNTIL; empty where it can be said until when a member stays."""
        return ""

    @property
    def no_border(self) -> str:
        """What of it excludes a hysteresis and CROSS; empty where it is known how far it is, and which ways meet it."""
        return ""

    def leaves(self) -> "Iterator[Region]":
        """The regions that it is made of, in order; itself, where it is made of no others."""
        yield self

    def with_parts(self, change: "Callable[[Region], Region]") -> "Region":  # noqa: ARG002 - most have no parts
        """The same region made of others; itself, where it is made of none.

        Args:
            change: the region in the place of each part.
        """
        return self


class StillRegion(Region):
    """A region whose anchor is a place: it stands still.

    Attributes:
        takes_extents: whether elements with an extent are held against it; then it has `for_extents`.
    """

    __slots__ = ()
    takes_extents: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def index(cls, regions: Sequence[Self], *, space: "Space") -> Index:
        """An index of many regions of this kind, exact; pairs name them by their places."""

    @classmethod
    def for_extents(cls, regions: Sequence[Self], *, space: "Space") -> "Tested":  # noqa: ARG003
        """Many regions of this kind that extents of elements are held against; pairs name them by their places.

        Raises:
            StateError: regions of this kind take none.
        """
        raise StateError(f"a {cls.noun} is not held against the extents of elements")

    @classmethod
    @abstractmethod
    def borders(cls, regions: Sequence[Self], *, space: "Space") -> Borders:
        """The borders of many regions of this kind; pairs name them by their places."""

    @classmethod
    @abstractmethod
    def bounds(cls, regions: Sequence[Self], *, space: "Space") -> "np.ndarray":
        """The boxes around regions, float64[n, 4]: minx, miny, maxx, maxy, in coordinates."""

    @abstractmethod
    def outline(self, *, space: "Space") -> "shapely.Geometry":
        """The region as a shape to draw, in coordinates."""

    @classmethod
    @abstractmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> Exits:
        """The ways out of many regions of this kind; who registers queries asks `no_until` before."""


class MovingRegion(Region):
    """A region that goes with objects."""

    __slots__ = ()

    @property
    @abstractmethod
    def focals(self) -> tuple[str, ...]:
        """The ids of the objects that it goes with, each once, in the order in which they are written."""

    @abstractmethod
    def standing(self, places: Places, *, space: "Space") -> StillRegion:
        """The region while its objects are at places: it stands still, and may be drawn or asked as any other.

        Args:
            places: x and y of each object that it goes with.
            space: what coordinates mean.
        """

    @classmethod
    @abstractmethod
    def exits(cls, regions: Sequence[Self], *, space: "Space") -> MovingExits:
        """The ways out of many regions of this kind; who registers queries asks `no_until` before."""


class AroundObject(MovingRegion):
    """A region whose anchor is an object: it goes with its `focal` object (an id), in whose place it has its middle."""

    __slots__ = ()
    focal: str

    @property
    def focals(self) -> tuple[str, ...]:
        """See `MovingRegion`."""
        return (self.focal,)

    @property
    @abstractmethod
    def extents(self) -> Extents:
        """How large it is."""

    def standing(self, places: Places, *, space: "Space") -> StillRegion:
        """See `MovingRegion`."""
        return self.at_place(*places[self.focal], space=space)

    @abstractmethod
    def at_place(self, x: float, y: float, *, space: "Space") -> StillRegion:
        """The region while its object is at a place."""
