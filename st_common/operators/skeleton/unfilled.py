"""Caches as the paper keeps them, never filled anew (GPAC, 3.3; SPEC G6), beside answers that do not depend on them.

The area goes with the query. What reports in it enters; what lies in it by the query's own way alone does not, and is
missed. Answers are found by looking at all objects here, so that they are exact; a member that comes into one and that
the cache does not have is a miss.
"""

import numpy as np

from st_common.operators.arrays.keys import packed, unique, without
from st_common.operators.skeleton.anticipation import Cache, looked, ordered, seeded
from st_common.operators.skeleton.world import Criteria, Kind, World


def followed(  # noqa: PLR0917 - what the tick is about, then what it finds
    kind: Kind,
    world: World,
    cache: Cache | None,
    criteria: Criteria,
    whole: np.ndarray,
    changed: np.ndarray,
    margin: float,
) -> Cache:
    """The caches after a tick, as the paper keeps them: filled from the last fixes only at first.

    They are filled so where there were none, and where the focal object was away and has come back.

    Args:
        kind: the kind of the queries.
        world: the last fixes of all objects.
        cache: the caches at the tick before, None without.
        criteria: where the queries are now.
        whole: bool[m], the queries that got new criteria.
        changed: bool[objects], who has another fix than at the tick before.
        margin: by how much a cache area is wider than its query, metres or the unit of the plane.
    """
    if cache is None:
        return seeded(kind, world, criteria, margin).cache
    # A focal object that came back finds nobody in its cache.
    back = np.isnan(cache.anchor.x) & ~np.isnan(criteria.x)
    kept = np.flatnonzero(
        _stays(kind, world, cache, criteria, whole, margin) & ~changed[cache.object]
    )
    parts = [(cache.row[kept], cache.object[kept])]
    for rows, objects in ((~back, world.alive & changed), (back, world.alive)):
        row, who, _ = looked(
            kind, world, criteria, np.flatnonzero(rows), np.flatnonzero(objects), margin
        )
        parts.append((row, who))
    row, who = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return ordered(world, criteria, row, who)


def _stays(
    kind: Kind,
    world: World,
    cache: Cache,
    criteria: Criteria,
    whole: np.ndarray,
    margin: float,
) -> np.ndarray:
    """Which cached pairs lie in the areas as they are now; bool[c]."""
    stays: np.ndarray = ~whole[cache.row]
    asked = np.flatnonzero(~stays)
    row, who, _ = looked(
        kind,
        world,
        criteria,
        np.flatnonzero(whole),
        unique(cache.object[asked]),
        margin,
    )
    stays[asked] = np.isin(
        packed(cache.row[asked], cache.object[asked]), packed(row, who)
    )
    return stays


def misses(cache: Cache, row: np.ndarray, who: np.ndarray, before: np.ndarray) -> int:
    """How many members came into an answer without having been in the cache.

    Args:
        cache: the caches.
        row: int64[p], with `who`: the members now.
        who: int64[p], objects.
        before: int64, keys `row << 32 | object` of the members before.
    """
    came = without(unique(packed(row, who)), unique(before))
    return len(without(came, unique(packed(cache.row, cache.object))))
