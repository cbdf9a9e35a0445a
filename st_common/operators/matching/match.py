"""Which queries a point satisfies: all queries that stand still at once, as array joins (SPEC P8)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from st_common.geometry.grid import blocks
from st_common.operators.arrays.keys import is_in, packed, unique
from st_common.operators.expressions.filters.protocol import Features
from st_common.operators.expressions.index import find_pairs
from st_common.operators.expressions.screens import filtered, objects_of, unfiltered
from st_common.operators.matching.beside import hold_beside
from st_common.operators.matching.extents import looked_up
from st_common.operators.matching.forecasts import will_enter
from st_common.operators.matching.layer import Layer, LayerOf
from st_common.operators.matching.meeting import Points, met_features
from st_common.operators.matching.query_set import Indexes, JoinGroup, QuerySet
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.targets import NO_PARTNER
from st_common.runs import ranges

Pairs = tuple[np.ndarray, np.ndarray]  # points, queries
Triples = tuple[np.ndarray, np.ndarray, np.ndarray]  # points, queries, partners

_MOST_PAIRS = 1 << 22  # of points and queries that look everywhere, tested together


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Pairs of a point and a target, in no order, each once.

    Attributes:
        point: int64[p], places of points.
        target: int64[p].
        probed: how many points were looked up in an index or a layer.
        matched: how many pairs came out of that, before the predicates.
    """

    point: np.ndarray
    target: np.ndarray
    probed: int
    matched: int


def match(
    queries: QuerySet,
    points: Points,
    *,
    layer_of: LayerOf,
    numbering: Numbering,
    first: int = 0,
) -> Hits:
    """All pairs of a point and what it satisfies; borders are closed, points with NaN satisfy nothing.

        points -> selection below -> index by type of region -> screens -> layer -> predicates above -> targets

    Args:
        queries: queries whose regions stand still, compiled.
        points: n points, with what conditions and keys say of them.
        layer_of: gives a layer in a version.
        numbering: gives numbers to partners and targets, new ones too.
        first: the number of the first query of the set.

    Returns:
        The place of a point and the number of a target for each pair, in no order; each pair once.
    """
    (point, number, partner), probed, matched = _matches(
        queries, points, layer_of, numbering
    )
    return Hits(
        point=point,
        target=numbering.targets_of(number + first, partner),
        probed=probed,
        matched=matched,
    )


def pairs_of(
    queries: QuerySet, points: Points, *, layer_of: LayerOf, numbering: Numbering
) -> Pairs:
    """All pairs of a point and a query that it satisfies, for queries whose answers are objects; see `match`.

    Returns:
        int64 each, in no order: the places of points and the numbers of queries; each pair once.
    """
    (point, number, _), _, _ = _matches(queries, points, layer_of, numbering)
    return point, number


def _matches(
    queries: QuerySet, points: Points, layer_of: LayerOf, numbering: Numbering
) -> tuple[Triples, int, int]:
    """Points with the queries that they satisfy and partners; how many were looked up, and how many pairs that gave."""
    hits: list[Triples] = []
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
        hits += _unit(unit, queries, points, chosen, layer_of, numbering)
    point, number, partner = (_concat([part[i] for part in hits]) for i in range(3))
    matched = len(point)
    # Conditions come last: they are tested for pairs that regions and layers leave, not for all points.
    if points.truth is not None and matched:
        true = points.truth.pairs(queries.predicate[number], point)
        point, number, partner = point[true], number[true], partner[true]
    return (point, number, partner), probed, matched


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
    """Points, queries and partners of one unit, before the predicates; `chosen` are the points that come to it."""
    whole = len(chosen) == len(points.x)
    x, y = (points.x, points.y) if whole else (points.x[chosen], points.y[chosen])
    readings_of = partial(points.asked.readings.take, chosen)
    out = []
    for numbers, index in unit.parts:
        point, row = looked_up(index, x, y, readings_of)
        out.append(
            _screened(queries, points, point if whole else chosen[point], numbers[row])
        )
    others = (
        *_ahead(unit, points, chosen),
        *_everywhere(unit, queries, points, chosen),
    )
    out += [_screened(queries, points, *pairs) for pairs in others]
    if queries.screens.filtered:
        masks = [_let_through(queries, points, *pairs) for pairs in out]
        out = [(p[keep], q[keep]) for (p, q), keep in zip(out, masks, strict=True)]
    alone = [(point, query, np.full(len(point), NO_PARTNER)) for point, query in out]
    return alone + [
        _join(
            joined,
            queries,
            points,
            chosen,
            layer_of(joined.join.layer, joined.version),
            numbering,
        )
        for joined in unit.joins
    ]


def _screened(
    queries: QuerySet, points: Points, point: np.ndarray, query: np.ndarray
) -> Pairs:
    if queries.screens.empty or not len(point):
        return point, query
    keep = unfiltered(queries.screens, points.asked, point, query)
    return point[keep], query[keep]


def _let_through(
    queries: QuerySet,
    points: Points,
    point: np.ndarray,
    query: np.ndarray,
    features: Features | None = None,
) -> np.ndarray:
    """Whether pairs get through the filters of their queries, which are asked of what satisfies all else; bool[p]."""
    keep = np.ones(len(point), bool)
    if points.truth is not None:
        keep = points.truth.pairs(queries.predicate[query], point)
    held = np.flatnonzero(keep)
    chosen = None if features is None else features.take(held)
    keep[held] = filtered(
        queries.screens, points.asked, point[held], query[held], chosen
    )
    return keep


def _ahead(unit: Indexes, points: Points, chosen: np.ndarray) -> Iterator[Pairs]:
    """Queries whose region points will enter."""
    if not unit.ahead:
        return
    fixes = points.asked.readings.take(chosen)
    for group in unit.ahead:
        point, query = will_enter(group, fixes, space=points.asked.space)
        yield chosen[point], query


def _everywhere(
    of: Indexes | JoinGroup, queries: QuerySet, points: Points, chosen: np.ndarray
) -> Iterator[Pairs]:
    """Queries without a region: found by their conditions, about one object each, or about all, piece by piece."""
    numbers = of.everywhere
    if not len(numbers):
        return
    if of.conditions is not None and points.truth is not None:
        is_indexed = points.truth.indexed[queries.predicate]
        point, query = find_pairs(of.conditions, points.truth, chosen)
        keep = is_indexed[query]
        yield point[keep], query[keep]
        by_condition = of.conditions.queries
        # What the index of conditions can find was found.
        numbers = np.setdiff1d(numbers, by_condition[is_indexed[by_condition]])
    wanted = np.full(len(numbers), -1)
    if len(queries.screens.ids):
        wanted = objects_of(queries.screens, points.asked.objects)[numbers]
        # By the object that they are about: each point finds its queries by two searches.
        order = np.argsort(wanted, kind="stable")
        objects, wanted = points.asked.readings.object[chosen], wanted[order]
        start = np.searchsorted(wanted, objects, side="left")
        count = np.searchsorted(wanted, objects, side="right") - start
        yield np.repeat(chosen, count), numbers[order[ranges(start, count)]]
        numbers = numbers[order]
    yield from _of_anyone(numbers[wanted == -1], queries, points, chosen)


def _of_anyone(
    free: np.ndarray, queries: QuerySet, points: Points, chosen: np.ndarray
) -> Iterator[Pairs]:
    """Queries about all objects: found by what the database says of all points where that costs less than pairs."""
    predicate = queries.predicate[free]
    asks_points = points.truth is not None and points.truth.may_ask_points(
        predicate, len(chosen)
    )
    for piece in (
        blocks(np.full(len(chosen), len(free)), _MOST_PAIRS) if len(free) else ()
    ):
        some = chosen[piece]
        if asks_points and points.truth is not None:
            point, at = points.truth.at_points(predicate, some)
            yield point, free[at]
        else:
            yield np.tile(some, len(free)), np.repeat(free, len(some))


def _join(
    group: JoinGroup,
    queries: QuerySet,
    points: Points,
    chosen: np.ndarray,
    layer: Layer,
    numbering: Numbering,
) -> Triples:
    met = met_features(group, points, chosen, layer)
    # A point that meets no feature need not be looked up among the regions, unless these are asked for.
    asks_all = group.join.how in ("anti", "left")
    near = chosen if asks_all else unique(met[0])
    pairs = [*_everywhere(group, queries, points, near)]
    for numbers, index in group.parts:
        x, y = points.x[near], points.y[near]
        point, row = looked_up(index, x, y, partial(points.asked.readings.take, near))
        pairs.append((near[point], numbers[row]))
    point, query = (_concat([part[i] for part in pairs]) for i in range(2))
    if group.join.chooses:
        keep = _has_feature(group, met, queries, points, layer, (point, query))
        keep ^= group.join.how == "anti"
        return point[keep], query[keep], np.full(int(keep.sum()), NO_PARTNER)
    return _with_partners(group, met, queries, points, layer, numbering, (point, query))


def join_pairs(
    group: JoinGroup,
    queries: QuerySet,
    points: Points,
    layer: Layer,
    numbering: Numbering,
    pairs: Pairs,
) -> Triples:
    """Pairs of a point and a query, each with the features that the point joins.

    Args:
        group: the queries' join.
        queries: the set that the group is of.
        points: the points.
        layer: the layer in the version that the group joins.
        numbering: gives numbers to partners.
        pairs: int64 each, places of points and numbers of queries of the group.

    Returns:
        int64 each: the point, the query, and the feature's number among the partners.
    """
    met = met_features(group, points, unique(pairs[0]), layer)
    return _with_partners(group, met, queries, points, layer, numbering, pairs)


def _with_partners(  # noqa: PLR0917 - what a join knows, and the pairs
    group: JoinGroup,
    met: Pairs,
    queries: QuerySet,
    points: Points,
    layer: Layer,
    numbering: Numbering,
    pairs: Pairs,
) -> Triples:
    """Pairs of a point and a query with each feature that they join, of LEFT JOIN also those without one."""
    features = _with_features(group, met, queries, points, layer, pairs)
    named = _named(layer, numbering, features)
    if not group.join.is_outer:
        return named
    have = unique(packed(features[1], features[0]))
    lacking = np.flatnonzero(~is_in(packed(pairs[1], pairs[0]), have))
    nobody = np.full(len(lacking), NO_PARTNER)
    more = pairs[0][lacking], pairs[1][lacking], nobody
    point, query, partner = (
        np.concatenate(both) for both in zip(named, more, strict=True)
    )
    return point, query, partner


def _has_feature(
    group: JoinGroup,
    met: Pairs,
    queries: QuerySet,
    points: Points,
    layer: Layer,
    pairs: Pairs,
) -> np.ndarray:
    """Whether the point of each pair of a point and a query has a feature that the query joins; bool[p]."""
    with_one, of, _ = _with_features(group, met, queries, points, layer, pairs)
    return is_in(packed(*pairs[::-1]), unique(packed(of, with_one)))


def _named(layer: Layer, numbering: Numbering, pairs: Triples) -> Triples:
    """Points, queries and features, with the features' numbers among the partners in place of those in the layer."""
    point, query, feature = pairs
    # Names are looked up once for a feature, not for each pair.
    used, at = np.unique(feature, return_inverse=True)
    names = pa.array(layer.fids[used], pa.string())
    return point, query, numbering.partners_of(names)[at]


def _with_features(
    group: JoinGroup,
    met: Pairs,
    queries: QuerySet,
    points: Points,
    layer: Layer,
    pairs: Pairs,
) -> Triples:
    """Pairs of a point and a query with each feature, by its place in the layer, that they join."""
    (near, features), (point, query) = met, pairs
    start = np.searchsorted(near, point)
    count = np.searchsorted(near, point, side="right") - start
    feature, point, query = (
        features[ranges(start, count)],
        np.repeat(point, count),
        np.repeat(query, count),
    )
    if not queries.screens.empty and len(point):
        keep = unfiltered(queries.screens, points.asked, point, query)
        point, query, feature = point[keep], query[keep], feature[keep]
    if not queries.beside.empty and len(point):
        keep = hold_beside(queries.beside, points.asked, layer, point, query, feature)
        point, query, feature = point[keep], query[keep], feature[keep]
    if queries.screens.filtered and len(point):
        joined = Features(layer=layer, name=group.join.layer, feature=feature)
        keep = _let_through(queries, points, point, query, joined)
        point, query, feature = point[keep], query[keep], feature[keep]
    return point, query, feature
