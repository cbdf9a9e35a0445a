"""Regions, distances and neighbours by brute force over columns, with the doubt that geodesic distances leave.

Distances on degrees are measured anew and may differ in the last digits; the sides of boxes in metres are measured in
another way. What is that near to a border can be a member or not: such objects are `maybe` members and no others are
`sure`. In the plane there is no doubt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import shapely
from pyproj import Geod
from shapely import affinity

from st_common.geometry.space import Space
from st_common.query.neighbours import (
    GroupNearest,
    Neighbours,
    Place,
    ReverseNearest,
    places_of,
)
from st_common.regions.registry import (
    Area,
    Box,
    Circle,
    Corridor,
    MovingBox,
    MovingCircle,
    Region,
)

DOUBT = (
    2e-4  # of boxes in metres, whose degrees are measured here, and of ways in windows
)
_MEASURED = 1e-9
_NEAR, _NEAR_M, _FAR = 1e-4, 1_000.0, 5e-3  # of distances from lines, by how far
_GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Masks over the objects that live."""

    sure: np.ndarray
    maybe: np.ndarray

    def __and__(self, other: "Members") -> "Members":
        return Members(sure=self.sure & other.sure, maybe=self.maybe & other.maybe)


def certain(mask: np.ndarray) -> Members:
    """What leaves no doubt."""
    return Members(sure=mask, maybe=mask)


def distances(frame: pd.DataFrame, x: float, y: float, *, space: Space) -> np.ndarray:
    """Metres on degrees, squares in the plane, from a point to every object."""
    dx, dy = frame["x"].to_numpy() - x, frame["y"].to_numpy() - y
    if space.is_flat:
        return np.asarray(dx * dx + dy * dy)
    ones = np.ones(len(frame))
    return np.asarray(
        _GEOD.inv(ones * x, ones * y, frame["x"].to_numpy(), frame["y"].to_numpy())[2]
    )


def within(far: np.ndarray, limit: float, *, space: Space) -> Members:
    """Which distances (see `distances`) are at most so many metres."""
    if space.is_flat:
        return certain(far <= limit * limit)
    slack = limit * _MEASURED + 1e-6
    return Members(sure=(far <= limit - slack) | (far == 0), maybe=far <= limit + slack)


def inside(region: Region, frame: pd.DataFrame, *, space: Space) -> Members:
    """The objects inside a region; focal objects of moving ones are among the objects."""
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    if isinstance(region, Box):
        return certain(
            (x >= region.minx)
            & (x <= region.maxx)
            & (y >= region.miny)
            & (y <= region.maxy)
        )
    if isinstance(region, Area):
        return certain(
            np.asarray(
                shapely.intersects(shapely.from_wkt(region.wkt), shapely.points(x, y))
            )
        )
    if isinstance(region, Circle):
        far = distances(frame, region.x, region.y, space=space)
        return within(far, region.radius_m, space=space)
    if isinstance(region, Corridor):
        return _inside_corridor(region, x, y, space=space)
    if not isinstance(region, MovingBox | MovingCircle):
        raise TypeError(f"no reference knows the region {region!r}")
    centre = point_of(Place(focal=region.focal), frame)
    if isinstance(region, MovingCircle):
        return within(
            distances(frame, *centre, space=space),
            region.radius_m,
            space=space,
        )
    turn = x - centre[0]
    if not space.is_flat:
        turn = np.minimum(np.abs(turn), 360 - np.abs(turn))
    return _inside_box(region, turn, y - centre[1], centre[1], space=space)


def _inside_corridor(
    region: Corridor, x: np.ndarray, y: np.ndarray, *, space: Space
) -> Members:
    line = shapely.from_wkt(region.wkt)
    if space.is_flat:
        far = np.asarray(shapely.distance(line, shapely.points(x, y)))
        return certain(far <= region.width_m)
    turns = [_metres_from(line, x + turn, y) for turn in (0.0, -360.0, 360.0)]
    far, limit = np.min(turns, axis=0), region.width_m
    slack = limit * (_NEAR if limit <= _NEAR_M else _FAR) + 1e-6
    return Members(sure=far <= limit - slack, maybe=far <= limit + slack)


def _metres_from(line: shapely.Geometry, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far places are from a line: to its nearest place in coordinates stretched by their latitude."""
    across = np.cos(np.radians(np.clip(y, -89.9, 89.9)))
    lines = [affinity.scale(line, k, 1.0, origin=(0, 0)) for k in across]
    ways = shapely.shortest_line(shapely.points(x * across, y), np.array(lines, object))
    ends = shapely.get_coordinates(shapely.get_point(ways, 1)).reshape(-1, 2)
    return np.asarray(_GEOD.inv(x, y, ends[:, 0] / across, ends[:, 1])[2])


def _inside_box(
    region: MovingBox,
    dx: np.ndarray,
    dy: np.ndarray,
    latitude: float,
    *,
    space: Space,
) -> Members:
    if space.is_flat or not region.metres:
        return certain(
            (np.abs(dx) <= region.width / 2) & (np.abs(dy) <= region.height / 2)
        )
    middle = float(np.clip(latitude, -89.9, 89.9))
    along = _GEOD.inv(0, middle - 0.05, 0, middle + 0.05)[2] * 10
    across = _GEOD.inv(-0.005, latitude, 0.005, latitude)[2] * 100
    sides = (
        (np.abs(dx) * across, region.width / 2),
        (np.abs(dy) * along, region.height / 2),
    )
    return Members(
        sure=np.logical_and(*(way <= half * (1 - DOUBT) for way, half in sides)),
        maybe=np.logical_and(*(way <= half * (1 + DOUBT) for way, half in sides)),
    )


def point_of(place: Place, frame: pd.DataFrame) -> tuple[float, float]:
    """Where a place is; its focal object lives."""
    if place.focal is None:
        return place.x, place.y
    row = frame[frame["object"] == place.focal].iloc[0]
    return float(row["x"]), float(row["y"])


def nearest(
    wanted: Neighbours, frame: pd.DataFrame, eligible: Members, *, space: Space
) -> Members:
    """The neighbours among the eligible objects."""
    places = [point_of(place, frame) for place in places_of(wanted)]
    if isinstance(wanted, ReverseNearest):
        return eligible & _reverse(frame, places[0], eligible, space=space)
    far = [distances(frame, *place, space=space) for place in places]
    total = (
        _total(wanted, far, space=space) if isinstance(wanted, GroupNearest) else far[0]
    )
    order = frame.assign(far=total if space.is_flat else np.round(total, 3))[
        eligible.maybe
    ]
    order = order.sort_values(["far", "object"], kind="stable")
    chosen = np.zeros(len(frame), bool)
    chosen[order.index[: wanted.k]] = True
    if space.is_flat:
        return certain(chosen)
    if len(order) <= wanted.k:
        return eligible
    last = float(order["far"].iloc[wanted.k - 1])
    clear = last * _MEASURED + 0.01
    doubt = eligible.maybe & (total <= last + clear)
    if (
        eligible.sure != eligible.maybe
    ).any():  # who else counts is in doubt, so who is among the nearest is too
        return Members(sure=np.zeros(len(frame), bool), maybe=eligible.maybe)
    return Members(sure=chosen & (total < last - clear), maybe=doubt | chosen)


def _total(
    group: GroupNearest, far: Sequence[np.ndarray], *, space: Space
) -> np.ndarray:
    if group.total == "max":
        return np.asarray(np.maximum.reduce(far))
    if group.total == "min":
        return np.asarray(np.minimum.reduce(far))
    return np.asarray(
        np.round(np.sum(np.sqrt(far), axis=0), 9)
        if space.is_flat
        else np.sum(far, axis=0)
    )


def _reverse(
    frame: pd.DataFrame,
    place: tuple[float, float],
    eligible: Members,
    *,
    space: Space,
) -> Members:
    """To whom no other object is nearer than the place is: object by object."""
    far = distances(frame, *place, space=space)
    sure, maybe = np.zeros(len(frame), bool), np.zeros(len(frame), bool)
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    for row in np.flatnonzero(eligible.maybe):
        others = distances(frame, x[row], y[row], space=space)
        others[row] = np.inf
        gap = others.min(initial=np.inf)
        exact = space.is_flat or not np.isfinite(gap)
        clear = 0.0 if exact else gap * _MEASURED + 0.01
        sure[row], maybe[row] = far[row] <= gap - clear, far[row] <= gap + clear
    return Members(sure=sure, maybe=maybe)
