"""Group nearest neighbours: the k objects nearest to several places at once (GPAC section 4; SPEC G8)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from st_common.geometry.group import (
    kth_nearest_to_groups,
    kth_nearest_to_groups_of,
    kth_nearest_to_groups_where,
)
from st_common.geometry.group_near import are_within, near_groups
from st_common.geometry.group_totals import Groups, grown_by, totals
from st_common.geometry.nearest import Objects
from st_common.geometry.ranked import among_first, first_of_all
from st_common.operators.skeleton.selection import Lists
from st_common.operators.skeleton.side_by_side import side_by_side
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
    caches: ClassVar[bool] = False

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """Finds the k-th total anew among all eligible objects.

        Returns:
            Criteria with `x` and `y` float64[w, places] (NaN beside a group with fewer), `focal` alike, `total`,
            `limit` as `totals` compares and `tie`; x, y and limit are NaN of a group of which a focal object is not
            alive.
        """
        limit, tie = np.full(len(which), np.nan), np.full(len(which), -1)
        criteria = replace(self.asked(world, table, which), limit=limit, tie=tie)
        groups, eligible, k = (
            _groups(world, criteria),
            criteria.eligible,
            table.k[which],
        )
        # `limit` and `tie` stand in the criteria already, and are filled in place: who is admitted is asked of these.
        ways = ways_of(world, eligible)
        for rows, numbers in ways.by_rule():
            limit[rows], tie[rows] = kth_nearest_to_groups(
                groups.take(rows),
                k[rows],
                criteria.focal[rows],
                _objects(world, numbers),
            )
        listed, lists, searched = ways.listed, ways.lists, ways.searched
        if len(searched):
            first = _searched(world, criteria, groups, ways, k)
            limit[searched], tie[searched], ended = first
            gave_up = searched[~ended]
            # A group that gave up goes over a list, which is made for its rule if there is none.
            listed, lists = np.append(listed, gave_up), ways.lists_of(gave_up)
        for rows, few in _over_lists(world, criteria, groups, k, lists, listed):
            limit[rows], tie[rows] = few
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
        groups = _groups(world, criteria)
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
        groups = _groups(world, criteria)
        length = grown_by(groups, criteria.limit, margin)
        lists = world.selection.lists(objects)
        short = is_short(lists, criteria.eligible, len(objects))
        rest = np.flatnonzero(~short)
        row, at = near_groups(
            groups.take(rest), length[rest], world.x[objects], world.y[objects]
        )
        parts = [(rest[row], objects[at])]
        for rows, (place, obj) in over_lists(
            lists, criteria.eligible, np.flatnonzero(short)
        ):
            row = rows[place]
            near = are_within(groups, row, length[row], world.x[obj], world.y[obj])
            parts.append((row[near], obj[near]))
        row, obj = map(np.concatenate, zip(*parts, strict=True))
        keep = admitted(world, criteria, row, obj)
        order = np.lexsort((obj[keep], row[keep]))
        return row[keep][order], obj[keep][order]

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Whether the object's total is less than the k-th, or the same and its id not after the tie's; bool[p]."""
        groups = _groups(world, criteria)
        far = totals(groups, row, world.x[obj], world.y[obj])
        keep = among_first(far, obj, criteria.limit[row], criteria.tie[row], world.ids)
        return those_admitted(keep, world, criteria, row, obj)


def _over_lists(
    world: World,
    criteria: Criteria,
    groups: Groups,
    k: Ints,
    lists: Lists,
    listed: Ints,
) -> Iterator[tuple[Ints, tuple[Floats, Ints]]]:
    """Some of the rows `listed`, and their k-th totals among those in their lists: `limit` and `tie`."""
    has_places = np.asarray(~np.isnan(groups.x).all(axis=1))
    for rows, (row, obj) in over_lists(lists, criteria.eligible, listed):
        keep = admitted(world, criteria, rows[row], obj) & has_places[rows[row]]
        pairs, nowhere = (row[keep], obj[keep]), _objects(world, obj[:0])
        yield (
            rows,
            kth_nearest_to_groups_of(groups.take(rows), k[rows], pairs, nowhere),
        )


def _groups(world: World, criteria: Criteria) -> Groups:
    """The places of the groups."""
    total, space = criteria.total, world.space
    return Groups(x=criteria.x, y=criteria.y, total=total, space=space)


def _searched(
    world: World, criteria: Criteria, groups: Groups, ways: Ways, k: Ints
) -> tuple[Floats, Ints, Bools]:
    """The k-th totals of the rows of `ways.searched`: `limit`, `tie`, and which of the rows have not given up."""
    rows = ways.searched
    return kth_nearest_to_groups_where(
        groups.take(rows),
        k[rows],
        *ways.wanted(rows, k[rows]),
        _objects(world, np.flatnonzero(world.alive)),
        lambda row, number: admitted(world, criteria, rows[row], number),
    )


def _objects(world: World, numbers: Ints) -> Objects:
    return Objects(
        x=world.x, y=world.y, number=numbers, space=world.space, ids=world.ids
    )
