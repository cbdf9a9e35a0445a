"""Pairs of objects of one stream: near each other, or with the same key (SPEC G9, B9)."""

import numpy as np
import pyarrow as pa

from st_common.geometry.circles import points_in_circles, within
from st_common.geometry.grid import ranges
from st_common.operators.compiled import is_spread
from st_common.operators.match import match
from st_common.operators.moving_joins import has_moved, inside, is_moving
from st_common.operators.points import points_at
from st_common.operators.present import Present
from st_common.operators.scope import Scope
from st_common.operators.targets import NO_PARTNER
from st_common.operators.turn import Turn
from st_common.operators.world import World
from st_common.query.plan import PairJoin


def judge_pairs(scope: Scope, turn: Turn, fixes: Present, world: World, number: int) -> int:
    """Decides the pairs of one query that a changed object takes part in; how many pairs were tested.

    A shard decides those whose first object is its own, so every pair has one owner; pairs that are counted all lie in
    the query's shard.
    """
    alive = np.flatnonzero(world.alive)
    left = _left(turn, fixes, world, alive, number)
    plan = turn.queries[number].plan
    join = plan.pairs
    assert join is not None  # noqa: S101 - only such queries come here
    codes = _codes(join, fixes, world, alive)
    moved = is_moving(plan) and has_moved(plan, turn, scope.changed)
    changed, found, tested = scope.changed | moved, [], 0
    for mine, theirs in ((left[changed[left]], alive), (left[~changed[left]], alive[changed[alive]])):
        one, other = _near(join, world, codes, mine, theirs)
        tested += len(one)
        keep = one != other
        if codes is not None:
            keep &= (codes[one] == codes[other]) & (codes[one] >= 0)
        if join.distance_m is not None:
            circle = world.x[one], world.y[one], np.full(len(one), join.distance_m)
            keep &= within(*circle, world.x[other], world.y[other], geographic=world.geographic)
        found.append((one[keep], other[keep]))
    if moved:
        scope.whole(np.flatnonzero(turn.numbering.targets.query == number))
    _tell(scope, turn, number, np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]))
    return tested


def _left(turn: Turn, fixes: Present, world: World, alive: np.ndarray, number: int) -> np.ndarray:
    """The living objects that satisfy `where` and `inside`, of this shard alone where the answer is spread."""
    settings, plan = turn.settings, turn.queries[number].plan
    if settings.shards > 1 and is_spread(plan):
        alive = alive[turn.objects.hashes[alive] % np.uint64(settings.shards) == settings.shard]
    if is_moving(plan):
        alive = np.intersect1d(alive, inside(plan, turn, world), assume_unique=True)
    if plan.where is None and plan.inside is None and plan.compare is None and not plan.transforms:
        return alive
    alone = turn.known.alone[number]
    points = points_at(alone, fixes, alive, turn.objects, geographic=world.geographic)
    hits = match(alone, points, layer_of=turn.layer_of, numbering=turn.numbering, first=number)
    return np.sort(alive[hits.point])


def _codes(join: PairJoin, fixes: Present, world: World, alive: np.ndarray) -> np.ndarray | None:
    """A number for every combination of keys among the living objects, -1 where a key is null; int64[n]."""
    if not join.keys:
        return None
    code, is_null = np.zeros(len(alive), np.int64), np.zeros(len(alive), bool)
    for text in join.keys:
        values, names = fixes.values.texts(text, fixes.place[alive])
        is_null |= values < 0
        _, code = np.unique(code * (len(names) + 1) + values, return_inverse=True)
    codes = np.full(len(world.x), -1)
    codes[alive] = np.where(is_null, -1, code)
    return codes


def _near(
    join: PairJoin, world: World, codes: np.ndarray | None, mine: np.ndarray, theirs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that may belong together: by distance where there is one, else by equal keys."""
    if join.distance_m is not None:
        radius = np.full(len(mine), join.distance_m)
        row, at = points_in_circles(
            world.x[mine], world.y[mine], radius, world.x[theirs], world.y[theirs], geographic=world.geographic
        )
        return mine[row], theirs[at]
    assert codes is not None  # noqa: S101 - a join has a distance or keys
    ordered = theirs[np.argsort(codes[theirs], kind="stable")]
    start = np.searchsorted(codes[ordered], codes[mine], side="left")
    count = np.searchsorted(codes[ordered], codes[mine], side="right") - start
    count[codes[mine] < 0] = 0
    return np.repeat(mine, count), ordered[ranges(start, count)]


def _tell(scope: Scope, turn: Turn, number: int, one: np.ndarray, other: np.ndarray) -> None:
    numbering = turn.numbering
    used, at = np.unique(other, return_inverse=True)
    partner = numbering.partners_of(turn.objects.ids.take(pa.array(used)))[at] if len(used) else other
    scope.found(numbering.targets_of(np.full(len(one), number), partner), one)
    targets = np.flatnonzero((numbering.targets.query == number) & (numbering.targets.partner != NO_PARTNER))
    scope.by_object(targets)
    partners = numbering.targets.partner[targets]
    names, hashes = numbering.partners.ids.take(pa.array(partners)), numbering.partners.hashes[partners]
    objects = turn.objects.find(hashes, names)  # -1: the name of a group above the pairs
    scope.whole(targets[(objects >= 0) & np.append(scope.changed, False)[objects]])
