"""The k nearest neighbours of a place or of a focal object (GPAC section 4.2; SPEC G5)."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from st_common.geometry.circles import points_in_circles
from st_common.geometry.nearest import (
    Objects,
    kth_nearest,
    kth_nearest_of,
    kth_nearest_where,
)
from st_common.geometry.ranked import among_first, first_of_all
from st_common.operators.skeleton.ways import Ways, is_short, over_lists, ways_of
from st_common.operators.skeleton.world import (
    Bools,
    Criteria,
    Floats,
    Ints,
    Pairs,
    Table,
    World,
    admitted,
    at_places,
    centres,
    distances,
    those_admitted,
)


class Nearest:
    """Members lie in the circle whose radius is the distance of the k-th nearest; of equally far ones the first by id.

    The criteria are the centre, that distance (`limit`, infinite with fewer than k objects) and, when more objects are
    exactly so far than there is room for, the last of them that is a member (`tie`).
    """

    is_dynamic: ClassVar[bool] = True
    touched_by_all: ClassVar[bool] = False
    caches: ClassVar[bool] = True

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """Finds the k-th nearest anew among all eligible objects: who leaves is replaced by the true next (SPEC G5).

        Returns:
            Criteria with `x`, `y`, `limit` (a rank; infinite with fewer than k objects) and `tie`; NaN in x, y and
            limit where the focal object is not alive.
        """
        focal, eligible = table.focal[which], table.eligible[which]
        x, y = centres(world, focal, table.x[which], table.y[which])
        limit, tie = np.full(len(which), np.nan), np.full(len(which), -1)
        criteria = Criteria(
            query=which,
            focal=focal[:, None],
            eligible=eligible,
            x=x,
            y=y,
            limit=limit,
            tie=tie,
        )
        # `limit` and `tie` stand in the criteria already, and are filled in place: who is admitted is asked of these.
        ways, k = ways_of(world, eligible), table.k[which]
        for rows, numbers in ways.by_rule():
            limit[rows], tie[rows] = kth_nearest(
                x[rows], y[rows], k[rows], focal[rows], _objects(world, numbers)
            )
        listed, lists, searched = ways.listed, ways.lists, ways.searched
        if len(searched):
            limit[searched], tie[searched], ended = _searched(world, criteria, ways, k)
            gave_up = searched[~ended]
            # A query that gave up goes over a list, which is made for its rule if there is none.
            listed, lists = np.append(listed, gave_up), ways.lists_of(gave_up)
        for some, (row, obj) in over_lists(lists, eligible, listed):
            few = self.update_from(world, table, which[some], row, obj)
            limit[some], tie[some] = few.limit, few.tie
        return criteria

    def update_from(
        self, world: World, table: Table, which: Ints, row: Ints, obj: Ints
    ) -> Criteria:
        """The criteria as if only some pairs existed: those of a cache.

        Args:
            world: the last fixes of all objects.
            table: the queries.
            which: int64[w], the rows of the table.
            row: int64[p], ascending, places in `which`.
            obj: int64[p], objects; each pair once.
        """
        focal, eligible = table.focal[which], table.eligible[which]
        x, y = centres(world, focal, table.x[which], table.y[which])
        criteria = Criteria(
            query=which, focal=focal[:, None], eligible=eligible, x=x, y=y
        )
        keep = admitted(world, criteria, row, obj) & ~np.isnan(x)[row]
        limit, tie = kth_nearest_of(
            x, y, table.k[which], (row[keep], obj[keep]), _objects(world, obj[:0])
        )
        return replace(criteria, limit=limit, tie=tie)

    def in_cache_area(
        self, world: World, criteria: Criteria, objects: Ints, margin: float
    ) -> Pairs:
        """Pairs in the circle up to the k-th, its radius larger by the margin; only objects that can be members."""
        radius = world.space.radius_of(criteria.limit) + margin
        lists = world.selection.lists(objects)
        short = is_short(lists, criteria.eligible, len(objects))
        rest = np.flatnonzero(~short)
        row, at = points_in_circles(
            criteria.x[rest],
            criteria.y[rest],
            radius[rest],
            world.x[objects],
            world.y[objects],
            space=world.space,
            test=lambda row, at: admitted(world, criteria, rest[row], objects[at]),
        )
        parts = [(rest[row], objects[at])]
        for rows, (place, obj) in over_lists(
            lists, criteria.eligible, np.flatnonzero(short)
        ):
            row = rows[place]
            near = world.space.is_within(
                criteria.x[row],
                criteria.y[row],
                world.x[obj],
                world.y[obj],
                radius[row],
            )
            near[near] = admitted(world, criteria, row[near], obj[near])
            parts.append((row[near], obj[near]))
        return np.concatenate([part[0] for part in parts]), np.concatenate(
            [part[1] for part in parts]
        )

    def asked(self, world: World, table: Table, which: Ints) -> Criteria:
        """The place alone."""
        return at_places(world, table, which)

    def measure(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        """The distance as a rank; float64[p], NaN where the object is not admitted."""
        return distances(world, criteria, row, obj)

    def chosen(self, world: World, table: Table, value: Floats, at: Ints) -> Bools:
        """The k least at each tick, of equals the first by id; bool[t, m, n]."""
        return first_of_all(value, table.k, at, world.ids)

    def _far(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        place = criteria.x[row], criteria.y[row]
        return world.space.rank(*place, world.x[obj], world.y[obj])

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Whether the object is nearer than the k-th one, or as far and not after the tie by id; bool[p]."""
        far = self._far(world, criteria, row, obj)
        keep = among_first(far, obj, criteria.limit[row], criteria.tie[row], world.ids)
        return those_admitted(keep, world, criteria, row, obj)


def _objects(world: World, numbers: Ints) -> Objects:
    return Objects(
        x=world.x, y=world.y, number=numbers, space=world.space, ids=world.ids
    )


def _searched(
    world: World, criteria: Criteria, ways: Ways, k: Ints
) -> tuple[Floats, Ints, Bools]:
    """The k-th nearest of the rows of `ways.searched`: `limit`, `tie`, and which of the rows have not given up."""
    rows = ways.searched
    return kth_nearest_where(
        criteria.x[rows],
        criteria.y[rows],
        k[rows],
        *ways.wanted(rows, k[rows]),
        _objects(world, np.flatnonzero(world.alive)),
        lambda row, number: admitted(world, criteria, rows[row], number),
    )
