"""Queries that pair objects with objects, or what is in a region that moves with a layer, compiled (SPEC P8)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.matching.query_set import QuerySet, compile_queries
from st_common.operators.skeleton.kind_queries import KindQueries, kind_queries
from st_common.operators.state.registered import Registered
from st_common.query.plan import Plan
from st_common.regions.region import MovingRegion


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """Queries whose region moves: their regions by kind, and what else their objects must satisfy, by number."""

    kinds: dict[str, KindQueries]
    screened: QuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingJoins(Moving):
    """Queries that join what is in a region that moves with a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSpecs:
    """The queries (`numbers`) that pair objects: whose region stands still or is none, and whose moves.

    Per query of the stream, by number: `distance_m` (NaN without), `key`, the place of its keys in `keys` (-1 without),
    and `spread`: whether every shard judges the pairs of its own objects.
    """

    numbers: np.ndarray
    still: QuerySet
    moving: Moving
    distance_m: np.ndarray
    key: np.ndarray
    keys: tuple[tuple[str, ...], ...]
    spread: np.ndarray

    @property
    def most_m(self) -> float:
        """The largest distance; NaN where no query has one."""
        known = self.distance_m[~np.isnan(self.distance_m)]
        return float(known.max()) if len(known) else np.nan


def moves(plan: Plan) -> bool:
    """Whether the region of a plan goes with an object."""
    return isinstance(plan.inside, MovingRegion)


def compile_pairs(
    queries: Sequence[Registered],
    numbers: list[int],
    *,
    spread: Sequence[int],
    space: Space,
) -> PairSpecs:
    """The queries of `numbers`, of which those in `spread` are judged by all shards."""
    joins = {n: join for n in numbers if (join := queries[n].plan.pairs) is not None}
    keys = {
        keys: place
        for place, keys in enumerate(
            dict.fromkeys(join.keys for join in joins.values() if join.keys)
        )
    }
    distance_m, key = np.full(len(queries), np.nan), np.full(len(queries), -1)
    for number, join in joins.items():
        distance_m[number] = np.nan if join.distance_m is None else join.distance_m
        key[number] = keys.get(join.keys, -1)
    is_spread = np.zeros(len(queries), bool)
    is_spread[list(spread)] = True
    still = [n for n in numbers if not moves(queries[n].plan)]
    return PairSpecs(
        numbers=np.array(numbers, np.int64),
        still=compile_queries(queries, still, space=space),
        moving=compile_moving(
            queries,
            [n for n in numbers if moves(queries[n].plan)],
            space=space,
        ),
        distance_m=distance_m,
        key=key,
        keys=tuple(keys),
        spread=is_spread,
    )


def compile_moving_joins(
    queries: Sequence[Registered], numbers: list[int], *, space: Space
) -> MovingJoins:
    """The queries of `numbers`, which join a layer below a region that moves."""
    moving = compile_moving(queries, numbers, space=space)
    return MovingJoins(kinds=moving.kinds, screened=moving.screened)


def compile_moving(
    queries: Sequence[Registered], numbers: list[int], *, space: Space
) -> Moving:
    """The queries of `numbers`, whose regions move: each of the two parts without what the other says."""
    kinds: dict[str, list[int]] = {}
    bare, still = list(queries), list(queries)
    for number in numbers:
        plan = queries[number].plan
        if isinstance(plan.inside, MovingRegion):
            kinds.setdefault(plan.inside.kind, []).append(number)
        bare[number] = replace(
            queries[number], plan=Plan(stream=plan.stream, inside=plan.inside)
        )
        still[number] = replace(queries[number], plan=replace(plan, inside=None))
    return Moving(
        kinds={
            name: kind_queries(tuple(bare), of, space=space)
            for name, of in kinds.items()
        },
        screened=compile_queries(still, numbers, space=space),
    )
