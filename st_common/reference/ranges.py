"""INSIDE: who is in a region, borders too (GPAC section 4.1, SPEC G4).

A rectangle that goes with an object, `('M', 'a', w, h)`:

        +-----------+  a.y + h / 2
        |     a     |
        +-----------+  a.y - h / 2
    a.x - w/2   a.x + w/2
"""

from collections.abc import Callable
from functools import reduce
from operator import and_

import numpy as np
import shapely

from st_common.query.neighbours import Place
from st_common.reference.columns import Fixes
from st_common.reference.extents import in_extent
from st_common.reference.forecast import entering
from st_common.reference.metric import Bools, Floats, Members, Metric, Point, certain
from st_common.reference.shapes import distances
from st_common.regions.registry import (
    Area,
    Box,
    ByExtent,
    Circle,
    Combined,
    Complement,
    Corridor,
    Forecast,
    Intersection,
    MovingBox,
    MovingCircle,
    MovingCombined,
    Region,
    Union,
)


def inside(region: Region, fixes: Fixes) -> Members:
    """The fixes in a region; the object that one goes with is among the fixes. Masks of n.

    Raises:
        TypeError: there is no reference for a region of this kind.
        ValueError: the object is not among the fixes.
    """
    x, y, metric = fixes.x, fixes.y, fixes.metric
    if isinstance(region, Box):
        wide = (x >= region.minx) & (x <= region.maxx)
        return certain(wide & (y >= region.miny) & (y <= region.maxy))
    if isinstance(region, Area):
        area = shapely.from_wkt(region.wkt)
        shapely.prepare(area)
        return certain(np.asarray(shapely.intersects_xy(area, x, y), np.bool_))
    if isinstance(region, Circle):
        return metric.is_within(x, y, region.x, region.y, region.radius_m)
    if isinstance(region, Corridor):
        lines = np.full(len(x), shapely.from_wkt(region.wkt), np.object_)
        turned = [distances(lines, x + turn, y, metric) for turn in metric.turns]
        return metric.at_most_from_shape(np.min(turned, axis=0), region.width_m)
    if isinstance(region, Forecast):
        return entering(region, fixes) & ~inside(region.part, fixes)
    if isinstance(region, ByExtent):
        return in_extent(region, fixes)
    if isinstance(region, Combined | MovingCombined):
        return joined(region, lambda part: inside(part, fixes))
    return _around(region, fixes)


def joined(
    region: Combined | MovingCombined, inside_of: Callable[[Region], Members]
) -> Members:
    """AND, OR and NOT of what lies in the parts, which `inside_of` says."""
    if isinstance(region, MovingCombined):
        return joined(region.of, inside_of)
    parts = [inside_of(part) for part in region.operands]
    if isinstance(region, Intersection):
        return reduce(and_, parts)
    if isinstance(region, Union):
        return ~reduce(and_, [~part for part in parts])
    if isinstance(region, Complement):
        return ~parts[0]
    raise TypeError(f"no reference knows the region {region!r}")


def _around(region: Region, fixes: Fixes) -> Members:
    """The fixes in a region that goes with an object."""
    x, y, metric = fixes.x, fixes.y, fixes.metric
    if not isinstance(region, MovingBox | MovingCircle):
        raise TypeError(f"no reference knows the region {region!r}")
    centre = fixes.place_of(Place(focal=region.focal))
    if isinstance(region, MovingCircle):
        return metric.is_within(x, y, *centre, region.radius_m)
    across, along = half_sides(region, centre, metric)
    doubt = metric.scale_doubt if region.metres else 0.0
    sure, maybe = (
        in_box(x, y, centre, (across * share, along * share), metric)
        for share in (1 - doubt, 1 + doubt)
    )
    return Members(sure=sure, maybe=maybe)


def half_sides(region: MovingBox, centre: Point, metric: Metric) -> Point:
    """Half of a moving box's sides in coordinates; metres on degrees are those at the latitude of its centre."""
    across, along = metric.scale(np.array(centre[1])) if region.metres else (1.0, 1.0)
    return float(region.width / 2 / across), float(region.height / 2 / along)


def in_box(
    x: Floats,
    y: Floats,
    centre: tuple[Floats | float, Floats | float],
    halves: tuple[Floats | float, Floats | float],
    metric: Metric,
) -> Bools:
    """Which places lie in the closed boxes around centres; on degrees also across 180 of them. Broadcasts."""
    west, east = centre[0] - halves[0], centre[0] + halves[0]
    south, north = centre[1] - halves[1], centre[1] + halves[1]
    is_between = [(x + turn >= west) & (x + turn <= east) for turn in metric.turns]
    high = (y >= south) & (y <= north)
    return np.asarray(np.logical_or.reduce(is_between) & high, np.bool_)
