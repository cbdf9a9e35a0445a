"""Until when an object stays in a region if both go on as they do: time-parameterised queries (GPAC section 4; G8)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.space import Space

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """Places at one moment, and velocities; n of them.

    Attributes:
        x: float64[n]; `y` likewise.
        vx: float64[n], coordinates per second: NaN when unknown, 0 of what stands still. `vy` likewise.
    """

    x: Floats
    y: Floats
    vx: Floats
    vy: Floats


def in_boxes_until(
    point: Motion, boxes: Floats, vx: Floats, vy: Floats, at_s: Floats
) -> Floats:
    """The last moment at which each point is in its box: one box for each point.

    Args:
        point: n points, as they are at `at_s`, in their boxes.
        boxes: float64[4, n]: minx, miny, maxx, maxy at `at_s`; +-inf is allowed.
        vx: float64[n], how fast the boxes move; `vy` likewise.
        vy: float64[n].
        at_s: float64[n], seconds.

    Returns:
        float64[n], seconds: infinite when the point never leaves, NaN when a velocity is unknown. Exact up to the
        rounding of one division and one addition.

    Example:
        at 100 s in the middle of a box of 10 by 10, one unit a second to the east:  105 s; standing still: infinite
    """
    left_x = _crossed(point.x, boxes[0], boxes[2], point.vx - vx)
    left_y = _crossed(point.y, boxes[1], boxes[3], point.vy - vy)
    return np.asarray(at_s + np.maximum(np.minimum(left_x, left_y), 0.0))


def _crossed(place: Floats, low: Floats, high: Floats, speed: Floats) -> Floats:
    """After how long a border is reached, on one axis."""
    way = np.where(speed > 0, high - place, low - place)
    after = np.full(len(place), np.inf)
    np.divide(way, speed, out=after, where=speed != 0)
    return after


def in_circles_until(
    point: Motion, centre: Motion, radius_m: Floats, at_s: Floats, *, space: Space
) -> Floats:
    """The last moment at which each point is in its circle: one circle for each point.

    Args:
        point: n points, as they are at `at_s`, in their circles.
        centre: n centres at `at_s`.
        radius_m: float64[n], metres; for planar coordinates, their unit.
        at_s: float64[n], seconds.
        space: what coordinates mean: then in the plane that touches the globe at the centre,
            good for circles of some kilometres.

    Returns:
        As `in_boxes_until`.
    """
    dx, dy = point.x - centre.x, point.y - centre.y
    vx, vy = point.vx - centre.vx, point.vy - centre.vy
    across, along = space.scale(centre.y)
    dx, dy = space.shortest(dx) * across, dy * along
    vx, vy = vx * across, vy * along
    square, turned = vx * vx + vy * vy, dx * vx + dy * vy
    over = dx * dx + dy * dy - radius_m * radius_m
    root = np.sqrt(np.maximum(turned * turned - square * over, 0.0))
    after = np.full(len(dx), np.inf)
    # Of the two forms of the solution the one that adds numbers of one sign: the other loses digits.
    np.divide(root - turned, square, out=after, where=(square != 0) & ~(turned > 0))
    np.divide(-over, root + turned, out=after, where=(square != 0) & (turned > 0))
    return np.asarray(at_s + np.maximum(after, 0.0))


def in_areas_until(areas: Shapes, members: Motion, at_s: Floats) -> Floats:
    """The last moment before each point's way out of its polygon first crosses the border: one polygon a point.

    Args:
        areas: n polygons or multipolygons, in the points' coordinates; repeats allowed.
        members: n points, as they are at `at_s`, in their polygons.
        at_s: float64[n], seconds.

    Returns:
        As `in_boxes_until`.
    """
    speed = np.hypot(members.vx, members.vy)
    out = np.where(speed == 0, np.inf, np.nan)
    moving = np.flatnonzero(speed > 0)
    inside = _ways_inside(areas[moving], members, speed, moving)
    out[moving] = at_s[moving] + inside / speed[moving]
    return out


def _ways_inside(areas: Shapes, members: Motion, speed: Floats, moving: Ints) -> Floats:
    """How far each moving point goes in its polygon, in coordinates; float64, as `moving`."""
    minx, miny, maxx, maxy = shapely.bounds(areas).T
    # A way so long ends outside, wherever in the polygon it begins.
    far = 2 * np.hypot(maxx - minx, maxy - miny) + 1
    x, y = members.x[moving], members.y[moving]
    end_x = x + members.vx[moving] / speed[moving] * far
    end_y = y + members.vy[moving] / speed[moving] * far
    starts, ends = np.stack([x, y], 1), np.stack([end_x, end_y], 1)
    ways = shapely.linestrings(np.stack([starts, ends], 1))
    parts, way = shapely.get_parts(shapely.intersection(ways, areas), return_index=True)
    start_of_part = np.asarray(shapely.points(x, y))[way]
    is_first = shapely.distance(parts, start_of_part) <= far[way] * 1e-12
    inside = np.zeros(len(moving))
    np.maximum.at(inside, way[is_first], shapely.length(parts[is_first]))
    return inside
