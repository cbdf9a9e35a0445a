"""Rectangles that go with a focal object (GPAC section 4.1, `('M', id, xdist, ydist)`; SPEC G4)."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from st_common.geometry.join import points_in_boxes
from st_common.operators.skeleton.world import (
    Bools,
    Criteria,
    Floats,
    Ints,
    Pairs,
    Table,
    World,
    centres,
    those_admitted,
)

_GROWTH = 1 + 1e-9


class MovingBoxes:
    """Members lie in the closed box; its criteria are the centre and half of each side, in coordinates.

    On degrees a box goes on across 180 degrees. It ends at a pole; where a side is longer than its parallel, as next to
    a pole, it has all longitudes.

        box 8 x 8 around f at (0, 0)      a at 3      b at 5      c at 20
        member                              yes         no          no
        in the area with margin 2           yes         yes         no
    """

    is_dynamic: ClassVar[bool] = False
    touched_by_all: ClassVar[bool] = False
    caches: ClassVar[bool] = True

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """The box goes where its focal object is; sides in metres become degrees of that latitude.

        Returns:
            Criteria with `x`, `y`, `half_width` and `half_height`; NaN in x and y where the focal object is not alive.
        """
        focal = table.focal[which]
        x, y = centres(world, focal, table.x[which], table.y[which])
        wide, high = table.width[which] / 2, table.height[which] / 2
        metres, (across, along) = table.metres[which], world.space.scale(y)
        wide = np.where(metres, wide / across, wide)
        high = np.where(metres, high / along, high)
        known = Criteria(
            query=which, focal=focal[:, None], eligible=table.eligible[which], x=x, y=y
        )
        return replace(known, half_width=wide, half_height=high)

    def in_cache_area(
        self, world: World, criteria: Criteria, objects: Ints, margin: float
    ) -> Pairs:
        """Pairs in the box, grown on each side by the margin, also where its sides in degrees grow on the way."""
        wide, high = criteria.half_width, criteria.half_height
        if margin:
            across, along = _reach(world, criteria, margin)
            wide, high = (wide + across) * _GROWTH, (high + along) * _GROWTH
        objects = objects[world.alive[objects]]
        boxes = np.stack(
            [
                criteria.x - wide,
                criteria.y - high,
                criteria.x + wide,
                criteria.y + high,
            ],
            axis=1,
        )
        boxes, owner = world.space.wrap(boxes)
        row, at = points_in_boxes(boxes.T, world.x[objects], world.y[objects])
        return owner[row], objects[at]

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Whether the object lies in the box or on its border; bool[p]. On degrees also across 180 degrees."""
        x, y, (wide, high) = (
            world.x[obj],
            world.y[obj],
            (criteria.half_width, criteria.half_height),
        )
        west, east = (criteria.x - wide)[row], (criteria.x + wide)[row]
        keep = world.space.is_between(x, west, east)
        keep &= y >= (criteria.y - high)[row]
        keep &= y <= (criteria.y + high)[row]
        return those_admitted(keep, world, criteria, row, obj)


def _reach(world: World, criteria: Criteria, margin: float) -> tuple[Floats, Floats]:
    """The margin in coordinates; a box in metres that moves so far towards a pole gets wider in degrees by itself."""
    space = world.space
    across, along = space.reach(criteria.y, margin)
    farthest = np.minimum(np.abs(criteria.y) + along, space.farthest[1])
    here, there = space.scale(criteria.y)[0], space.scale(farthest)[0]
    return across + criteria.half_width * (here / there - 1), along
