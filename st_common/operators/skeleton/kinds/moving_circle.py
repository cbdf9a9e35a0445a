"""Circles that go with a focal object (GPAC section 4.1, `('M', id, radius)`; SPEC G4)."""

from typing import ClassVar

from st_common.geometry.circles import points_in_circles
from st_common.operators.skeleton.world import (
    Bools,
    Criteria,
    Ints,
    Pairs,
    Table,
    World,
    centres,
    those_admitted,
)

_GROWTH = 1 + 1e-9  # what can come near is never left out by rounding


class MovingCircles:
    """Members are at most the radius away from the focal object; the criteria are centre and radius (`limit`)."""

    is_dynamic: ClassVar[bool] = False
    touched_by_all: ClassVar[bool] = False
    caches: ClassVar[bool] = True

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """The circle goes where its focal object is.

        Returns:
            Criteria with `x`, `y` and the radius as `limit`; NaN in x and y where the focal object is not alive.
        """
        focal = table.focal[which]
        x, y = centres(world, focal, table.x[which], table.y[which])
        eligible, radius = table.eligible[which], table.radius[which]
        return Criteria(
            query=which, focal=focal[:, None], eligible=eligible, x=x, y=y, limit=radius
        )

    def in_cache_area(
        self, world: World, criteria: Criteria, objects: Ints, margin: float
    ) -> Pairs:
        """Pairs in the circle, its radius larger by the margin."""
        radius = (criteria.limit + margin) * _GROWTH if margin else criteria.limit
        objects = objects[world.alive[objects]]
        points = world.x[objects], world.y[objects]
        row, at = points_in_circles(
            criteria.x, criteria.y, radius, *points, space=world.space
        )
        return row, objects[at]

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Whether the object is within the radius, the border included; bool[p]."""
        centre = criteria.x[row], criteria.y[row]
        keep = world.space.is_within(
            *centre, world.x[obj], world.y[obj], criteria.limit[row]
        )
        return those_admitted(keep, world, criteria, row, obj)
