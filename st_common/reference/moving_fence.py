"""DETECT at a region that goes with an object: what such a fence sees of last fixes (docs/adr/0024, SPEC X3).

+-----------+
|   focal   |---- 20 m ---- a         in: none; near: a, with a hysteresis of 20 m or more
+-----------+
"""

from dataclasses import dataclass

import numpy as np
import shapely

from st_common.query.neighbours import Place
from st_common.query.plan import Plan
from st_common.reference.columns import Fixes
from st_common.reference.fence import Seen, by_row
from st_common.reference.members import qualified
from st_common.reference.metric import Bools, Floats, Members, Metric, certain
from st_common.reference.pair_join import Joined
from st_common.reference.ranges import in_box
from st_common.reference.shapes import distances
from st_common.regions.region import Region
from st_common.regions.registry import MovingBox, MovingCircle


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Places and, side by side, those of a focal object; arrays of n."""

    x: Floats
    y: Floats
    focal_x: Floats
    focal_y: Floats


def seen_around(plan: Plan, fixes: Fixes) -> Seen:
    """What a fence around an object sees of the last fixes of all that live; nothing where that object does not."""
    is_focal = fixes.is_one_of(plan.focals)
    if not is_focal.any():
        return Seen(inside={}, near={}, passed={})
    x, y = fixes.place_of(Place(focal=plan.focals[0]))
    centre = np.full(len(fixes), x), np.full(len(fixes), y)
    met = Met(x=fixes.x, y=fixes.y, focal_x=centre[0], focal_y=centre[1])
    counts = certain(~is_focal & satisfying(plan, fixes))
    inside, near = sides(plan, met, fixes.metric)
    return Seen(
        inside=by_row(_targets(inside & counts)),
        near=by_row(_targets(near & counts)),
        passed={},
    )


def satisfying(plan: Plan, fixes: Fixes) -> Bools:
    """Which fixes satisfy the condition of a fence."""
    return qualified(Plan(stream=plan.stream, where=plan.where), fixes).maybe


def sides(plan: Plan, met: Met, metric: Metric) -> tuple[Members, Members]:
    """Which places are in the region around the focal one beside them; and which are in, or near to it.

    Raises:
        TypeError: the region of the plan does not go with an object.
    """
    margin_m = plan.fence.hysteresis_m if plan.fence else 0.0
    return _within(plan.inside, 0.0, met, metric), _within(
        plan.inside, margin_m, met, metric
    )


def _within(
    region: Region | None, margin_m: float, met: Met, metric: Metric
) -> Members:
    """Which places are in a region, or at most so far away."""
    if isinstance(region, MovingCircle):
        places = met.x, met.y, met.focal_x, met.focal_y
        return metric.is_within(*places, region.radius_m + margin_m)
    if not isinstance(region, MovingBox):
        raise TypeError(f"{region!r} goes with no object")
    halves = _half_sides(region, met.focal_y, metric)
    if margin_m:
        return _near_boxes(halves, margin_m, met, metric)
    doubt = metric.scale_doubt if region.metres else 0.0
    sure, maybe = (
        in_box(
            met.x,
            met.y,
            (met.focal_x, met.focal_y),
            (halves[0] * share, halves[1] * share),
            metric,
        )
        for share in (1 - doubt, 1 + doubt)
    )
    return Members(sure=sure, maybe=maybe)


def _half_sides(
    region: MovingBox, focal_y: Floats, metric: Metric
) -> tuple[Floats, Floats]:
    """Half of the sides in coordinates; metres on degrees are those at the latitude of the focal object."""
    across, along = (np.ones(len(focal_y)), np.ones(len(focal_y)))
    if region.metres:
        across, along = metric.scale(focal_y)
    return region.width / 2 / across, region.height / 2 / along


def _near_boxes(
    halves: tuple[Floats, Floats], margin_m: float, met: Met, metric: Metric
) -> Members:
    """The places that are in the rectangles or at most so far from them."""
    wide, high = halves
    corners = [
        np.stack([met.focal_x + a * wide, met.focal_y + b * high], axis=1)
        for a, b in ((-1, -1), (-1, 1), (1, 1), (1, -1))
    ]
    # One without extent is the line or the point that it is.
    points = np.asarray(shapely.points(np.stack(corners, axis=1)), np.object_)
    shapes = np.asarray(shapely.convex_hull(shapely.multipoints(points)), np.object_)
    far = [distances(shapes, met.x + turn, met.y, metric) for turn in metric.turns]
    return metric.at_most_from_shape(np.min(far, axis=0), margin_m)


def _targets(members: Members) -> Joined:
    """The rows that are maybe in, each with the one target: the region."""
    row = np.flatnonzero(members.maybe)
    nobody = np.full(len(row), None, np.object_)
    return Joined(row=row, partner=nobody, sure=members.sure[row])
