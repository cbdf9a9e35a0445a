"""When ticks are due (DESIGN section 3): after the row of the log at which the clock has passed them."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.events.timeline import LAST, Clock, Events
from st_common.operators.state.fixes import NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """An end mark: its row, and the largest event time before it, at which the tick that is open then ends.

    So nothing is told of a time that the stream has not come to: at the tick itself others might be silent by then.
    """

    position: int
    ts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """The ticks of a run that are due, with the rows at which they are, and the `tick` of each event."""

    due: np.ndarray
    position: np.ndarray
    tick: np.ndarray


def agenda_of(
    events: Events,
    clock: Clock,
    tick_us: int,
    *,
    pending: int,
    aging: np.ndarray,
    final: Final | None,
) -> Agenda:
    """The agenda of a run.

    Args:
        events: what happens in the run.
        clock: the clock over the run.
        tick_us: the time between two ticks.
        pending: the tick that something happened in before the run, `NEVER` for none.
        aging: ticks at which entries of windows age.
        final: the end mark, at which every tick in which something happened is due; the last one is cut short.
    """
    tick = cut_short(
        ticks_of(np.maximum(events.ts, clock.before(events.position)), tick_us), final
    )
    pending = pending if final is None else min(pending, final.ts)
    happened = (
        np.unique(np.append(tick, pending)) if pending != NEVER else np.unique(tick)
    )
    ticks = np.union1d(happened, aging)
    position = clock.first_past(ticks)
    if final is not None:
        position = np.where(
            (position == LAST) & np.isin(ticks, happened), final.position, position
        )
    due = position != LAST
    return Agenda(due=ticks[due], position=position[due], tick=tick)


def cut_short(tick: np.ndarray, final: Final | None) -> np.ndarray:
    """The ticks, those that an end mark cuts short at its time."""
    return tick if final is None else np.minimum(tick, final.ts)


def ticks_of(ts: np.ndarray, tick_us: int) -> np.ndarray:
    """The first tick at or after each time."""
    ticks: np.ndarray = -(-ts // tick_us) * tick_us
    return ticks


def ticks_past(ts: np.ndarray, tick_us: int) -> np.ndarray:
    """The first tick after each time."""
    ticks: np.ndarray = (ts // tick_us + 1) * tick_us
    return ticks
