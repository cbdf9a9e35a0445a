"""What a plan's transforms and its comparison come to, in whatever order they stand (BBoxDB 4.4.1, SPEC B8, B10)."""

from dataclasses import dataclass

import numpy as np

from st_common.geometry.enlarged import POINT, Growth, reached
from st_common.geometry.space import Space
from st_common.query.comparing import Transform
from st_common.query.plan import Plan
from st_common.regions.registry import Box, Region

_NOWHERE = Box(minx=np.inf, miny=np.inf, maxx=-np.inf, maxy=-np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """The box of a fix must meet this box.

    Attributes:
        box: the box, closed.
        growth: by what the fix, a point at first, has been enlarged by then.
        negative: it must not meet it.
    """

    box: Box
    growth: Growth
    negative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtering:
    """A filter that must let a fix through.

    Attributes:
        name: as in `FILTERS`.
        text: the custom value that the query gives it, None without.
        growth: by what the fix's box has been enlarged by then.
        within: how far from a feature, of `geojson_near`; metres, or the unit of a plane.
    """

    name: str
    text: str | None
    growth: Growth
    within: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What a fix must satisfy beside region and selection.

    Attributes:
        meetings: boxes that its box must meet, or must not.
        keys: ids that its object must have; with two different ones nothing passes.
        filters: that let it through.
        growth: by what its box is enlarged in the end, as joins see it.
    """

    meetings: tuple[Meeting, ...] = ()
    keys: tuple[str, ...] = ()
    filters: tuple[Filtering, ...] = ()
    growth: Growth = POINT


NO_STEPS = Steps()


def steps_of(plan: Plan) -> Steps:
    """The steps of a plan (BBoxDB 4.4.1; SPEC B8, B10).

    Only enlargements depend on the order in which transforms stand; so each condition is kept with the growth before
    it, and conditions may be tested in any order.
    """
    growth = POINT
    meetings: list[Meeting] = []
    keys: dict[str, None] = {}
    filters: dict[Filtering, None] = {}
    for step in plan.transforms:
        growth = _grown(growth, step)
        if step.kind == "box" and step.box is not None:
            meetings.append(Meeting(box=step.box, growth=growth))
        elif step.kind == "key":
            keys[step.text or ""] = None
        elif step.kind == "filter":
            one = Filtering(
                name=step.name or "",
                text=step.text,
                growth=growth,
                within=step.amount,
            )
            filters[one] = None
    if plan.compare is not None:
        meetings.append(
            Meeting(box=plan.compare.box, growth=growth, negative=plan.compare.negative)
        )
    return Steps(
        meetings=tuple(meetings),
        keys=tuple(keys),
        filters=tuple(filters),
        growth=growth,
    )


def _grown(growth: Growth, step: Transform) -> Growth:
    if step.kind == "factor":
        return growth.by_factor(step.amount)
    if step.kind == "value":
        return growth.by_value(step.amount)
    return growth.by_metres(step.amount) if step.kind == "metres" else growth


def looked_at(
    plan: Plan, steps: Steps, *, space: Space
) -> tuple[Region | None, tuple[Meeting, ...]]:
    """The region in which a plan's fixes lie, and the meetings that must be tested beside it.

    Where the extents do not depend on the latitude, what must be met is one box, which is exact; else it is a box that
    is somewhat too large. What must not be met says nothing of where fixes lie.

    Args:
        plan: the plan.
        steps: its steps.
        space: what coordinates mean.

    Returns:
        A region for an index, None for everywhere; and the meetings that the index does not answer.
    """
    if len(steps.keys) > 1:
        return _NOWHERE, ()
    positive = [meeting for meeting in steps.meetings if not meeting.negative]
    exact = [meeting for meeting in positive if meeting.growth.stands(space=space)]
    left = tuple(
        meeting
        for meeting in steps.meetings
        if meeting.negative or meeting not in exact
    )
    if not positive:
        return plan.inside, left
    if plan.inside is not None and not isinstance(plan.inside, Box):
        return plan.inside, steps.meetings
    reached_by = [_reached(meeting, space=space) for meeting in positive]
    edges = np.array([[box.minx, box.maxx] for box in reached_by])
    if len(space.reaching_across(edges.ravel(), 0.0)):
        return plan.inside, steps.meetings  # what lies beyond 180 degrees is no one box
    alpha = () if plan.inside is None else (plan.inside,)
    return _common([*alpha, *reached_by]), left


def _reached(meeting: Meeting, *, space: Space) -> Box:
    edges = reached(np.array([edges_of(meeting.box)]), meeting.growth, space=space)
    minx, miny, maxx, maxy = edges[0].tolist()
    return Box(minx=minx, miny=miny, maxx=maxx, maxy=maxy)


def edges_of(box: Box) -> tuple[float, float, float, float]:
    """minx, miny, maxx, maxy."""
    return box.minx, box.miny, box.maxx, box.maxy


def _common(boxes: list[Box]) -> Box:
    """What boxes have in common; where that is nothing, a box with its corners in the wrong order, which is empty."""
    return Box(
        minx=max(box.minx for box in boxes),
        miny=max(box.miny for box in boxes),
        maxx=min(box.maxx for box in boxes),
        maxy=min(box.maxy for box in boxes),
    )
