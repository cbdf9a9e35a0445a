"""The tick that is open: what happened in it waits until the clock has passed it."""

import numpy as np

from st_common.operators.arrays.keys import unique
from st_common.operators.events.agenda import Agenda, agenda_of
from st_common.operators.state.state import Pending, State
from st_common.operators.travelled.touches import first_ends
from st_common.operators.turn.turn import Turn


def agenda_in(turn: Turn, pending: int, aging: np.ndarray) -> Agenda:
    """The ticks of a run, those from before included that are pending, and those at which something ages."""
    return agenda_of(
        turn.events,
        turn.clock,
        turn.settings.tick_us,
        pending=pending,
        final=turn.final,
        aging=aging,
    )


def pending_tick(state: State, turn: Turn) -> int:
    """The tick in which something happened before the run; an end mark cuts it short."""
    tick = state.pending.tick
    return tick if turn.final is None else min(tick, turn.final.ts)


def left_for_others(state: State, turn: Turn) -> Pending:
    """What stays pending of a run in a shard whose objects other shards may ask for."""
    pending = pending_tick(state, turn)
    agenda = agenda_in(turn, pending, np.empty(0, np.int64))
    is_over = len(agenda.due) > 0 and int(agenda.due[-1]) >= pending
    changed = state.pending.objects[:0] if is_over else state.pending.objects
    later = np.flatnonzero(~np.isin(agenda.tick, agenda.due))
    return left_in(state, agenda, turn, changed, later)


def left_in(
    state: State, agenda: Agenda, turn: Turn, changed: np.ndarray, later: np.ndarray
) -> Pending:
    """What stays pending: events of the one tick that the clock has not passed."""
    if not len(changed) and not len(later):
        return Pending()
    ended = np.zeros(len(turn.objects), np.int8)
    if len(changed):
        ended[state.pending.objects] = state.pending.ended
    first_ends(ended, turn.events, later)
    objects = unique(np.concatenate([changed, turn.events.object[later]]))
    tick = int(agenda.tick[later[0]]) if len(later) else state.pending.tick
    return Pending(tick=tick, objects=objects, ended=ended[objects])
