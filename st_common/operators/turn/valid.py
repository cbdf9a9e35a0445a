"""Until when members stay members, from their velocities (time-parameterised queries, SPEC G8)."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import shapely

from st_common.geometry.areas import prepared
from st_common.operators.state.fixes import ALIVE, NEVER
from st_common.operators.turn.turn import Turn
from st_common.operators.turn.valid_until import (
    Motion,
    in_boxes_until,
    in_circles_until,
)
from st_common.query.plan import Region
from st_common.query.region import Area, Box, Circle, MovingBox, MovingCircle


class Placed(Protocol):
    """The last fixes of objects, or of versions of objects over several ticks: a row each."""

    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    status: np.ndarray
    before_ts: np.ndarray
    before_x: np.ndarray
    before_y: np.ndarray

    def at_ticks(self, objects: np.ndarray, ticks: np.ndarray) -> np.ndarray:
        """The row of each object at each tick (its place)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Members of queries that are asked about: `row` is where the fix of each is, `at` the place of the tick."""

    query: np.ndarray
    row: np.ndarray
    at: np.ndarray
    at_us: np.ndarray


def valid_until(turn: Turn, fixes: Placed, asked: Asked) -> np.ndarray:
    """Per member the event time in seconds until which it stays one; NaN for those of queries that do not ask.

    NaN where the velocity of the member or of the focal object is not known, infinite where it stays for ever. Both set
    off at `at_us` from where they reported last.
    """
    out = np.full(len(asked.query), np.nan)
    wanted = np.flatnonzero(turn.known.valid_until[asked.query])
    for number in np.unique(asked.query[wanted]).tolist():
        rows = wanted[asked.query[wanted] == number]
        region = turn.queries[number].plan.inside
        if region is not None:
            members, focal = (
                motion_of(fixes, asked.row[rows], turn),
                _focal(turn, fixes, region, asked.at[rows]),
            )
            out[rows] = _until(region, members, focal, asked.at_us[rows] / 1e6, turn)
    return out


def valid_from(
    turn: Turn, fixes: Placed, query: np.ndarray, who: np.ndarray, at_us: int
) -> np.ndarray:
    """The same for members by their last fixes, all at one time."""
    nothing = np.zeros(len(who), np.int64)
    return valid_until(
        turn, fixes, Asked(query=query, row=who, at=nothing, at_us=nothing + at_us)
    )


def motion_of(fixes: Placed, objects: np.ndarray, turn: Turn) -> Motion:
    """Where objects are and how fast they go, by their last two readings; on degrees the shorter way around."""
    known = fixes.before_ts[objects] != NEVER
    seconds = (fixes.ts[objects] - np.where(known, fixes.before_ts[objects], 0)) / 1e6
    seconds = np.where(
        known & (seconds > 0) & (fixes.status[objects] == ALIVE), seconds, np.nan
    )
    x, y = fixes.x[objects], fixes.y[objects]
    way = turn.settings.space.shortest(x - fixes.before_x[objects])
    return Motion(
        x=x, y=y, vx=way / seconds, vy=(y - fixes.before_y[objects]) / seconds
    )


def _focal(turn: Turn, fixes: Placed, region: Region, at: np.ndarray) -> Motion:
    if isinstance(region, MovingBox | MovingCircle):
        return motion_of(
            fixes,
            fixes.at_ticks(np.full(len(at), turn.objects.number_of(region.focal)), at),
            turn,
        )
    still = np.zeros(len(at))
    return Motion(x=still, y=still, vx=still, vy=still)


def _until(
    region: Region, members: Motion, focal: Motion, at_s: np.ndarray, turn: Turn
) -> np.ndarray:
    space = turn.settings.space
    if isinstance(region, Area):
        return _in_area_until(region, members, at_s)
    if isinstance(region, Circle | MovingCircle):
        if isinstance(region, Circle):
            focal = Motion(
                x=focal.x + region.x, y=focal.y + region.y, vx=focal.vx, vy=focal.vy
            )
        radius = np.full(len(at_s), region.radius_m)
        return in_circles_until(members, focal, radius, at_s, space=space)
    if isinstance(region, Box):
        edges = (region.minx, region.miny, region.maxx, region.maxy)
        boxes = np.stack([np.full(len(at_s), edge) for edge in edges])
    else:
        wide, high = (
            np.full(len(at_s), region.width / 2),
            np.full(len(at_s), region.height / 2),
        )
        if region.metres:
            across, along = space.scale(focal.y)
            wide, high = wide / across, high / along
        boxes = np.stack(
            [focal.x - wide, focal.y - high, focal.x + wide, focal.y + high]
        )
        members = replace(members, x=focal.x + space.shortest(members.x - focal.x))
    return in_boxes_until(members, boxes, focal.vx, focal.vy, at_s)


def _in_area_until(region: Area, members: Motion, at_s: np.ndarray) -> np.ndarray:
    """Where each member's way out of the polygon first crosses its border."""
    (area,) = prepared([region.wkt])
    minx, miny, maxx, maxy = shapely.bounds(area)
    speed = np.hypot(members.vx, members.vy)
    far = 2 * np.hypot(maxx - minx, maxy - miny) + 1
    moving = np.flatnonzero(speed > 0)
    out = np.where(speed == 0, np.inf, np.nan)
    x, y = members.x[moving], members.y[moving]
    ends = (
        x + members.vx[moving] / speed[moving] * far,
        y + members.vy[moving] / speed[moving] * far,
    )
    ways = shapely.linestrings(np.stack([np.stack([x, y], 1), np.stack(ends, 1)], 1))
    parts, way = shapely.get_parts(shapely.intersection(ways, area), return_index=True)
    near = shapely.distance(parts, np.asarray(shapely.points(x, y))[way]) <= far * 1e-12
    length = np.zeros(len(moving))
    np.maximum.at(length, way[near], shapely.length(parts[near]))
    out[moving] = at_s[moving] + length / speed[moving]
    return out
