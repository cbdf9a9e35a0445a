"""Operators about where objects are: regions, neighbours, joins."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from st_common.query import near_columns
from st_common.query.complaint import Complaint
from st_common.query.neighbours import Nearest, Neighbours
from st_common.query.pair_columns import BEARING, DISTANCE, of_other
from st_common.query.plan import LayerJoin, PairJoin
from st_common.query.tree.node import Above, Column, Node, excluded, walk
from st_common.regions.region import MovingRegion, Region

_MEASURED = (
    Column(name=DISTANCE, type="DOUBLE", unit="m", nullable=False),
    Column(name=BEARING, type="DOUBLE", unit="degrees"),
)
_PLACE = (
    Column(name=near_columns.RANK, type="BIGINT", nullable=True),
    Column(name=near_columns.DISTANCE, type="DOUBLE", unit="m", nullable=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside(Above):
    """The objects inside a region, which stands still or goes with an object."""

    at: ClassVar[str] = "inside"
    parts: ClassVar[Mapping[str, str]] = {"inside": "region"}
    of_fixes: ClassVar[bool] = True
    only_selects: ClassVar[bool] = True
    region: Region

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "a moving INSIDE" if self.ticks_itself else "INSIDE"

    @property
    def ticks_itself(self) -> bool:
        """A region that goes with an object moves when that object reports."""
        return isinstance(self.region, MovingRegion)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithLayer(Above):
    """Pairs of an object and a feature of a layer; or the objects that are in one of these, or in none."""

    at: ClassVar[str] = "layer"
    parts: ClassVar[Mapping[str, str]] = {"join": "join"}
    of_fixes: ClassVar[bool] = True
    join: LayerJoin

    @property
    def noun(self) -> str:
        """See `Node`."""
        return self.join.noun

    @property
    def key(self) -> tuple[str, ...]:
        """An object that is chosen is there once, whatever it is joined with."""
        return self.input.key if self.join.chooses else (*self.input.key, "feature")

    def columns(self) -> tuple[Column, ...]:
        """Those of the object, and of a pair the feature's name."""
        feature = Column(name="feature", type="VARCHAR", nullable=False)
        return (*self.input.columns(), *(() if self.join.chooses else (feature,)))

    def refused(self) -> Iterator[Complaint]:
        """A distance is one from a point: boxes meet features, or do not. Objects are chosen by their points."""
        if self.join.is_outer:
            boxes = [one for one in walk(self.input) if one.by_boxes]
            yield from excluded(self, boxes, "it asks of fixes, which are points")
        if self.join.chooses:
            boxes = [one for one in walk(self.input) if one.by_boxes]
            yield from excluded(self, boxes, "it asks of fixes, which are points")
        elif self.join.predicate == "dwithin" and self.input.has_extent:
            message = "ST_DWithin and an enlargement exclude each other"
            hint = "ST_Intersects joins what the enlarged box meets"
            yield Complaint(at=self.at, message=message, hint=hint)
        if self.join.nearest is not None:
            yield from self._nearest_refused()

    def _nearest_refused(self) -> Iterator[Complaint]:
        """The nearest are asked for by the place of a fix, and among features that it may not be in."""
        if not self.join.chooses:
            boxes = [one for one in walk(self.input) if one.by_boxes]
            yield from excluded(self, boxes, "NEAREST asks of fixes, which are points")
        if self.join.predicate in ("intersects", "within"):
            message = "NEAREST stands beside ST_DWithin or a key alone"
            hint = "what an object is in is 0 m away, and so among the nearest"
            yield Complaint(at=self.at, message=message, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithObjects(Above):
    """Pairs of two objects of one stream; the conditions so far are on the first, on the other, or on both of them."""

    at: ClassVar[str] = "layer"
    parts: ClassVar[Mapping[str, str]] = {"pairs": "join"}
    of_fixes: ClassVar[bool] = True
    other: Node
    join: PairJoin

    @classmethod
    def above(cls, rows: Node, said: Mapping[str, Any], source: Node) -> Self:
        """See `Above`: the others are all objects of the stream."""
        return cls(input=rows, other=source, join=said["pairs"])

    @property
    def noun(self) -> str:
        """See `Node`."""
        return self.join.noun

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The first objects, and the others."""
        return self.input, self.other

    @property
    def key(self) -> tuple[str, ...]:
        """An object that is chosen is there once, however many others there are for it."""
        return (
            self.input.key if self.join.chooses else (*self.input.key, "other object")
        )

    @property
    def ticks_itself(self) -> bool:
        """Pairs are of last fixes at one time."""
        return True

    def refused(self) -> Iterator[Complaint]:
        """Of the nearest others of an object all must be told, and all others be known: the region stands still."""
        if self.join.nearest is None:
            return
        if self.join.chooses:
            message = "NEAREST and EXISTS exclude each other"
            hint = "who has a nearest one has one: leave NEAREST out"
            yield Complaint(at=self.at, message=message, hint=hint)
        moving = [one for one in walk(self.input) if one.noun == "a moving INSIDE"]
        yield from excluded(self, moving, "a region that stands still goes with it")

    def columns(self) -> tuple[Column, ...]:
        """Those of the first object; of a pair the other's id, and what else expressions may name of the two."""
        if self.join.chooses:
            return self.input.columns()
        other = Column(name="other object", type="VARCHAR", nullable=False)
        of_other_one = (
            replace(one, name=of_other(one.name)) for one in self.other.columns()
        )
        return (*self.input.columns(), other, *of_other_one, *_MEASURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Near(Above):
    """The nearest objects to a place, to an object, or to several of these; or those to which one is the nearest."""

    at: ClassVar[str] = "knn"
    parts: ClassVar[Mapping[str, str]] = {"neighbours": "neighbours"}
    of_fixes: ClassVar[bool] = True
    neighbours: Neighbours

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "KNN"

    @property
    def ticks_itself(self) -> bool:
        """Who is nearest depends on all others at that time."""
        return True

    def columns(self) -> tuple[Column, ...]:
        """Those of the object; with one place, which of the nearest it is and how far away."""
        place = _PLACE if isinstance(self.neighbours, Nearest) else ()
        return (*self.input.columns(), *place)

    def refused(self) -> Iterator[Complaint]:
        """Neighbours are objects, and are searched among all that satisfy what is below."""
        others = [one for one in walk(self.input) if isinstance(one, WithObjects)]
        hint = "who is nearest is searched before it is known who has a partner"
        choosing = [one for one in others if one.join.chooses]
        yield from excluded(self, choosing, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Until(Above):
    """Members, each with the event time until which it stays one if both go on as they do."""

    at: ClassVar[str] = "emit"
    parts: ClassVar[Mapping[str, str]] = {"valid_until": "valid_until"}
    of_fixes: ClassVar[bool] = True
    valid_until: bool = True

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "WITH VALID UNTIL"

    @property
    def ticks_itself(self) -> bool:
        """The time is told again when it becomes another one."""
        return True

    def columns(self) -> tuple[Column, ...]:
        """Those of the member, and the time."""
        until = Column(name="valid_until", type="TIMESTAMP")
        return (*self.input.columns(), until)

    def refused(self) -> Iterator[Complaint]:
        """It needs a region whose border can be reached, and members that are objects at their last fix."""
        hint = "it says until when an object stays in the region of INSIDE"
        below = list(walk(self.input))
        regions = [node.region for node in below if isinstance(node, Inside)]
        if not regions:
            message = "WITH VALID UNTIL needs INSIDE"
            yield Complaint(at=self.at, message=message, hint=hint)
        others = [one for one in below if not (one.only_selects or one.gives_events)]
        yield from excluded(self, others, hint)
        for why in (region.no_until for region in regions if region.no_until):
            message = f"WITH VALID UNTIL and {why} exclude each other"
            yield Complaint(at=self.at, message=message, hint=hint)


def keeping_all(below: Iterable[Node]) -> list[Node]:
    """The joins among some operators that leave no object out: these have no border, and choose nobody."""
    return [one for one in below if isinstance(one, WithLayer) and one.join.is_outer]
