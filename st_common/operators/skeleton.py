"""The skeleton of GPAC for queries that move, over arrays (paper GPAC, Figures 5 and 6; SPEC G1, G2).

At a tick some objects have changed. A query whose focal object is among them gets new criteria, and its members are
looked for anew (Figure 6); the changed objects alone are judged by all other queries (Figure 5). Where members decide
the criteria (`is_dynamic`, kNN) a query that a changed object belonged or belongs to is judged as a whole. What a query
asks is in the four methods of its kind; which of Cases I-IV a pair is follows from the answers before and after.
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.world import Criteria, Kind, Table, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a tick found for the queries of a kind.

    The pairs (`row`, `object`) are all members of the rows in `whole` (bool[m]), and of the other rows the changed
    objects that are members; `criteria` are those of every row now; `candidates` pairs were tested.
    """

    whole: np.ndarray
    row: np.ndarray
    object: np.ndarray
    criteria: Criteria
    candidates: int


def judge(
    kind: Kind, world: World, table: Table, *, criteria: Criteria | None, moved: np.ndarray, changed: np.ndarray,
    member_row: np.ndarray, member_object: np.ndarray,
) -> Judged:  # fmt: skip
    """Judges all queries of a kind at a tick.

    Args:
        kind: the four methods.
        world: the last fixes at the tick.
        table: the queries, with the focal objects and the eligibility of now.
        criteria: those at the tick before, None to judge everything anew.
        moved: bool[m], whether the focal object changed.
        changed: bool[n], which objects changed.
        member_row: with `member_object`, the members before, in any order.
        member_object: see `member_row`.
    """
    alive = np.flatnonzero(world.alive)
    if criteria is None:
        whole = np.ones(len(moved), bool)
    else:
        whole = moved.copy()
        if kind.is_dynamic:
            whole |= _touched(kind, world, criteria, changed, member_row, member_object)
    which = np.flatnonzero(whole)
    fresh = kind.update_criteria(world, table, which)
    row, found, candidates = _members(kind, world, fresh, alive)
    row = which[row]
    if criteria is not None and not kind.is_dynamic and len(which) < len(whole):
        others = np.flatnonzero(~whole)
        more, objects, tested = _members(kind, world, criteria.take(others), np.flatnonzero(world.alive & changed))
        row, found = np.concatenate([row, others[more]]), np.concatenate([found, objects])
        candidates += tested
    merged = fresh if criteria is None else criteria.with_rows(which, fresh)
    return Judged(whole=whole, row=row, object=found, criteria=merged, candidates=candidates)


def _members(kind: Kind, world: World, criteria: Criteria, objects: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    row, found = kind.in_cache_area(world, criteria, objects, 0.0)
    satisfied = kind.satisfy(world, criteria, row, found)
    return row[satisfied], found[satisfied], len(row)


def _touched(
    kind: Kind, world: World, criteria: Criteria, changed: np.ndarray, member_row: np.ndarray, member_object: np.ndarray
) -> np.ndarray:
    """The queries that a changed object was a member of, or would be by the criteria as they were."""
    rows = len(criteria.query)
    touched = np.zeros(rows, bool)
    if not changed.any():
        return touched
    if kind.touched_by_all:
        return np.ones(rows, bool)
    touched[member_row[changed[member_object]]] = True
    row, found = kind.in_cache_area(world, criteria, np.flatnonzero(world.alive & changed), 0.0)
    touched[row[kind.satisfy(world, criteria, row, found)]] = True
    return touched
