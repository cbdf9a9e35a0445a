"""Which features of a layer points meet, as a join asks for them: by place, by a key, or by both."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.ranked import first_k
from st_common.operators.expressions.screens import Asked
from st_common.operators.expressions.truth import Truth
from st_common.operators.matching.layer import Layer
from st_common.operators.matching.query_set import JoinGroup
from st_common.query.plan import LayerJoin

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points with what else decides; n of them.

    Attributes:
        x: float64[n], NaN for one that is nowhere; `y` likewise.
        truth: what conditions say of the points; None where there are no conditions.
        keys: by expression the texts of joins on a key, string[n].
        asked: the readings that the points are of, for screens.
    """

    x: np.ndarray
    y: np.ndarray
    truth: Truth | None
    keys: dict[str, pa.Array]
    asked: Asked


def met_features(
    group: JoinGroup, points: Points, chosen: np.ndarray, layer: Layer
) -> Pairs:
    """Pairs of a point and a feature that the join asks for, sorted by point."""
    join = group.join
    if join.nearest is not None:
        point, feature = _nearest(join, join.nearest, points, chosen, layer)
    elif join.predicate == "equals":
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
        keep = have_key(group, points, layer, chosen[point], feature)
        point, feature = point[keep], feature[keep]
    order = np.argsort(point, kind="stable")
    return chosen[point[order]], feature[order]


def _nearest(
    join: LayerJoin, k: int, points: Points, chosen: np.ndarray, layer: Layer
) -> Pairs:
    """Places in `chosen` with the k nearest features, of those that have the key where the join asks for one."""
    x, y = points.x[chosen], points.y[chosen]
    limit = join.distance_m if join.predicate == "dwithin" else None
    if join.left is None:
        return layer.k_nearest(
            x, y, k, distance_m=limit, kinds=join.kinds, tags=join.tags
        )
    keys = points.keys[join.left].take(pa.array(chosen))
    point, feature = layer.keyed(
        keys, join.right or "fid", kinds=join.kinds, tags=join.tags
    )
    far = layer.distances(x[point], y[point], feature)
    near = np.flatnonzero(far <= (np.inf if limit is None else limit))
    decimals = points.asked.space.decimals
    first = near[first_k(point[near], feature[near], far[near], k, decimals)]
    return point[first], feature[first]


def have_key(
    group: JoinGroup,
    points: Points,
    layer: Layer,
    point: np.ndarray,
    feature: np.ndarray,
) -> np.ndarray:
    """Whether pairs that meet by place also have the key that the join asks for; bool[p], all where it asks for none.

    Args:
        group: the queries' join.
        points: the points, with their keys.
        layer: the layer.
        point: int64[p], places of points.
        feature: int64[p], places of features.
    """
    join = group.join
    if join.left is None or join.right is None:
        return np.ones(len(point), bool)
    values = layer.values(join.right)
    same = pc.equal(
        points.keys[join.left].take(pa.array(point)), values.take(pa.array(feature))
    )
    return np.asarray(pc.fill_null(same, fill_value=False))
