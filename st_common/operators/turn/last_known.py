"""Which fix of an object a run knows by a row of the log: the last event up to there, else its fix from before."""

import numpy as np

from st_common.operators.events.timeline import Events
from st_common.operators.expressions import readings
from st_common.operators.expressions.readings import Readings
from st_common.operators.state.fixes import LastFixes
from st_common.operators.turn.turn import Turn


def last_known(
    events: Events, objects: np.ndarray, position: np.ndarray, ts: np.ndarray
) -> np.ndarray:
    """The last event of each object that the log has by a row and a time, else its fix from before the run.

    Args:
        events: of the run.
        objects: int64[n].
        position: int64[n], the row of the log.
        ts: int64[n], the event time in microseconds, of what stands at that very row.

    Returns:
        int64[n], the place of an event, or behind all events the number of the object.
    """
    start = np.searchsorted(events.object, objects)
    end = np.searchsorted(events.object, objects, side="right")
    at = _end_of_known(events, position, ts, start, end) - 1
    return np.where(at >= start, at, len(events) + objects)


def _end_of_known(
    events: Events,
    position: np.ndarray,
    ts: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Of each run of events of one object the place behind those that the log has by a row.

    Events of an object are sorted by order of effect, which is that of their rows and times: so halves are looked at.

    Args:
        events: of all objects.
        position: int64[n], a row for each run, and `ts` its time.
        ts: see `position`.
        low: int64[n], where runs begin.
        high: int64[n], the places behind their ends.
    """
    while (low < high).any():
        is_open = low < high
        at = np.where(is_open, (low + high) // 2, 0)
        row, event_ts = events.position[at], events.ts[at]
        is_known = (row < position) | ((row == position) & (event_ts <= ts))
        low = np.where(is_open & is_known, at + 1, low)
        high = np.where(is_open & ~is_known, at, high)
    return low


def readings_of(
    reading: np.ndarray, turn: Turn, fixes: LastFixes
) -> tuple[Readings, np.ndarray]:
    """The readings of events followed by those of objects from before the run; and which of them each line shows.

    Args:
        reading: int64[n], as `last_known` gives them.
        turn: the run.
        fixes: the last ones before it.
    """
    count = len(turn.events)
    old = np.unique(reading[reading >= count])
    both = readings.joined(turn.readings, readings.of_objects(fixes, old - count))
    at = count + np.searchsorted(old, reading)
    return both, np.where(reading < count, reading, at)
