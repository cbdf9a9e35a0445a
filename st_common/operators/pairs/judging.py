"""Which pairs satisfy what their queries ask of the other object, and of both (SPEC X12).

What is asked of the other alone is asked of each object once, as what is asked of the first. What is asked of both is
asked of each pair of two fixes once for each different condition, whatever number of queries has it.
"""

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.expressions.pair_readings import PairReadings
from st_common.operators.expressions.truth import truth_of
from st_common.operators.matching.query_set import QuerySet
from st_common.operators.pairs.specs import PairSpecs
from st_common.operators.turn.course import Course
from st_common.operators.turn.points import match_in, points_at
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn

_MOST_PAIRS = 1 << 18
"""Pairs of two fixes whose columns are there at one time."""


def hold(
    turn: Turn,
    fixes: Present | Course,
    query: np.ndarray,
    one: np.ndarray,
    other: np.ndarray,
) -> np.ndarray:
    """Whether pairs satisfy the conditions of their queries on the other object, and on both; bool[p].

    Args:
        turn: the run.
        fixes: the last fixes, at one tick or over several.
        query: int64[p], numbers of queries.
        one: int64[p], the first objects (places of versions, over several ticks).
        other: int64[p], the other ones.
    """
    specs = turn.known.of(PairSpecs)
    keep = np.ones(len(query), bool)
    mine = np.flatnonzero(specs.other.predicate[query] >= 0)
    keep[mine] = _of_other(turn, fixes, specs.other, query[mine], other[mine])
    both = np.flatnonzero(keep & (specs.both.of[query] >= 0))
    keep[both] = _of_both(turn, fixes, query[both], one[both], other[both])
    return keep


def may_be_other(turn: Turn, fixes: Present, among: np.ndarray) -> np.ndarray:
    """Those of some objects that satisfy what at least one query asks of the other object; all where one asks nothing.

    Args:
        turn: the run.
        fixes: the last fixes at the tick.
        among: int64, ascending.
    """
    specs = turn.known.of(PairSpecs)
    if not len(among) or (specs.other.predicate[specs.numbers] < 0).any():
        return among
    space = turn.settings.space
    points = points_at(specs.other, fixes, among, turn.objects, space=space)
    wanted = np.zeros(len(among), bool)
    wanted[match_in(turn, specs.other, points).point] = True
    return among[wanted]


def _of_other(
    turn: Turn,
    fixes: Present | Course,
    queries: QuerySet,
    query: np.ndarray,
    other: np.ndarray,
) -> np.ndarray:
    if not len(query):
        return np.ones(0, bool)
    who, point = np.unique(other, return_inverse=True)
    space = turn.settings.space
    truth = points_at(queries, fixes, who, turn.objects, space=space).truth
    assert truth is not None  # noqa: S101 - somebody has a condition
    return truth.pairs(queries.predicate[query], point)


def _of_both(
    turn: Turn,
    fixes: Present | Course,
    query: np.ndarray,
    one: np.ndarray,
    other: np.ndarray,
) -> np.ndarray:
    """Each different pair is looked at once, by as many as are good to have in memory."""
    pairs, at = np.unique(packed(one, other), return_inverse=True)
    order = np.argsort(at, kind="stable")
    keep = np.zeros(len(query), bool)
    for start in range(0, len(pairs), _MOST_PAIRS):
        part = pairs[start : start + _MOST_PAIRS]
        low, high = np.searchsorted(at[order], [start, start + len(part)])
        rows = order[low:high]
        keep[rows] = _of_some(turn, fixes, part, query[rows], at[rows] - start)
    return keep


def _of_some(
    turn: Turn,
    fixes: Present | Course,
    pairs: np.ndarray,
    query: np.ndarray,
    at: np.ndarray,
) -> np.ndarray:
    """Whether pairs satisfy the conditions of queries on both.

    Args:
        turn: the run.
        fixes: the last fixes, at one tick or over several.
        pairs: int64[m], keys `first << 32 | other` of different pairs.
        query: int64[p].
        at: int64[p], the place of each one's pair.
    """
    both, space = turn.known.of(PairSpecs).both, turn.settings.space
    readings = PairReadings(
        one=fixes.readings(pairs >> SHIFT), other=fixes.readings(pairs & MASK)
    )
    truth = truth_of(both.conditions, readings, turn.objects.ids, space=space)
    return truth.pairs(both.of[query], at)
