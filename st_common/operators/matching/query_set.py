"""Queries compiled for matching: those that look alike share an index, a join with a layer, a condition (SPEC P8).

```
    query set
      unit: selection below            one for each predicate that decides first, one for all other queries
        parts      boxes | circles | areas     an index for each type of region
        joins      by layer and predicate      the same parts below each
        everywhere                             without a region: found by conditions, or looked at one by one
```
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from st_common.geometry.enlarged import POINT, Growth
from st_common.geometry.space import Space
from st_common.operators.expressions.comparing import Steps, looked_at, steps_of
from st_common.operators.expressions.conditions import Conditions, compile_conditions
from st_common.operators.expressions.index import ConditionIndex, index_conditions
from st_common.operators.expressions.predicates import Predicates, predicates_of
from st_common.operators.expressions.screens import Screens, compile_screens
from st_common.operators.matching.extents import Compiled, compiled_index
from st_common.operators.matching.forecasts import Forecasts, compile_forecasts
from st_common.operators.state.registered import Registered
from st_common.query.plan import LayerJoin, Region
from st_common.query.sides import alone, sides_of
from st_common.regions.forecast import Forecast
from st_common.regions.registry import has_index


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """Queries that join with one version of a layer in the same way.

    Attributes:
        join: what they ask for.
        version: of the layer.
        growth: how the box that must meet a feature is made of a point.
        everywhere: int64, the queries without a region.
        conditions: of `everywhere` those that are found by their conditions; None where none are.
        parts: the others: their numbers and the index of their regions, by type of region. Its rows are the numbers'
            places.
    """

    join: LayerJoin
    version: int
    growth: Growth
    everywhere: np.ndarray
    conditions: ConditionIndex | None
    parts: tuple[tuple[np.ndarray, Compiled], ...]

    @property
    def queries(self) -> np.ndarray:
        """The numbers of all the queries."""
        return np.concatenate(
            [self.everywhere, *(numbers for numbers, _ in self.parts)]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """Queries of one place in the plan, in indexes by what they look at.

    Attributes:
        below: the predicate that decides before the spatial operator which points come to it, -1 for none.
        everywhere: int64, the queries without a region.
        parts: the numbers of others and the index of their regions, by type of region.
        joins: those that join with a layer.
        ahead: those that ask who will enter a region, by how they ask.
        conditions: of `everywhere` those that are found by their conditions; None where none are.
    """

    below: int
    everywhere: np.ndarray
    parts: tuple[tuple[np.ndarray, Compiled], ...]
    joins: tuple[JoinGroup, ...]
    ahead: tuple[Forecasts, ...]
    conditions: ConditionIndex | None

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of all the queries."""
        return np.concatenate(
            [
                self.everywhere,
                *(n for n, _ in self.parts),
                *(group.numbers for group in self.ahead),
                *(group.queries for group in self.joins),
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySet:
    """Queries compiled for matching.

    Attributes:
        units: the queries by what decides first.
        screens: what tests the pairs that indexes and layers give.
        conditions: the different predicates.
        predicate: int32[queries of the stream], the place of each one's in `conditions`, -1 without.
        beside: what joins with a layer ask of a point and a feature, in the names of `pair_columns`.
        keys: the different expressions that joins on a key ask of points.
        space: what coordinates mean.
    """

    units: tuple[Indexes, ...]
    screens: Screens
    conditions: Conditions
    predicate: np.ndarray
    beside: Predicates
    keys: tuple[str, ...]
    space: Space

    @property
    def empty(self) -> bool:
        """Whether nothing can match."""
        return not self.units


def compile_queries(
    queries: Sequence[Registered],
    which: Sequence[int],
    *,
    space: Space,
    below: frozenset[int] = frozenset(),
) -> QuerySet:
    """Queries compiled for matching: regions of one type share an index, like joins and conditions are one.

    Args:
        queries: all queries of the stream, by their numbers.
        which: the numbers of those to compile. One whose region moves is compiled as if it looked everywhere: its kind
            does the rest.
        space: in which regions lie.
        below: the numbers of those whose condition is looked at before the region.

    Returns:
        A set whose targets have the numbers of the stream's queries.
    """
    if not which:
        return _nothing(len(queries), space)
    wheres = {n: where for n in which if (where := alone(queries[n].plan))}
    views, screens = _views(queries, which, space)
    # A query about one object is found by its id, not by its condition.
    is_of_anyone = screens.key < 0
    found_so = {n for n in wheres if is_of_anyone[n] and queries[n].plan.inside is None}
    predicates = predicates_of(len(queries), wheres, found_so)
    conditions, predicate = predicates.conditions, predicates.of
    units: dict[int, list[int]] = {}
    for n in which:
        units.setdefault(int(predicate[n]) if n in below else -1, []).append(n)
    found_by = np.where(is_of_anyone, predicate, -1)
    return QuerySet(
        units=tuple(
            _indexes(unit, views, numbers, conditions, found_by)
            for unit, numbers in units.items()
        ),
        screens=screens,
        conditions=conditions,
        predicate=predicate,
        beside=_beside(queries, which),
        space=space,
        keys=_keys(queries[n].plan.join for n in which),
    )


@lru_cache(maxsize=8)
def _nothing(total: int, space: Space) -> QuerySet:
    """The set of none of so many queries: most operators of a shard have none, whenever a query comes or goes."""
    predicate = np.full(total, -1, np.int32)
    predicate.setflags(write=False)
    return QuerySet(
        units=(),
        screens=compile_screens(total, {}, {}),
        conditions=compile_conditions(()),
        predicate=predicate,
        beside=predicates_of(total, {}),
        keys=(),
        space=space,
    )


def _beside(queries: Sequence[Registered], which: Sequence[int]) -> Predicates:
    """What joins with a layer ask of a point and a feature."""
    plans = {n: plan for n in which if (plan := queries[n].plan).join is not None}
    asked = {n: sides_of(plan.where).beside for n, plan in plans.items()}
    return predicates_of(
        len(queries), {n: text for n, text in asked.items() if text is not None}
    )


def _keys(joins: Iterable[LayerJoin | None]) -> tuple[str, ...]:
    """The different expressions by which joins with a key look at a point."""
    lefts = (join.left for join in joins if join is not None)
    return tuple(dict.fromkeys(left for left in lefts if left is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Views:
    """Queries as indexes see them; `steps` and `regions` of those that have steps, by number."""

    queries: Sequence[Registered]
    steps: dict[int, Steps]
    regions: dict[int, Region | None]
    space: Space

    def region(self, number: int) -> Region | None:
        return (
            self.regions[number]
            if number in self.regions
            else self.queries[number].plan.inside
        )

    def growth(self, number: int) -> Growth:
        return self.steps[number].growth if number in self.steps else POINT


def _views(
    queries: Sequence[Registered], which: Sequence[int], space: Space
) -> tuple[_Views, Screens]:
    """Queries as indexes see them, and what tests the pairs that these give."""
    steps = {
        n: steps_of(plan)
        for n in which
        if (plan := queries[n].plan).transforms or plan.compare is not None
    }
    looked = {n: looked_at(queries[n].plan, of, space=space) for n, of in steps.items()}
    regions = {n: region for n, (region, _) in looked.items()}
    left = {n: meetings for n, (_, meetings) in looked.items()}
    views = _Views(queries=queries, steps=steps, regions=regions, space=space)
    return views, compile_screens(len(queries), steps, left)


def _indexes(
    below: int,
    views: _Views,
    numbers: list[int],
    conditions: Conditions,
    found_by: np.ndarray,
) -> Indexes:
    """Queries of one place in the plan by type of region and by join; a layer without a version is joined by nobody."""
    kinds: dict[type, list[int]] = {}
    groups: dict[tuple[LayerJoin, int, Growth], list[int]] = {}
    for number in numbers:
        query = views.queries[number]
        join, version = query.plan.join, query.layer_version
        if join is None:
            kinds.setdefault(type(views.region(number)), []).append(number)
        # Without a version of its layer a join finds nothing.
        elif version is not None:
            groups.setdefault((join, version, views.growth(number)), []).append(number)
    find = partial(_found_by, conditions, None if below >= 0 else found_by)
    ahead = kinds.pop(Forecast, [])
    everywhere = _without_index(kinds)
    return Indexes(
        below=below,
        ahead=_forecasts(ahead, views),
        parts=_parts(kinds, views),
        everywhere=everywhere,
        conditions=find(everywhere),
        joins=tuple(
            _join_group(join, version, growth, views, of, find)
            for (join, version, growth), of in groups.items()
        ),
    )


def _found_by(
    conditions: Conditions, found_by: np.ndarray | None, everywhere: np.ndarray
) -> ConditionIndex | None:
    """An index of queries without a region by their conditions; None where these were tested before."""
    if found_by is None:
        return None
    return index_conditions(conditions, everywhere, found_by[everywhere])


def _forecasts(numbers: list[int], views: _Views) -> tuple[Forecasts, ...]:
    asked = [views.region(n) for n in numbers]
    forecasts = [one for one in asked if isinstance(one, Forecast)]
    return compile_forecasts(numbers, forecasts, space=views.space)


def _join_group(
    join: LayerJoin,
    version: int,
    growth: Growth,
    views: _Views,
    numbers: list[int],
    find: Callable[[np.ndarray], ConditionIndex | None],
) -> JoinGroup:
    kinds: dict[type, list[int]] = {}
    for number in numbers:
        kinds.setdefault(type(views.region(number)), []).append(number)
    everywhere = _without_index(kinds)
    return JoinGroup(
        join=join,
        version=version,
        growth=growth,
        everywhere=everywhere,
        conditions=find(everywhere),
        parts=_parts(kinds, views),
    )


def _parts(
    kinds: dict[type, list[int]], views: _Views
) -> tuple[tuple[np.ndarray, Compiled], ...]:
    """The numbers of queries whose regions have an index, by type of region, with it."""
    return tuple(
        (
            np.array(of, np.int64),
            compiled_index([views.region(n) for n in of], space=views.space),
        )
        for kind, of in kinds.items()
        if has_index(kind)
    )


def _without_index(kinds: dict[type, list[int]]) -> np.ndarray:
    return np.array(
        [n for kind, of in kinds.items() if not has_index(kind) for n in of], np.int64
    )
