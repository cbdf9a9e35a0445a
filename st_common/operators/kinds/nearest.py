"""The k nearest neighbours of a place or of a focal object (GPAC section 4.2; SPEC G5)."""

from typing import ClassVar

import numpy as np

from st_common.geometry.circles import points_in_circles
from st_common.geometry.nearest import Objects, distance, kth_nearest, radius_of
from st_common.geometry.ranked import among_first, first_of_all, kth_smallest, last_of_equals
from st_common.operators.world import (
    Bools,
    Criteria,
    Floats,
    Ints,
    Pairs,
    Table,
    World,
    admitted,
    by_mask,
    centres,
    measured_where,
)  # fmt: skip


class Nearest:
    """Members lie in the circle whose radius is the distance of the k-th nearest; of equally far ones the first by id.

    The criteria are the centre, that distance (`limit`, infinite with fewer than k objects) and, when more objects are
    exactly so far than there is room for, the last of them that is a member (`tie`).
    """

    is_dynamic: ClassVar[bool] = True
    touched_by_all: ClassVar[bool] = False

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """Finds the k-th nearest anew among all eligible objects: what leaves is replaced by the true next one."""
        focal, eligible = table.focal[which], table.eligible[which]
        x, y = centres(world, focal, table.x[which], table.y[which])
        limit, tie = np.full(len(which), np.nan), np.full(len(which), -1)
        for rows, numbers in by_mask(world, eligible):
            objects = Objects(x=world.x, y=world.y, number=numbers, geographic=world.geographic, ids=world.ids)
            limit[rows], tie[rows] = kth_nearest(x[rows], y[rows], table.k[which[rows]], focal[rows], objects)
        return Criteria(query=which, focal=focal[:, None], eligible=eligible, x=x, y=y, limit=limit, tie=tie)

    def update_from(self, world: World, table: Table, which: Ints, row: Ints, obj: Ints) -> Criteria:
        """The criteria as if only these pairs of a row of `which` (ascending) and an object existed: from a cache."""
        focal, eligible = table.focal[which], table.eligible[which]
        x, y = centres(world, focal, table.x[which], table.y[which])
        limit, tie = np.where(np.isnan(x), np.nan, np.inf), np.full(len(which), -1)
        criteria = Criteria(query=which, focal=focal[:, None], eligible=eligible, x=x, y=y, limit=limit, tie=tie)
        keep = admitted(world, criteria, row, obj) & ~np.isnan(x)[row]
        row, obj = row[keep], obj[keep]
        rows, start = np.unique(row, return_index=True)
        if len(rows):
            start, k = np.append(start, len(row)), table.k[which[rows]]
            far = distance(x[row], y[row], world.x[obj], world.y[obj], geographic=world.geographic)
            limit[rows] = kth_smallest(start, far, k)
            tie[rows] = last_of_equals(start, far, obj, k, limit[rows], world.ids)
        return criteria

    def in_cache_area(self, world: World, criteria: Criteria, objects: Ints, margin: float) -> Pairs:
        """The circle with a radius larger by the margin; only objects that can be members."""
        radius = radius_of(criteria.limit, geographic=world.geographic) + margin
        row, at = points_in_circles(
            criteria.x, criteria.y, radius, world.x[objects], world.y[objects], geographic=world.geographic,
            test=lambda row, at: admitted(world, criteria, row, objects[at]),
        )  # fmt: skip
        return row, objects[at]

    def asked(self, world: World, table: Table, which: Ints) -> Criteria:
        """The centre alone."""
        focal = table.focal[which]
        x, y = centres(world, focal, table.x[which], table.y[which])
        return Criteria(query=which, focal=focal[:, None], eligible=table.eligible[which], x=x, y=y)

    def measure(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        """The distance."""
        return measured_where(admitted(world, criteria, row, obj), lambda keep: self._far(
            world, criteria, row[keep], obj[keep]))  # fmt: skip

    def chosen(self, world: World, table: Table, value: Floats, at: Ints) -> Bools:
        """The k least."""
        return first_of_all(value, table.k, at, world.ids)

    def _far(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        place = criteria.x[row], criteria.y[row]
        return distance(*place, world.x[obj], world.y[obj], geographic=world.geographic)

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Whether the object is nearer than the k-th one, or as far and not after it by id."""
        far = self._far(world, criteria, row, obj)
        keep = among_first(far, obj, criteria.limit[row], criteria.tie[row], world.ids)
        return keep & admitted(world, criteria, row, obj)
