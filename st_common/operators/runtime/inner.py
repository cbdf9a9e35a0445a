"""The spatial answers at a tick, below aggregates: regions that stand still, kinds of queries, pairs of objects."""

from dataclasses import dataclass, field, replace

import numpy as np

from st_common.operators.ahead.ahead import JOINS, PAIRS, STILL, Ahead
from st_common.operators.arrays.keys import merged
from st_common.operators.matching.match import match
from st_common.operators.pairs import moving_joins, pairing
from st_common.operators.pairs.specs import MovingJoins, PairSpecs
from st_common.operators.skeleton.cache_counts import CacheCounts, Caches
from st_common.operators.skeleton.kind_queries import KindQueries
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.skeleton.scope import Scope
from st_common.operators.skeleton.skeleton import Kept, Tick, judge
from st_common.operators.skeleton.world import World
from st_common.operators.turn.eligibility import Held, selection_of
from st_common.operators.turn.points import points_at
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class KindMemo:
    """What a kind's queries need of the tick before; it can be found anew by judging everything.

    Attributes:
        known: the queries: a memo is of these and no others.
        kept: their criteria and caches.
        held: what is known of their selections, None where they have none.
    """

    known: KindQueries
    kept: Kept
    held: Held | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """What kinds keep from tick to tick, by name; whether every count of nothing is known to be told."""

    kinds: dict[str, KindMemo] = field(default_factory=dict)
    zeros_told: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """What a tick does to the spatial answers below aggregates.

    Attributes:
        minus: int64, ascending, keys `target << 32 | object` that left; `plus` likewise that came.
        memo: what the next tick can build on.
        touched: how many objects and pairs were looked at.
        caches: by kind of query what caches cost.
    """

    minus: np.ndarray
    plus: np.ndarray
    memo: Memo
    touched: int = 0
    caches: Caches = field(default_factory=dict)


def inner_answer(
    turn: Turn,
    fixes: Present,
    answer: np.ndarray,
    memo: Memo,
    changed: np.ndarray,
    but: frozenset[str] = frozenset(),
) -> Inner:
    """What leaves and enters the spatial answers at a tick, below aggregates.

    Args:
        turn: the run.
        fixes: the last fixes at the tick.
        answer: sorted keys `target << 32 | object` of the answers before it.
        memo: what the tick before kept (criteria and caches of kinds).
        changed: bool[objects], who has another fix than at the tick before.
        but: names of kinds and others that were judged ahead, and are left out.

    Returns:
        The keys that leave and come, each sorted, with what the next tick can build on.
    """
    if not changed.any():
        return Inner(minus=answer[:0], plus=answer[:0], memo=memo)
    scope, known = Scope(answer, changed), turn.known
    world = world_of(turn, fixes)
    if not known.still.empty and STILL not in but:
        _still(scope, turn, fixes, world)
    kinds, touched, caches = {}, 0, dict[str, CacheCounts]()
    for name, queries in known.kinds.items():
        if name in but:
            continue
        kinds[name], looked, counted = _kind(
            scope, turn, fixes, world, name, queries, memo.kinds.get(name)
        )
        touched += looked
        if counted is not None:
            caches[name] = counted
    if len(known.of(PairSpecs).numbers) and PAIRS not in but:
        touched += pairing.judge_pairs(scope, turn, fixes, world)
    if known.of(MovingJoins).kinds and JOINS not in but:
        touched += moving_joins.judge_moving_joins(scope, turn, fixes, world)
    minus, plus = scope.differences(len(turn.numbering.targets))
    return Inner(
        minus=minus, plus=plus, memo=Memo(kinds=kinds), touched=touched, caches=caches
    )


def with_ahead(inner: Inner, ahead: Ahead, at: int) -> Inner:
    """What leaves and enters at a tick, with what was known ahead of it of other queries.

    Args:
        inner: what was judged at the tick itself.
        ahead: what was judged for several ticks.
        at: the place of the tick among these.
    """
    if not ahead.sources:
        return inner
    minus, plus = ahead.turns.at(at)
    # Counted once for all ticks that were taken together.
    looked = ahead.touched if at == 0 else 0
    return replace(
        inner,
        minus=merged(inner.minus, minus),
        plus=merged(inner.plus, plus),
        touched=inner.touched + looked,
    )


def world_of(turn: Turn, fixes: Present) -> World:
    """All objects as their last fixes say, with nothing selected and without velocities."""
    return World(
        x=fixes.x,
        y=fixes.y,
        alive=fixes.alive,
        ids=turn.objects.ids,
        space=turn.settings.space,
        shapes_of=fixes.shapes_of,
    )


def _still(scope: Scope, turn: Turn, fixes: Present, world: World) -> None:
    """Regions that stand still and layers: the changed objects alone are looked at."""
    queries = turn.known.still
    objects = np.flatnonzero(world.alive & scope.changed)
    points = points_at(queries, fixes, objects, turn.objects, space=world.space)
    hits = match(queries, points, layer_of=turn.layer_of, numbering=turn.numbering)
    scope.found(hits.target, objects[hits.point])
    mine = np.zeros(len(turn.queries), bool)
    for unit in queries.units:
        mine[unit.numbers] = True
    scope.by_object(np.flatnonzero(mine[turn.numbering.targets.query]))


def _members(
    scope: Scope, target: np.ndarray, targets: int
) -> tuple[np.ndarray, np.ndarray]:
    """Members of the queries of a kind, as rows of its table and objects: answers name targets, kinds name rows.

    Args:
        scope: who is a member of which target.
        target: int64[m], the target of each row.
        targets: how many targets there are.
    """
    row_of = np.full(targets, -1)
    row_of[target] = np.arange(len(target))
    row = row_of[scope.target]
    mine = row >= 0
    return row[mine], scope.object[mine]


def _kind(  # noqa: PLR0917 - the parts of one tick, taken apart once
    scope: Scope,
    turn: Turn,
    fixes: Present,
    world: World,
    name: str,
    queries: KindQueries,
    memo: KindMemo | None,
) -> tuple[KindMemo, int, CacheCounts | None]:
    # Rows of criteria and caches stand for the queries that they were made for.
    if memo is not None and memo.known is not queries:
        memo = None
    focals = fixes.lookups.focals(queries)
    selection, held = selection_of(
        queries,
        fixes,
        world,
        turn,
        before=memo.held if memo else None,
        changed=scope.changed,
    )
    target, kind = fixes.lookups.targets(queries), KINDS[name]
    member_row, member_object = _members(scope, target, len(turn.numbering.targets))
    tick = Tick(
        world=replace(world, selection=selection),
        table=fixes.lookups.table(queries),
        moved=queries.moved(focals, scope.changed),
        changed=scope.changed,
        member_row=member_row,
        member_object=member_object,
        margin=_margin(turn, queries),
        refills=turn.settings.refills,
    )
    done = judge(kind, tick, memo.kept if memo else None)
    scope.found(target[done.row], done.object)
    scope.whole(target[done.whole])
    if not kind.is_dynamic:
        scope.by_object(target[~done.whole])
    return KindMemo(known=queries, kept=done.kept, held=held), done.touched, done.caches


def _margin(turn: Turn, queries: KindQueries) -> float:
    """The width of the caches; none where an object can become eligible because a region moves."""
    return 0.0 if queries.moving_rules else turn.settings.margin
