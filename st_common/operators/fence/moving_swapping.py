"""What becomes of fences on regions that move when queries start or stop (SPEC X3, X4)."""

import numpy as np

from st_common.operators.aggregate.stretch import one_tick
from st_common.operators.arrays.keys import SHIFT, is_in, swap_halves, without
from st_common.operators.fence.moving_specs import MovingFences
from st_common.operators.fence.swapping import are_of, begun, lines_of, taken_over
from st_common.operators.fence.telling import rows_of
from st_common.operators.fence.ticking import are_near
from st_common.operators.fence.visits import MovingVisits
from st_common.operators.state.component import Change
from st_common.operators.turn.part import Part
from st_common.operators.turn.swapping import Swapping


def swap_moving_fences(swapping: Swapping, answer: np.ndarray) -> Part:
    """The part of a swap about fences on regions that move.

    Fences that stop end their visits. Objects that are in a region that is new, by all last fixes, are in from now on.
    Around another object or of another size, those that are in and no longer near to the region leave.

    Args:
        swapping: the queries that start and stop.
        answer: sorted keys `target << 32 | object` of the answers at ticks after the swap.
    """
    state, turn, change = swapping.state, swapping.turn, swapping.change
    visits, fences = state.memories[MovingVisits], turn.known.of(MovingFences)
    own = visits.take(are_of(visits, turn, change.before))
    if not len(own) and not len(fences):
        return Part()
    if change.takes_over:
        return taken_over(swapping, own)
    query = turn.numbering.targets.query[answer >> SHIFT]
    inside = np.sort(swap_halves(answer[fences.place[query] >= 0]))
    gone, stops = own.key[own.is_in], np.ones(len(own), bool)
    if change.keeps:
        still = one_tick(turn, swapping.present, swapping.at.tick)
        gone = without(gone, inside)
        gone = gone[~are_near(still, gone)]
        stops = is_in(own.key, gone)
        inside = without(inside, own.key[own.is_in])
    told = lines_of(swapping, own, gone, inside)
    after = Change(
        removed=own.key[stops & ~is_in(own.key, inside)],
        added=begun(MovingVisits, inside, swapping.at.tick),
    )
    return Part(
        changes=(rows_of(told, turn, state.fixes),), memories={MovingVisits: after}
    )
