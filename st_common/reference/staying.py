"""VALID UNTIL: how long a member stays inside when it, and the object that the region goes with, keep their velocities.

Of a moving region all is relative to its focal object, as if that stood still (SPEC G8).
"""

import math

import numpy as np
import shapely

from st_common.reference.metric import Metric, Point
from st_common.reference.ranges import half_sides
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    MovingBox,
    MovingCircle,
    Region,
)


def stays_for(
    region: Region,
    at: Point,
    moves: Point,
    focal: tuple[Point, Point] | None,
    metric: Metric,
) -> float:
    """The seconds until who is at a place inside leaves; inf: never.

    `moves` are coordinates per second; `focal` is where the focal object is and how it moves, of a moving region.
    """
    if isinstance(region, MovingBox | MovingCircle):
        if focal is None:
            raise ValueError(
                f"where the object is that {region} goes with was not said"
            )
        (x, y), (vx, vy) = focal
        at = float(metric.shortest(np.array(at[0] - x))), at[1] - y
        moves = moves[0] - vx, moves[1] - vy
    if moves == (0.0, 0.0):
        return math.inf
    latitude = region.y if isinstance(region, Circle) else focal[0][1] if focal else 0.0
    return _leaves_after(region, at, moves, latitude, metric)


def _leaves_after(
    region: Region, at: Point, moves: Point, latitude: float, metric: Metric
) -> float:
    if isinstance(region, Area):
        return _leaves_area(region, at, moves)
    if isinstance(region, Box):
        return min(
            _leaves_side(region.minx, region.maxx, at[0], moves[0]),
            _leaves_side(region.miny, region.maxy, at[1], moves[1]),
        )
    if isinstance(region, MovingBox):
        across, along = half_sides(region, (0.0, latitude), metric)
        return min(
            _leaves_side(-across, across, at[0], moves[0]),
            _leaves_side(-along, along, at[1], moves[1]),
        )
    if not isinstance(region, Circle | MovingCircle):
        raise TypeError(f"no reference says until when one stays in {region!r}")
    x, y = (region.x, region.y) if isinstance(region, Circle) else (0.0, 0.0)
    across_m, along_m = (float(one) for one in metric.scale(np.array(latitude)))
    offset = (at[0] - x) * across_m, (at[1] - y) * along_m
    return _leaves_circle(
        region.radius_m, offset, (moves[0] * across_m, moves[1] * along_m)
    )


def _leaves_side(low: float, high: float, at: float, by: float) -> float:
    if by == 0:
        return math.inf
    return ((high if by > 0 else low) - at) / by


def _leaves_circle(radius: float, at: Point, by: Point) -> float:
    """The later root of |at + t by| = radius."""
    a = by[0] ** 2 + by[1] ** 2
    b = at[0] * by[0] + at[1] * by[1]
    c = at[0] ** 2 + at[1] ** 2 - radius**2
    return (-b + math.sqrt(max(b * b - a * c, 0.0))) / a


def _leaves_area(region: Area, start: Point, moves: Point) -> float:
    """The length of the first piece of the ray that the area holds, in seconds of the movement."""
    area = shapely.from_wkt(region.wkt)
    speed = math.hypot(*moves)
    far = (
        2
        * (max(abs(bound) for bound in area.bounds) + max(map(abs, start)) + 1)
        / speed
    )
    ray = shapely.LineString(
        [start, (start[0] + moves[0] * far, start[1] + moves[1] * far)]
    )
    inside = shapely.get_parts(area.intersection(ray))
    piece = min(inside, key=lambda part: part.distance(shapely.Point(start)))
    return max(math.dist(start, at) for at in piece.coords) / speed
