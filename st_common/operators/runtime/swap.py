"""Queries that start, stop or see another version of a layer, judged at their row of the log (SPEC X4)."""

import numpy as np

from st_common.operators.events.timeline import Clock, Events
from st_common.operators.expressions import readings
from st_common.operators.fence.swapping import swap_fences
from st_common.operators.matching.layer import LayerOf
from st_common.operators.matching.placing import Source
from st_common.operators.position_filter.filter import Filtered
from st_common.operators.runtime.compiling import compile_shard
from st_common.operators.runtime.evaluate import (
    Outcome,
    fields_of_parts,
    outcome_of,
    own_objects,
)
from st_common.operators.runtime.ranges import swap_ranges
from st_common.operators.runtime.swap_ticks import swap_ticks
from st_common.operators.state.changed_queries import changed_queries
from st_common.operators.state.delta import Delta
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.part import Counters
from st_common.operators.turn.present import Present
from st_common.operators.turn.swapping import At, Swap, SwapPhase, Swapping
from st_common.operators.turn.turn import Turn

SWAP_PHASES: tuple[SwapPhase, ...] = (
    swap_ranges,
    swap_ticks,
    swap_fences,
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
    turn = _turn(state, change, settings, layer_of)
    at = At(
        tick=_now(state, settings),
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
    )
    parts = [phase(swapping) for phase in SWAP_PHASES]
    delta = Delta(
        next_segment=state.next_segment,
        max_event=state.max_event,
        queries=change.queries,
        layers=change.layers,
        changed_queries=changed_queries(state.queries, change.queries),
        **fields_of_parts(turn, parts),
    )
    return outcome_of(delta, parts, Counters(), filtered=Filtered())


def _turn(state: State, change: Swap, settings: Settings, layer_of: LayerOf) -> Turn:
    """A run without events, for the queries that are judged anew."""
    none = Events.empty()
    source = Source(fixes=state.fixes, objects=state.objects)
    return Turn(
        events=none,
        readings=readings.of_events(state.fixes, none, {}),
        objects=state.objects,
        clock=Clock(position=np.array([-1]), value=np.array([_now(state, settings)])),
        queries=change.queries,
        known=compile_shard(change.queries, settings, source, change.after.tolist()),
        settings=settings,
        layer_of=layer_of,
        numbering=Numbering(state.partners, state.targets),
        is_own=own_objects(state.objects, settings),
    )


def _now(state: State, settings: Settings) -> int:
    """The clock; before the stream has one, when nothing is told, the epoch."""
    return 0 if state.max_event == NEVER else state.max_event - settings.lateness_us
