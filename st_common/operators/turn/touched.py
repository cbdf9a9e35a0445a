"""The last fixes that events leave behind."""

import numpy as np

from st_common.operators.events.timeline import Events
from st_common.operators.expressions.readings import Readings
from st_common.operators.state.fixes import ALIVE, ENDED, SILENT, LastFixes
from st_common.operators.state.taken import taken
from st_common.runs import is_last

_STATUS = np.array([ALIVE, ENDED, SILENT], np.int8)  # by kind of event


def rows_after(
    events: Events, readings: Readings, which: np.ndarray
) -> tuple[np.ndarray, LastFixes]:
    """The last fixes that some events leave behind.

    Args:
        events: the events of a run, sorted by object and effect.
        readings: the reading of its object after each of them.
        which: int64, ascending places of the events that are meant.

    Returns:
        int64[m], the objects of these events, ascending, each once, and m rows: the last fix of each after them.
    """
    objects = events.object[which]
    last = which[is_last(objects)]
    return events.object[last], LastFixes(
        ts=events.fix_ts[last],
        x=events.x[last],
        y=events.y[last],
        status=_STATUS[events.kind[last]],
        before_ts=readings.before_ts[last],
        before_x=readings.before_x[last],
        before_y=readings.before_y[last],
        earlier_ts=readings.earlier_ts[last],
        earlier_x=readings.earlier_x[last],
        earlier_y=readings.earlier_y[last],
        seen_ts=events.fix_ts[last],
        attributes=taken(readings.attributes, last),
    )
