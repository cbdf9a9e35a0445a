"""Queries that pair objects with objects, or what is in a region that moves with a layer, compiled (SPEC P8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.arrays.numbered import numbered
from st_common.operators.expressions.comparing import steps_of
from st_common.operators.expressions.predicates import Predicates, predicates_of
from st_common.operators.matching.query_set import QuerySet, compile_queries
from st_common.operators.skeleton.kind_queries import KindQueries, kind_queries
from st_common.operators.state.registered import Registered
from st_common.query.neighbours import kind_of
from st_common.query.plan import Plan
from st_common.query.sides import Sides, alone, sides_of
from st_common.regions.region import MovingRegion


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """Queries whose region moves, in two parts, each without what the other says.

    Attributes:
        kinds: their regions, by kind.
        screened: all else that their objects must satisfy, as queries that look everywhere.
    """

    kinds: dict[str, KindQueries]
    screened: QuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingJoins(Moving):
    """Queries that join what is in a region that moves with a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSpecs:
    """The queries that pair objects.

    Attributes:
        numbers: int64, their numbers.
        still: those whose region stands still, or that have none.
        moving: those whose region goes with an object.
        distance_m: float64[queries of the stream], how far a partner may be, NaN without.
        key: int64[queries of the stream], the place of its keys in `keys`, -1 without.
        keys: different keys of joins, each some expressions.
        nearest: int64[queries of the stream], how many of the nearest others pair with an object, 0 for all of them.
        spread: bool[queries of the stream], whether every shard judges the pairs of its own objects.
        lonely: bool[queries of the stream], whether objects without a partner are asked for: all first ones are kept.
        other: what is asked of the other object of a pair, in the names of its own columns.
        both: what is asked of both, in those of `pair_columns`.
    """

    numbers: np.ndarray
    still: QuerySet
    moving: Moving
    distance_m: np.ndarray
    key: np.ndarray
    keys: tuple[tuple[str, ...], ...]
    nearest: np.ndarray
    spread: np.ndarray
    lonely: np.ndarray
    other: QuerySet
    both: Predicates

    @property
    def ranked(self) -> np.ndarray:
        """The numbers of those that pair only the nearest others: who these are depends on all."""
        return np.flatnonzero(self.nearest)

    @property
    def alone(self) -> np.ndarray:
        """Whether queries ask for the nearest others wherever they are, without distance or key; bool."""
        alone: np.ndarray = (self.nearest > 0) & (self.key < 0)
        alone &= np.isnan(self.distance_m)
        return alone

    @property
    def most_m(self) -> float:
        """The largest distance; NaN where no query has one."""
        known = self.distance_m[~np.isnan(self.distance_m)]
        return float(known.max()) if len(known) else np.nan


def moves(plan: Plan) -> bool:
    """Whether the region of a plan goes with an object, or who comes first is one of the nearest of a place."""
    return plan.neighbours is not None or isinstance(plan.inside, MovingRegion)


def compile_pairs(
    queries: Sequence[Registered],
    numbers: list[int],
    *,
    spread: Sequence[int],
    space: Space,
) -> PairSpecs:
    """The queries that pair objects, compiled.

    Args:
        queries: all queries of the stream.
        numbers: those that are meant.
        spread: of these the ones that are judged by all shards, each the pairs of its own objects.
        space: what coordinates mean.
    """
    joins = {n: join for n in numbers if (join := queries[n].plan.pairs) is not None}
    keys = numbered(join.keys for join in joins.values() if join.keys)
    distance_m, key = np.full(len(queries), np.nan), np.full(len(queries), -1)
    nearest = np.zeros(len(queries), np.int64)
    for number, join in joins.items():
        distance_m[number] = np.nan if join.distance_m is None else join.distance_m
        key[number] = keys.get(join.keys, -1)
        nearest[number] = join.nearest or 0
    is_spread = np.zeros(len(queries), bool)
    is_spread[list(spread)] = True
    lonely = np.zeros(len(queries), bool)
    lonely[[n for n, join in joins.items() if join.how in ("anti", "left")]] = True
    still = [n for n in numbers if not moves(queries[n].plan)]
    sides = {n: sides_of(queries[n].plan.where) for n in numbers}
    firsts = _asking_firsts(queries, sides)
    return PairSpecs(
        numbers=np.array(numbers, np.int64),
        still=compile_queries(firsts, still, space=space),
        moving=compile_moving(firsts, sorted({*numbers} - {*still}), space=space),
        distance_m=distance_m,
        key=key,
        keys=tuple(keys),
        nearest=nearest,
        spread=is_spread,
        lonely=lonely,
        other=_asking_others(queries, sides, space),
        both=_asking_both(queries, sides),
    )


def _asking_firsts(
    queries: Sequence[Registered], sides: Mapping[int, Sides]
) -> Sequence[Registered]:
    """The queries, each that pairs objects with what it asks of first objects alone."""
    firsts = list(queries)
    for number, of in sides.items():
        plan = queries[number].plan
        if of.first != plan.where:
            firsts[number] = replace(
                queries[number], plan=replace(plan, where=of.first)
            )
    return firsts


def _asking_others(
    queries: Sequence[Registered], sides: Mapping[int, Sides], space: Space
) -> QuerySet:
    """What pairs ask of the other object, as queries that look everywhere."""
    asking = {n: one.other for n, one in sides.items() if one.other is not None}
    others = list(queries)
    for number, where in asking.items():
        plan = Plan(stream=queries[number].plan.stream, where=where)
        others[number] = replace(queries[number], plan=plan)
    return compile_queries(others, list(asking), space=space)


def _asking_both(
    queries: Sequence[Registered], sides: Mapping[int, Sides]
) -> Predicates:
    """What pairs ask of both objects."""
    wheres = {n: one.both for n, one in sides.items() if one.both is not None}
    return predicates_of(len(queries), wheres)


def compile_moving_joins(
    queries: Sequence[Registered], numbers: list[int], *, space: Space
) -> MovingJoins:
    """The queries of `numbers`, which join a layer below a region that moves."""
    moving = compile_moving(queries, numbers, space=space)
    return MovingJoins(kinds=moving.kinds, screened=moving.screened)


def compile_moving(
    queries: Sequence[Registered], numbers: list[int], *, space: Space
) -> Moving:
    """Queries whose regions move, in two parts: what the kinds know of them, and what else they ask.

    Args:
        queries: all queries of the stream.
        numbers: those that are meant.
        space: what coordinates mean.
    """
    kinds: dict[str, list[int]] = {}
    bare = list(queries)
    for number in numbers:
        plan = queries[number].plan
        if plan.neighbours is not None:
            kinds.setdefault(kind_of(plan.neighbours), []).append(number)
            who = replace(plan, join=None, pairs=None, where=alone(plan))
            bare[number] = replace(queries[number], plan=who)
            continue
        # Who is asked for by two ids is nobody.
        if isinstance(plan.inside, MovingRegion) and len(steps_of(plan).keys) < 2:
            kinds.setdefault(plan.inside.kind, []).append(number)
        bare[number] = replace(
            queries[number], plan=Plan(stream=plan.stream, inside=plan.inside)
        )
    return Moving(
        kinds={name: kind_queries(bare, of, space=space) for name, of in kinds.items()},
        screened=compile_queries(queries, numbers, space=space),
    )
