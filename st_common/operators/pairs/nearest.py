"""The nearest others of each object among its pairs (SPEC G5, X12).

NEAREST (a, b, 2)      pairs of a, by distance      kept
                       b 3 m, c 8 m, d 8 m          b, c: of equally far ones the first by id
"""

import numpy as np

from st_common.operators.arrays.ranked import ranks_of_texts
from st_common.operators.pairs.specs import PairSpecs
from st_common.operators.skeleton.world import World
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first, ranks_of


def are_nearest(
    turn: Turn, world: World, query: np.ndarray, one: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """Whether others are among as many of the nearest of their first object as the query asks for; bool[p].

    Args:
        turn: the run.
        world: the last fixes.
        query: int64[p], numbers of queries; of those that ask for all others every pair is kept.
        one: int64[p], the first objects, with all that pair with each.
        other: int64[p], the other ones.
    """
    count = turn.known.of(PairSpecs).nearest[query]
    keep: np.ndarray = count == 0
    mine = np.flatnonzero(~keep)
    if not len(mine):
        return keep
    first, second = one[mine], other[mine]
    far = world.space.rank(
        world.x[first], world.y[first], world.x[second], world.y[second]
    )
    who, at = np.unique(second, return_inverse=True)
    by_id = ranks_of_texts(turn.objects.ids.take(who))[at]
    order = np.lexsort((by_id, far, first, query[mine]))
    nth = ranks_of(is_first(query[mine][order], first[order]))
    keep[mine[order]] = nth < count[mine][order]
    return keep
