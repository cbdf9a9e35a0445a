"""Pairs of objects of one stream: near each other, or with the same key (SPEC G9, B9).

All queries at once: who comes first in a pair is a list of queries and objects, and so are the pairs. Only pairs that a
changed object takes part in are looked for, and all of those queries whose region moved.
"""

from dataclasses import dataclass

import numpy as np

from st_common.geometry.circles import points_in_circles
from st_common.geometry.grid import blocks
from st_common.geometry.nearest import Neighbours
from st_common.operators.arrays.keys import unique
from st_common.operators.expressions.screens import passes
from st_common.operators.matching.match import match
from st_common.operators.pairs.judging import hold, may_be_other
from st_common.operators.pairs.moving_regions import Inside, inside, selected
from st_common.operators.pairs.nearest import are_nearest
from st_common.operators.pairs.specs import PairSpecs
from st_common.operators.skeleton.scope import Scope
from st_common.operators.skeleton.world import World
from st_common.operators.state.intern import shards_of
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.course import Course
from st_common.operators.turn.points import points_at
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first, ranges

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # queries, firsts, others

_MOST_LOOKED = 1 << 20  # pairs of a first object and others, tested together


@dataclass(frozen=True, slots=True, kw_only=True)
class _Firsts:
    """Pairs of a query and the object that comes first; `anyone`: its partner may be anyone, not only a changed one."""

    query: np.ndarray
    object: np.ndarray
    anyone: np.ndarray


def judge_pairs(scope: Scope, turn: Turn, fixes: Present, world: World) -> int:
    """Decides the pairs that a changed object takes part in, and all of queries whose region moved (SPEC G9, B9).

    A shard decides those whose first object is its own, so every pair has one owner; pairs that are counted all lie in
    the query's shard.

    Args:
        scope: is told what is decided anew, and what holds.
        turn: the run.
        fixes: the last fixes at the tick.
        world: the same as kinds see them.

    Returns:
        How many pairs were tested.
    """
    specs = turn.known.of(PairSpecs)
    codes = [codes_of(keys, fixes, world) for keys in specs.keys]
    changed = np.flatnonzero(world.alive & scope.changed)
    # A pair changes by either object: whoever may have a changed one as partner is looked at as a first one, too.
    near = _near_changed(turn, world, codes, changed)
    few = unique(np.concatenate([changed, near]))
    within = inside(specs.moving, turn, fixes, world, few, scope.changed)
    # Who is nearest depends on all others: of queries that ask for these all pairs are decided anew.
    ranked = specs.ranked if scope.changed.any() else specs.ranked[:0]
    moved = np.union1d(within.moved, ranked)
    alive = np.flatnonzero(world.alive)
    firsts = _firsts(scope, turn, fixes, alive if len(ranked) else few, within, moved)
    if len(ranked):
        firsts = _as_asked(firsts, moved, few)
    (query, one, other), tested = _paired(turn, fixes, world, codes, firsts, changed)
    _decide(scope, turn, fixes, moved)
    if specs.lonely.any():
        _keep_firsts(scope, turn, firsts, moved)
    scope.found(turn.numbering.targets_of(query, fixes.lookups.partners(other)), one)
    return tested


def _paired(
    turn: Turn,
    fixes: Present,
    world: World,
    codes: list[np.ndarray],
    firsts: "_Firsts",
    changed: np.ndarray,
) -> tuple[tuple[np.ndarray, ...], int]:
    """The pairs of first objects of which all holds: queries, firsts, others; and how many were tested."""
    alive = np.flatnonzero(world.alive)
    is_alone = turn.known.of(PairSpecs).alone[firsts.query]
    pairs = [
        _partners(turn, world, codes, firsts, which, may_be_other(turn, fixes, among))
        # A first object that changed, or whose query moved, is paired with all; others with those that changed.
        for which, among in (
            (firsts.anyone & ~is_alone, alive),
            (~firsts.anyone & ~is_alone, changed),
        )
    ]
    query, one, other = (np.concatenate([part[n] for part in pairs]) for n in range(3))
    keep = hold(turn, fixes, query, one, other)
    kept = [(query[keep], one[keep], other[keep])]
    tested = sum(part[3] for part in pairs)
    if is_alone.any():
        among = may_be_other(turn, fixes, alive)
        query, one = firsts.query[is_alone], firsts.object[is_alone]
        of_alone, looked = _nearest_of_all(turn, fixes, world, query, one, among)
        kept, tested = [*kept, *of_alone], tested + looked
    query, one, other = (np.concatenate([part[n] for part in kept]) for n in range(3))
    keep = are_nearest(turn, world, query, one, other)
    return (query[keep], one[keep], other[keep]), tested


def _nearest_of_all(
    turn: Turn,
    fixes: Present,
    world: World,
    query: np.ndarray,
    one: np.ndarray,
    among: np.ndarray,
) -> tuple[list[Pairs], int]:
    """Pairs that hold, the nearest of each first object among them, and how many were tested.

    They are looked for among the nearest others, then among four times as many, until as many hold as are asked for.
    """
    if not len(among):
        return [], 0
    count = turn.known.of(PairSpecs).nearest[query]
    tree = Neighbours(world.x[among], world.y[among], space=world.space)
    wanted, rows, tested = count + 1, np.arange(len(query)), 0  # each is near to itself
    kept: list[Pairs] = []
    while len(rows):
        look, settled = np.minimum(wanted[rows], len(among)), np.zeros(len(rows), bool)
        for part in blocks(look, _MOST_LOOKED):
            some = rows[part]
            far = world.space.radius_of(
                tree.bound(world.x[one[some]], world.y[one[some]], look[part])
            )
            row, other = _near(world, one[some], far, among)
            is_other = one[some][row] != other
            row, other = row[is_other], other[is_other]
            keep = hold(turn, fixes, query[some][row], one[some][row], other)
            tested += len(keep)
            enough = np.bincount(row[keep], minlength=len(some)) >= count[some]
            settled[part] = enough | (look[part] == len(among))
            keep &= settled[part][row]
            kept.append((query[some][row[keep]], one[some][row[keep]], other[keep]))
        rows = rows[~settled]
        wanted[rows] *= 4
    return kept, tested


def _as_asked(firsts: _Firsts, moved: np.ndarray, few: np.ndarray) -> _Firsts:
    """The firsts of queries that are decided anew, and of others those that may have a changed partner."""
    keep = np.isin(firsts.query, moved) | np.isin(firsts.object, few)
    return _Firsts(
        query=firsts.query[keep],
        object=firsts.object[keep],
        anyone=firsts.anyone[keep],
    )


def _firsts(
    scope: Scope,
    turn: Turn,
    fixes: Present,
    few: np.ndarray,
    within: Inside,
    moved: np.ndarray,
) -> _Firsts:
    """Who may come first: the living objects that satisfy `where` and `inside`, of this shard alone if it is spread."""
    specs, settings = turn.known.of(PairSpecs), turn.settings
    query, objects = (
        _screened(turn, fixes, within)
        if len(within.query)
        else (within.query, within.object)
    )
    if not specs.still.empty and len(few):
        points = points_at(specs.still, fixes, few, turn.objects, space=settings.space)
        hits = match(
            specs.still, points, layer_of=turn.layer_of, numbering=turn.numbering
        )
        query = np.append(query, turn.numbering.targets.query[hits.target])
        objects = np.append(objects, few[hits.point])
    if settings.shards > 1:
        own = shards_of(turn.objects.hashes[objects], settings.shards) == settings.shard
        # Of pairs that are spread the shard of the first object is the one owner.
        keep = own | ~specs.spread[query]
        query, objects = query[keep], objects[keep]
    has_moved = np.zeros(len(turn.queries), bool)
    has_moved[moved] = True
    return _Firsts(
        query=query, object=objects, anyone=scope.changed[objects] | has_moved[query]
    )


def _screened(
    turn: Turn, fixes: Present, within: Inside
) -> tuple[np.ndarray, np.ndarray]:
    """What is inside regions that move, as far as it satisfies what else its query asks."""
    moving = turn.known.of(PairSpecs).moving
    who, at = np.unique(within.object, return_inverse=True)
    points = points_at(
        moving.screened, fixes, who, turn.objects, space=turn.settings.space
    )
    keep = selected(moving, points, at, within.query)
    if not moving.screened.screens.empty:
        keep[keep] = passes(
            moving.screened.screens, points.asked, at[keep], within.query[keep]
        )
    return within.query[keep], within.object[keep]


def _near_changed(
    turn: Turn, world: World, codes: list[np.ndarray], changed: np.ndarray
) -> np.ndarray:
    """The living objects that may have a changed one as their partner."""
    specs, alive = turn.known.of(PairSpecs), np.flatnonzero(world.alive)
    if not len(changed):
        return changed
    near = [changed]
    if not np.isnan(specs.most_m):
        radius = np.full(len(changed), specs.most_m * world.space.growth)
        places = world.x[changed], world.y[changed], radius
        _, at = points_in_circles(
            *places, world.x[alive], world.y[alive], space=world.space
        )
        near.append(alive[at])
    by_key = specs.key[specs.numbers[np.isnan(specs.distance_m[specs.numbers])]]
    near += [
        alive[np.isin(codes[key][alive], codes[key][changed])]
        for key in np.unique(by_key).tolist()
        if key >= 0
    ]
    return unique(np.concatenate(near))


def codes_of(
    keys: tuple[str, ...], fixes: Present | Course, world: World
) -> np.ndarray:
    """A number for every combination of keys; int64[objects], -1 where a key is null and for who is not alive.

    Objects with equal codes have equal keys; a code means nothing at another tick.

    Args:
        keys: the expressions.
        fixes: the last fixes, at one tick or over several.
        world: the same as kinds see them.
    """
    alive = np.flatnonzero(world.alive)
    code, is_null = np.zeros(len(alive), np.int64), np.zeros(len(alive), bool)
    for number, text in enumerate(keys):
        values, names = fixes.values.texts(text, fixes.place[alive])
        is_null |= values < 0
        # Several keys as digits of one number, which is made small again after each.
        code = code * (len(names) + 1) + values
        if number:
            _, code = np.unique(code, return_inverse=True)
    codes = np.full(len(world.x), -1)
    codes[alive] = np.where(is_null, -1, code)
    return codes


Found = tuple[np.ndarray, np.ndarray, np.ndarray, int]


def _partners(
    turn: Turn,
    world: World,
    codes: list[np.ndarray],
    firsts: _Firsts,
    which: np.ndarray,
    among: np.ndarray,
) -> Found:
    """Queries, first objects and their partners among some objects; and how many were tested."""
    specs = turn.known.of(PairSpecs)
    query, one = firsts.query[which], firsts.object[which]
    if not len(query):
        return query, query, query, 0
    far = specs.distance_m[query]
    parts = [(query[:0], query[:0])]
    by_distance = np.flatnonzero(~np.isnan(far))
    row, other = _near(world, one[by_distance], far[by_distance], among)
    parts.append((by_distance[row], other))
    by_key = np.flatnonzero(np.isnan(far))
    for key in np.unique(specs.key[query[by_key]]).tolist():
        mine = by_key[specs.key[query[by_key]] == key]
        row, other = _alike(codes[key], one[mine], among)
        parts.append((mine[row], other))
    row, other = (np.concatenate([part[n] for part in parts]) for n in range(2))
    keep = one[row] != other
    for key, code in enumerate(codes):
        mine = specs.key[query[row]] == key
        keep &= ~mine | ((code[one[row]] == code[other]) & (code[other] >= 0))
    row = row[keep]
    return query[row], one[row], other[keep], len(keep)


def _near(
    world: World, one: np.ndarray, far: np.ndarray, among: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places of first objects, and objects within their distance. What many queries ask alike is looked for once."""
    order = np.lexsort((far, one))
    begins = is_first(one[order], far[order])
    circle = np.cumsum(begins) - 1
    first = order[begins]
    place, at = points_in_circles(
        world.x[one[first]],
        world.y[one[first]],
        far[first],
        world.x[among],
        world.y[among],
        space=world.space,
    )
    start = np.searchsorted(place, circle)
    count = np.searchsorted(place, circle, side="right") - start
    return np.repeat(order, count), among[at[ranges(start, count)]]


def _alike(
    codes: np.ndarray, one: np.ndarray, among: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places of first objects, and objects with the same code."""
    ordered = among[np.argsort(codes[among], kind="stable")]
    start = np.searchsorted(codes[ordered], codes[one], side="left")
    count = np.searchsorted(codes[ordered], codes[one], side="right") - start
    count[codes[one] < 0] = 0
    return np.repeat(np.arange(len(one)), count), ordered[ranges(start, count)]


def _keep_firsts(scope: Scope, turn: Turn, firsts: _Firsts, moved: np.ndarray) -> None:
    """Decides who may come first, of queries that ask for objects without a partner: those that changed, or all."""
    lonely = turn.known.of(PairSpecs).lonely
    numbers = np.flatnonzero(lonely)
    alone = np.full(len(numbers), NO_PARTNER)
    own = turn.numbering.targets_of(numbers, alone)
    scope.by_object(own)
    scope.whole(own[np.isin(numbers, moved)])
    mine = np.flatnonzero(lonely[firsts.query] & firsts.anyone)
    place = np.searchsorted(numbers, firsts.query[mine])
    scope.found(own[place], firsts.object[mine])


def _decide(scope: Scope, turn: Turn, fixes: Present, moved: np.ndarray) -> None:
    """Says what is decided anew: all of queries that moved, and all pairs that a changed object takes part in."""
    targets = turn.numbering.targets
    is_mine, has_moved = (
        np.zeros(len(turn.queries), bool),
        np.zeros(len(turn.queries), bool),
    )
    is_mine[turn.known.of(PairSpecs).numbers], has_moved[moved] = True, True
    mine = np.flatnonzero(is_mine[targets.query] & (targets.partner != NO_PARTNER))
    scope.by_object(mine)
    objects = fixes.lookups.objects_of_partners()[
        targets.partner[mine]
    ]  # -1: the name of a group above the pairs
    with_changed = (objects >= 0) & np.append(scope.changed, False)[objects]
    scope.whole(mine[with_changed | has_moved[targets.query[mine]]])
