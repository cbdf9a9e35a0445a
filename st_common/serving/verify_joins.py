"""Partners by brute force: features of a layer by place or by key, and objects of the same stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import shapely
from pyproj import Geod
from shapely import affinity

from st_common import tables
from st_common.geometry.space import Space
from st_common.home import Home
from st_common.query.plan import LayerJoin, PairJoin, Plan
from st_common.serving.verify_comparing import Boxes, column_of, having, stepped, tagged
from st_common.serving.verify_expressions import values_of
from st_common.serving.verify_places import Members, distances, within

_GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Pairs of a row and a partner; the mask says whether they are beyond doubt."""

    row: np.ndarray
    partner: np.ndarray
    sure: np.ndarray


def features_of(home: Home, join: LayerJoin, version: int) -> pd.DataFrame:
    """The features of one version of a layer that a join may meet, each once."""
    rows = tables.read(home.table("layers", join.layer), version=version).to_pandas()
    kept = rows["home"] & (rows["kind"].isin(join.kinds) if join.kinds else True)
    for name, value in join.tags:
        kept &= column_of(name, rows) == value
    found: pd.DataFrame = rows[kept].reset_index(drop=True)
    return found


def with_features(
    plan: Plan,
    frame: pd.DataFrame,
    features: pd.DataFrame,
    attributes: Sequence[str],
    *,
    space: Space,
) -> Joined:
    """The pairs of fixes and features; those that filters look for properties on either side, too."""
    join = plan.join
    if join is None or not len(frame) or not len(features):
        return _sure(np.empty(0, np.int64), np.empty(0, object))
    steps = stepped(plan, frame, attributes, space=space)
    shapes = shapely.from_wkb(features["geometry"].to_numpy())
    if join.predicate == "equals":
        point, feature = _by_key(join, frame, features, attributes, space=space)
        sure = np.ones(len(point), bool)
    elif join.predicate == "dwithin":
        point, feature = _near_by(join, frame, shapes, space=space)
        sure = np.ones(len(point), bool)
    else:
        point, feature, sure = _meeting(join, steps.boxes, shapes)
    keep = np.ones(len(point), bool)
    if join.left is not None:
        alike = set(
            zip(*_by_key(join, frame, features, attributes, space=space), strict=True)
        )
        keep &= [pair in alike for pair in zip(point, feature, strict=True)]
    for text in steps.properties:
        keep &= (
            having(text, frame, attributes, space=space)[point]
            | tagged(text, features)[feature]
        )
    return Joined(
        row=point[keep],
        partner=features["fid"].to_numpy()[feature[keep]],
        sure=sure[keep],
    )


def _meeting(
    join: LayerJoin, boxes: Boxes, shapes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of boxes (or points) and features that they meet or lie within, and whether that is beyond doubt."""
    tree = shapely.STRtree(shapes)
    predicate: Literal["within", "intersects"] = (
        "within" if join.predicate == "within" else "intersects"
    )
    point, feature = tree.query(boxes.shapes(boxes.doubt), predicate=predicate)
    if not boxes.doubt:
        return point, feature, np.ones(len(point), bool)
    others = tree.query(boxes.shapes(-boxes.doubt), predicate=predicate)
    large, small = (
        set(zip(*pairs, strict=True)) for pairs in ((point, feature), others)
    )
    pairs = np.array(sorted(large | small), np.int64).reshape(-1, 2)
    sure = np.array(
        [pair in large and pair in small for pair in map(tuple, pairs)], bool
    )
    return pairs[:, 0], pairs[:, 1], sure


def _sure(row: np.ndarray, partner: np.ndarray) -> Joined:
    return Joined(row=row, partner=partner, sure=np.ones(len(row), bool))


def _by_key(
    join: LayerJoin,
    frame: pd.DataFrame,
    features: pd.DataFrame,
    attributes: Sequence[str],
    *,
    space: Space,
) -> tuple[np.ndarray, np.ndarray]:
    left = values_of(frame, [f"CAST({join.left} AS VARCHAR)"], attributes, space=space)[
        "0"
    ]
    right = column_of(str(join.right), features)
    mine = pd.DataFrame(
        {"key": left.to_numpy(object), "row": np.arange(len(left))}
    ).dropna()
    theirs = pd.DataFrame(
        {"key": right.to_numpy(object), "feature": np.arange(len(right))}
    ).dropna()
    found = mine.merge(theirs, on="key")
    return found["row"].to_numpy(np.int64), found["feature"].to_numpy(np.int64)


def _near_by(
    join: LayerJoin, alive: pd.DataFrame, shapes: np.ndarray, *, space: Space
) -> tuple[np.ndarray, np.ndarray]:
    points, tree = shapely.points(alive["x"], alive["y"]), shapely.STRtree(shapes)
    if space.is_flat:
        point, feature = tree.query(
            points, predicate="dwithin", distance=join.distance_m
        )
        return point, feature
    lat = np.abs(alive["y"].to_numpy())
    degrees = (
        1.01
        * join.distance_m
        / (110_500 * np.cos(np.radians(np.minimum(lat + 0.1, 89.0))))
    )
    point, feature = tree.query(points, predicate="dwithin", distance=degrees)
    return _within_m(join.distance_m, alive, shapes, point, feature)


def _within_m(
    distance_m: float,
    alive: pd.DataFrame,
    shapes: np.ndarray,
    point: np.ndarray,
    feature: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs within a geodesic distance: the nearest place in coordinates stretched by latitude, then its metres."""
    x, y = alive["x"].to_numpy()[point], alive["y"].to_numpy()[point]
    stretch = np.cos(np.radians(y))
    flat = [
        affinity.scale(s, k, 1.0, origin=(0, 0))
        for s, k in zip(shapes[feature], stretch, strict=True)
    ]
    lines = shapely.shortest_line(
        shapely.points(x * stretch, y), np.array(flat, object)
    )
    ends = (
        shapely.get_coordinates(shapely.get_point(lines, 1))
        if len(lines)
        else np.empty((0, 2))
    )
    _, _, metres = _GEOD.inv(x, y, ends[:, 0] / stretch, ends[:, 1])
    near = np.asarray(metres) <= distance_m
    return point[near], feature[near]


def with_objects(
    pairs: PairJoin,
    frame: pd.DataFrame,
    rows: Members,
    attributes: Sequence[str],
    *,
    space: Space,
) -> Joined:
    """The pairs of an object among `rows` and any other that lives."""
    found = [_empty()]
    texts = [f"CAST({key} AS VARCHAR)" for key in pairs.keys]
    keys = (
        values_of(frame, texts, attributes, space=space).to_numpy(object)
        if texts
        else None
    )
    for row in np.flatnonzero(rows.maybe).tolist():
        near = _near(pairs, frame, row, space=space)
        mask = near.maybe.copy()
        mask[row] = False
        if keys is not None:
            mask &= (keys == keys[row]).all(axis=1) & bool(pd.notna(keys[row]).all())
        others = np.flatnonzero(mask)
        found.append(
            Joined(
                row=np.full(len(others), row),
                partner=frame["object"].to_numpy(object)[others],
                sure=near.sure[others] & rows.sure[row],
            )
        )
    return Joined(
        **{
            name: np.concatenate([getattr(part, name) for part in found])
            for name in ("row", "partner", "sure")
        }
    )


def _empty() -> Joined:
    return Joined(
        row=np.empty(0, np.int64), partner=np.empty(0, object), sure=np.empty(0, bool)
    )


def _near(pairs: PairJoin, frame: pd.DataFrame, row: int, *, space: Space) -> Members:
    if pairs.distance_m is None:
        return Members(sure=np.ones(len(frame), bool), maybe=np.ones(len(frame), bool))
    at = frame["x"].to_numpy()[row], frame["y"].to_numpy()[row]
    return within(
        distances(frame, *at, space=space),
        pairs.distance_m,
        space=space,
    )
