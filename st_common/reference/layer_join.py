"""JOIN with a layer: the features that a fix meets, is near to, or shares a key with (SPEC B9, B12, P3).

`intersects` holds on the border too, `within` inside alone; both look at the fix's box where steps have enlarged it.
`dwithin` is the distance of the fix itself, and `equals` compares a key. Beside another predicate a key must hold too.
"""

import re
from collections.abc import Iterator

import numpy as np
import shapely

from st_common.config.units import unit_of
from st_common.query.comparing import Transform
from st_common.query.plan import LayerJoin, Plan
from st_common.reference.columns import Features, Fixes, equal, objects
from st_common.reference.metric import (
    Bools,
    Floats,
    Ints,
    Members,
    Objects,
    certain,
    everyone,
)
from st_common.reference.pair_join import Joined
from st_common.reference.shapes import distances, from_shapes, reach
from st_common.reference.steps import Boxes, having, stepped, tagged
from st_common.reference.tag_speeds import speed_said

_NAMED = re.compile(r'"other\.([^"]+)"')
_DISTANCE, _BORDER = "pair.distance_m", "pair.border_m"
_SPEED = re.compile(r"(.+) in ([^ ]+(?: ?/ ?[^ ]+)?)")


def meant(join: LayerJoin, features: Features) -> Features:
    """The features of the kinds, and with the tags, that a join asks for."""
    kept = np.ones(len(features), np.bool_)
    if join.kinds:
        kept &= np.array([kind in join.kinds for kind in features.kinds], np.bool_)
    for name, value in join.tags:
        kept &= equal(features.column(name), value)
    return features.take(np.flatnonzero(kept))


def with_features(plan: Plan, fixes: Fixes, features: Features) -> Joined:
    """The pairs of fixes and features that a plan joins, through its steps. Filters look for properties on either side.

    Raises:
        ValueError: the plan joins no layer.
    """
    if plan.join is None:
        raise ValueError(f"{plan} joins no layer")
    steps, features = stepped(plan, fixes), meant(plan.join, features)
    row, feature, turn = _candidates(plan.join, steps.boxes, features)
    alike = has_key(plan.join, steps.boxes.fixes, features, row, feature)
    row, feature, turn = row[alike], feature[alike], turn[alike]
    boxes, others = steps.boxes.take(row, turn), features.take(feature)
    pairs = _joined(plan.join, boxes, others) & steps.members.take(row)
    for text in steps.properties:
        pairs &= certain(having(text, boxes.fixes) | tagged(text, others))
    for step in plan.transforms:
        if step.kind == "filter" and step.name in ("geojson_near", "geojson_strict"):
            pairs &= _lie_by(step, boxes.fixes, others)
    for step in steps.users:
        some, passed = np.flatnonzero(pairs.maybe), np.zeros(len(row), np.bool_)
        beside, rows = (plan.join.layer, others.take(some)), boxes.fixes.rows[some]
        passed[some] = fixes.of.let_through(step.name or "", step.text, rows, beside)
        pairs &= certain(passed)
    keep = np.flatnonzero(pairs.maybe)
    met = _each_once(row[keep], others.take(keep), pairs.take(keep))
    k = plan.join.nearest
    return met if k is None else _nearest(k, steps.boxes.fixes, features, met)


def _nearest(k: int, fixes: Fixes, features: Features, met: Joined) -> Joined:
    """Of the pairs of each fix those with its k nearest features, of equally far ones the first by fid.

    Where it is in doubt who pairs, so it is who is among the first k.
    """
    place, metric = {fid: row for row, fid in enumerate(features.fids)}, fixes.metric
    shapes = features.shapes[[place[fid] for fid in met.partner]]
    far = from_shapes(shapes, fixes.x[met.row], fixes.y[met.row], metric)
    far = np.round(far, 9 if metric.is_flat else 3)
    keep, sure = np.zeros(len(far), np.bool_), met.sure.copy()
    for row in np.unique(met.row).tolist():
        mine = np.flatnonzero((met.row == row) & ~np.isnan(far))
        order = sorted(mine.tolist(), key=lambda at: (far[at], met.partner[at]))
        keep[order[:k]] = True
        if not metric.doubts or len(order) <= k:
            continue
        last, is_clear = far[order[k - 1 : k]], met.sure[mine].all()
        doubt = 2 * metric.doubt_of_shape(last)
        keep[mine] |= (far[mine] <= last + doubt) | ~is_clear
        sure[mine] &= is_clear & (far[mine] < last - doubt)
    return Joined(row=met.row[keep], partner=met.partner[keep], sure=sure[keep])


def _lie_by(step: Transform, fixes: Fixes, features: Features) -> Members:
    """Which fixes, not their boxes, lie within a distance of the features beside them, or on them."""
    if step.name == "geojson_strict":
        points = shapely.points(fixes.x, fixes.y)
        return certain(np.asarray(shapely.intersects(features.shapes, points)))
    far = distances(features.shapes, fixes.x, fixes.y, fixes.metric)
    return fixes.metric.at_most_from_shape(far, step.amount)


def of_which_features(
    condition: str, fixes: Fixes, features: Features, pairs: Joined
) -> Joined:
    """The pairs of which a condition on fix and feature is true, all of it asked of each pair; null is not."""
    columns = columns_beside(condition, features, pairs.partner)
    truths = [
        _are_true(condition, fixes.rows[pairs.row], fixes, {**columns, **far})
        for far in _far(condition, fixes.take(pairs.row), features, pairs.partner)
    ]
    keep, sure = np.any(truths, axis=0), np.all(truths, axis=0)
    return Joined(
        row=pairs.row[keep],
        partner=pairs.partner[keep],
        sure=(pairs.sure & sure)[keep],
    )


def _are_true(
    condition: str, rows: Ints, fixes: Fixes, columns: dict[str, Objects]
) -> Bools:
    values = fixes.of.of_features(condition, rows, columns)
    return np.array([value is not None and bool(value) for value in values], bool)


def _far(
    condition: str, fixes: Fixes, features: Features, partners: Objects
) -> Iterator[dict[str, Objects]]:
    """How far fixes are from features, side by side, as the column that a condition names.

    Where two ways to measure may differ it comes once more with the least and the most that it may be.
    """
    measured = _measured(condition, fixes, features, partners)
    doubts = {name: fixes.metric.doubt_of_shape(far) for name, far in measured.items()}
    is_doubted = any(doubt.any() for doubt in doubts.values())
    for share in (-1, 0, 1) if is_doubted else (0,):
        yield {
            name: _or_none(far + share * doubts[name]) for name, far in measured.items()
        }


def _measured(
    text: str, fixes: Fixes, features: Features, partners: Objects
) -> dict[str, Floats]:
    """How far fixes are from features, and from their outlines, side by side, where an expression names it."""
    place = {fid: row for row, fid in enumerate(features.fids)}
    shapes = features.shapes[[place[fid] for fid in partners]]
    asked = {_DISTANCE: shapes, _BORDER: _outlines(shapes)}
    return {
        name: from_shapes(of, fixes.x, fixes.y, fixes.metric)
        for name, of in asked.items()
        if f'"{name}"' in text
    }


def _outlines(shapes: np.ndarray) -> np.ndarray:
    """The outlines of areas; all else is its own."""
    are_areas = shapely.get_dimensions(shapes) == 2
    return np.where(are_areas, shapely.boundary(shapes), shapes)


def _or_none(far: Floats) -> Objects:
    return objects([None if np.isnan(d) else d for d in far])


def names_tags(text: str) -> bool:
    """Whether an expression of a plan that joins a layer names columns of features."""
    return _NAMED.search(text) is not None


def columns_beside(
    text: str, features: Features, partners: Objects
) -> dict[str, Objects]:
    """The columns of features that an expression names, a value for each partner; None of one that is not there."""
    place = {fid: row for row, fid in enumerate(features.fids)}
    rows = [place.get(fid, -1) for fid in partners]
    named = dict.fromkeys(_NAMED.findall(text))
    columns = {f"other.{name}": _column(name, features) for name in named}
    return {
        name: objects([None if row < 0 else values[row] for row in rows])
        for name, values in columns.items()
    }


def shown_beside(
    text: str, fixes: Fixes, features: Features, partners: Objects
) -> dict[str, Objects]:
    """The columns of features, and how far they are, that an expression names: a value for each fix and its partner.

    Of who has no partner (LEFT JOIN) they are None.
    """
    columns = columns_beside(text, features, partners)
    beside = np.flatnonzero([one is not None for one in partners])
    measured = _measured(text, fixes.take(beside), features, partners[beside])
    for name, far in measured.items():
        all_far = np.full(len(fixes), np.nan)
        all_far[beside] = far
        columns[name] = _or_none(all_far)
    return columns


def _column(name: str, features: Features) -> Objects:
    """A column of features by its name in plans: a text, or the speed that it says."""
    speed = _SPEED.fullmatch(name)
    unit = unit_of(speed[2]) if speed else None
    if speed is None or unit is None:
        return features.column(name)
    texts = features.column(speed[1])
    return objects([speed_said(text, unit.times, unit.per) for text in texts])


def _each_once(row: Ints, features: Features, met: Members) -> Joined:
    """Pairs that were met here and a turn away are one."""
    sure: dict[tuple[int, object], bool] = {}
    for pair in zip(row.tolist(), features.fids, met.sure.tolist(), strict=True):
        sure[pair[:2]] = pair[2] or sure.get(pair[:2], False)
    return Joined(
        row=np.array([one for one, _ in sure], np.int64),
        partner=objects([fid for _, fid in sure]),
        sure=np.array(list(sure.values()), np.bool_),
    )


def _joined(join: LayerJoin, boxes: Boxes, features: Features) -> Members:
    """For which pairs of a fix's box and a feature with its key, side by side, the predicate holds."""
    fixes, shapes = boxes.fixes, features.shapes
    if join.predicate in ("equals", "nearest"):
        return everyone(len(fixes))
    if join.predicate == "dwithin":
        far = distances(shapes, fixes.x, fixes.y, fixes.metric)
        return fixes.metric.at_most_from_shape(far, join.distance_m)
    meets = shapely.within if join.predicate == "within" else shapely.intersects
    small, large = (meets(boxes.shapes(share), shapes) for share in boxes.shares)
    return Members(sure=small & large, maybe=small | large)


def has_key(
    join: LayerJoin, fixes: Fixes, features: Features, row: Ints, feature: Ints
) -> Bools:
    """Of which pairs of a row and a feature both have the same key, bool[m]; all where the join asks for none.

    Null is no key.
    """
    if join.left is None:
        return np.ones(len(row), np.bool_)
    left = fixes.of.texts(join.left, fixes.rows)[row]
    right = features.column(str(join.right))[feature]
    alike = (left == right) & (left != objects([None]))
    return np.asarray(alike, np.bool_)


def _candidates(
    join: LayerJoin, boxes: Boxes, features: Features
) -> tuple[Ints, Ints, Floats]:
    """Pairs of a row and a feature that may be joined, and where to look for it: a turn away, or here (0)."""
    if join.predicate == "equals":
        return _with_keys(join, boxes.fixes, features)
    if join.predicate == "nearest":
        all_pairs = np.indices((len(boxes.fixes), len(features))).reshape(2, -1)
        return all_pairs[0], all_pairs[1], np.zeros(all_pairs.shape[1])
    far = join.distance_m if join.predicate == "dwithin" else 0.0
    across, along = reach(far, boxes.fixes.y, boxes.fixes.metric)
    tree, pairs, turns = shapely.STRtree(features.shapes), [], []
    for turn in boxes.fixes.metric.turns:
        minx, miny, maxx, maxy = boxes.sized(1 + boxes.doubt, turn)
        here = _in_sight(minx - across, maxx + across, turn)
        around = minx - across, miny - along, maxx + across, maxy + along
        near = tree.query(shapely.box(*(side[here] for side in around)))
        pairs.append((here[near[0]], near[1]))
        turns.append(np.full(len(near[0]), turn))
    row, feature = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return row, feature, np.concatenate(turns)


def _in_sight(west: Floats, east: Floats, turn: float) -> Ints:
    """The boxes to look for: a turn away only those that reach back over 180 degrees."""
    if turn == 0:
        return np.arange(len(west))
    return np.flatnonzero((west <= 180) & (east >= -180))


def _with_keys(
    join: LayerJoin, fixes: Fixes, features: Features
) -> tuple[Ints, Ints, Floats]:
    of: dict[object, list[int]] = {}
    for feature, key in enumerate(features.column(str(join.right))):
        if key is not None:
            of.setdefault(key, []).append(feature)
    left = fixes.of.texts(str(join.left), fixes.rows)
    alike = [(row, one) for row, key in enumerate(left) for one in of.get(key, ())]
    pairs = np.array(alike, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], np.zeros(len(pairs))
