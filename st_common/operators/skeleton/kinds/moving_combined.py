"""AND, OR and NOT of regions of which some go with focal objects (SPEC X12)."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from st_common.geometry.circles import points_in_circles
from st_common.geometry.combined import contained
from st_common.geometry.join import points_in_boxes
from st_common.operators.arrays.keys import MASK, SHIFT, packed, unique
from st_common.operators.skeleton.combined_forms import Forms
from st_common.operators.skeleton.side_by_side import side_by_side
from st_common.operators.skeleton.world import (
    Bools,
    Criteria,
    Floats,
    Ints,
    Pairs,
    Table,
    World,
    those_admitted,
)
from st_common.runs import ranges


class MovingCombined:
    """Members lie in what AND, OR and NOT make of regions, each of which stands still or goes with its focal object.

    The criteria are the centres of these regions, side by side, and what they are (`form`, a row of `forms`). While one
    focal object is not alive there is no member; see `regions/moving_combined.py`.

        NOT ('M', 'a', 2 m) on a line     a at 0    b at 2    c at 3      member: c
    """

    is_dynamic: ClassVar[bool] = False
    touched_by_all: ClassVar[bool] = False
    caches: ClassVar[bool] = False

    def update_criteria(self, world: World, table: Table, which: Ints) -> Criteria:
        """The regions go where their focal objects are.

        Returns:
            Criteria with `x`, `y` and `focal` [w, slots], NaN in the whole row where a focal object is not alive.
        """
        x, y, focal = side_by_side(world, table, which)
        known = Criteria(
            query=which, focal=focal, eligible=table.eligible[which], x=x, y=y
        )
        return replace(known, form=table.form[which], forms=table.forms)

    def in_cache_area(
        self,
        world: World,
        criteria: Criteria,
        objects: Ints,
        margin: float,  # noqa: ARG002 - it has no caches
    ) -> Pairs:
        """Pairs in the regions among which all members are (`Forms.cover`); with all objects, where there are none."""
        forms = _forms(criteria)
        objects = objects[world.alive[objects]]
        points = world.x[objects], world.y[objects]
        stands = ~np.isnan(criteria.x[:, 0])
        endless = np.flatnonzero(forms.endless[criteria.form] & stands)
        cover = _of_slots(forms.cover, criteria) & stands[:, None]
        pairs_of = [
            _in_circles(world, criteria, cover, *points),
            _in_boxes(world, criteria, cover, *points),
            _in_still(criteria, cover, *points),
            (
                np.repeat(endless, len(objects)),
                np.tile(np.arange(len(objects)), len(endless)),
            ),
        ]
        pairs = unique(np.concatenate([packed(row, at) for row, at in pairs_of]))
        return pairs >> SHIFT, objects[pairs & MASK]

    def satisfy(self, world: World, criteria: Criteria, row: Ints, obj: Ints) -> Bools:
        """Whether the object lies in the region, borders as those of its parts; bool[p]."""
        forms, form = _forms(criteria), criteria.form[row]
        parts = [
            _are_in_circles(world, criteria, row, obj),
            _are_in_boxes(world, criteria, row, obj),
            _are_in_still(world, criteria, row, obj),
        ]
        pair, slot = (np.concatenate([part[at] for part in parts]) for at in range(2))
        keep = contained(forms.trees, form, pair, forms.node[form[pair], slot])
        keep &= ~np.isnan(criteria.x[row, 0])
        return those_admitted(keep, world, criteria, row, obj)


def _forms(criteria: Criteria) -> Forms:
    assert criteria.forms is not None  # noqa: S101 - the table of this kind has them
    return criteria.forms


def _of_slots(column: np.ndarray, criteria: Criteria) -> np.ndarray:
    """A column of `Forms` for rows of criteria, as many slots of it as they have; [w, slots]."""
    of_rows: np.ndarray = column[criteria.form, : criteria.x.shape[1]]
    return of_rows


def _half_sides(world: World, criteria: Criteria, y: Floats, at: Pairs) -> Pairs:
    """Half of the sides of boxes in coordinates, in slots of rows of criteria whose centres are at `y`; float64[n]."""
    forms = _forms(criteria)
    at = criteria.form[at[0]], at[1]
    wide, high, metres = forms.width[at] / 2, forms.height[at] / 2, forms.metres[at]
    across, along = world.space.scale(y)
    return np.where(metres, wide / across, wide), np.where(metres, high / along, high)


def _in_circles(
    world: World, criteria: Criteria, cover: Bools, x: Floats, y: Floats
) -> Pairs:
    """Pairs of a row and a point in one of its circles that are in the cover."""
    radius = _of_slots(_forms(criteria).radius, criteria)
    row, slot = np.nonzero(cover & ~np.isnan(radius))
    centre = criteria.x[row, slot], criteria.y[row, slot]
    circle, at = points_in_circles(*centre, radius[row, slot], x, y, space=world.space)
    return row[circle], at


def _in_boxes(
    world: World, criteria: Criteria, cover: Bools, x: Floats, y: Floats
) -> Pairs:
    """Pairs of a row and a point in one of its boxes that are in the cover."""
    row, slot = np.nonzero(
        cover & ~np.isnan(_of_slots(_forms(criteria).width, criteria))
    )
    centre_x, centre_y = criteria.x[row, slot], criteria.y[row, slot]
    wide, high = _half_sides(world, criteria, centre_y, (row, slot))
    corners = [centre_x - wide, centre_y - high, centre_x + wide, centre_y + high]
    boxes, owner = world.space.wrap(np.stack(corners, axis=1))
    box, at = points_in_boxes(boxes.T, x, y)
    return row[owner[box]], at


def _in_still(criteria: Criteria, cover: Bools, x: Floats, y: Floats) -> Pairs:
    """Pairs of a row and a point in one of its regions that stand still and are in the cover."""
    leaves, still = _forms(criteria).leaves, _of_slots(_forms(criteria).still, criteria)
    row, slot = np.nonzero(cover & (still >= 0))
    if leaves is None or not len(row):
        return row[:0], row[:0]
    order = np.argsort(still[row, slot], kind="stable")
    row, region = row[order], still[row, slot][order]
    point, of = leaves.probe(x, y)
    start = np.searchsorted(region, of)
    count = np.searchsorted(region, of, side="right") - start
    return row[ranges(start, count)], np.repeat(point, count)


def _are_in_circles(world: World, criteria: Criteria, row: Ints, obj: Ints) -> Pairs:
    """Pairs and slots: where the object of a pair lies in a circle of its row."""
    radius = _of_slots(_forms(criteria).radius, criteria)
    pair, slot = np.nonzero(~np.isnan(radius)[row])
    of, who = row[pair], obj[pair]
    inside = world.space.is_within(
        criteria.x[of, slot],
        criteria.y[of, slot],
        world.x[who],
        world.y[who],
        radius[of, slot],
    )
    return pair[inside], slot[inside]


def _are_in_boxes(world: World, criteria: Criteria, row: Ints, obj: Ints) -> Pairs:
    """Pairs and slots: where the object of a pair lies in a box of its row; on degrees also across 180 degrees."""
    is_box = ~np.isnan(_of_slots(_forms(criteria).width, criteria))
    pair, slot = np.nonzero(is_box[row])
    of, x, y = row[pair], world.x[obj[pair]], world.y[obj[pair]]
    centre_x, centre_y = criteria.x[of, slot], criteria.y[of, slot]
    wide, high = _half_sides(world, criteria, centre_y, (of, slot))
    inside = world.space.is_between(x, centre_x - wide, centre_x + wide)
    inside &= (y >= centre_y - high) & (y <= centre_y + high)
    return pair[inside], slot[inside]


def _are_in_still(world: World, criteria: Criteria, row: Ints, obj: Ints) -> Pairs:
    """Pairs and slots: where the object of a pair lies in a region of its row that stands still."""
    leaves, still = _forms(criteria).leaves, _of_slots(_forms(criteria).still, criteria)
    pair, slot = np.nonzero((still >= 0)[row])
    if leaves is None or not len(pair):
        return pair[:0], slot[:0]
    # Objects are looked up once, however many queries ask about them.
    who, at = np.unique(obj, return_inverse=True)
    point, region = leaves.probe(world.x[who], world.y[who])
    inside = np.isin(packed(still[row[pair], slot], at[pair]), packed(region, point))
    return pair[inside], slot[inside]
