"""Which queries a point satisfies: all queries that stand still at once, as array joins (SPEC P8)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from st_common.geometry.areas import AreaIndex
from st_common.geometry.circles import CircleIndex
from st_common.geometry.grid import BoxIndex
from st_common.operators.numbering import Numbering
from st_common.operators.registered import Registered
from st_common.operators.targets import NO_PARTNER
from st_common.query.plan import LayerJoin, Region
from st_common.query.region import Area, Box, Circle

Index = BoxIndex | CircleIndex | AreaIndex
Triples = tuple[np.ndarray, np.ndarray, np.ndarray]  # points, queries, partners


class Layer(Protocol):
    """One version of a layer, as far as matching needs it."""

    fids: np.ndarray

    def match(
        self, x: np.ndarray, y: np.ndarray, *, distance_m: float | None = None, kinds: tuple[str, ...] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a point and a feature, each once, sorted."""

    def keyed(self, values: pa.Array, column: str, *, kinds: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a value (its place, nulls match nothing) and a feature whose `column` has it as text."""


LayerOf = Callable[[str, int], Layer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points with what else decides: `masks` bool[e, n] of the predicates, `keys` of joins on a key, by expression."""

    x: np.ndarray
    y: np.ndarray
    masks: np.ndarray
    keys: dict[str, pa.Array]


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
    """Queries that join with one version of a layer in the same way; `regions` where they have one."""

    join: LayerJoin
    version: int
    queries: np.ndarray
    regions: tuple[Region | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """Queries of one place in the plan, in indexes by what they look at; `everywhere` has those without a region.

    `below` is the predicate that decides before the spatial operator which points come to it, -1 for none.
    """

    below: int
    everywhere: np.ndarray
    parts: tuple[tuple[np.ndarray, Index], ...]
    joins: tuple[JoinGroup, ...]

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of all the queries."""
        return np.concatenate([self.everywhere, *(n for n, _ in self.parts), *(group.queries for group in self.joins)])


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySet:
    """Queries compiled for matching: `predicate` int32 per query of the stream, its place in `predicates` or -1."""

    units: tuple[Indexes, ...]
    predicates: tuple[str, ...]
    predicate: np.ndarray
    keys: tuple[str, ...]
    geographic: bool

    @property
    def empty(self) -> bool:
        """Whether nothing can match."""
        return not self.units


def compile_queries(
    queries: Sequence[Registered], which: Sequence[int], *, geographic: bool, below: frozenset[int] = frozenset()
) -> QuerySet:
    """The queries with the numbers `which`, compiled; those in `below` have the selection below the spatial operator.

    Queries whose region moves are compiled as if they looked everywhere: their kind does the rest.
    """
    predicates = tuple(dict.fromkeys(queries[n].plan.where or "" for n in which if queries[n].plan.where))
    numbered = {text: number for number, text in enumerate(predicates)}
    predicate = np.full(len(queries), -1, np.int32)
    by_unit: dict[int, list[int]] = {}
    for number in which:
        where = queries[number].plan.where
        if where:
            predicate[number] = numbered[where]
        by_unit.setdefault(int(predicate[number]) if number in below else -1, []).append(number)
    joins = (queries[n].plan.join for n in which)
    return QuerySet(
        units=tuple(_indexes(unit, queries, numbers, geographic=geographic) for unit, numbers in by_unit.items()),
        predicates=predicates, predicate=predicate, geographic=geographic,
        keys=tuple(dict.fromkeys(join.left for join in joins if join is not None and join.left is not None)),
    )  # fmt: skip


def _indexes(below: int, queries: Sequence[Registered], numbers: list[int], *, geographic: bool) -> Indexes:
    kinds: dict[type, list[int]] = {}
    groups: dict[tuple[LayerJoin, int], list[int]] = {}
    for number in numbers:
        plan = queries[number].plan
        if plan.join is None:
            kinds.setdefault(type(plan.inside), []).append(number)
        elif (version := queries[number].layer_version) is not None:
            groups.setdefault((plan.join, version), []).append(number)
    parts = [
        (np.array(of, np.int64), index_of([queries[n].plan.inside for n in of], geographic=geographic))
        for kind, of in kinds.items()
        if kind in _INDEX
    ]
    return Indexes(
        below=below, parts=tuple(parts),
        everywhere=np.array([n for kind, of in kinds.items() if kind not in _INDEX for n in of], np.int64),
        joins=tuple(
            JoinGroup(join=join, version=version, queries=np.array(of, np.int64),
                      regions=tuple(queries[n].plan.inside for n in of))
            for (join, version), of in groups.items()
        ),
    )  # fmt: skip


def _boxes(boxes: list[Box], *, geographic: bool) -> Index:  # noqa: ARG001 - one signature for all
    return BoxIndex(np.array([(b.minx, b.miny, b.maxx, b.maxy) for b in boxes], float).reshape(-1, 4))


def _circles(circles: list[Circle], *, geographic: bool) -> Index:
    x, y, radius_m = (np.array([getattr(c, name) for c in circles], float) for name in ("x", "y", "radius_m"))
    return CircleIndex(x, y, radius_m, geographic=geographic)


def _areas(areas: list[Area], *, geographic: bool) -> Index:  # noqa: ARG001 - one signature for all
    return AreaIndex([area.wkt for area in areas])


_INDEX: dict[type, Callable[..., Index]] = {Box: _boxes, Circle: _circles, Area: _areas}


def index_of(regions: Sequence[Any], *, geographic: bool) -> Index:
    """An index of regions of one type that stand still."""
    return _INDEX[type(regions[0])](regions, geographic=geographic)


def match(queries: QuerySet, points: Points, *, layer_of: LayerOf, numbering: Numbering) -> Hits:
    """All pairs of a point and what it satisfies. Points with NaN satisfy nothing; borders are closed."""
    found: list[Triples] = []
    probed = 0
    for unit in queries.units:
        chosen = np.flatnonzero(~np.isnan(points.x) & (points.masks[unit.below] if unit.below >= 0 else True))
        probed += len(chosen)
        found += _unit(unit, queries, points, chosen, layer_of, numbering)
    point, number, partner = (_concat([part[i] for part in found]) for i in range(3))
    matched = len(point)
    if queries.predicates and matched:
        wanted = queries.predicate[number]
        true = (wanted < 0) | points.masks[np.maximum(wanted, 0), point]
        point, number, partner = point[true], number[true], partner[true]
    return Hits(point=point, target=numbering.targets_of(number, partner), probed=probed, matched=matched)


def _concat(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _unit(
    unit: Indexes, queries: QuerySet, points: Points, chosen: np.ndarray, layer_of: LayerOf, numbering: Numbering
) -> list[Triples]:
    whole = len(chosen) == len(points.x)
    x, y = (points.x, points.y) if whole else (points.x[chosen], points.y[chosen])
    out = []
    for numbers, index in unit.parts:
        point, row = index.probe(x, y)
        out.append((point if whole else chosen[point], numbers[row], np.full(len(point), NO_PARTNER)))
    if len(unit.everywhere):
        point = np.tile(chosen, len(unit.everywhere))
        out.append((point, np.repeat(unit.everywhere, len(chosen)), np.full(len(point), NO_PARTNER)))
    for group in unit.joins:
        for point, query, feature in _join(group, queries, points, chosen, layer_of):
            out.append((point, query, numbering.partners_of(feature)))
    return out


def _join(
    group: JoinGroup, queries: QuerySet, points: Points, chosen: np.ndarray, layer_of: LayerOf
) -> list[tuple[np.ndarray, np.ndarray, pa.Array]]:
    layer, join = layer_of(group.join.layer, group.version), group.join
    if join.predicate == "equals":
        keys = points.keys[join.left or ""].take(pa.array(chosen))
        point, feature = layer.keyed(keys, join.right or "fid", kinds=join.kinds)
    else:
        distance_m = join.distance_m if join.predicate == "dwithin" else None
        point, feature = layer.match(points.x[chosen], points.y[chosen], distance_m=distance_m, kinds=join.kinds)
    point = chosen[point]
    fids = pa.array(layer.fids[feature], pa.string()) if len(feature) else pa.array([], pa.string())
    out = []
    for number, region in zip(group.queries, group.regions, strict=True):
        if region is None:
            out.append((point, np.full(len(point), number), fids))
            continue
        inside = region_mask(region, points.x[point], points.y[point], geographic=queries.geographic)
        out.append((point[inside], np.full(int(inside.sum()), number), fids.filter(pa.array(inside))))
    return out


def region_mask(region: Region, x: np.ndarray, y: np.ndarray, *, geographic: bool) -> np.ndarray:
    """Which points lie in one region that stands still; bool[n]."""
    mask = np.zeros(len(x), bool)
    point, _ = index_of([region], geographic=geographic).probe(x, y)
    mask[point] = True
    return mask
