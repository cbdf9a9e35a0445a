"""Which queries a point satisfies: all queries that stand still at once, as array joins (SPEC P8)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from st_common.geometry.areas import AreaIndex
from st_common.geometry.circles import CircleIndex
from st_common.geometry.enlarged import POINT, Growth
from st_common.geometry.grid import BoxIndex, blocks, ranges
from st_common.geometry.space import Space
from st_common.operators.comparing import Steps, looked_at, steps_of
from st_common.operators.condition_index import ConditionIndex, found, index_conditions
from st_common.operators.conditions import Conditions, Truth, compile_conditions
from st_common.operators.filters.protocol import Features
from st_common.operators.numbering import Numbering
from st_common.operators.registered import Registered
from st_common.operators.screens import (
    Asked,
    Screens,
    compile_screens,
    objects_of,
    passes,
)
from st_common.operators.targets import NO_PARTNER
from st_common.query.plan import LayerJoin, Region
from st_common.query.region import Area, Box, Circle

Index = BoxIndex | CircleIndex | AreaIndex
Pairs = tuple[np.ndarray, np.ndarray]  # points, queries
Triples = tuple[np.ndarray, np.ndarray, np.ndarray]  # points, queries, partners
Tags = tuple[tuple[str, str], ...]

_MOST_PAIRS = 1 << 22  # of points and queries that look everywhere, tested together


class Layer(Protocol):
    """One version of a layer, as far as matching needs it."""

    fids: np.ndarray

    def match(
        self,
        x: np.ndarray,
        y: np.ndarray,
        *,
        distance_m: float | None = None,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
        within: bool = False,
        growth: Growth = POINT,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a point, or of the box around it, and a feature, each once, sorted."""

    def keyed(
        self,
        values: pa.Array,
        column: str,
        *,
        kinds: tuple[str, ...] = (),
        tags: Tags = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a value (its place, nulls match nothing) and a feature whose `column` has it as text."""

    def values(self, column: str) -> pa.Array:
        """The fid, the kind or a tag (by name) of every feature, as text; null for none."""


LayerOf = Callable[[str, int], Layer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points with what else decides: the `truth` of conditions, `keys` of joins on a key, by expression.

    `asked` are the readings that they are of, for screens. `truth` is None where there are no conditions.
    """

    x: np.ndarray
    y: np.ndarray
    truth: Truth | None
    keys: dict[str, pa.Array]
    asked: Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Pairs of a point (its place) and a target.

    `probed` points were looked up in an index or a layer, `matched` pairs came out of that, before the predicates.
    """

    point: np.ndarray
    target: np.ndarray
    probed: int
    matched: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """Queries that join with one version of a layer in the same way: in indexes where they have a region.

    `everywhere` has those without one. `growth` is that of the boxes that must meet a feature.
    """

    join: LayerJoin
    version: int
    growth: Growth
    everywhere: np.ndarray
    parts: tuple[tuple[np.ndarray, Index], ...]

    @property
    def queries(self) -> np.ndarray:
        """The numbers of all the queries."""
        return np.concatenate(
            [self.everywhere, *(numbers for numbers, _ in self.parts)]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """Queries of one place in the plan, in indexes by what they look at; `everywhere` has those without a region.

    `below` is the predicate that decides before the spatial operator which points come to it, -1 for none. Those of
    `everywhere` that are found by their conditions are in `conditions`.
    """

    below: int
    everywhere: np.ndarray
    parts: tuple[tuple[np.ndarray, Index], ...]
    joins: tuple[JoinGroup, ...]
    conditions: ConditionIndex | None

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of all the queries."""
        return np.concatenate(
            [
                self.everywhere,
                *(n for n, _ in self.parts),
                *(group.queries for group in self.joins),
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySet:
    """Queries compiled for matching: `predicate` int32 per query of the stream, its place in `conditions` or -1.

    `screens` test what indexes and layers find.
    """

    units: tuple[Indexes, ...]
    screens: Screens
    conditions: Conditions
    predicate: np.ndarray
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
    """The queries with the numbers `which`, compiled; those in `below` have the selection below the spatial operator.

    Queries whose region moves are compiled as if they looked everywhere: their kind does the rest.
    """
    predicates = tuple(
        dict.fromkeys(
            queries[n].plan.where or "" for n in which if queries[n].plan.where
        )
    )
    numbered = {text: number for number, text in enumerate(predicates)}
    predicate = np.full(len(queries), -1, np.int32)
    by_unit: dict[int, list[int]] = {}
    for number in which:
        where = queries[number].plan.where
        if where:
            predicate[number] = numbered[where]
        by_unit.setdefault(
            int(predicate[number]) if number in below else -1, []
        ).append(number)
    joins = (queries[n].plan.join for n in which)
    steps = {
        n: steps_of(plan)
        for n in which
        if (plan := queries[n].plan).transforms or plan.compare is not None
    }
    looked = {n: looked_at(queries[n].plan, of, space=space) for n, of in steps.items()}
    views = _Views(
        queries=queries,
        steps=steps,
        regions={n: region for n, (region, _) in looked.items()},
        space=space,
    )
    screens = compile_screens(
        len(queries), steps, {n: left for n, (_, left) in looked.items()}
    )
    conditions = compile_conditions(predicates)
    found_by = np.where(screens.key < 0, predicate, -1)
    return QuerySet(
        units=tuple(
            _indexes(unit, views, numbers, conditions, found_by)
            for unit, numbers in by_unit.items()
        ),
        screens=screens,
        conditions=conditions,
        predicate=predicate,
        space=space,
        keys=tuple(
            dict.fromkeys(
                join.left
                for join in joins
                if join is not None and join.left is not None
            )
        ),
    )


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


def _indexes(
    below: int,
    views: _Views,
    numbers: list[int],
    conditions: Conditions,
    found_by: np.ndarray,
) -> Indexes:
    kinds: dict[type, list[int]] = {}
    groups: dict[tuple[LayerJoin, int, Growth], list[int]] = {}
    for number in numbers:
        join, version = (
            views.queries[number].plan.join,
            views.queries[number].layer_version,
        )
        if join is None:
            kinds.setdefault(type(views.region(number)), []).append(number)
        elif version is not None:
            groups.setdefault((join, version, views.growth(number)), []).append(number)
    everywhere = _without_index(kinds)
    return Indexes(
        below=below,
        parts=_parts(kinds, views),
        everywhere=everywhere,
        conditions=None
        if below >= 0
        else index_conditions(conditions, everywhere, found_by[everywhere]),
        joins=tuple(
            _join_group(join, version, growth, views, of)
            for (join, version, growth), of in groups.items()
        ),
    )


def _join_group(
    join: LayerJoin, version: int, growth: Growth, views: "_Views", numbers: list[int]
) -> JoinGroup:
    kinds: dict[type, list[int]] = {}
    for number in numbers:
        kinds.setdefault(type(views.region(number)), []).append(number)
    return JoinGroup(
        join=join,
        version=version,
        growth=growth,
        everywhere=_without_index(kinds),
        parts=_parts(kinds, views),
    )


def _parts(
    kinds: dict[type, list[int]], views: "_Views"
) -> tuple[tuple[np.ndarray, Index], ...]:
    """The numbers of queries whose regions have an index, by type of region, with it."""
    return tuple(
        (
            np.array(of, np.int64),
            index_of([views.region(n) for n in of], space=views.space),
        )
        for kind, of in kinds.items()
        if kind in _INDEX
    )


def _without_index(kinds: dict[type, list[int]]) -> np.ndarray:
    return np.array(
        [n for kind, of in kinds.items() if kind not in _INDEX for n in of], np.int64
    )


def _boxes(boxes: list[Box], *, space: Space) -> Index:  # noqa: ARG001 - one signature for all
    columns = (
        [b.minx for b in boxes],
        [b.miny for b in boxes],
        [b.maxx for b in boxes],
        [b.maxy for b in boxes],
    )
    return BoxIndex(np.array(columns, float).T)


def _circles(circles: list[Circle], *, space: Space) -> Index:
    x, y, radius_m = (
        np.array([getattr(c, name) for c in circles], float)
        for name in ("x", "y", "radius_m")
    )
    return CircleIndex(x, y, radius_m, space=space)


def _areas(areas: list[Area], *, space: Space) -> Index:  # noqa: ARG001 - one signature for all
    return AreaIndex([area.wkt for area in areas])


_INDEX: dict[type, Callable[..., Index]] = {Box: _boxes, Circle: _circles, Area: _areas}


def index_of(regions: Sequence[Any], *, space: Space) -> Index:
    """An index of regions of one type that stand still."""
    return _INDEX[type(regions[0])](regions, space=space)


def match(
    queries: QuerySet,
    points: Points,
    *,
    layer_of: LayerOf,
    numbering: Numbering,
    first: int = 0,
) -> Hits:
    """All pairs of a point and what it satisfies. Points with NaN satisfy nothing; borders are closed.

    `first` is the number of the first query of the set.
    """
    found: list[Triples] = []
    probed = 0
    for unit in queries.units:
        chosen = np.flatnonzero(
            ~np.isnan(points.x)
            & (
                points.truth.of(unit.below)
                if points.truth and unit.below >= 0
                else True
            )
        )
        probed += len(chosen)
        found += _unit(unit, queries, points, chosen, layer_of, numbering)
    point, number, partner = (_concat([part[i] for part in found]) for i in range(3))
    matched = len(point)
    if points.truth is not None and matched:
        true = points.truth.pairs(queries.predicate[number], point)
        point, number, partner = point[true], number[true], partner[true]
    return Hits(
        point=point,
        target=numbering.targets_of(number + first, partner),
        probed=probed,
        matched=matched,
    )


def _concat(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _unit(
    unit: Indexes,
    queries: QuerySet,
    points: Points,
    chosen: np.ndarray,
    layer_of: LayerOf,
    numbering: Numbering,
) -> list[Triples]:
    whole = len(chosen) == len(points.x)
    x, y = (points.x, points.y) if whole else (points.x[chosen], points.y[chosen])
    out = []
    for numbers, index in unit.parts:
        point, row = index.probe(x, y)
        out.append(
            _screened(queries, points, point if whole else chosen[point], numbers[row])
        )
    if len(unit.everywhere):
        out += _everywhere(unit, queries, points, chosen)
    alone = [(point, query, np.full(len(point), NO_PARTNER)) for point, query in out]
    return alone + [
        _join(
            group,
            queries,
            points,
            chosen,
            layer_of(group.join.layer, group.version),
            numbering,
        )
        for group in unit.joins
    ]


def _screened(
    queries: QuerySet, points: Points, point: np.ndarray, query: np.ndarray
) -> Pairs:
    if queries.screens.empty or not len(point):
        return point, query
    keep = passes(queries.screens, points.asked, point, query)
    return point[keep], query[keep]


def _everywhere(
    unit: Indexes, queries: QuerySet, points: Points, chosen: np.ndarray
) -> list[Pairs]:
    """Queries without a region: found by their conditions, about one object each, or about all, piece by piece."""
    numbers, out = unit.everywhere, list[Pairs]()
    if (
        unit.conditions is not None
        and points.truth is not None
        and points.truth.all_simple(unit.conditions.condition)
    ):
        out.append(
            _screened(queries, points, *found(unit.conditions, points.truth, chosen))
        )
        numbers = np.setdiff1d(numbers, unit.conditions.queries)
    wanted = np.full(len(numbers), -1)
    if len(queries.screens.ids):
        wanted = objects_of(queries.screens, points.asked.objects)[numbers]
        order = np.argsort(wanted, kind="stable")
        objects, wanted = points.asked.readings.object[chosen], wanted[order]
        start = np.searchsorted(wanted, objects, side="left")
        count = np.searchsorted(wanted, objects, side="right") - start
        out.append(
            _screened(
                queries,
                points,
                np.repeat(chosen, count),
                numbers[order[ranges(start, count)]],
            )
        )
        numbers = numbers[order]
    free = numbers[wanted == -1]
    for piece in (
        blocks(np.full(len(chosen), len(free)), _MOST_PAIRS) if len(free) else ()
    ):
        point = np.tile(chosen[piece], len(free))
        out.append(
            _screened(queries, points, point, np.repeat(free, len(chosen[piece])))
        )
    return out


def _join(
    group: JoinGroup,
    queries: QuerySet,
    points: Points,
    chosen: np.ndarray,
    layer: Layer,
    numbering: Numbering,
) -> Triples:
    met = _met(group, points, chosen, layer)
    near = np.unique(met[0])
    found = [
        (np.tile(near, len(group.everywhere)), np.repeat(group.everywhere, len(near)))
    ]
    for numbers, index in group.parts:
        point, row = index.probe(points.x[near], points.y[near])
        found.append((near[point], numbers[row]))
    point, query = (_concat([part[i] for part in found]) for i in range(2))
    return _with_features(met, queries, points, layer, numbering, point, query)


def join_pairs(
    group: JoinGroup,
    queries: QuerySet,
    points: Points,
    layer: Layer,
    numbering: Numbering,
    pairs: Pairs,
) -> Triples:
    """Pairs of a point and a query of the group, each with the features that the point joins."""
    met = _met(group, points, np.unique(pairs[0]), layer)
    return _with_features(met, queries, points, layer, numbering, *pairs)


def _with_features(  # noqa: PLR0917 - the parts of one join
    met: Pairs,
    queries: QuerySet,
    points: Points,
    layer: Layer,
    numbering: Numbering,
    point: np.ndarray,
    query: np.ndarray,
) -> Triples:
    near, features = met
    start = np.searchsorted(near, point)
    count = np.searchsorted(near, point, side="right") - start
    feature, point, query = (
        features[ranges(start, count)],
        np.repeat(point, count),
        np.repeat(query, count),
    )
    if not queries.screens.empty and len(point):
        keep = passes(
            queries.screens,
            points.asked,
            point,
            query,
            Features(layer=layer, feature=feature),
        )
        point, query, feature = point[keep], query[keep], feature[keep]
    used, at = np.unique(feature, return_inverse=True)
    return (
        point,
        query,
        numbering.partners_of(pa.array(layer.fids[used], pa.string()))[at],
    )


def _met(group: JoinGroup, points: Points, chosen: np.ndarray, layer: Layer) -> Pairs:
    """Pairs of a point and a feature that the join asks for, sorted by point."""
    join = group.join
    if join.predicate == "equals":
        keys = points.keys[join.left or ""].take(pa.array(chosen))
        point, feature = layer.keyed(
            keys, join.right or "fid", kinds=join.kinds, tags=join.tags
        )
    else:
        point, feature = layer.match(
            points.x[chosen],
            points.y[chosen],
            kinds=join.kinds,
            tags=join.tags,
            growth=group.growth,
            distance_m=join.distance_m if join.predicate == "dwithin" else None,
            within=join.predicate == "within",
        )
    order = np.argsort(point, kind="stable")
    return chosen[point[order]], feature[order]


def region_mask(
    region: Region, x: np.ndarray, y: np.ndarray, *, space: Space
) -> np.ndarray:
    """Which points lie in one region that stands still; bool[n]."""
    mask = np.zeros(len(x), bool)
    point, _ = _index_of_one(region, space=space).probe(x, y)
    mask[point] = True
    return mask


@lru_cache(maxsize=256)
def _index_of_one(region: Region, *, space: Space) -> Index:
    """The index of a single region: ticks ask for the same ones again and again."""
    return index_of([region], space=space)
