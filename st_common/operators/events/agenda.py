"""When ticks are due (docs/how-it-works.md): after the row of the log at which the clock has passed them."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import unique
from st_common.operators.events.timeline import LAST, Clock, Events
from st_common.operators.state.fixes import NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """An end mark: nothing comes after it, so the tick that is open ends there.

    It ends at the largest event time before the mark, not at its own: nothing is told of a time that the stream has not
    come to, for at the tick itself others might be silent.

    Attributes:
        position: its row of the log.
        ts: that event time, in microseconds.
    """

    position: int
    ts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """The ticks of a run that are due.

    Attributes:
        due: int64[t], their event times in microseconds, ascending.
        position: int64[t], the rows of the log at which they are due, rising.
        tick: int64[n], the tick of each event of the run, due or not.
    """

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
    """The ticks of a run that are due: the clock is past them, and something happened in them or windows age.

    Args:
        events: what happens in the run.
        clock: the clock over the run.
        tick_us: the time between two ticks.
        pending: the tick that something happened in before the run, `NEVER` for none.
        aging: int64, ascending, ticks at which entries of windows age.
        final: the end mark, at which every tick in which something happened is due; the last one is cut short.

    Returns:
        The agenda. An event belongs to the first tick at or after its time, and not before the clock as it takes
        effect: a tick that was told is never told again.
    """
    tick = cut_short(
        ticks_of(np.maximum(events.ts, clock.before(events.position)), tick_us), final
    )
    pending = pending if final is None else min(pending, final.ts)
    happened = unique(np.append(tick, pending)) if pending != NEVER else unique(tick)
    ticks = np.union1d(happened, aging)
    position = clock.first_past(ticks)
    if final is not None:
        # At the end of a finite stream no tick in which something happened waits for the clock.
        position = np.where(
            (position == LAST) & np.isin(ticks, happened), final.position, position
        )
    due = position != LAST
    return Agenda(due=ticks[due], position=position[due], tick=tick)


def cut_short(tick: np.ndarray, final: Final | None) -> np.ndarray:
    """The ticks (int64), those after an end mark at its time."""
    return tick if final is None else np.minimum(tick, final.ts)


def ticks_of(ts: np.ndarray, tick_us: int) -> np.ndarray:
    """The first tick at or after each time; with ticks every 10, times 10, 20, 21 give 10, 20, 30."""
    ticks: np.ndarray = -(-ts // tick_us) * tick_us
    return ticks


def ticks_past(ts: np.ndarray, tick_us: int) -> np.ndarray:
    """The first tick after each time; with ticks every 10, times 10, 20, 21 give 20, 30, 30."""
    ticks: np.ndarray = (ts // tick_us + 1) * tick_us
    return ticks
