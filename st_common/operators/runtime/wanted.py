"""What waits for time: the next event time at which something happens though no fix comes (SPEC S1).

Whatever waits says so here, by one function in `_WAITS`. Who runs the step owns the agenda: he asks for the next time
and, when the feed is quiet, brings it about by a clock row.
"""

import numpy as np

from st_common.operators.events.agenda import ticks_of
from st_common.operators.fence.moving_specs import MovingFences
from st_common.operators.fence.specs import FOREVER, Detections, FenceSet
from st_common.operators.fence.visits import MovingVisits, Visits
from st_common.operators.incident.incidents import Incidents
from st_common.operators.incident.specs import IncidentSet
from st_common.operators.matching.layer import Layer
from st_common.operators.outer.lingering import Lingering, ages_at
from st_common.operators.outer.settling import Waiting, counts_at
from st_common.operators.outer.specs import OuterSpecs
from st_common.operators.runtime.compiling import compiled
from st_common.operators.runtime.idle import idle_turn, known_fixes
from st_common.operators.state.fixes import ALIVE, NEVER
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.travelled.frames import Frames
from st_common.operators.travelled.specs import TIME, FrameSpecs
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn
from st_common.operators.window import windows
from st_common.operators.window.entries import Entries


def wanted_us(state: State, settings: Settings) -> int | None:
    """The first event time of which it is known now that something happens once the clock is past it (SPEC S1).

    Args:
        state: the state of a shard.
        settings: what of the stream's settings decides answers, and which shard this is.

    Returns:
        Microseconds since 1970, UTC, never before the clock. None when nothing waits: then time may stand still, and
        nobody would notice.
    """
    if state.max_event == NEVER:
        return None
    turn = idle_turn(
        state,
        settings,
        queries=state.queries,
        known=compiled(state.queries, settings, known_fixes(state)),
        layer_of=_no_layer,
    )
    times = np.concatenate([waits(state, turn) for waits in _WAITS])
    return int(times.min()) if len(times) else None


def _held(state: State, _turn: Turn) -> np.ndarray:
    """Fixes that wait for the clock, because lateness is set."""
    return state.held.ts


def _silent(state: State, turn: Turn) -> np.ndarray:
    """Objects that will have been silent for too long."""
    silence_us = turn.settings.silence_us
    if silence_us is None:
        return state.fixes.ts[:0]
    ends: np.ndarray = state.fixes.seen_ts[state.fixes.status == ALIVE] + silence_us
    return ends


def _tick(state: State, turn: Turn) -> np.ndarray:
    """The tick that something happened in."""
    tick = state.pending.tick
    return np.array([tick] if tick != NEVER and turn.known.has_ticks else [], np.int64)


def _aging(state: State, turn: Turn) -> np.ndarray:
    """Ticks at which what windows hold is too old."""
    return windows.aging(state.memories[Entries], turn)


def _lingering(state: State, turn: Turn) -> np.ndarray:
    """Ticks at which rows that have left are too old."""
    return ages_at(turn, turn.known.of(OuterSpecs), state.memories[Lingering])


def _settling(state: State, turn: Turn) -> np.ndarray:
    """Ticks at which rows count that were there long enough."""
    return counts_at(turn, turn.known.of(OuterSpecs), state.memories[Waiting])


def _sliding(state: State, turn: Turn) -> np.ndarray:
    """Ticks at which the clock moves the windows of frames."""
    if not len(turn.known.of(FrameSpecs).numbers):
        return state.fixes.ts[:0]
    specs = turn.known.of(FrameSpecs)
    timed = np.where(specs.range_by == TIME, specs.range, 0) + specs.slide
    longest = int(timed[specs.slide_by == TIME].max(initial=0))
    longest = max(longest, int(specs.session.max(initial=0)))
    newest = max(int(state.fixes.ts.max(initial=NEVER)), int(turn.clock.value[0]))
    return Frames(state, turn, Present(state.fixes, turn)).ticks_by_themselves(
        newest + longest + 2 * turn.settings.tick_us
    )


def _dwelling(state: State, turn: Turn) -> np.ndarray:
    """Times at which visits of fences have lasted long enough."""
    still = _lasting(turn, turn.known.of(FenceSet), state.memories[Visits])
    moving = _lasting(turn, turn.known.of(MovingFences), state.memories[MovingVisits])
    return np.concatenate([still, ticks_of(moving, turn.settings.tick_us)])


def _lasting(turn: Turn, fences: Detections, visits: Visits) -> np.ndarray:
    """When the visits of some fences will have lasted long enough."""
    if not len(fences):
        return visits.since[:0]
    waiting = visits.take(visits.is_in & (visits.dwelt == 0))
    fence = fences.place[turn.numbering.targets.query[waiting.target]]
    dwell_us = fences.dwell_us[fence]
    timed = dwell_us != FOREVER
    return np.asarray(waiting.since[timed] + dwell_us[timed])


def _breaking(state: State, turn: Turn) -> np.ndarray:
    """Times at which incidents end because no fix came for too long."""
    incidents, known = turn.known.of(IncidentSet), state.memories[Incidents]
    is_open = known.take(known.is_open)
    incident = incidents.place[turn.numbering.targets.query[is_open.target]]
    gap_us = incidents.max_gap_us[incident]
    timed = gap_us != FOREVER
    return np.asarray(state.fixes.ts[is_open.object][timed] + gap_us[timed])


_WAITS = (
    _held,
    _silent,
    _tick,
    _aging,
    _lingering,
    _settling,
    _sliding,
    _dwelling,
    _breaking,
)


def _no_layer(layer: str, version: int) -> Layer:
    """Nothing is looked up where nothing happens."""
    raise AssertionError(f"version {version} of layer {layer} was looked up")
