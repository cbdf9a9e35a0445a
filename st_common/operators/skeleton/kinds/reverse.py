"""Reverse nearest neighbours: the objects whose nearest neighbour a place or a focal object is (GPAC section 4; G8)."""

from typing import ClassVar

import numpy as np

from st_common.geometry.circles import points_in_circles
from st_common.geometry.gaps import gaps, gaps_at_most
from st_common.geometry.nearest import Objects, kth_nearest
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


class Reverse:
    """Members have no other live object nearer than the place is; one that is exactly as near does no harm.

    The criteria are the place and, of each object, the distance to its nearest other one (`gap`): whatever moves can
    change the gap of anything, so that every change judges all queries anew.

        place at 0        f at 0    a at 3    b at 5    c at 20
        gap                  3         2         2        15
        to the place         0         3         5        20        f alone is a member
    """

    is_dynamic: ClassVar[bool] = True
    touched_by_all: ClassVar[bool] = True
    caches: ClassVar[bool] = False

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """The place goes where its focal object is; the gaps of all live objects are found anew.

        Returns:
            Criteria with `x`, `y` and `gap`: float64[objects], ranks, infinite of one that is alone, NaN of who is not
            alive.
        """
        focal = table.focal[which]
        x, y = centres(world, focal, table.x[which], table.y[which])
        alive = np.flatnonzero(world.alive)
        objects = Objects(x=world.x, y=world.y, number=alive, space=world.space)
        gap, one = np.full(len(world.x), np.nan), np.ones(len(alive), np.int64)
        gap[alive] = kth_nearest(*objects.places(), one, alive, objects)[0]
        return Criteria(
            query=which,
            focal=focal[:, None],
            eligible=table.eligible[which],
            x=x,
            y=y,
            gap=gap,
        )

    def asked(self, world: World, table: Table, which: Ints) -> Criteria:
        """The place alone."""
        return at_places(world, table, which)

    def measure(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Floats:
        """The distance as a rank; float64[p], NaN where the object is not admitted."""
        return distances(world, criteria, row, obj)

    def chosen(self, world: World, table: Table, value: Floats, at: Ints) -> Bools:  # noqa: ARG002 - one signature
        """Whoever is at most as far from the place as its own gap at each tick; bool[t, m, n]."""
        where = (
            np.where(world.alive[at], world.x[at], np.nan),
            np.where(world.alive[at], world.y[at], np.nan),
        )
        with np.errstate(invalid="ignore"):
            # First by a bound that is cheap for all; exact gaps only of those that it leaves.
            near = value <= gaps_at_most(*where, space=world.space)[:, None]
        tick, row, column = np.nonzero(near)
        gap = gaps(*where, tick, column, space=world.space)
        near[tick, row, column] = value[tick, row, column] <= gap
        return near

    def in_cache_area(
        self, world: World, criteria: Criteria, objects: Ints, margin: float
    ) -> Pairs:
        """Pairs of a place and an object in whose circle it lies; the radius is the gap, larger by the margin."""
        radius = world.space.radius_of(criteria.gap[objects]) + margin
        circles = world.x[objects], world.y[objects], radius
        at, row = points_in_circles(*circles, criteria.x, criteria.y, space=world.space)
        keep = admitted(world, criteria, row, objects[at])
        return row[keep], objects[at[keep]]

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Whether the place is at most as far from the object as its nearest other object; bool[p]."""
        place = criteria.x[row], criteria.y[row]
        far = world.space.rank(*place, world.x[obj], world.y[obj])
        near = np.asarray(far <= criteria.gap[obj])
        return those_admitted(near, world, criteria, row, obj)
