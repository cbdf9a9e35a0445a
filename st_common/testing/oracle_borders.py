"""Where a fix is as a fence sees it, and whether the way between two fixes passes through (docs/adr/0024)."""

from typing import Literal

import shapely
from shapely.geometry.base import BaseGeometry

from st_common.query.plan import LayerJoin, Plan
from st_common.regions.registry import Area, Box, Circle, Corridor, Region
from st_common.testing.oracle_comparing import turns
from st_common.testing.oracle_expressions import value_of
from st_common.testing.oracle_members import has_key
from st_common.testing.oracle_readings import (
    Point,
    Reading,
    distance_m,
    is_within,
)
from st_common.testing.oracle_rows import Feature, Rules

Side = Literal["in", "near", "out"]
Target = Region | Feature
"""What has the border: a region that stands still, or a feature."""


def side_of(plan: Plan, reading: Reading, target: Target, rules: Rules) -> Side:
    """Whether a fix is in the target, near it, or out; who does not satisfy the condition is out, however near."""
    if plan.where is not None and value_of(plan.where, reading) is not True:
        return "out"
    if not _is_meant(plan, reading, target):
        return "out"
    if _is_in(plan, reading.at, target, rules):
        return "in"
    margin = 0.0 if plan.fence is None else plan.fence.hysteresis_m
    return "near" if margin and _is_near(plan, reading.at, target, rules) else "out"


def passes(
    plan: Plan, before: Reading, reading: Reading, target: Target, rules: Rules
) -> bool:
    """Whether the straight way to a fix, on degrees the short one, has a point in the target, or on its border.

    The condition is that of the fix: where it does not satisfy it, there is nothing to pass through.
    """
    if plan.where is not None and value_of(plan.where, reading) is not True:
        return False
    if not _is_meant(plan, reading, target):
        return False
    ways = ways_between(before.at, reading.at, rules)
    if isinstance(target, Circle):
        centre, far = (target.x, target.y), target.radius_m
        return any(
            distance_m(way, *centre, geographic=rules.geographic) <= far for way in ways
        )
    shape, reach = _shape(target), _reach(plan.join, target)
    if not reach:
        return any(way.intersects(shape) for way in ways)
    return any(gap_m(way, shape, rules) <= reach for way in ways)


def _is_meant(plan: Plan, reading: Reading, target: Target) -> bool:
    """Whether a feature has the key of a fix: of a bus its own route. A region is meant for all."""
    if plan.join is None or not isinstance(target, Feature):
        return True
    return has_key(plan.join, reading, target)


def ways_between(a: Point, b: Point, rules: Rules) -> list[shapely.LineString]:
    """The straight way, on degrees the short one, there also a whole turn to either side."""
    if rules.geographic and abs(b[0] - a[0]) > 180:
        b = (b[0] + (360 if b[0] < a[0] else -360), b[1])
    shifts = (0.0, -360.0, 360.0) if rules.geographic else (0.0,)
    return [shapely.LineString([(a[0] + by, a[1]), (b[0] + by, b[1])]) for by in shifts]


def gap_m(way: shapely.LineString, shape: BaseGeometry, rules: Rules) -> float:
    """How far a way and a shape are from each other: on degrees as corners of the one from the other."""
    if not rules.geographic or way.intersects(shape):
        return way.distance(shape)
    pairs = ((way, shape), (shape, way))
    return min(
        distance_m(one, x, y, geographic=True)
        for one, other in pairs
        for x, y in shapely.get_coordinates(other)
    )


def _is_in(plan: Plan, at: Point, target: Target, rules: Rules) -> bool:
    if isinstance(target, Circle):
        centre = target.x, target.y
        return is_within(at, centre, target.radius_m, geographic=rules.geographic)
    shape, join = _shape(target), plan.join
    if isinstance(target, Corridor):
        return _distance(shape, at, rules) <= target.width_m
    places = [shapely.Point(turn) for turn in turns(at, 180.0, rules)]
    if join is not None and join.predicate == "within":
        return any(place.within(shape) for place in places)
    if join is not None and join.predicate == "dwithin":
        return _distance(shape, at, rules) <= join.distance_m
    return any(shape.intersects(place) for place in places)


def _is_near(plan: Plan, at: Point, target: Target, rules: Rules) -> bool:
    """Whether a place that is not in the target is at most the hysteresis away from it."""
    margin = _reach(plan.join, target) + (
        plan.fence.hysteresis_m if plan.fence else 0.0
    )
    if isinstance(target, Circle):
        centre, far = (target.x, target.y), target.radius_m + margin
        return is_within(at, centre, far, geographic=rules.geographic)
    return _distance(_shape(target), at, rules) <= margin


def _reach(join: LayerJoin | None, target: Target) -> float:
    """How far around a shape its border is: of a corridor its width, with ST_DWithin the distance, else nothing."""
    if isinstance(target, Corridor):
        return target.width_m
    is_wide = join is not None and join.predicate == "dwithin"
    return join.distance_m if join is not None and is_wide else 0.0


def _distance(shape: BaseGeometry, at: Point, rules: Rules) -> float:
    return min(
        distance_m(shape, *turn, geographic=rules.geographic)
        for turn in turns(at, 180.0, rules)
    )


def _shape(target: Target) -> BaseGeometry:
    if isinstance(target, Feature):
        return target.geometry
    if isinstance(target, Area | Corridor):
        return shapely.from_wkt(target.wkt)
    if isinstance(target, Box):
        return _box(target)
    raise TypeError(f"{target!r} has no border that stands still")


def _box(box: Box) -> BaseGeometry:
    """The rectangle; one without extent is the line or the point that it is."""
    corners = [(box.minx, box.miny), (box.maxx, box.maxy)]
    if box.minx == box.maxx and box.miny == box.maxy:
        return shapely.Point(corners[0])
    if box.minx == box.maxx or box.miny == box.maxy:
        return shapely.LineString(corners)
    return shapely.box(box.minx, box.miny, box.maxx, box.maxy)
