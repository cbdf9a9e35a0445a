"""What is told beside an answer: the values of aggregates, and until when a member stays inside."""

import math
from collections.abc import Sequence
from typing import Any

import shapely

from st_common.query.plan import Aggregate
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    MovingBox,
    MovingCircle,
    Region,
)
from st_common.testing.oracle_expressions import text_of, value_of
from st_common.testing.oracle_members import half_sides
from st_common.testing.oracle_readings import Known, Point, Reading, degree_m
from st_common.testing.oracle_rows import Rules

Counted = tuple[Reading, str | None]
"""A member or an entry of a window, with its partner."""


def groups(aggregate: Aggregate, counted: Sequence[Counted]) -> dict[str, float | None]:
    """The value of every group that has one, by the text of the group; `*` without groups, None for DISTINCT."""
    parts: dict[str, list[Counted]] = {}
    if aggregate.group is None and aggregate.function in ("count", "count_distinct"):
        parts["*"] = []
    for one in counted:
        parts.setdefault(group_of(aggregate, one), []).append(one)
    if aggregate.function == "distinct":
        return dict.fromkeys(parts)
    values = {group: _value(aggregate, part) for group, part in parts.items()}
    return {group: value for group, value in values.items() if value is not None}


def group_of(aggregate: Aggregate, counted: Counted) -> str:
    """The group that a member or an entry is in."""
    if aggregate.function == "avgspd":
        return counted[0].fix.object
    if aggregate.group is None:
        return "*"
    value = value_of(aggregate.group, *counted)
    return text_of(value) if aggregate.group == "partner" else shown(value)


def shown(value: object) -> str:
    """How a group is called: NULL without a value; in quotes a text that could be taken for that or a quoted one."""
    is_odd = isinstance(value, str) and (value == "NULL" or value.startswith("'"))
    return "'" + str(value).replace("'", "''") + "'" if is_odd else text_of(value)


def _value(aggregate: Aggregate, counted: Sequence[Counted]) -> float | None:
    if aggregate.argument is None:
        values: list[Any] = [reading.fix.object for reading, _ in counted]
    else:
        found = [
            value_of(aggregate.argument, reading, partner)
            for reading, partner in counted
        ]
        values = [value for value in found if value is not None]
    match aggregate.function:
        case "count":
            return float(len(values))
        case "count_distinct":
            return float(len(set(values)))
        case _ if not values:
            return None
        case "sum":
            return float(sum(values))
        case "avg":
            return float(sum(values)) / len(values)
        case "min":
            return float(min(values))
        case _:
            return float(max(values))


def stays_until(
    region: Region, reading: Reading, known: Known, at_us: int, rules: Rules
) -> float | None:
    """The second until which an object stays inside when it and the focal object keep their last velocities.

    Both set off at `at_us` from where they were read last. None: a velocity is unknown; inf: it stays for ever.
    """
    moves = reading.velocity
    if moves is None:
        return None
    start = reading.at
    if isinstance(region, MovingBox | MovingCircle):
        focal = known.alive[region.focal]
        if focal.velocity is None:
            return None
        moves = moves[0] - focal.velocity[0], moves[1] - focal.velocity[1]
        turn = start[0] - focal.at[0]
        if rules.geographic and abs(turn) > 180:
            turn -= math.copysign(360, turn)
        start = turn, start[1] - focal.at[1]
    if moves == (0.0, 0.0):
        return math.inf
    return at_us / 1e6 + _leaves_after(region, start, moves, known, rules)


def _leaves_after(
    region: Region, start: Point, moves: Point, known: Known, rules: Rules
) -> float:
    """The seconds until a point that is inside leaves; of moving regions all is relative to the focal object."""
    if isinstance(region, Area):
        return _leaves_area(region, start, moves)
    if isinstance(region, Box):
        sides = (region.minx, region.maxx), (region.miny, region.maxy)
        return min(
            _leaves_side(*side, at, by)
            for side, at, by in zip(sides, start, moves, strict=True)
        )
    if isinstance(region, MovingBox):
        halves = half_sides(region, known.alive[region.focal].at, rules)
        return min(
            _leaves_side(-half, half, at, by)
            for half, at, by in zip(halves, start, moves, strict=True)
        )
    if isinstance(region, Circle):
        centre, latitude = (region.x, region.y), region.y
    elif isinstance(region, MovingCircle):
        centre, latitude = (0.0, 0.0), known.alive[region.focal].at[1]
    else:
        raise TypeError(f"no reference says until when one stays in {region!r}")
    scale = degree_m(latitude) if rules.geographic else (1.0, 1.0)
    offset = (start[0] - centre[0]) * scale[0], (start[1] - centre[1]) * scale[1]
    return _leaves_circle(
        region.radius_m, offset, (moves[0] * scale[0], moves[1] * scale[1])
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
