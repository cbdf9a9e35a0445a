"""Joins of what is inside a region that goes with an object with a layer's features (SPEC G4, G9).

Who is inside is found anew for all objects when the focal object has moved.
"""

import numpy as np

from st_common.operators.matching.match import join_pairs
from st_common.operators.pairs.moving_regions import inside, selected
from st_common.operators.pairs.specs import MovingJoins
from st_common.operators.skeleton.scope import Scope
from st_common.operators.skeleton.world import World
from st_common.operators.turn.points import points_at
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn


def judge_moving_joins(scope: Scope, turn: Turn, fixes: Present, world: World) -> int:
    """Decides the pairs of all queries that join a layer below a region that moves.

    Args:
        scope: is told what is decided anew, and what holds.
        turn: the run.
        fixes: the last fixes at the tick.
        world: the same as kinds see them.

    Returns:
        How many pairs of a query and an object in its region were looked at.
    """
    moving, numbering = turn.known.of(MovingJoins), turn.numbering
    few = np.flatnonzero(world.alive & scope.changed)
    members = inside(moving, turn, fixes, world, few, scope.changed)
    _decide(scope, turn, members.moved)
    if not len(members.object):
        return 0
    # Each object is one point, in however many regions it lies.
    who, point = np.unique(members.object, return_inverse=True)
    points = points_at(moving.screened, fixes, who, turn.objects, space=world.space)
    keep = selected(moving, points, point, members.query)
    point, query = point[keep], members.query[keep]
    for group in (group for unit in moving.screened.units for group in unit.joins):
        mine = np.isin(query, group.queries)
        layer = turn.layer_of(group.join.layer, group.version)
        joined, of, partner = join_pairs(
            group, moving.screened, points, layer, numbering, (point[mine], query[mine])
        )
        scope.found(numbering.targets_of(of, partner), who[joined])
    return len(members.object)


def _decide(scope: Scope, turn: Turn, moved: np.ndarray) -> None:
    """Says what is decided anew: all of queries that moved, of the others what a changed object is in."""
    is_mine, has_moved = (
        np.zeros(len(turn.queries), bool),
        np.zeros(len(turn.queries), bool),
    )
    for queries in turn.known.of(MovingJoins).kinds.values():
        is_mine[queries.numbers] = True
    has_moved[moved] = True
    scope.by_object(
        np.flatnonzero((is_mine & ~has_moved)[turn.numbering.targets.query])
    )
    scope.whole(np.flatnonzero(has_moved[turn.numbering.targets.query]))
