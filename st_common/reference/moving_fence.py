"""DETECT at a region that goes with an object: what such a fence sees of last fixes (docs/adr/0024, SPEC X3).

+-----------+
|   focal   |---- 20 m ---- a         in: none; near: a, with a hysteresis of 20 m or more
+-----------+
"""

from collections.abc import Mapping
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
from st_common.reference.ranges import in_box, inside, joined
from st_common.reference.shapes import distances
from st_common.regions.region import Region
from st_common.regions.registry import Combined, MovingBox, MovingCircle, MovingCombined


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Fixes and, side by side, where each focal object is then: x and y by its id, arrays of n."""

    fixes: Fixes
    places: Mapping[str, tuple[Floats, Floats]]


def seen_around(plan: Plan, fixes: Fixes) -> Seen:
    """What a fence around objects sees of the last fixes of all that live; nothing where one of them does not."""
    is_focal = fixes.is_one_of(plan.focals)
    if np.count_nonzero(is_focal) < len(plan.focals):
        return Seen(inside={}, near={}, passed={})
    counts = certain(~is_focal & satisfying(plan, fixes))
    whole = np.ones(len(fixes))
    places = {name: fixes.place_of(Place(focal=name)) for name in plan.focals}
    met = Met(
        fixes=fixes,
        places={name: (whole * x, whole * y) for name, (x, y) in places.items()},
    )
    within, near = sides(plan, met)
    return Seen(
        inside=by_row(_targets(within & counts)),
        near=by_row(_targets(near & counts)),
        passed={},
    )


def satisfying(plan: Plan, fixes: Fixes) -> Bools:
    """Which fixes satisfy the condition of a fence."""
    return qualified(Plan(stream=plan.stream, where=plan.where), fixes).maybe


def sides(plan: Plan, met: Met) -> tuple[Members, Members]:
    """Which fixes are in the region around the focal places beside them; and which are in, or near to it.

    Raises:
        TypeError: the region of the plan does not go with an object.
    """
    margin_m = plan.fence.hysteresis_m if plan.fence else 0.0
    if plan.inside is None or not plan.focals:
        raise TypeError(f"{plan.inside!r} goes with no object")
    return _within(plan.inside, 0.0, met), _within(plan.inside, margin_m, met)


def _within(region: Region, margin_m: float, met: Met) -> Members:
    """Which fixes are in a region, or at most so far away; nobody asks how far they are from one made of others."""
    fixes, metric = met.fixes, met.fixes.metric
    if isinstance(region, Combined | MovingCombined):
        return joined(region, lambda part: _within(part, 0.0, met))
    if not isinstance(region, MovingBox | MovingCircle):
        return inside(region, fixes)
    centre = met.places[region.focal]
    if isinstance(region, MovingCircle):
        reach_m = region.radius_m + margin_m
        return metric.is_within(fixes.x, fixes.y, *centre, reach_m)
    halves = _half_sides(region, centre[1], metric)
    if margin_m:
        return _near_boxes(halves, margin_m, centre, fixes)
    doubt = metric.scale_doubt if region.metres else 0.0
    sure, maybe = (
        in_box(
            fixes.x,
            fixes.y,
            centre,
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
    halves: tuple[Floats, Floats],
    margin_m: float,
    centre: tuple[Floats, Floats],
    fixes: Fixes,
) -> Members:
    """The fixes that are in the rectangles around centres or at most so far from them."""
    (wide, high), metric = halves, fixes.metric
    corners = [
        np.stack([centre[0] + a * wide, centre[1] + b * high], axis=1)
        for a, b in ((-1, -1), (-1, 1), (1, 1), (1, -1))
    ]
    # One without extent is the line or the point that it is.
    points = np.asarray(shapely.points(np.stack(corners, axis=1)), np.object_)
    shapes = np.asarray(shapely.convex_hull(shapely.multipoints(points)), np.object_)
    far = [distances(shapes, fixes.x + turn, fixes.y, metric) for turn in metric.turns]
    return metric.at_most_from_shape(np.min(far, axis=0), margin_m)


def _targets(members: Members) -> Joined:
    """The rows that are maybe in, each with the one target: the region."""
    row = np.flatnonzero(members.maybe)
    nobody = np.full(len(row), None, np.object_)
    return Joined(row=row, partner=nobody, sure=members.sure[row])
