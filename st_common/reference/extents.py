"""INTERSECTS and INSIDE of elements with an extent: by geometries of everything, one by one (SPEC B1).

+-------+
|   r   |      meets r:        a point in common, also on the border
+-------+      lies in r:      no point outside of it
"""

import numpy as np
import shapely

from st_common.reference.columns import Fixes
from st_common.reference.metric import Bools, Members, Metric, certain
from st_common.reference.shapes import distances
from st_common.regions.registry import Area, Box, ByExtent, Circle, Region

_SIDE_DEG = 0.1
_FAR = 5e-3
"""The share by which engines may be wrong about how far the sides of an element on the globe are from a place."""


def in_extent(region: ByExtent, fixes: Fixes) -> Members:
    """The fixes whose element meets a region, or lies wholly in it; masks of n.

    Raises:
        TypeError: there is no reference for extents in a region of this kind.
    """
    elements, part = elements_of(region, fixes), region.part
    if isinstance(part, Circle):
        ask = _meets_circle if region.how == "intersects" else _in_circle
        return ask(part, elements, fixes.metric)
    ask_shape = shapely.intersects if region.how == "intersects" else shapely.covers
    return certain(np.asarray(ask_shape(_shape(part), elements), np.bool_))


def elements_of(region: ByExtent, fixes: Fixes) -> np.ndarray:
    """The geometry of each fix's element: that of its attributes; where these are null that of its place. object[n]."""
    elements = np.asarray(shapely.points(fixes.x, fixes.y), np.object_)
    if region.extent == "shape":
        wkt = fixes.of.values("geometry", fixes.rows)
        known = np.array([one is not None for one in wkt], np.bool_)
        elements[known] = shapely.from_wkt(wkt[known])
        return elements
    names = {"box": ("lo1", "hi1", "lo2", "hi2"), "interval": ("lo1", "hi1")}
    columns = [fixes.of.values(name, fixes.rows) for name in names[region.extent]]
    for row, sides in enumerate(zip(*columns, strict=True)):
        if None not in sides:
            elements[row] = hull(*sides)
    return elements


def hull(
    minx: float, maxx: float, miny: float = 0.0, maxy: float = 0.0
) -> shapely.Geometry:
    """A closed box as a geometry, the line or the point that it is where it has no width or height."""
    corners = [(x, y) for x in (minx, maxx) for y in (miny, maxy)]
    return shapely.MultiPoint(corners).convex_hull


def _shape(part: Region) -> shapely.Geometry:
    if isinstance(part, Area):
        return shapely.from_wkt(part.wkt)
    if isinstance(part, Box):
        return hull(part.minx, part.maxx, part.miny, part.maxy)
    raise TypeError(f"no reference knows extents in the region {part!r}")


def _meets_circle(circle: Circle, elements: np.ndarray, metric: Metric) -> Members:
    """By the distance of the nearest point of each."""
    x, y = (np.full(len(elements), value) for value in (circle.x, circle.y))
    ways = [distances(elements, x + turn, y, metric) for turn in metric.turns]
    far = np.min(ways, axis=0) if len(elements) else x
    return metric.at_most_from_shape(far, circle.radius_m)


def _in_circle(circle: Circle, elements: np.ndarray, metric: Metric) -> Members:
    """By the distances of all corners, on the globe also of places between them."""
    parts = elements if metric.is_flat else shapely.segmentize(elements, _SIDE_DEG)
    corners, whose = shapely.get_coordinates(parts, return_index=True)
    x, y = corners.T
    if metric.is_flat:
        near = metric.is_within(x, y, circle.x, circle.y, circle.radius_m)
    else:
        far = metric.distance(x, y, circle.x, circle.y)
        near = metric.at_most(far, circle.radius_m, _FAR)
    return Members(
        sure=_all_of(near.sure, whose, len(elements)),
        maybe=_all_of(near.maybe, whose, len(elements)),
    )


def _all_of(holds: Bools, whose: np.ndarray, count: int) -> Bools:
    """Whether something holds of all corners of each."""
    every = np.ones(count, np.bool_)
    every[whose[~holds]] = False
    return every
