"""Which shard judges which query that goes with an object: those that stand side by side, so that guests are few.

where focal objects are      q1 . q2         q5
                                q3      q4 .   q6
two shards                   q1 q2 q3  |  q4 q5 q6
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from st_common.operators.guests.nearby import looks_nearby
from st_common.operators.state.intern import Sought
from st_common.operators.state.state import State

Ints = npt.NDArray[np.int64]


def dealt_by_place(state: State, shards: Collection[int]) -> State:
    """A state whose queries that look nearby are dealt to shards by the place of the object that each goes with.

    Those whose object is nowhere yet are judged where their names fall to.

    Args:
        state: of all shards together.
        shards: those that may judge such queries.
    """
    numbers = [n for n, one in enumerate(state.queries) if one.live]
    numbers = [n for n in numbers if looks_nearby(state.queries[n].plan)]
    focals = [state.queries[number].plan.focals[0] for number in numbers]
    at = state.objects.places_of(Sought(pa.array(focals, pa.string())))
    x, y = (np.append(column, np.nan)[at] for column in (state.fixes.x, state.fixes.y))
    known = np.flatnonzero(~np.isnan(x + y))
    group = side_by_side(x[known], y[known], len(shards))
    shard = np.array(sorted(shards), np.int64)[group]
    dealt = {
        numbers[place]: replace(state.queries[numbers[place]], dealt=of)
        for place, of in zip(known.tolist(), shard.tolist(), strict=True)
    }
    return replace(state, queries=state.queries.with_changed(dealt))


def side_by_side(x: np.ndarray, y: np.ndarray, groups: int) -> Ints:
    """The group of each place, about equally many in each, by halving along the longer side again and again; int64[n].

    Args:
        x: float64[n]; `y` likewise.
        y: see `x`.
        groups: how many, at least one.
    """
    group = np.zeros(len(x), np.int64)
    todo = [(np.arange(len(x)), 0, groups)]
    while todo:
        places, first, count = todo.pop()
        if count == 1 or not len(places):
            group[places] = first
            continue
        wide, high = np.ptp(x[places]), np.ptp(y[places])
        along = x if wide >= high else y
        order = places[np.argsort(along[places], kind="stable")]
        lower = count // 2
        cut = len(order) * lower // count
        todo.append((order[:cut], first, lower))
        todo.append((order[cut:], first + lower, count - lower))
    return group
