"""CROSS: the straight way from one fix to the next has a point in a region, or near a feature (docs/adr/0024).

                 .--------.
fix before  -----|--------|----->  fix      neither of them is in it
                 '--------'
"""

import numpy as np
import shapely

from st_common.query.plan import Plan
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.layer_join import has_key
from st_common.reference.metric import (
    Floats,
    Ints,
    Members,
    Metric,
    everyone,
)
from st_common.reference.pair_join import Joined
from st_common.reference.shapes import distances, reach
from st_common.regions.registry import Circle, Corridor

Places = tuple[Floats, Floats]
_SLACK = 1.01


def passed(plan: Plan, fixes: Fixes, before: Places, targets: Features) -> Joined:
    """The targets that the ways from `before` (NaN: from nowhere) to fixes pass through, borders too.

    The condition is that of the fix. With ST_DWithin a way comes at most so near to the feature, of a corridor to the
    line. Of a fence that does not ask for CROSS nobody wants to know.
    """
    asks = plan.fence is not None and "cross" in plan.fence.events
    comes = ~np.isnan(before[0]) & asks
    if plan.where is not None and comes.any():
        comes &= fixes.is_true(plan.where)
    row = np.flatnonzero(comes)
    came, start = fixes.take(row), (before[0][row], before[1][row])
    parts = []
    for turn in fixes.metric.turns:
        ways = ways_between(start, (came.x, came.y), fixes.metric, turn)
        parts.append(_met(plan, came, ways, targets))
    return Joined(
        row=row[np.concatenate([one.row for one in parts])],
        partner=np.concatenate([one.partner for one in parts]),
        sure=np.concatenate([one.sure for one in parts]),
    )


def ways_between(
    start: Places, end: Places, metric: Metric, turn: float = 0.0
) -> np.ndarray:
    """The straight ways from places to places, on degrees the short ones; a turn away, if asked for. Geometries[n]."""
    (x, y), (to_x, to_y) = start, end
    if not metric.is_flat:
        to_x = np.where(to_x - x > 180, to_x - 360, to_x)
        to_x = np.where(to_x - x < -180, to_x + 360, to_x)
    ends = np.stack([x + turn, y, to_x + turn, to_y], axis=1)
    return np.asarray(shapely.linestrings(ends.reshape(-1, 2, 2)))


def _met(plan: Plan, came: Fixes, ways: np.ndarray, targets: Features) -> Joined:
    """Which ways, each to the fix beside it, pass through which targets."""
    metric = came.metric
    if isinstance(plan.inside, Circle) and plan.join is None:
        meets = _through_circle(plan.inside, ways, metric)
        row = np.flatnonzero(meets.maybe)
        return Joined(row=row, partner=objects([None] * len(row)), sure=meets.sure[row])
    distance_m = _distance_m(plan)
    row, target = _candidates(ways, targets, distance_m, metric)
    if plan.join is not None:
        alike = has_key(plan.join, came, targets, row, target)
        row, target = row[alike], target[alike]
    if distance_m is None:
        meets = everyone(len(row))
    else:
        far = gaps(ways[row], targets.shapes[target], metric)
        meets = metric.at_most_from_shape(far, distance_m)
    row, target = row[meets.maybe], target[meets.maybe]
    return Joined(row=row, partner=targets.fids[target], sure=meets.sure[meets.maybe])


def _distance_m(plan: Plan) -> float | None:
    """How near a way has to come to a target; None: it has to meet it."""
    if plan.join is not None:
        return plan.join.distance_m if plan.join.predicate == "dwithin" else None
    return plan.inside.width_m if isinstance(plan.inside, Corridor) else None


def _through_circle(circle: Circle, ways: np.ndarray, metric: Metric) -> Members:
    """By the distance of the way from the centre, on degrees in the plane that touches WGS 84 there."""
    centre = np.array([circle.x, circle.y])
    scale = np.concatenate(metric.scale(centre[1:]))
    plane = shapely.transform(ways, lambda at: (at - centre) * scale)
    far = np.asarray(shapely.distance(plane, shapely.Point(0, 0)))
    return metric.at_most_from_shape(far, circle.radius_m)


def _candidates(
    ways: np.ndarray, targets: Features, distance_m: float | None, metric: Metric
) -> tuple[Ints, Ints]:
    """Pairs of a way and a target that meet (None), or may be so near: none that is near is left out."""
    tree = shapely.STRtree(targets.shapes)
    if distance_m is None:
        row, target = tree.query(ways, predicate="intersects")
        return row, target
    _, miny, _, maxy = shapely.bounds(ways).reshape(-1, 4).T
    across, along = reach(distance_m, np.maximum(np.abs(miny), np.abs(maxy)), metric)
    around = np.maximum(across, along) * _SLACK
    row, target = tree.query(ways, predicate="dwithin", distance=around)
    return row, target


def gaps(ways: np.ndarray, shapes: np.ndarray, metric: Metric) -> Floats:
    """How far ways and shapes, side by side, are from each other, f64[n].

    On degrees what does not meet is nearest at a corner of either: see `distances`.
    """
    if metric.is_flat:
        return np.asarray(shapely.distance(ways, shapes))
    far = np.where(shapely.intersects(ways, shapes), 0.0, np.inf)
    apart = np.flatnonzero(far)
    for one, other in ((ways, shapes), (shapes, ways)):
        corners, owner = shapely.get_coordinates(one[apart], return_index=True)
        owner = apart[owner]
        each = distances(other[owner], corners[:, 0], corners[:, 1], metric)
        np.minimum.at(far, owner, each)
    return far
