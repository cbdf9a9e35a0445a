"""The worst value of each incident, so far: a running maximum that begins anew with each stretch (SPEC X8).

speed        50   70   60   20   80          a stretch begins where fixes in a row begin to satisfy the condition,
begins       x                   x           and what ends it has no part in it
worst so far 50   70   70   70   80
"""

import numpy as np

from st_common.operators.expressions import evaluation as expressions
from st_common.operators.incident.specs import IncidentSet
from st_common.operators.turn.turn import Turn


def values_at(turn: Turn, incident: np.ndarray, event: np.ndarray) -> np.ndarray:
    """The value of events (their places) for incidents (likewise), NaN where there is none; float[n]."""
    incidents = turn.known.of(IncidentSet)
    values = np.full(len(event), np.nan)
    texts = np.array(incidents.worst, object)
    for text in dict.fromkeys(one for one in incidents.worst if one is not None):
        asked = np.flatnonzero(texts[incident] == text)
        if len(asked):
            seen, of = np.unique(event[asked], return_inverse=True)
            readings = turn.readings.take(seen)
            table = readings.table(turn.objects.ids, space=turn.settings.space)
            (worst,) = expressions.numbers([text], table)
            values[asked] = worst[of]
    return values


def worst_so_far(
    values: np.ndarray, begins: np.ndarray, first: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """The greatest value up to each row since the last row that `begins` a stretch; NaN where there is none.

    Args:
        values: float[n], NaN where a row has no part in a stretch, or no value.
        begins: bool[n], whether a stretch begins there.
        first: bool[n], whether a row is the first of its machine.
        before: float[n], the worst value from before the run, of the first rows that do not begin a stretch.
    """
    carried = np.where(first & ~begins, np.fmax(values, before), values) + 0.0
    stretch = np.cumsum(begins | first)
    return _running_greatest(carried, stretch)


def _running_greatest(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The greatest value up to each row in its group; groups come in rising order. NaN where there is none so far."""
    known = np.unique(values[~np.isnan(values)])
    rank = np.where(np.isnan(values), 0, np.searchsorted(known, values) + 1)
    each = len(known) + 1
    highest = np.maximum.accumulate(rank + group * each) - group * each
    return np.asarray(np.append(np.nan, known)[highest])
