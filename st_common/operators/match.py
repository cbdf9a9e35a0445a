"""Which queries a point satisfies: all queries at once, as array joins (SPEC P8)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from st_common.geometry.grid import BoxIndex
from st_common.operators.intern import Interner, hashes_of
from st_common.operators.state import Registered
from st_common.operators.targets import NO_PARTNER, Targets
from st_common.query.plan import Box, LayerJoin


class Layer(Protocol):
    """One version of a layer, as far as matching needs it."""

    fids: np.ndarray

    def match(
        self, x: np.ndarray, y: np.ndarray, *, distance_m: float | None = None, kinds: tuple[str, ...] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a point and a feature, each once, sorted."""


LayerOf = Callable[[str, int], Layer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Pairs of a point (its place) and a target, and the partners and targets that were not known before."""

    point: np.ndarray
    target: np.ndarray
    partner_ids: pa.Array
    partner_hashes: np.ndarray
    target_query: np.ndarray
    target_partner: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """The live queries that join with one version of a layer in the same way; `boxes` where they have one."""

    join: LayerJoin
    version: int
    queries: np.ndarray
    boxes: tuple[Box | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySet:
    """The live queries of a stream, compiled for matching."""

    range_queries: np.ndarray
    range_index: BoxIndex | None
    joins: tuple[JoinGroup, ...]


_seen: list[tuple[tuple[Registered, ...], QuerySet]] = []


def compiled(queries: tuple[Registered, ...]) -> QuerySet:
    """The live ones of the queries, compiled; kept for the tuples seen last, for a batch rarely changes them.

    Tuples are told apart by identity: comparing ten thousand plans would cost more than a small batch.
    """
    for known, query_set in _seen:
        if known is queries:
            return query_set
    query_set = compile_queries(queries)
    _seen.insert(0, (queries, query_set))
    del _seen[4:]
    return query_set


def compile_queries(queries: tuple[Registered, ...]) -> QuerySet:
    """The live ones of the queries, compiled for matching."""
    ranges = [(n, q.plan.inside) for n, q in enumerate(queries) if q.live and not q.plan.join and q.plan.inside]
    groups: dict[tuple[LayerJoin, int], list[tuple[int, Box | None]]] = {}
    for number, query in enumerate(queries):
        if query.live and query.plan.join and query.layer_version is not None:
            groups.setdefault((query.plan.join, query.layer_version), []).append((number, query.plan.inside))
    boxes = np.array([(b.minx, b.miny, b.maxx, b.maxy) for _, b in ranges], float).reshape(-1, 4)
    return QuerySet(
        range_queries=np.array([number for number, _ in ranges], np.int64),
        range_index=BoxIndex(boxes) if ranges else None,
        joins=tuple(
            JoinGroup(join=join, version=version, queries=np.array([n for n, _ in of], np.int64),
                      boxes=tuple(box for _, box in of))
            for (join, version), of in groups.items()
        ),
    )  # fmt: skip


def match(
    queries: QuerySet, x: np.ndarray, y: np.ndarray, *, layer_of: LayerOf, targets: Targets, partners: Interner
) -> Hits:
    """All pairs of a point and what it satisfies. Points with NaN satisfy nothing; borders are closed."""
    points, numbers, partner = [], [], []
    if queries.range_index is not None:
        point, box = queries.range_index.probe(x, y)
        points.append(point)
        numbers.append(queries.range_queries[box])
        partner.append(np.full(len(point), NO_PARTNER))
    new = _NewPartners(partners)
    for group in queries.joins:
        for point, query, feature in _join(group, x, y, layer_of):
            points.append(point)
            numbers.append(query)
            partner.append(new.number(feature))
    point = _concat(points)
    target, target_query, target_partner = targets.number(_concat(numbers), _concat(partner))
    ids, hashes = new.found()
    return Hits(point=point, target=target, partner_ids=ids, partner_hashes=hashes,
                target_query=target_query, target_partner=target_partner)  # fmt: skip


def _concat(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _join(
    group: JoinGroup, x: np.ndarray, y: np.ndarray, layer_of: LayerOf
) -> list[tuple[np.ndarray, np.ndarray, pa.Array]]:
    layer = layer_of(group.join.layer, group.version)
    distance_m = group.join.distance_m if group.join.predicate == "dwithin" else None
    point, feature = layer.match(x, y, distance_m=distance_m, kinds=group.join.kinds)
    fids = pa.array(layer.fids[feature], pa.string()) if len(feature) else pa.array([], pa.string())
    out = []
    for number, box in zip(group.queries, group.boxes, strict=True):
        inside = slice(None) if box is None else _inside(box, x[point], y[point])
        mine = point[inside]
        out.append((mine, np.full(len(mine), number), fids if box is None else fids.filter(pa.array(inside))))
    return out


def _inside(box: Box, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x >= box.minx) & (x <= box.maxx) & (y >= box.miny) & (y <= box.maxy)


class _NewPartners:
    """Numbers for partners, known ones and new ones, over the join groups of one match."""

    def __init__(self, known: Interner) -> None:
        self._known = known
        self._all = known

    def number(self, fids: pa.Array) -> np.ndarray:
        encoded = fids.dictionary_encode()
        ids, hashes = encoded.dictionary, hashes_of(encoded.dictionary)
        found = self._all.find(hashes, ids)
        missing = found < 0
        found[missing] = len(self._all) + np.arange(int(missing.sum()))
        self._all = self._all.with_new(hashes[missing], ids.filter(pa.array(missing)))
        numbers: np.ndarray = found[encoded.indices.to_numpy(zero_copy_only=False)]
        return numbers

    def found(self) -> tuple[pa.Array, np.ndarray]:
        start = len(self._known)
        return self._all.ids.slice(start), self._all.hashes[start:]
