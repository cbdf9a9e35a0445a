"""What becomes of fences when queries start or stop, or see another version of a layer (SPEC X3, X4)."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, is_in, packed, unique, without
from st_common.operators.expressions import readings
from st_common.operators.fence.judging import regions_near, satisfy
from st_common.operators.fence.specs import FenceSet
from st_common.operators.fence.telling import Told, rows_of
from st_common.operators.fence.visits import Visits
from st_common.operators.matching.query_set import QuerySet
from st_common.operators.state.component import Change
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.registered import Queries
from st_common.operators.state.state import State
from st_common.operators.turn.changes import CAUSE
from st_common.operators.turn.part import Counters, Part
from st_common.operators.turn.points import look_up, points_in
from st_common.operators.turn.swapping import Swapping
from st_common.operators.turn.turn import Turn

V = TypeVar("V", bound=Visits)


def swap_fences(swapping: Swapping) -> Part:
    """The part of a swap about fences.

    Fences that stop end their visits. Objects whose last fix lies in a region that is new are in from now on. With
    another version of a layer those that are in and no longer near to anything leave, and visits that go on are kept.
    """
    state, turn, change = swapping.state, swapping.turn, swapping.change
    visits, known = state.memories[Visits], turn.known.of(FenceSet)
    if not len(visits) and not len(known):
        return Part()
    stops = are_of(visits, turn, change.before)
    if change.takes_over:
        return taken_over(swapping, visits.take(np.flatnonzero(stops)))
    # With fixes against what was decided of them, they are where their last fix is from now on.
    swapping = swapping.also(visits.object[stops & (visits.against > 0)])
    alive = swapping.own_alive()
    inside = _inside(state, turn, alive, known.regions)
    gone = visits.key[stops & visits.is_in & swapping.judges(visits.object)]
    if change.keeps:
        gone = without(gone, _still_near(state, turn, alive, gone, inside))
        stops = is_in(visits.key, gone)
        inside = without(inside, visits.key[visits.is_in])
    told = lines_of(swapping, visits, gone, inside)
    after = Change(
        removed=visits.key[stops & ~is_in(visits.key, inside)],
        added=begun(Visits, inside, swapping.at.tick),
    )
    return Part(
        changes=(rows_of(told, turn, state.fixes),),
        memories={Visits: after},
        counters=Counters(leaves=len(gone), enters=len(inside)),
    )


def taken_over(swapping: Swapping, visits: Visits) -> Part:
    """The visits of a fence become those of the one in its place, as they are.

    Those that are in are told as of every query that is replaced, so that the answer of each version folds by itself.
    """
    turn, new = swapping.turn, swapping.change.after
    partner = turn.numbering.targets.partner[visits.target]
    target = turn.numbering.targets_of(np.repeat(new, len(visits)), partner)
    key = packed(visits.object, target)
    order = np.argsort(key)
    moved = replace(visits, key=key).take(order)
    came, gone = moved.key[moved.is_in], visits.key[visits.is_in]
    told = lines_of(swapping, visits, gone, came)
    return Part(
        changes=(rows_of(told, turn, swapping.state.fixes),),
        memories={type(visits): Change(removed=visits.key, added=moved)},
        counters=Counters(leaves=len(gone), enters=len(came)),
    )


def are_of(visits: Visits, turn: Turn, queries: np.ndarray) -> np.ndarray:
    """Which visits are of some queries; bool[visits]."""
    is_mine = np.zeros(len(turn.queries), bool)
    is_mine[queries] = True
    return np.asarray(is_mine[turn.numbering.targets.query[visits.target]])


def _inside(
    state: State, turn: Turn, objects: np.ndarray, queries: QuerySet
) -> np.ndarray:
    """Sorted keys `object << 32 | target` of the last fixes of objects in the regions of queries."""
    if queries.empty:
        return objects[:0]
    hits = look_up(turn, queries, readings.of_objects(state.fixes, objects))
    return unique(packed(objects[hits.point], hits.target))


def _still_near(
    state: State,
    turn: Turn,
    alive: np.ndarray,
    keys: np.ndarray,
    inside: np.ndarray,
) -> np.ndarray:
    """Those of the keys (sorted) of objects that are in a region, or so near to it that they have not left it."""
    grown = _inside(state, turn, alive, turn.known.of(FenceSet).wider)
    last = readings.of_objects(state.fixes, keys >> SHIFT)
    is_near = regions_near(turn, keys & MASK, last.x, last.y)
    at = np.flatnonzero(is_near)
    points = points_in(turn, turn.known.of(FenceSet).regions, last)
    query = turn.numbering.targets.query[keys[at] & MASK]
    is_near[at] = satisfy(turn, points, query, at)
    return np.asarray(keys[is_in(keys, inside) | is_in(keys, grown) | is_near])


def begun(kind: type[V], keys: np.ndarray, now_us: int) -> V:
    """Visits that begin now."""
    count = len(keys)
    return kind(
        key=keys,
        since=np.full(count, now_us),
        dwelt=np.zeros(count, np.int8),
        against=np.zeros(count, np.int64),
        against_since=np.full(count, NEVER),
    )


def lines_of(
    swapping: Swapping, visits: Visits, gone: np.ndarray, came: np.ndarray
) -> Told:
    """Lines for those that leave and come: with signs where a fence has an answer; else INSIDE where that is told.

    Args:
        swapping: the queries that are swapped.
        visits: those from before, with all that are gone.
        gone: sorted keys `object << 32 | target` of visits that end.
        came: keys of those that begin.
    """
    change, at = swapping.change, swapping.at
    keys = np.concatenate([gone, came])
    query = swapping.turn.numbering.targets.query[keys & MASK]
    has_answer, tells_inside = _flags(change.queries, query)
    comes = np.arange(len(keys)) >= len(gone)
    keep = has_answer | (comes & tells_inside)
    since = visits.since[np.searchsorted(visits.key, gone)]
    lasted = np.concatenate([(at.tick - since) / 1e6, np.full(len(came), np.nan)])
    cause = np.where(comes, CAUSE[change.plus], CAUSE[change.minus])
    kept = keys[keep]
    return Told(
        position=at.rows(query[keep]),
        event_ts=np.full(len(kept), at.tick),
        rank=np.ones(len(kept), np.int8),
        object=kept >> SHIFT,
        target=kept & MASK,
        sign=np.where(has_answer, np.where(comes, 1, -1), 0)[keep],
        cause=cause[keep],
        value=lasted[keep],
        reading=kept >> SHIFT,
    )


def _flags(queries: Queries, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of some queries that are fences: whether they have an answer, and whether they tell of INSIDE; bool[n] each."""
    has_answer = np.zeros(len(queries), bool)
    tells_inside = np.zeros(len(queries), bool)
    for number in np.unique(numbers).tolist():
        fence = queries[number].plan.fence
        if fence is not None:
            has_answer[number] = fence.has_answer
            tells_inside[number] = "inside" in fence.events
    return has_answer[numbers], tells_inside[numbers]
