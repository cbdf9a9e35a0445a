"""CROSS: the straight way from one fix to the next has a point in a region, or near a feature (docs/adr/0024).

                 .--------.
fix before  -----|--------|----->  fix      neither of them is in it
                 '--------'
"""

import numpy as np
import shapely

from st_common.query.plan import LayerJoin, Plan
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.layer_join import has_key
from st_common.reference.metric import (
    Floats,
    Members,
    Metric,
    everyone,
)
from st_common.reference.pair_join import Joined
from st_common.reference.shapes import distances, reach
from st_common.regions.registry import Circle, Corridor

Places = tuple[Floats, Floats]


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
    start = before[0][row], before[1][row]
    metric, parts = fixes.metric, []
    for turn in metric.turns:
        ways = ways_between(start, (fixes.x[row], fixes.y[row]), metric, turn)
        parts.append(_met(plan, ways, metric, targets))
    met = Joined(
        row=row[np.concatenate([one.row for one in parts])],
        partner=np.concatenate([one.partner for one in parts]),
        sure=np.concatenate([one.sure for one in parts]),
    )
    return met if plan.join is None else _with_key(plan.join, fixes, met, targets)


def _with_key(join: LayerJoin, fixes: Fixes, met: Joined, targets: Features) -> Joined:
    """Those whose feature has the key of the fix."""
    place = {fid: number for number, fid in enumerate(targets.fids)}
    which = np.array([place[fid] for fid in met.partner], np.int64)
    keep = has_key(join, fixes.take(met.row), targets.take(which))
    return Joined(row=met.row[keep], partner=met.partner[keep], sure=met.sure[keep])


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


def _met(plan: Plan, ways: np.ndarray, metric: Metric, targets: Features) -> Joined:
    """Which ways pass through which targets."""
    if isinstance(plan.inside, Circle) and plan.join is None:
        found = _through_circle(plan.inside, ways, metric)
        row = np.flatnonzero(found.maybe)
        return Joined(row=row, partner=objects([None] * len(row)), sure=found.sure[row])
    if isinstance(plan.inside, Corridor) and plan.join is None:
        return _near_by(plan.inside.width_m, ways, metric, targets)
    if plan.join is not None and plan.join.predicate == "dwithin":
        return _near_by(plan.join.distance_m, ways, metric, targets)
    row, target = shapely.STRtree(targets.shapes).query(ways, predicate="intersects")
    return Joined(row=row, partner=targets.fids[target], sure=everyone(len(row)).sure)


def _through_circle(circle: Circle, ways: np.ndarray, metric: Metric) -> Members:
    """By the distance of the way from the centre, on degrees in the plane that touches WGS 84 there."""
    centre = np.array([circle.x, circle.y])
    scale = np.concatenate(metric.scale(centre[1:]))
    plane = shapely.transform(ways, lambda at: (at - centre) * scale)
    far = np.asarray(shapely.distance(plane, shapely.Point(0, 0)))
    return metric.at_most_from_shape(far, circle.radius_m)


def _near_by(
    distance_m: float, ways: np.ndarray, metric: Metric, targets: Features
) -> Joined:
    minx, miny, maxx, maxy = shapely.bounds(ways).reshape(-1, 4).T
    across, along = reach(distance_m, np.maximum(np.abs(miny), np.abs(maxy)), metric)
    around = shapely.box(minx - across, miny - along, maxx + across, maxy + along)
    row, target = shapely.STRtree(targets.shapes).query(around)
    far = gaps(ways[row], targets.shapes[target], metric)
    found = metric.at_most_from_shape(far, distance_m)
    row, target = row[found.maybe], target[found.maybe]
    return Joined(row=row, partner=targets.fids[target], sure=found.sure[found.maybe])


def gaps(ways: np.ndarray, shapes: np.ndarray, metric: Metric) -> Floats:
    """How far ways and shapes, side by side, are from each other, f64[n].

    On degrees what does not meet is nearest at a corner of either: see `distances`.
    """
    if metric.is_flat:
        return np.asarray(shapely.distance(ways, shapes))
    far = np.where(shapely.intersects(ways, shapes), 0.0, np.inf)
    for one, other in ((ways, shapes), (shapes, ways)):
        corners, owner = shapely.get_coordinates(one, return_index=True)
        each = distances(other[owner], corners[:, 0], corners[:, 1], metric)
        np.minimum.at(far, owner, each)
    return far
