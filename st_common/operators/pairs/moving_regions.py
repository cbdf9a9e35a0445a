"""Which objects are in regions that go with an object, for all queries that join or pair them (SPEC G4, P8)."""

from dataclasses import dataclass, replace

import numpy as np

from st_common.operators.matching.meeting import Points
from st_common.operators.pairs.specs import Moving
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.skeleton.world import Criteria, Kind, World
from st_common.operators.turn.eligibility import selection_of
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """Who is in regions that move.

    Attributes:
        query: int64[p], with `object`: pairs of a query's number and an object in its region, never its focal one.
        object: int64[p].
        moved: int64, the numbers of the queries whose focal object changed.
    """

    query: np.ndarray
    object: np.ndarray
    moved: np.ndarray


def inside(
    moving: Moving,
    turn: Turn,
    fixes: Present,
    world: World,
    few: np.ndarray,
    changed: np.ndarray,
) -> Inside:
    """Who is inside regions that move: of all living objects where the region moved, of few where it did not.

    Who is among the nearest of a place is found anew: it depends on all.

    Args:
        moving: the queries.
        turn: the run.
        fixes: the last fixes at the tick.
        world: the same as kinds see them.
        few: int64, the living objects of which something is asked anew.
        changed: bool[objects], who has another fix than at the tick before.
    """
    none = np.empty(0, np.int64)
    query, objects, moved = [none], [none], [none]
    alive = np.flatnonzero(world.alive) if moving.kinds else few
    for name, queries in moving.kinds.items():
        table = fixes.lookups.table(queries)
        goes, seen = queries.moved(fixes.lookups.focals(queries), changed), world
        if KINDS[name].is_dynamic:
            goes[:] = True
            selection, _ = selection_of(
                queries, fixes, world, turn, before=None, changed=changed
            )
            seen = replace(world, selection=selection)
        moved.append(queries.numbers[goes])
        for rows, who in ((np.flatnonzero(goes), alive), (np.flatnonzero(~goes), few)):
            if len(rows) and len(who):
                criteria = KINDS[name].update_criteria(seen, table, rows)
                row, who_is_inside = _members(KINDS[name], seen, criteria, who)
                query.append(queries.numbers[rows[row]])
                objects.append(who_is_inside)
    return Inside(
        query=np.concatenate(query),
        object=np.concatenate(objects),
        moved=np.concatenate(moved),
    )


def _members(
    kind: Kind, world: World, criteria: Criteria, who: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    row, members = kind.in_cache_area(world, criteria, who, 0.0)
    keep = kind.satisfy(world, criteria, row, members)
    return row[keep], members[keep]


def selected(
    moving: Moving, points: Points, point: np.ndarray, query: np.ndarray
) -> np.ndarray:
    """Whether pairs of a point and a query satisfy the query's selection; bool[p].

    Args:
        moving: the queries.
        points: the points, for the queries' conditions.
        point: int64[p], places of points.
        query: int64[p], numbers of queries.
    """
    queries = moving.screened
    if points.truth is None:
        return np.ones(len(query), bool)
    return points.truth.pairs(queries.predicate[query], point)
