"""A run in which nothing happens: as queries that start see the objects, and whoever asks what waits for time."""

import numpy as np

from st_common.operators.events.timeline import Clock, Events
from st_common.operators.expressions import readings
from st_common.operators.matching.layer import LayerOf
from st_common.operators.matching.placing import Source
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.registered import Queries
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.compiled import Compiled
from st_common.operators.turn.turn import Turn, own_objects


def idle_turn(
    state: State,
    settings: Settings,
    *,
    queries: Queries,
    known: Compiled,
    layer_of: LayerOf,
) -> Turn:
    """A turn without events, at the clock of a state.

    Args:
        state: the state.
        settings: what of the stream's settings decides answers, and which shard this is.
        queries: all queries of the stream, as they shall be.
        known: the same, compiled.
        layer_of: gives a layer in a version.
    """
    none = Events.empty()
    return Turn(
        events=none,
        readings=readings.of_events(state.fixes, none, {}),
        objects=state.objects,
        clock=Clock(
            position=np.array([-1]), value=np.array([clock_us(state, settings)])
        ),
        queries=queries,
        known=known,
        settings=settings,
        layer_of=layer_of,
        numbering=Numbering(state.partners, state.targets),
        is_own=own_objects(state.objects, settings),
    )


def clock_us(state: State, settings: Settings) -> int:
    """The clock of a state, in microseconds; before the stream has one, when nothing is told, the epoch."""
    return 0 if state.max_event == NEVER else state.max_event - settings.lateness_us


def known_fixes(state: State) -> Source:
    """The last fixes of a state, by which is estimated what is looked at first."""
    return Source(fixes=state.fixes, objects=state.objects)
