"""Caches of nearest neighbours (GPAC 4.2, SPEC G6): objects in a circle somewhat wider than that of the k-th one.

While the k-th of the cached objects is so near that nothing outside of the cached circle could be nearer, nothing
else is looked at. The circle stands around its anchor: where the query was when the cache was filled.
"""

from typing import Protocol

import numpy as np

from st_common.operators.skeleton.anticipation import (
    Advanced,
    Cache,
    drift_of,
    exchanged,
    looked,
)
from st_common.operators.skeleton.world import Criteria, Kind, Table, World


class FromCache(Kind, Protocol):
    """A kind whose criteria can be found among cached objects alone."""

    def update_from(
        self,
        world: World,
        table: Table,
        which: np.ndarray,
        row: np.ndarray,
        obj: np.ndarray,
    ) -> Criteria:
        """The criteria of rows as if only some pairs existed, those that a cache has.

        Args:
            world: the last fixes of all objects.
            table: the queries.
            which: int64[w], ascending, the rows of the table.
            row: int64[p], ascending, places in `which`.
            obj: int64[p], objects.

        Returns:
            w criteria, aligned with `which`.
        """


def advanced_nearest(
    kind: FromCache,
    world: World,
    table: Table,
    cache: Cache,
    *,
    which: np.ndarray,
    changed: np.ndarray,
    margin: float,
) -> tuple[Criteria, Advanced]:
    """The criteria of some queries now, and the caches of all.

    A cache is enough as long as the k-th of its objects, seen from where the query is now, is nearer than anything
    outside of the cached circle can be: `limit now + drift <= limit at the anchor + margin`. Else it is filled anew.

    Args:
        kind: the kind of the queries.
        world: the last fixes of all objects.
        table: the queries.
        cache: the caches at the tick before.
        which: int64[w], ascending, the rows that are judged at this tick.
        changed: bool[objects], who has another fix than at the tick before.
        margin: by how much a cache area is wider than its query, metres or the unit of the plane.

    Returns:
        w criteria, aligned with `which`, and the caches of all rows with what was looked at and filled anew.
    """
    rows = np.arange(len(cache.anchor.query))
    more, objects, count = looked(
        kind, world, cache.anchor, rows, np.flatnonzero(world.alive & changed), margin
    )
    now = exchanged(world, cache, cache.anchor, changed[cache.object], more, objects)
    place = np.full(len(rows), -1)
    place[which] = np.arange(len(which))
    mine = now.places_of(which)
    criteria = kind.update_from(
        world, table, which, place[now.row[mine]], now.object[mine]
    )
    drift = drift_of(world, now.anchor.take(which), criteria)
    far = ~_is_enough(world, now.anchor.limit[which], criteria, drift, margin)
    refills = which[far]
    if len(refills):
        fresh = kind.update_criteria(world, table, refills)
        criteria = criteria.with_rows(np.flatnonzero(far), fresh)
        now, more_count = _refilled(kind, world, now, refills, fresh, margin)
        count += more_count
    return criteria, Advanced(
        cache=now, drift=drift, touched=count + len(mine), refills=len(refills)
    )


def _is_enough(
    world: World,
    anchored: np.ndarray,
    criteria: Criteria,
    drift: np.ndarray,
    margin: float,
) -> np.ndarray:
    """For each row whether no object outside of its cache can be a member."""
    within = world.space.radius_of(criteria.limit) + drift
    held = world.space.radius_of(anchored) + margin
    enough: np.ndarray = np.isnan(criteria.x) | (
        np.isfinite(criteria.limit) & (within * (1 + 1e-9) <= held)
    )
    return enough


def _refilled(
    kind: FromCache,
    world: World,
    cache: Cache,
    rows: np.ndarray,
    fresh: Criteria,
    margin: float,
) -> tuple[Cache, int]:
    """The caches with those of some rows filled anew around their new criteria; how much was looked at."""
    anchor = cache.anchor.with_rows(rows, fresh)
    row, who, count = looked(
        kind, world, anchor, rows, np.flatnonzero(world.alive), margin
    )
    # Finding the k-th nearest looks at every object once more.
    count += int(np.count_nonzero(world.alive))
    drop = np.zeros(len(cache.row), bool)
    drop[cache.places_of(rows)] = True
    return exchanged(world, cache, anchor, drop, row, who), count
