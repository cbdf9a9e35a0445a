"""Group nearest neighbours: the k objects nearest to several places at once (GPAC section 4; SPEC G8)."""

from typing import ClassVar

import numpy as np

from st_common.geometry.group import (
    Groups,
    grown_by,
    kth_nearest_to_groups,
    kth_nearest_to_groups_of,
    near_groups,
    totals,
)
from st_common.geometry.nearest import Objects
from st_common.geometry.ranked import among_first, first_of_all
from st_common.operators.skeleton.side_by_side import side_by_side
from st_common.operators.skeleton.ways import over_lists, ways_of
from st_common.operators.skeleton.world import (
    Bools,
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


class Group:
    """Members have the least sum, maximum or minimum of distances to the places; of equal ones the first by id.

    The criteria are the places, side by side, and the k-th total with its tie as `nearest` has them. A group of which
    one focal object is not alive has no members.

        places at 0 and 6, k = 1, sum          f at 0    a at 3    b at 5    c at 20
        total of distances                        6         6         6        34         limit 6, tie a (by id)
    """

    is_dynamic: ClassVar[bool] = True
    touched_by_all: ClassVar[bool] = False
    searches: ClassVar[bool] = False
    caches: ClassVar[bool] = False

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """Finds the k-th total anew among all eligible objects.

        Returns:
            Criteria with `x` and `y` float64[w, places] (NaN beside a group with fewer), `focal` alike, `total`,
            `limit` as `totals` compares and `tie`; x, y and limit are NaN of a group of which a focal object is not
            alive.
        """
        x, y, focal = side_by_side(world, table, which)
        eligible, k = table.eligible[which], table.k[which]
        limit, tie = np.full(len(which), np.nan), np.full(len(which), -1)
        groups = Groups(x=x, y=y, total=table.total[which], space=world.space)
        criteria = Criteria(
            query=which,
            focal=focal,
            eligible=eligible,
            x=x,
            y=y,
            limit=limit,
            tie=tie,
            total=groups.total,
        )
        # `limit` and `tie` stand in the criteria already, and are filled in place: who is admitted is asked of these.
        ways = ways_of(world, eligible, searches=False)
        has_places = np.asarray(~np.isnan(x).all(axis=1))
        for rows, numbers in ways.by_rule():
            limit[rows], tie[rows] = kth_nearest_to_groups(
                groups.take(rows), k[rows], focal[rows], _objects(world, numbers)
            )
        for rows, (row, obj) in over_lists(ways.lists, eligible, ways.listed):
            keep = admitted(world, criteria, rows[row], obj) & has_places[rows[row]]
            pairs = row[keep], obj[keep]
            limit[rows], tie[rows] = kth_nearest_to_groups_of(
                groups.take(rows), k[rows], pairs, _objects(world, obj[:0])
            )
        return criteria

    def asked(self, world: World, table: Table, which: Ints) -> Criteria:
        """The places alone."""
        x, y, focal = side_by_side(world, table, which)
        return Criteria(
            query=which,
            focal=focal,
            eligible=table.eligible[which],
            x=x,
            y=y,
            total=table.total[which],
        )

    def measure(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        """The total of the distances from a group's places; float64[p], NaN where the object is not admitted."""
        groups = Groups(
            x=criteria.x,
            y=criteria.y,
            total=criteria.total,
            space=world.space,
        )
        return measured_where(
            admitted(world, criteria, row, obj),
            lambda keep: totals(
                groups, row[keep], world.x[obj[keep]], world.y[obj[keep]]
            ),
        )

    def chosen(self, world: World, table: Table, value: Floats, at: Ints) -> Bools:
        """The k least at each tick, of equals the first by id; bool[t, m, n]."""
        return first_of_all(value, table.k, at, world.ids)

    def in_cache_area(
        self, world: World, criteria: Criteria, objects: Ints, margin: float
    ) -> Pairs:
        """What has at most the k-th total, with each distance larger by the margin."""
        groups = Groups(
            x=criteria.x,
            y=criteria.y,
            total=criteria.total,
            space=world.space,
        )
        row, at = near_groups(
            groups,
            grown_by(groups, criteria.limit, margin),
            world.x[objects],
            world.y[objects],
        )
        keep = admitted(world, criteria, row, objects[at])
        return row[keep], objects[at[keep]]

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Whether the object's total is less than the k-th, or the same and its id not after the tie's; bool[p]."""
        groups = Groups(
            x=criteria.x,
            y=criteria.y,
            total=criteria.total,
            space=world.space,
        )
        far = totals(groups, row, world.x[obj], world.y[obj])
        keep = among_first(far, obj, criteria.limit[row], criteria.tie[row], world.ids)
        return those_admitted(keep, world, criteria, row, obj)


def _objects(world: World, numbers: Ints) -> Objects:
    return Objects(
        x=world.x, y=world.y, number=numbers, space=world.space, ids=world.ids
    )
