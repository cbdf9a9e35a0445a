"""Queries that start, stop or see another version of a layer, judged at their row of the log (SPEC X4)."""

from st_common.operators.fence.swapping import swap_fences
from st_common.operators.incident.swapping import swap_incidents
from st_common.operators.matching.layer import LayerOf
from st_common.operators.outer.phases import swap_outer
from st_common.operators.position_filter.filter import Filtered
from st_common.operators.runtime.compiling import compile_shard
from st_common.operators.runtime.evaluate import (
    Outcome,
    fields_of_parts,
    outcome_of,
)
from st_common.operators.runtime.idle import clock_us, idle_turn, known_fixes
from st_common.operators.runtime.ranges import swap_ranges
from st_common.operators.runtime.swap_ticks import swap_ticks
from st_common.operators.runtime.touched import touched
from st_common.operators.state.changed_queries import changed_queries
from st_common.operators.state.delta import Delta
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.part import Counters
from st_common.operators.turn.present import Present
from st_common.operators.turn.swapping import At, Swap, SwapPhase, Swapping

SWAP_PHASES: tuple[SwapPhase, ...] = (
    swap_ranges,
    swap_ticks,
    swap_fences,
    swap_incidents,
)
"""Who is asked about a swap: those of `evaluate.PHASES`, in their order."""


def swap(state: State, change: Swap, settings: Settings, layer_of: LayerOf) -> Outcome:
    """Judges queries that start, stop or see another version of a layer, by the last fixes.

    Args:
        state: the state before the row of the log; it is not changed.
        change: which queries, and the causes that are told.
        settings: what of the stream's settings decides answers, and which shard this is.
        layer_of: gives a layer in a version.

    Returns:
        The delta to the state and the changes: - for what no longer holds, + for what now does.
    """
    # Only queries that are judged anew: nothing happens that others would look at.
    numbers = change.after.tolist()
    known = compile_shard(change.queries, settings, known_fixes(state), numbers)
    turn = idle_turn(
        state, settings, queries=change.queries, known=known, layer_of=layer_of
    )
    at = At(
        tick=clock_us(state, settings),
        position=change.position,
        minus=change.minus,
        plus=change.plus,
    )
    swapping = Swapping(
        state=state,
        turn=turn,
        change=change,
        present=Present(state.fixes, turn),
        at=at,
        among=touched(state, turn, change),
    )
    parts = swap_outer(swapping, [phase(swapping) for phase in SWAP_PHASES])
    delta = Delta(
        next_segment=state.next_segment,
        max_event=state.max_event,
        queries=change.queries,
        layers=change.layers,
        changed_queries=changed_queries(state.queries, change.queries),
        **fields_of_parts(turn, parts),
    )
    return outcome_of(delta, parts, Counters(), filtered=Filtered())
