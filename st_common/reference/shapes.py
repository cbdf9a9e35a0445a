"""How far places are from shapes, and how far around themselves they have to look for them."""

import numpy as np
import shapely

from st_common.reference.metric import Floats, Metric

_DEGREE_M = 110_000.0  # no degree of latitude is shorter
_SLACK = 1.01


def reach(distance: float, y: Floats, metric: Metric) -> tuple[Floats, Floats]:
    """How far along x and y places at most so far from others at these y can lie; f64[n] each, never too little."""
    along = np.full(len(y), distance)
    if metric.is_flat:
        return along, along
    along = along * _SLACK / _DEGREE_M
    farthest = np.abs(y) + along
    narrow = np.cos(np.radians(np.minimum(farthest, 89.9)))
    return np.where(farthest < 89.9, along / narrow, 360.0), along


def distances(shapes: np.ndarray, x: Floats, y: Floats, metric: Metric) -> Floats:
    """How far each place is from its shape, f64[n].

    On degrees that is how far it is, by the geodesic, from the nearest point of the shape in a plane that touches
    WGS 84 at the place.
    """
    if metric.is_flat:
        return np.asarray(shapely.distance(shapes, shapely.points(x, y)))
    at, scale = np.stack([x, y], axis=1), np.stack(metric.scale(y), axis=1)
    corners, owner = shapely.get_coordinates(shapes, return_index=True)
    flat = (corners - at[owner]) * scale[owner]
    plane = shapely.set_coordinates(shapes.copy(), flat)
    lines = shapely.shortest_line(shapely.points(np.zeros_like(at)), plane)
    ends = shapely.get_coordinates(shapely.get_point(lines, 1)).reshape(-1, 2)
    there = ends / scale + at
    return metric.distance(x, y, there[:, 0], there[:, 1])


def from_shapes(shapes: np.ndarray, x: Floats, y: Floats, metric: Metric) -> Floats:
    """How far each place is from its shape the shortest way around, f64[n]; NaN from an empty one."""
    far = np.full(len(shapes), np.nan)
    some = np.flatnonzero(~shapely.is_empty(shapes))
    ways = [
        distances(shapes[some], x[some] + turn, y[some], metric)
        for turn in metric.turns
    ]
    far[some] = np.min(ways, axis=0)
    return far
