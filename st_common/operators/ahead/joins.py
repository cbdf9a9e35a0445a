"""Joins with layers below regions that move, over several ticks at once (SPEC P8).

Only what changed is looked at: objects that reported, and everybody inside of a region that moved. A pair of an object
and a feature that holds at a tick holds until something happens to the object or to the query.
"""

import numpy as np

from st_common.operators.ahead.kinds import cells
from st_common.operators.ahead.regions import (
    Firsts,
    expanded,
    insiders,
    joined,
    next_move,
    old_keys,
    query_of,
    regions_of,
)
from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.arrays.turns import Turns, of_spells
from st_common.operators.matching.match import join_pairs
from st_common.operators.pairs.moving_regions import selected
from st_common.operators.pairs.specs import MovingJoins
from st_common.operators.turn.course import Course
from st_common.operators.turn.points import points_at
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn


def joins_ahead(
    course: Course, turn: Turn, fixes: Present, answer: np.ndarray
) -> tuple[Turns, int]:
    """What comes and goes in joins below regions that move, over several ticks at once.

    Args:
        course: the versions of last fixes over the ticks.
        turn: the run.
        fixes: the last fixes before the ticks.
        answer: int64, ascending, keys `target << 32 | object` before the ticks.

    Returns:
        Keys that come and go, and how much was looked at.
    """
    regions = regions_of(turn.known.of(MovingJoins), course, turn, fixes)
    parts = []
    for of in regions:
        tick, query, column = cells(of.asked.moved, course)
        parts.append(insiders(of, course, tick, query, course.at[tick, column]))
    firsts = joined(parts)
    firsts, row, target = _with_features(course, turn, firsts)
    new = firsts.take(row)
    old = old_keys(turn, answer, np.concatenate([of.numbers for of in regions]))
    # What held before holds until the region moves, or the object has another version.
    moves = next_move(turn, regions, course.ticks)[query_of(turn, old)]
    lasts = np.minimum(course.until[course.first_of(old & MASK)], moves)
    return of_spells(
        np.concatenate([old, packed(target, course.object[new.version])]),
        np.concatenate([np.full(len(old), -1), new.tick]),
        np.concatenate([lasts, new.until]),
        course.ticks,
    ), len(firsts.tick)


def _with_features(
    course: Course, turn: Turn, firsts: Firsts
) -> tuple[Firsts, np.ndarray, np.ndarray]:
    """Those that satisfy what else their query asks; and pairs of one of them (its place) and a target.

    A version that is inside of a region at several ticks is held against the layer once.
    """
    moving, numbering = turn.known.of(MovingJoins), turn.numbering
    screened, space = moving.screened, turn.settings.space
    versions, point = np.unique(firsts.version, return_inverse=True)
    points = points_at(screened, course, versions, turn.objects, space=space)
    keep = np.flatnonzero(selected(moving, points, point, firsts.query))
    firsts, point = firsts.take(keep), point[keep]
    pair, of_pair = np.unique(packed(firsts.query, point), return_inverse=True)
    rows, targets = [keep[:0]], [keep[:0]]
    for group in (group for unit in screened.units for group in unit.joins):
        mine = pair[np.isin(pair >> SHIFT, group.queries)]
        layer = turn.layer_of(group.join.layer, group.version)
        asked = mine & MASK, mine >> SHIFT
        at, query, partner = join_pairs(
            group, screened, points, layer, numbering, asked
        )
        row, place = expanded(of_pair, np.searchsorted(pair, packed(query, at)))
        rows.append(row)
        targets.append(numbering.targets_of(query, partner)[place])
    return firsts, np.concatenate(rows), np.concatenate(targets)
