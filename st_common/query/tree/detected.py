"""Events at the border of a region, or at those of features (SPEC X3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from st_common.query.complaint import Complaint
from st_common.query.fence import Fence
from st_common.query.tree.node import Above, Column, Node, walk
from st_common.query.tree.spatial import Inside, WithLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected(Above):
    """Events at the one border below, found by the points of each object, fix by fix."""

    at: ClassVar[str] = "detect"
    parts: ClassVar[Mapping[str, str]] = {"fence": "fence"}
    gives_events: ClassVar[bool] = True
    fence: Fence

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "DETECT"

    def columns(self) -> tuple[Column, ...]:
        """Those of the object, what happened, and how long the visit was (with EXIT and DWELL)."""
        return (
            *self.input.columns(),
            Column(name="event", type="VARCHAR", nullable=False),
            Column(name="inside_s", type="DOUBLE", unit="s"),
        )

    def refused(self) -> Iterator[Complaint]:
        """It needs one border, and rows that are points of objects, judged fix by fix."""
        below = list(walk(self.input))
        regions = [one for one in below if isinstance(one, Inside)]
        layers = [one for one in below if isinstance(one, WithLayer)]
        yield from self._number_of_borders(len(regions) + len(layers))
        for region in (one for one in regions if one.ticks_itself):
            yield _moving(region)
        for layer in layers:
            yield from self._at_features(layer)
        others = [one for one in below if one.ticks_itself or one.by_boxes]
        for other in (one for one in others if one not in regions):
            message = f"{other.noun} and {self.noun} exclude each other"
            hint = "register one query for each"
            yield Complaint(at=other.at, message=message, hint=hint)

    def _number_of_borders(self, count: int) -> Iterator[Complaint]:
        """That there is no border, or more than one."""
        if count == 0:
            message = "DETECT needs INSIDE, or a JOIN with a layer"
            hint = "INSIDE region DETECT ENTER, EXIT"
            yield Complaint(at=self.at, message=message, hint=hint)
        if count > 1:
            message = "DETECT at a region and at the features of a layer is ambiguous"
            hint = "leave out INSIDE or JOIN"
            yield Complaint(at=self.at, message=message, hint=hint)

    def _at_features(self, layer: WithLayer) -> Iterator[Complaint]:
        """That features have no border that objects could cross, or too many to be outside of."""
        if layer.join.predicate == "equals":
            message = "DETECT needs a join by place, not one by key"
            hint = "ON ST_Intersects(stream, layer)"
            yield Complaint(at=layer.at, message=message, hint=hint)
        if "outside" in self.fence.events:
            message = f"OUTSIDE and {layer.noun} exclude each other: outside of which feature?"
            hint = "EXIT tells of each feature that an object leaves"
            yield Complaint(at=self.at, message=message, hint=hint)


def _moving(region: Node) -> Complaint:
    """That a border moves, so that objects cross it without a fix."""
    return Complaint(
        at=region.at,
        message="DETECT at a region that goes with an object is planned",
        hint="without DETECT the query tells who comes in and who leaves",
    )
