"""The k nearest elements with an extent: by the distance of the nearest point of each, 0 inside an area (SPEC P13).

A point of each element bounds its distance from above, so a circle up to the k-th of these surely holds the k nearest.
What has its box beyond it is not looked at.
"""

from typing import ClassVar

import numpy as np
import shapely

from st_common.geometry.circles import circle_boxes
from st_common.geometry.elements import distances_from
from st_common.geometry.ranked import among_first, kth_smallest, last_of_equals
from st_common.operators.skeleton.kinds.nearest import Nearest
from st_common.operators.skeleton.world import (
    Criteria,
    Floats,
    Ints,
    Pairs,
    Table,
    World,
    admitted,
    measured_where,
    those_admitted,
)


class NearestExtent(Nearest):
    """As `Nearest`, but `limit` is a distance: metres to the millimetre, or in the unit of the plane."""

    caches: ClassVar[bool] = False

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """The k-th nearest among the elements that the circle up to the k-th nearest place reaches."""
        criteria = super().update_criteria(world, table, which)
        radius = world.space.radius_of(criteria.limit)
        row, obj = _reached(world, criteria, np.flatnonzero(world.alive), radius)
        keep = admitted(world, criteria, row, obj)
        row, obj = row[keep], obj[keep]
        far = _far(world, criteria, row, obj)
        order = np.lexsort((far, row))
        rows, row = np.unique(row[order], return_inverse=True)
        obj, far = obj[order], far[order]
        start = np.searchsorted(row, np.arange(len(rows) + 1))
        k = table.k[which][rows]
        limit = kth_smallest(start, far, k)
        criteria.limit[rows] = limit
        criteria.tie[rows] = last_of_equals(start, far, obj, k, limit, world.ids)
        return criteria

    def in_cache_area(
        self,
        world: World,
        criteria: Criteria,
        objects: Ints,
        margin: float,
    ) -> Pairs:
        """Pairs of a query and an element whose box the distance of the k-th reaches."""
        radius = criteria.limit * world.space.growth + world.space.rounding + margin
        row, obj = _reached(world, criteria, objects, radius)
        keep = admitted(world, criteria, row, obj)
        return row[keep], obj[keep]

    def measure(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        """The distance; float64[p], NaN where the object is not admitted."""
        return measured_where(
            admitted(world, criteria, row, obj),
            lambda keep: _far(world, criteria, row[keep], obj[keep]),
        )

    def satisfy(
        self, world: World, criteria: Criteria, row: Ints, obj: Ints
    ) -> np.ndarray:
        """Whether the element is nearer than the k-th one, or as far and not after the tie by id; bool[p]."""
        far = _far(world, criteria, row, obj)
        keep = among_first(far, obj, criteria.limit[row], criteria.tie[row], world.ids)
        return those_admitted(keep, world, criteria, row, obj)


def _far(world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
    """The distance of each pair; float64[p]."""
    some, which = np.unique(obj, return_inverse=True)
    shapes = world.shapes_of(some)
    far = distances_from(
        shapes, which, criteria.x[row], criteria.y[row], space=world.space
    )
    return np.round(far, world.space.decimals)


def _reached(world: World, criteria: Criteria, objects: Ints, radius: Floats) -> Pairs:
    """Pairs of a query and an object whose box a circle reaches; one without end reaches all that are somewhere."""
    shapes = world.shapes_of(objects)
    somewhere = np.flatnonzero(~np.isnan(world.x[objects]))
    bounds = shapely.bounds(shapes[somewhere]).reshape(-1, 4)
    boxes: np.ndarray = np.array(shapely.box(*bounds.T), object)
    endless = np.isinf(radius)
    ends = np.flatnonzero(~endless & ~np.isnan(radius))
    around, owner = circle_boxes(
        criteria.x[ends], criteria.y[ends], radius[ends], space=world.space
    )
    circles = np.array(shapely.box(*around.T), object)
    circle, at = shapely.STRtree(boxes).query(circles, predicate="intersects")
    some = np.unique(np.stack([ends[owner[circle]], at]), axis=1)
    rest = np.flatnonzero(endless & ~np.isnan(criteria.x))
    row = np.concatenate([some[0], np.repeat(rest, len(somewhere))])
    place = np.concatenate([some[1], np.tile(np.arange(len(somewhere)), len(rest))])
    return row, objects[somewhere[place]]
