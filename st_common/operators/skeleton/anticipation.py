"""Q.Cache: objects near a moving query, so that it needs no look at others when it moves (paper GPAC, 3.3; SPEC G6).

The cache of a query holds the objects that lay in its area, grown by a margin on each side, around an anchor: where
the query was when the cache was filled. Objects that report enter and leave it by themselves. While the query has not
gone farther from its anchor than the margin, all its members are in the cache. Then it is filled anew from the last
fixes, around a new anchor: exact with any margin. The paper has no such refill, and misses members (see `unfilled`).

    margin 100       tick 0    tick 1    tick 2    tick 3
    query at x          0        30        60       110
    drift               0        30        60       110 > 100: filled anew, anchor 110, drift 0
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.skeleton.world import Criteria, Kind, World
from st_common.runs import ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Pairs of a query and an object in its cache area, ordered by query and by distance from the query's border.

    Attributes:
        anchor: the criteria of each query when its cache was filled.
        key: float64[c], ascending: what pairs are ordered by, the row and a share below 1 for the distance.
        row: int64[c], the query's row.
        object: int64[c].
        border: float64[c], how far the object was from the border of the region around the anchor, below 0 inside of
            it. For neighbours the distance from the anchor; NaN where it says nothing (boxes on the globe).

    Example:
        a box of 8 x 8 around (0, 0), margin 2, objects at x = 0, 3, 5, 20:  border -4, -1, 1; the last one is not in it
    """

    anchor: Criteria
    key: np.ndarray
    row: np.ndarray
    object: np.ndarray
    border: np.ndarray

    def places_of(self, rows: np.ndarray) -> np.ndarray:
        """The places of all pairs of some queries (int64, rows); int64."""
        start = np.searchsorted(self.key, rows)
        return ranges(start, np.searchsorted(self.key, rows + 1) - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """The caches at a tick.

    Attributes:
        drift: float64[m], the distance of each query from its anchor, metres or the unit of the plane.
        touched: how many objects and pairs were looked at.
        refills: how many caches were filled anew.
    """

    cache: Cache
    drift: np.ndarray
    touched: int
    refills: int


def seeded(kind: Kind, world: World, criteria: Criteria, margin: float) -> Advanced:
    """The caches of new or restarted queries, filled from the last fixes around where the queries are (SPEC G6).

    Args:
        kind: the kind of the queries.
        world: the last fixes of all objects.
        criteria: where each query is; it becomes the anchor.
        margin: by how much a cache area is wider than its query, metres or the unit of the plane.
    """
    alive = np.flatnonzero(world.alive)
    row, who = kind.in_cache_area(world, criteria, alive, margin)
    cache = ordered(world, criteria, row, who)
    return Advanced(
        cache=cache,
        drift=np.zeros(len(criteria.query)),
        touched=len(alive) + len(row),
        refills=0,
    )


def advanced(
    kind: Kind,
    world: World,
    cache: Cache,
    criteria: Criteria,
    *,
    changed: np.ndarray,
    margin: float,
) -> Advanced:
    """The caches at a tick; those whose query went too far are filled anew from the last fixes.

    Args:
        kind: the kind of the queries.
        world: the last fixes of all objects.
        cache: the caches at the tick before.
        criteria: where the queries are now.
        changed: bool[objects], who has another fix than at the tick before.
        margin: by how much a cache area is wider than its query, in the space's units.

    Returns:
        The caches, how far each query is from its anchor, and how much was looked at and filled anew.
    """
    drift = drift_of(world, cache.anchor, criteria)
    moved = ~(drift <= margin)  # a focal object that came back or went has no distance
    moved &= ~(np.isnan(cache.anchor.x) & np.isnan(criteria.x))
    far = np.flatnonzero(moved)
    anchor = (
        cache.anchor.with_rows(far, criteria.take(far)) if len(far) else cache.anchor
    )
    # Who reported is looked at anew below, and so is everybody for a query with a new anchor.
    drop = changed[cache.object] | moved[cache.row]
    mine = np.flatnonzero(world.alive & changed)
    parts = [looked(kind, world, anchor, np.flatnonzero(~moved), mine, margin)]
    if len(far):
        parts.append(
            looked(kind, world, anchor, far, np.flatnonzero(world.alive), margin)
        )
    row, who = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return Advanced(
        cache=exchanged(world, cache, anchor, drop, row, who),
        drift=np.where(moved, 0.0, drift),
        refills=len(far),
        touched=sum(part[2] for part in parts),
    )


def looked(
    kind: Kind,
    world: World,
    anchor: Criteria,
    rows: np.ndarray,
    objects: np.ndarray,
    margin: float,
) -> tuple[np.ndarray, np.ndarray, int]:
    """The pairs that belong into the caches of some queries.

    Args:
        kind: the kind of the queries.
        world: the last fixes of all objects.
        anchor: where each query was when its cache was filled.
        rows: int64[m], the queries whose caches are asked about.
        objects: int64[k], the objects that are asked about.
        margin: by how much a cache area is wider than its query.

    Returns:
        Two int64 arrays, the query's row and the object of each pair, and how much was looked at.
    """
    row, who = kind.in_cache_area(world, anchor.take(rows), objects, margin)
    return rows[row], who, len(objects) + len(row)


def to_test(
    cache: Cache, drift: np.ndarray, *, whole: np.ndarray, changed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The places of cached pairs that must be tested, and of those that hold untested if the object is admitted.

    A query that went no farther from its anchor than an object is from its border has not crossed it:

        border    -4    -1     1          drift 0.5: nothing to test, the first two are in
        tested          x     x           drift 1.5: the first one is in, the others are tested

    Args:
        cache: the pairs.
        drift: float64[m], how far each query is from its anchor.
        whole: bool[m], the queries all of whose members are decided anew; of others the changed objects alone are.
        changed: bool[objects], who has another fix than at the tick before: these are tested, wherever they were.

    Returns:
        Two arrays of int64, places in the cache.
    """
    asked = changed[cache.object]
    asked[cache.places_of(np.flatnonzero(whole))] = True
    places = np.flatnonzero(asked)
    row, border = cache.row[places], cache.border[places]
    # Not `<=`: where the distance is NaN, nothing is known, and the pair is tested.
    near = ~(np.abs(border) > drift[row] * (1 + 1e-9)) | changed[cache.object[places]]
    return places[near], places[~near & (border < 0)]


def drift_of(world: World, anchor: Criteria, criteria: Criteria) -> np.ndarray:
    """How far queries are from their anchors; float64, metres or the plane's unit, NaN where one of them is nowhere."""
    return world.space.distance(anchor.x, anchor.y, criteria.x, criteria.y)


def ordered(world: World, anchor: Criteria, row: np.ndarray, who: np.ndarray) -> Cache:
    """Pairs as caches: a query's objects by their distance from its border, or from its focal point for neighbours.

    Args:
        world: the last fixes of all objects.
        anchor: where each query is.
        row: int64[p], the query's row.
        who: int64[p], the object; each pair once.
    """
    border = _border(world, anchor, row, who)
    key = _key(row, border)
    order = np.argsort(key)
    return Cache(
        anchor=anchor,
        key=key[order],
        row=row[order],
        object=who[order],
        border=border[order],
    )


def exchanged(
    world: World,
    cache: Cache,
    anchor: Criteria,
    drop: np.ndarray,
    row: np.ndarray,
    who: np.ndarray,
) -> Cache:
    """The caches around their anchors of now, without some pairs and with others.

    Args:
        world: the last fixes of all objects.
        cache: the caches as they were, of c pairs.
        anchor: the anchors of now; only pairs that are dropped may be of another one than before.
        drop: bool[c], the pairs that go.
        row: int64[p], the query's row of each that comes.
        who: int64[p], its object.
    """
    # Both are sorted by their keys: merging them by place spares a sort of all pairs.
    new = ordered(world, anchor, row, who)
    kept = np.flatnonzero(~drop)
    place = np.searchsorted(cache.key[kept], new.key) + np.arange(len(new.key))
    is_old = np.ones(len(kept) + len(new.key), bool)
    is_old[place] = False
    columns = {}
    for name in ("key", "row", "object", "border"):
        values = getattr(cache, name)
        columns[name] = np.empty(len(is_old), values.dtype)
        columns[name][is_old] = values[kept]
        columns[name][place] = getattr(new, name)
    return Cache(anchor=anchor, **columns)


def _key(row: np.ndarray, border: np.ndarray) -> np.ndarray:
    """A number that rises with the row, and within it with the distance."""
    # The arctangent takes all distances into 0 to 1 in their order: so one number sorts by row, then distance.
    share = np.arctan(np.nan_to_num(border)) / np.pi + 0.5
    key: np.ndarray = row + 0.999 * share
    return key


def _border(
    world: World, anchor: Criteria, row: np.ndarray, who: np.ndarray
) -> np.ndarray:
    """The distance to the border; NaN where it says nothing (boxes on the globe, whose sides change on the way)."""
    here = world.x[who], world.y[who]
    there = anchor.x[row], anchor.y[row]
    if len(anchor.half_width):
        if not world.space.is_flat:
            return np.full(len(row), np.nan)
        across, along = np.abs(here[0] - there[0]), np.abs(here[1] - there[1])
        return np.asarray(
            np.maximum(across - anchor.half_width[row], along - anchor.half_height[row])
        )
    if len(anchor.tie):  # nearest: by coordinates, which is quick, and an order
        return np.asarray(np.hypot(here[0] - there[0], here[1] - there[1]))
    return np.asarray(world.space.distance(*there, *here) - anchor.limit[row])
