"""Whether points lie within a distance of lines, outlines and points: exact, on candidate pairs."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.distance import metres_per_degree
from st_common.geometry.longitudes import POLE
from st_common.geometry.space import Space
from st_common.runs import ranges

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Distance = Floats | float
"""One for all pairs, or one for each."""

_PIECE = 4  # segments that share a box: most are ruled out by it
_MOST_CANDIDATES = (
    1 << 15
)  # pairs of points and pieces looked at together: they stay in the processor's cache
SHORT_M, TEMPERATE = 1_000.0, 85.0
"""Up to this distance and latitude the plane at the point's latitude is right to 0.2 %."""
CLEAR = 0.01
"""What the plane puts nearer to a limit than this share of it is measured on the ellipsoid."""
_NOTHING = 1e-300  # stands for the length of a segment without length
_COLLECTION = 4  # shapely's type ids from here on are collections
_POLYGON = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlines:
    """The segments of geometries: of lines, of rings of areas; a point is a segment of no length.

    Geometry g has the pieces `piece_start[g] : piece_start[g + 1]`, piece p the columns `start[p] : start[p + 1]` of
    `ends` (float64[4, s]: ax, ay, bx, by) and the column p of `boxes` (float64[4, p]: minx, miny, maxx, maxy).
    """

    ends: Floats
    start: Ints
    boxes: Floats
    piece_start: Ints

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take."""
        return (
            self.ends.nbytes
            + self.start.nbytes
            + self.boxes.nbytes
            + self.piece_start.nbytes
        )


def outlines(geometries: npt.NDArray[np.object_]) -> Outlines:
    """The outlines of geometries.

    Args:
        geometries: object[n], of any type, collections too; an empty one has no segments.

    Returns:
        Pieces of at most four segments, by geometry.
    """
    parts, owner = geometries, np.arange(len(geometries))
    while (shapely.get_type_id(parts) >= _COLLECTION).any():
        parts, which = shapely.get_parts(parts, return_index=True)
        owner = owner[which]
    areas = shapely.get_type_id(parts) == _POLYGON
    rings, which = shapely.get_rings(parts[areas], return_index=True)
    lines = np.concatenate([parts[~areas], rings])
    ends, line = _segments(lines)
    owner = np.concatenate([owner[~areas], owner[areas][which]])[line]
    order = np.argsort(owner, kind="stable")
    ends, counts = (
        np.ascontiguousarray(ends[order].T),
        np.bincount(owner, minlength=len(geometries)),
    )
    pieces = -(-counts // _PIECE)
    sizes = np.full(int(pieces.sum()), _PIECE)
    last = np.cumsum(pieces)[pieces > 0] - 1
    sizes[last] = counts[pieces > 0] - (pieces[pieces > 0] - 1) * _PIECE
    start = np.concatenate([[0], np.cumsum(sizes)])
    return Outlines(
        ends=ends,
        start=start,
        boxes=_boxes(ends, start[:-1]),
        piece_start=np.concatenate([[0], np.cumsum(pieces)]),
    )


def _segments(lines: npt.NDArray[np.object_]) -> tuple[Floats, Ints]:
    """The segments of lines, rings and points, and whose they are."""
    places, line = shapely.get_coordinates(lines, return_index=True)
    goes_on = line[1:] == line[:-1]
    alone = np.flatnonzero(np.bincount(line, minlength=len(lines))[line] == 1)
    first = np.flatnonzero(goes_on)
    ends = np.concatenate(
        [
            np.hstack([places[first], places[first + 1]]),
            np.hstack([places[alone], places[alone]]),
        ]
    )
    return ends, np.concatenate([line[first], line[alone]])


def _boxes(ends: Floats, start: Ints) -> Floats:
    if not len(start):
        return np.empty((4, 0))
    low, high = np.minimum(ends[:2], ends[2:]), np.maximum(ends[:2], ends[2:])
    return np.concatenate(
        [
            np.minimum.reduceat(low, start, axis=1),
            np.maximum.reduceat(high, start, axis=1),
        ]
    )


def near(
    shapes: Outlines,
    which: Ints,
    x: Floats,
    y: Floats,
    distance_m: Distance,
    *,
    space: Space,
) -> Bools:
    """For each pair of a geometry and a point, whether the point is within the distance of the geometry's outline.

    Distance <= `distance_m` counts as near. Inside an area but far from its rings is not near: ask for that apart.
    Distances on the globe are geodesic: right to 0.5 % up to 85 degrees of latitude and distances of 100 km, mostly far
    better, and exact from places to points. Segments are straight in longitude and latitude. For what lies beyond 180
    degrees ask again with points a whole turn away.

    Args:
        shapes: the outlines.
        which: int64[n], the geometry of each pair.
        x: float64[n], longitude in degrees or a planar coordinate.
        y: float64[n].
        distance_m: metres; for planar coordinates, their unit. One for all pairs, or float64[n].
        space: what coordinates mean.
    """
    result = np.zeros(len(which), np.bool_)
    pieces = shapes.piece_start[which + 1] - shapes.piece_start[which]
    done = np.cumsum(pieces)
    start = 0
    while start < len(which):
        before = int(done[start - 1]) if start else 0
        end = max(
            int(np.searchsorted(done, before + _MOST_CANDIDATES, side="right")),
            start + 1,
        )
        part = slice(start, end)
        far = of_pairs(distance_m, part)
        result[part] = _near(shapes, which[part], x[part], y[part], far, space=space)
        start = end
    return result


def _near(
    shapes: Outlines,
    which: Ints,
    x: Floats,
    y: Floats,
    distance_m: Distance,
    *,
    space: Space,
) -> Bools:
    result = np.zeros(len(which), np.bool_)
    pair, piece = pieces_within_reach(shapes, which, x, y, distance_m, space=space)
    sizes = shapes.start[piece + 1] - shapes.start[piece]
    segment = ranges(shapes.start[piece], sizes)
    pair = np.repeat(pair, sizes)
    far = of_pairs(distance_m, pair)
    hit = _hits(shapes.ends[:, segment], pair, x, y, far, space=space)
    result[pair[hit]] = True
    return result


def pieces_within_reach(
    shapes: Outlines,
    which: Ints,
    x: Floats,
    y: Floats,
    distance_m: Distance,
    *,
    space: Space,
) -> tuple[Ints, Ints]:
    """Pairs of a pair's number and a piece of its geometry whose box the distance can reach."""
    across, along = space.reach(y, distance_m)
    first = shapes.piece_start[which]
    counts = shapes.piece_start[which + 1] - first
    pair, piece = np.repeat(np.arange(len(which)), counts), ranges(first, counts)
    minx, miny, maxx, maxy = shapes.boxes
    keep = (x + across)[pair] >= minx[piece]
    keep &= (x - across)[pair] <= maxx[piece]
    keep &= (y + along)[pair] >= miny[piece]
    keep &= (y - along)[pair] <= maxy[piece]
    return pair[keep], piece[keep]


def _hits(
    ends: Floats,
    pair: Ints,
    x: Floats,
    y: Floats,
    distance_m: Distance,
    *,
    space: Space,
) -> Bools:
    """Whether the point of each pair is within the distance, that of all pairs or its own, of its segment."""
    if space.is_flat:
        return squared_gaps(ends, x[pair], y[pair], *np.ones((2, 1))) <= distance_m**2
    across, along = space.scale(y)
    gap2 = squared_gaps(ends, x[pair], y[pair], across[pair], along[pair])
    hit = gap2 <= distance_m**2
    left = _in_doubt(gap2, distance_m, (np.abs(y) > TEMPERATE)[pair])
    at = pair[left]
    places = nearest_places(ends[:, left], x[at], y[at])
    hit[left] = space.is_within(x[at], y[at], *places, of_pairs(distance_m, left))
    return hit


def _in_doubt(gap2: Floats, distance_m: Distance, is_polar: Bools) -> Ints:
    """The pairs that are measured on the ellipsoid: near to the limit in the plane, next to a pole, or far apart."""
    is_far = np.asarray(distance_m > SHORT_M)
    if is_far.all():
        return np.arange(len(gap2))
    low, high = (distance_m * (1 - CLEAR)) ** 2, (distance_m * (1 + CLEAR)) ** 2
    unclear = (gap2 >= low) & (gap2 <= high)
    unclear |= is_polar
    if is_far.any():
        unclear |= is_far
    return np.flatnonzero(unclear)


def of_pairs(distance_m: Distance, which: Ints | slice) -> Distance:
    """The distances of some pairs.

    Args:
        distance_m: one for all pairs, which stays one, or float64[n].
        which: places of the pairs, or a slice.
    """
    return distance_m if np.ndim(distance_m) == 0 else np.asarray(distance_m)[which]


def squared_gaps(
    ends: Floats, x: Floats, y: Floats, across: Floats, along: Floats
) -> Floats:
    """The squared distances of points from segments, in the plane of some scales; float64[n].

    Args:
        ends: float64[4, n]: ax, ay, bx, by.
        x: float64[n], the point; `y` likewise.
        y: see `x`.
        across: units of distance per unit of x, one for all or float64[n].
        along: the same of y.

    Example:
        the segment from (0, 0) to (10, 0) and the point (13, 4), scales 1:  3 * 3 + 4 * 4 = 25
    """
    ax, ay, bx, by = ends
    px: Floats
    px, py = (x - ax) * across, (y - ay) * along
    dx, dy = (bx - ax) * across, (by - ay) * along
    share = _share(px, py, dx, dy)
    px -= dx * share
    py -= dy * share
    px *= px
    py *= py
    px += py
    return px


def _share(px: Floats, py: Floats, dx: Floats, dy: Floats) -> Floats:
    """How far along a segment from the origin to (dx, dy) the place nearest to (px, py) is: 0 to 1."""
    length2 = dx * dx
    length2 += dy * dy
    np.maximum(length2, _NOTHING, out=length2)
    share = px * dx
    share += py * dy
    share /= length2
    np.clip(share, 0.0, 1.0, out=share)
    return share


def nearest_places(ends: Floats, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The places on segments that are nearest to points.

    They are found in the plane at the point's latitude, then in the plane midway to that place.
    """
    ax, ay, bx, by = ends
    latitude = y
    for _ in range(2):
        across, along = metres_per_degree(latitude)
        share = _share(
            (x - ax) * across, (y - ay) * along, (bx - ax) * across, (by - ay) * along
        )
        latitude = (y + ay + (by - ay) * share) / 2
    # Rounding may go beyond a pole, where nothing is.
    there = np.clip(ay + (by - ay) * share, -POLE, POLE)
    return ax + (bx - ax) * share, there


def nearest_places_in(
    ends: Floats, x: Floats, y: Floats, *, space: Space
) -> tuple[Floats, Floats]:
    """The same in a space: in a plane the places that are nearest there."""
    if not space.is_flat:
        return nearest_places(ends, x, y)
    ax, ay, bx, by = ends
    share = _share(x - ax, y - ay, bx - ax, by - ay)
    return ax + (bx - ax) * share, ay + (by - ay) * share
