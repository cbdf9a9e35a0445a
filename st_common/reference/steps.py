"""USING and COMPARE WITH: BBoxDB's transformations and comparison of a fix's box, step by step (SPEC B8, B10).

A fix has no extent at first. 20 m, twice, then a box to meet:

    .   ->   +--+   ->   +----+   ->   meets the box (touching is enough), or with NOT does not
             +--+        +----+
"""

import json
from dataclasses import dataclass, replace

import numpy as np
import shapely

from st_common.query.comparing import Transform
from st_common.query.filters import NAMES
from st_common.query.plan import Plan
from st_common.reference.columns import Features, Fixes, equal
from st_common.reference.metric import Bools, Floats, Ints, Members, certain, everyone
from st_common.regions.registry import Box

_GEOJSON = ("geojson", "geojson_near", "geojson_strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Boxes around fixes, f64[n] each; their extents may be larger or smaller by the share `doubt`."""

    fixes: Fixes
    wide: Floats
    high: Floats
    doubt: float = 0.0

    @property
    def shares(self) -> tuple[float, float]:
        """How large boxes surely are, and how large they may be."""
        return 1 - self.doubt, 1 + self.doubt

    def take(self, which: Ints, turn: Floats) -> "Boxes":
        """The boxes of some rows, each a turn away or where it is."""
        fixes = self.fixes.take(which)
        fixes = replace(fixes, x=fixes.x + turn)
        return replace(self, fixes=fixes, wide=self.wide[which], high=self.high[which])

    def sized(self, share: float, turn: float = 0.0) -> Floats:
        """minx, miny, maxx, maxy of boxes that are smaller or larger; f64[4, n]."""
        x, y = self.fixes.x + turn, self.fixes.y
        wide, high = self.wide * share / 2, self.high * share / 2
        return np.stack([x - wide, y - high, x + wide, y + high])

    def shapes(self, share: float) -> np.ndarray:
        """The boxes as polygons; points where nothing was enlarged."""
        shapes = np.asarray(shapely.box(*self.sized(share)))
        is_point = (self.wide == 0) & (self.high == 0)
        shapes[is_point] = shapely.points(
            self.fixes.x[is_point], self.fixes.y[is_point]
        )
        return shapes

    def reaching(self, turn: float) -> Bools:
        """Which boxes are also looked for a turn away: those that reach 180 degrees."""
        reach = np.abs(self.fixes.x) + self.wide * (1 + self.doubt) / 2
        return (reach > 180) | (turn == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """Who gets through the steps of a plan, with its box then.

    `properties` (`name:value`) are asked of the fix, or of the feature that it is joined with; `users` are the filters
    of users, which are asked about both.
    """

    members: Members
    boxes: Boxes
    properties: tuple[str, ...]
    users: tuple[Transform, ...]


def stepped(plan: Plan, fixes: Fixes) -> Stepped:
    """Takes fixes through all steps, and the comparison; without a join properties are asked of the fixes here."""
    boxes = Boxes(fixes=fixes, wide=np.zeros(len(fixes)), high=np.zeros(len(fixes)))
    members, properties, users = everyone(len(fixes)), [], []
    for step in plan.transforms:
        boxes = _enlarged(boxes, step)
        if _is_property(step):
            properties.append(str(step.text))
        elif step.kind == "filter" and step.name not in NAMES:
            users.append(step)
        else:
            members &= _passed(step, boxes)
    if plan.compare is not None:
        met = _meeting(boxes, plan.compare.box)
        members &= ~met if plan.compare.negative else met
    if plan.join is None:
        for text in properties:
            members &= certain(having(text, fixes))
        for step in users:
            some = np.flatnonzero(members.maybe)
            members &= certain(_through(step, fixes, some))
    return Stepped(
        members=members, boxes=boxes, properties=tuple(properties), users=tuple(users)
    )


def _through(step: Transform, fixes: Fixes, some: Ints) -> Bools:
    """Which of some fixes a filter of users lets through; of the others none."""
    passed = np.zeros(len(fixes), np.bool_)
    passed[some] = fixes.of.let_through(step.name or "", step.text, fixes.rows[some])
    return passed


def having(text: str, fixes: Fixes) -> Bools:
    """Which fixes have an attribute of this value (`name:value`), as text."""
    name, _, value = text.partition(":")
    own = fixes.of.attributes(name.strip(), fixes.rows)
    return equal(own, value)


def tagged(text: str, features: Features) -> Bools:
    """Which features have a fid, a kind or a tag of this value (`name:value`)."""
    name, _, value = text.partition(":")
    return equal(features.column(name.strip()), value)


def _is_property(step: Transform) -> bool:
    is_text = step.text is not None and not step.text.lstrip().startswith("{")
    is_named = step.name == "property" or (step.name in _GEOJSON and is_text)
    return step.kind == "filter" and is_named


def _enlarged(boxes: Boxes, step: Transform) -> Boxes:
    wide, high, amount = boxes.wide, boxes.high, step.amount
    if step.kind == "factor":
        return replace(boxes, wide=wide * (1 + amount), high=high * (1 + amount))
    if step.kind == "value":
        return replace(boxes, wide=wide + amount, high=high + amount)
    if step.kind == "metres":
        metric = boxes.fixes.metric
        across, along = metric.scale(boxes.fixes.y)
        wide, high = wide + amount / across, high + amount / along
        return replace(boxes, wide=wide, high=high, doubt=metric.scale_doubt)
    return boxes


def _meeting(boxes: Boxes, box: Box) -> Members:
    """Boxes that touch each other meet, on degrees also across 180 of them."""
    masks = [_meets(boxes, box, share) for share in boxes.shares]
    return Members(sure=masks[0], maybe=masks[1])


def _meets(boxes: Boxes, box: Box, share: float) -> Bools:
    meets = np.zeros(len(boxes.wide), np.bool_)
    for turn in boxes.fixes.metric.turns:
        minx, miny, maxx, maxy = boxes.sized(share, turn)
        over = (minx <= box.maxx) & (maxx >= box.minx) & boxes.reaching(turn)
        meets |= over & (miny <= box.maxy) & (maxy >= box.miny)
    return meets


def _passed(step: Transform, boxes: Boxes) -> Members:
    """Whom a step lets through."""
    if step.kind == "key" or (step.kind == "filter" and step.name == "key"):
        return certain(equal(boxes.fixes.ids, step.text))
    if step.kind == "box" and step.box is not None:
        return _meeting(boxes, step.box)
    if step.kind != "filter" or step.text is None:
        return everyone(len(boxes.fixes))
    if step.name == "wkt":
        shape = shapely.from_wkt(step.text)
    elif step.name in _GEOJSON:
        value = json.loads(step.text)
        shape = shapely.geometry.shape(value.get("geometry", value))
    else:
        raise ValueError(
            f"no reference says what the filter {step.name!r} lets through"
        )
    masks = [shapely.intersects(shape, boxes.shapes(share)) for share in boxes.shares]
    return Members(sure=np.asarray(masks[0]), maybe=np.asarray(masks[1]))
