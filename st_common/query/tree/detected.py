"""Events at the border of a region, or at those of features (SPEC X3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from st_common.query.complaint import Complaint
from st_common.query.fence import Fence
from st_common.query.tree.node import EVENT, Above, Column, beside, excluded, walk
from st_common.query.tree.spatial import Inside, WithLayer, keeping_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected(Above):
    """Events at the one border below: found fix by fix of each object, or at ticks where the border moves."""

    at: ClassVar[str] = "detect"
    parts: ClassVar[Mapping[str, str]] = {"fence": "fence"}
    of_fixes: ClassVar[bool] = True
    gives_events: ClassVar[bool] = True
    fence: Fence

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "DETECT"

    def columns(self) -> tuple[Column, ...]:
        """Those of the object, and what is known of the event."""
        return beside(self.input.columns(), self.event_columns())

    def event_columns(self) -> tuple[Column, ...]:
        """What happened, how long the visit was (`value`, with EXIT and DWELL), and where."""
        return EVENT

    def refused(self) -> Iterator[Complaint]:
        """It needs one border, and rows that are points of objects."""
        below = list(walk(self.input))
        regions = [one for one in below if isinstance(one, Inside)]
        layers = [one for one in below if isinstance(one, WithLayer)]
        pairing = [layer for layer in layers if not layer.join.chooses]
        yield from self._number_of_borders(len(regions) + len(pairing))
        if any(region.ticks_itself for region in regions):
            yield from _at_moving_region(self.fence)
        for why in (one.region.no_border for one in regions if one.region.no_border):
            yield from _without_border(self.fence, why)
        for layer in pairing:
            yield from self._at_features(layer)
        hint = "who is at no feature is at no border: JOIN without LEFT"
        yield from excluded(self, keeping_all(below), hint)
        choosing = [layer for layer in layers if layer.join.chooses]
        others = [one for one in below if one.ticks_itself or one.by_boxes]
        for other in (one for one in [*others, *choosing] if one not in regions):
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
        if layer.join.nearest is not None:
            message = "DETECT and NEAREST exclude each other"
            hint = "who is among the nearest has no border; SELECT .. JOIN tells who comes and goes"
            yield Complaint(at=layer.at, message=message, hint=hint)
        if "outside" in self.fence.events:
            message = f"OUTSIDE and {layer.noun} exclude each other: outside of which feature?"
            hint = "EXIT tells of each feature that an object leaves"
            yield Complaint(at=self.at, message=message, hint=hint)


def _at_moving_region(fence: Fence) -> Iterator[Complaint]:
    """What has no meaning where a border moves: it is judged at ticks, and objects cross it without a fix of theirs."""
    if "cross" in fence.events:
        message = f"CROSS and {_MOVING} exclude each other: both move between two fixes"
        hint = "ENTER tells who is inside at a tick"
        yield Complaint(at="detect", message=message, hint=hint)
    if "outside" in fence.events:
        message = f"OUTSIDE and {_MOVING} exclude each other: all others are outside"
        hint = "EXIT tells of each object that leaves"
        yield Complaint(at="detect", message=message, hint=hint)
    if fence.max_gap_s is not None:
        message = f"max_gap is about CROSS, which {_MOVING} does not have"
        yield Complaint(at="options", message=message, hint="leave it out")
    for name in ("enter_after", "exit_after"):
        if getattr(fence, name).fixes > 1:
            message = (
                f"{name} counts no fixes at {_MOVING}: who is inside is judged at ticks"
            )
            yield Complaint(at="options", message=message, hint=f"{name} = 10 s")


def _without_border(fence: Fence, why: str) -> Iterator[Complaint]:
    """What has no meaning where nobody knows how far the border is, and which ways meet it."""
    if fence.hysteresis_m > 0:
        message = f"hysteresis and {why} exclude each other"
        hint = "enter_after and exit_after take their place"
        yield Complaint(at="options", message=message, hint=hint)
    if "cross" in fence.events:
        message = f"CROSS and {why} exclude each other"
        hint = "ENTER and EXIT tell of fixes inside"
        yield Complaint(at="detect", message=message, hint=hint)


_MOVING = "a region that goes with an object"
