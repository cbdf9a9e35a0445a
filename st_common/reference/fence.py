"""DETECT: where fixes are as a fence sees them, and what they make of a visit (docs/adr/0024, SPEC X3).

One machine for each object and target, the region or a feature of the layer:

    out --( enter_after IN fixes in a row )--> in
    in  --( exit_after OUT fixes in a row )--> out        NEAR fixes speak for neither
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import shapely

from st_common.query.fence import Debounce, Event, Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.crossing import passed
from st_common.reference.layer_join import meant
from st_common.reference.members import FeaturesOf, joined, qualified
from st_common.reference.metric import (
    Floats,
)
from st_common.reference.pair_join import Joined
from st_common.regions.registry import Area, Box, Circle, Combined, Corridor, Union

Side = Literal["in", "near", "out"]
Partners = Mapping[int, Mapping[str | None, bool]]
"""By the row of a fix the targets that something holds for, and whether that is beyond doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Fixes as a fence sees them: in which targets, `near` which (or in), and which the way to them passes through."""

    inside: Partners
    near: Partners
    passed: Partners

    def side(self, row: int, target: str | None) -> Side:
        """Where a fix is."""
        if target in self.inside.get(row, {}):
            return "in"
        return "near" if target in self.near.get(row, {}) else "out"

    def is_sure(self, row: int, target: str | None) -> bool:
        """Whether that is beyond doubt, and so is whether the way to the fix passes through."""
        parts = (part.get(row, {}) for part in (self.inside, self.near, self.passed))
        return all(part.get(target, True) for part in parts)

    def has_to_do(self, row: int) -> bool:
        """Whether a fix is in, near or past any target, or may be."""
        return row in self.inside or row in self.near or row in self.passed

    def targets(self, row: int) -> set[str | None]:
        """The targets that a fix has to do with."""
        return {*self.inside.get(row, {}), *self.passed.get(row, {})}


def seen(
    plan: Plan, fixes: Fixes, before: tuple[Floats, Floats], features: FeaturesOf
) -> Seen:
    """What a fence sees of fixes; `before` is where each object was a fix earlier in its stay, NaN where that is none.

    Whoever does not satisfy the condition is out, however near.
    """
    inside = _inside(plan, fixes, targets_of(plan, features))
    near, met = list[Joined](), list[Joined]()
    for part in _parts_of(plan):
        targets = targets_of(part, features)
        near.append(_near(part, fixes, targets))
        met.append(passed(part, fixes, before, targets))
    return Seen(inside=by_row(inside), near=by_row(*near), passed=by_row(*met))


def _parts_of(plan: Plan) -> list[Plan]:
    """The same fence around each part of OR of regions: who is near to one is near to all; else the fence itself."""
    region, fence = plan.inside, plan.fence
    asks = fence is not None and fence.asks_for_border and plan.join is None
    if not asks or not isinstance(region, Union):
        return [plan]
    return [replace(plan, inside=part) for part in region.leaves()]


def targets_of(plan: Plan, features: FeaturesOf) -> Features:
    """What the fence is around: the features that are meant, or the region (without an id; of a circle its centre).

    Raises:
        ValueError: the plan has neither, or a region that does not stand still.
    """
    if plan.join is not None:
        return meant(plan.join, features())
    nameless, shape = objects([None]), objects([_shape(plan)])
    return Features(fids=nameless, kinds=nameless, tags=[{}], shapes=shape)


def _shape(plan: Plan) -> shapely.Geometry:
    region = plan.inside
    if isinstance(region, Area | Corridor):
        return shapely.from_wkt(region.wkt)
    if isinstance(region, Circle):
        return shapely.Point(region.x, region.y)
    if isinstance(region, Box):  # one without extent is the line or the point it is
        corners = [
            (x, y)
            for x in (region.minx, region.maxx)
            for y in (region.miny, region.maxy)
        ]
        return shapely.MultiPoint(corners).convex_hull
    if isinstance(region, Combined):
        return shapely.Point()  # its border is that of its parts, or nobody asks for it
    raise ValueError(f"{region!r} has no border that stands still")


def _inside(plan: Plan, fixes: Fixes, targets: Features) -> Joined:
    own = plan
    if plan.join is None and not isinstance(plan.inside, Circle | Corridor | Combined):
        own = replace(
            plan, inside=None, join=LayerJoin(layer="", predicate="intersects")
        )
    return joined(own, fixes, qualified(own, fixes), lambda: targets)


def _near(plan: Plan, fixes: Fixes, targets: Features) -> Joined:
    """In, or at most the hysteresis away."""
    margin = plan.fence.hysteresis_m if plan.fence else 0.0
    if not margin:
        return _inside(plan, fixes, targets)
    if isinstance(plan.inside, Corridor) and plan.join is None:
        broad = replace(plan.inside, width_m=plan.inside.width_m + margin)
        return _inside(replace(plan, inside=broad), fixes, targets)
    if isinstance(plan.inside, Circle) and plan.join is None:
        wider = replace(plan.inside, radius_m=plan.inside.radius_m + margin)
        return _inside(replace(plan, inside=wider), fixes, targets)
    reach = margin + (plan.join.distance_m if plan.join else 0.0)
    left, right = (plan.join.left, plan.join.right) if plan.join else (None, None)
    around = LayerJoin(
        layer="", predicate="dwithin", distance_m=reach, left=left, right=right
    )
    beside = replace(plan, inside=None, join=around)
    return joined(beside, fixes, qualified(beside, fixes), lambda: targets)


def by_row(*parts: Joined) -> Partners:
    """The partners of each row by all parts, and whether each is beyond doubt by one of them."""
    by_row: dict[int, dict[str | None, bool]] = {}
    for pairs in parts:
        rows = zip(pairs.row.tolist(), pairs.partner, pairs.sure.tolist(), strict=True)
        for row, partner, sure in rows:
            own = by_row.setdefault(row, {})
            own[partner] = sure or own.get(partner, False)
    return by_row


@dataclass(slots=True)
class Machine:
    """One object and one target: since when it is in (None: out), and the times of fixes in a row against that."""

    since_us: int | None = None
    has_dwelled: bool = False
    row_us: list[int] = field(default_factory=list)

    def begin(self, now_us: int) -> None:
        """The object is in from now on."""
        self.since_us, self.has_dwelled, self.row_us = now_us, False, []

    def end(self, now_us: int) -> float:
        """The object is out from now on; gives back for how many seconds it was in."""
        lasted_s = self.lasted_s(now_us)
        self.since_us, self.has_dwelled, self.row_us = None, False, []
        return lasted_s

    def lasted_s(self, now_us: int) -> float:
        """For how many seconds the object is in; 0 where it is out."""
        return 0.0 if self.since_us is None else (now_us - self.since_us) / 1e6

    def dwells_us(self, fence: Fence) -> int | None:
        """When the visit will have lasted as long as DWELL says; None where there is no more to say."""
        if fence.dwell_s is None or self.since_us is None or self.has_dwelled:
            return None
        return self.since_us + round(fence.dwell_s * 1e6)

    def take(
        self, fence: Fence, side: Side, now_us: int, passed_us: int | None
    ) -> tuple[Event, ...]:
        """What a fix makes of the visit, and what is told of it.

        `passed_us` is the time since the fix before, if the way from there passes through the target, else None. A row
        of an object that is out says that the fix before was in: then nothing was passed.
        """
        was_in, came_near = self.since_us is not None, bool(self.row_us)
        speaks = side == ("out" if was_in else "in")
        self.row_us = [*self.row_us, now_us] if speaks else []
        if _is_enough(self.row_us, fence.exit_after if was_in else fence.enter_after):
            if was_in:
                self.end(now_us)
                return ("exit", "outside")
            self.begin(now_us)
            return ("enter",)
        if was_in:
            return ("inside",)
        is_soon = fence.max_gap_s is None or (passed_us or 0) / 1e6 <= fence.max_gap_s
        if passed_us is None or came_near or side == "in" or not is_soon:
            return ("outside",)
        return ("outside", "cross")


def _is_enough(row_us: list[int], debounce: Debounce) -> bool:
    """So many fixes, the last so long after the first."""
    if len(row_us) < debounce.fixes or not row_us:
        return False
    return row_us[-1] - row_us[0] >= round(debounce.seconds * 1e6)
