"""The skeleton of GPAC for queries that move, over arrays (paper GPAC, Figures 5 and 6; SPEC G1, G2).

At a tick some objects have changed. A query whose focal object is among them gets new criteria, and its members are
looked for anew (Figure 6); the changed objects alone are judged by all other queries (Figure 5). Where members decide
the criteria (`is_dynamic`, kNN) a query that a changed object belonged or belongs to is judged as a whole. What a query
asks is in the four methods of its kind; which of Cases I-IV a pair is follows from the answers before and after.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from st_common.operators.arrays.keys import packed
from st_common.operators.skeleton.anticipated_nearest import FromCache, advanced_nearest
from st_common.operators.skeleton.anticipation import (
    Advanced,
    Cache,
    advanced,
    seeded,
    to_test,
)
from st_common.operators.skeleton.cache_counts import CacheCounts, overhead
from st_common.operators.skeleton.unfilled import followed, misses
from st_common.operators.skeleton.world import Criteria, Kind, Table, World, admitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What a tick brings to the m queries of a kind.

    Attributes:
        world: the last fixes of all n objects.
        table: the queries.
        moved: bool[m], those whose focal object changed.
        changed: bool[n], the objects that have another fix than at the tick before.
        member_row: int64, with `member_object`: the members before, in any order.
        margin: by how much cache areas are wider than their queries, metres or the plane's unit; 0 without caches.
        refills: False: a cache is never filled anew, as in the paper.
    """

    world: World
    table: Table
    moved: np.ndarray
    changed: np.ndarray
    member_row: np.ndarray
    member_object: np.ndarray
    margin: float = 0.0
    refills: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the next tick builds on.

    Attributes:
        criteria: those of every query.
        cache: the caches; None without.
    """

    criteria: Criteria
    cache: Cache | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a tick found for the m queries of a kind.

    Attributes:
        whole: bool[m], the queries that were judged as a whole.
        row: int64, with `object`: all members of the rows in `whole`, and of the other rows the changed objects that
            are members; in any order, each pair once.
        kept: what the next tick builds on.
        touched: how many objects and pairs were looked at.
        caches: what caches cost; None without.
    """

    whole: np.ndarray
    row: np.ndarray
    object: np.ndarray
    kept: Kept
    touched: int
    caches: CacheCounts | None = None


def judge(kind: Kind, tick: Tick, kept: Kept | None) -> Judged:
    """Judges all queries of a kind at a tick (paper GPAC, Figures 5 and 6; SPEC G1, G2).

    What comes of it is compared with the answer before, by `Scope`; the cases of the paper are what that tells:

        before   after
        in       in       Case I     nothing is told
        in       out      Case II    -
        out      in       Case III   +
        out      out      Case IV    nothing is told

    Args:
        kind: the four methods.
        tick: who has another fix than before, whose query moved, who was a member.
        kept: what the tick before gave; None: everything is judged anew.

    Returns:
        The members of queries that were judged as a whole, the changed objects that are members of the others, and
        what the next tick can build on.
    """
    if tick.margin <= 0 or not kind.caches:
        return _judged(kind, tick, kept)
    judged = (
        _judged_from_caches(kind, tick, kept)
        if tick.refills
        else _judged_beside_caches(kind, tick, kept)
    )
    return replace(judged, caches=_counted(tick, kept, judged))


def _counted(tick: Tick, kept: Kept | None, judged: Judged) -> CacheCounts:
    """What the tick counted, and what its caches held when it came."""
    counted = judged.caches or CacheCounts()
    if kept is None or kept.cache is None:
        return counted
    return counted + overhead(tick.world, kept.cache, len(tick.member_row), tick.margin)


def _to_judge(kind: Kind, tick: Tick, kept: Kept | None) -> tuple[np.ndarray, int]:
    """The queries that are judged as a whole (bool[m]), and how much was looked at to find them."""
    whole = np.ones(len(tick.moved), bool) if kept is None else tick.moved.copy()
    looked = 0
    if kept is not None and kind.is_dynamic:
        touched, looked = _touched(kind, tick, kept.criteria)
        whole |= touched
    return whole, looked


def _judged_from_caches(kind: Kind, tick: Tick, kept: Kept | None) -> Judged:
    """The answers by caches, which are filled anew where they are not enough."""
    whole, looked = _to_judge(kind, tick, kept)
    which = np.flatnonzero(whole)
    if kind.is_dynamic:
        return _anticipated_nearest(cast("FromCache", kind), tick, kept, which, looked)
    fresh = kind.update_criteria(tick.world, tick.table, which)
    criteria = fresh if kept is None else kept.criteria.with_rows(which, fresh)
    return _anticipated(kind, tick, kept, criteria, whole)


def _judged_beside_caches(kind: Kind, tick: Tick, kept: Kept | None) -> Judged:
    """The answers without caches; these go on as in the paper, and what they miss is counted."""
    judged = _judged(kind, tick, kept)
    before, criteria = kept.cache if kept else None, judged.kept.criteria
    cache = followed(
        kind, tick.world, before, criteria, judged.whole, tick.changed, tick.margin
    )
    missed = misses(
        cache, judged.row, judged.object, packed(tick.member_row, tick.member_object)
    )
    return replace(
        judged,
        kept=Kept(criteria=criteria, cache=cache),
        caches=CacheCounts(misses=missed),
    )


def _judged(kind: Kind, tick: Tick, kept: Kept | None) -> Judged:
    """The answers without caches."""
    whole, looked = _to_judge(kind, tick, kept)
    which = np.flatnonzero(whole)
    fresh = kind.update_criteria(tick.world, tick.table, which)
    criteria = fresh if kept is None else kept.criteria.with_rows(which, fresh)
    alive = np.flatnonzero(tick.world.alive)
    row, who, count = (
        _members(kind, tick.world, fresh, alive) if len(which) else (which, which, 0)
    )
    row = which[row]
    # Figure 5: the other queries stand as they stood, so only changed objects can have come or gone.
    if not kind.is_dynamic and len(which) < len(whole):
        others, mine = (
            np.flatnonzero(~whole),
            np.flatnonzero(tick.world.alive & tick.changed),
        )
        more, objects, tested = _members(kind, tick.world, criteria.take(others), mine)
        row, who = (
            np.concatenate([row, others[more]]),
            np.concatenate([who, objects]),
        )
        looked += tested
    return Judged(
        whole=whole,
        row=row,
        object=who,
        kept=Kept(criteria=criteria, cache=None),
        touched=count + looked,
    )


def _members(
    kind: Kind, world: World, criteria: Criteria, objects: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    row, who = kind.in_cache_area(world, criteria, objects, 0.0)
    satisfied = kind.satisfy(world, criteria, row, who)
    return row[satisfied], who[satisfied], len(objects) + len(row)


def _touched(kind: Kind, tick: Tick, criteria: Criteria) -> tuple[np.ndarray, int]:
    """The queries that a changed object was a member of, or would be by the criteria as they were."""
    touched = np.zeros(len(tick.moved), bool)
    if not tick.changed.any():
        return touched, 0
    if kind.touched_by_all:
        return ~touched, 0
    touched[tick.member_row[tick.changed[tick.member_object]]] = True
    mine = np.flatnonzero(tick.world.alive & tick.changed)
    row, who = kind.in_cache_area(tick.world, criteria, mine, 0.0)
    touched[row] = True
    return touched, len(mine) + len(who)


def _anticipated(
    kind: Kind, tick: Tick, kept: Kept | None, criteria: Criteria, whole: np.ndarray
) -> Judged:
    """Members from the caches alone."""
    world = tick.world
    now = _caches(kind, tick, kept, criteria)
    cache = now.cache
    # Few need a test: the query went less far than most objects are from its border.
    tested, sure = to_test(cache, now.drift, whole=whole, changed=tick.changed)
    row, who = cache.row[tested], cache.object[tested]
    satisfied = kind.satisfy(world, criteria, row, who)
    more, objects = cache.row[sure], cache.object[sure]
    # They lie in the region for sure; whether they are eligible is still asked.
    allowed = admitted(world, criteria, more, objects)
    return Judged(
        whole=whole,
        row=np.concatenate([row[satisfied], more[allowed]]),
        object=np.concatenate([who[satisfied], objects[allowed]]),
        kept=Kept(criteria=criteria, cache=cache),
        touched=now.touched + len(row),
        caches=CacheCounts(refills=now.refills),
    )


def _anticipated_nearest(
    kind: FromCache, tick: Tick, kept: Kept | None, which: np.ndarray, looked: int
) -> Judged:
    """Members of some queries for neighbours from their caches, which are filled anew where they are not enough."""
    world = tick.world
    if kept is None or kept.cache is None:
        criteria = kind.update_criteria(world, tick.table, which)
        now = seeded(kind, world, criteria, tick.margin)
    else:
        fresh, now = advanced_nearest(
            kind,
            world,
            tick.table,
            kept.cache,
            which=which,
            changed=tick.changed,
            margin=tick.margin,
        )
        criteria = kept.criteria.with_rows(which, fresh)
    whole = np.zeros(len(tick.moved), bool)
    whole[which] = True
    asked = now.cache.places_of(which)
    row, who = now.cache.row[asked], now.cache.object[asked]
    satisfied = kind.satisfy(world, criteria, row, who)
    kept = Kept(criteria=criteria, cache=now.cache)
    return Judged(
        whole=whole,
        row=row[satisfied],
        object=who[satisfied],
        kept=kept,
        touched=now.touched + looked,
        caches=CacheCounts(refills=now.refills),
    )


def _caches(kind: Kind, tick: Tick, kept: Kept | None, criteria: Criteria) -> Advanced:
    if kept is None or kept.cache is None:
        return seeded(kind, tick.world, criteria, tick.margin)
    return advanced(
        kind, tick.world, kept.cache, criteria, changed=tick.changed, margin=tick.margin
    )
