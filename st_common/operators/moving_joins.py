"""Joins of what is inside a region that goes with an object: with a layer's features, with other objects (SPEC G4, G9).

Who is inside is found anew for all objects when the focal object has moved.
"""

import numpy as np

from st_common.operators.eligibility import moving_mask
from st_common.operators.match import match
from st_common.operators.points import points_at
from st_common.operators.present import Present
from st_common.operators.scope import Scope
from st_common.operators.turn import Turn
from st_common.operators.world import World
from st_common.query.plan import Plan
from st_common.query.region import MovingBox, MovingCircle


def is_moving(plan: Plan) -> bool:
    """Whether the region of a plan goes with an object."""
    return isinstance(plan.inside, MovingBox | MovingCircle)


def inside(plan: Plan, turn: Turn, world: World) -> np.ndarray:
    """The living objects in a region that moves, its focal object never; sorted int64[n]."""
    assert isinstance(plan.inside, MovingBox | MovingCircle)  # noqa: S101 - only such queries come here
    return np.flatnonzero(moving_mask(plan.inside, world, turn.objects))


def has_moved(plan: Plan, turn: Turn, changed: np.ndarray) -> bool:
    """Whether the region of a plan moved: its focal object is among the changed ones (bool[n])."""
    return any(number >= 0 and changed[number] for number in map(turn.objects.number_of, plan.focals))


def judge_moving_join(scope: Scope, turn: Turn, fixes: Present, world: World, number: int) -> int:
    """Decides the pairs of one query that joins a layer; how many objects were looked at."""
    plan, known = turn.queries[number].plan, turn.known.alone[number]
    objects, moved = inside(plan, turn, world), has_moved(plan, turn, scope.changed)
    objects = objects if moved else objects[scope.changed[objects]]
    points = points_at(known, fixes, objects, turn.objects, geographic=world.geographic)
    hits = match(known, points, layer_of=turn.layer_of, numbering=turn.numbering, first=number)
    scope.found(hits.target, objects[hits.point])
    mine = np.flatnonzero(turn.numbering.targets.query == number)
    (scope.whole if moved else scope.by_object)(mine)
    return len(objects)
