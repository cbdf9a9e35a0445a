"""BBoxDB's transformations and comparison by brute force over columns, step by step."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import shapely
from pyproj import Geod

from st_common.geometry.space import Space
from st_common.query.comparing import Transform
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from st_common.serving.verify_expressions import values_of
from st_common.serving.verify_places import DOUBT, Members, certain

_GEOD = Geod(ellps="WGS84")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """The boxes around fixes: their extents, which may be larger or smaller by the share `doubt`."""

    x: np.ndarray
    y: np.ndarray
    wide: np.ndarray
    high: np.ndarray
    doubt: float = 0.0

    def sized(self, share: float) -> np.ndarray:
        """minx, miny, maxx, maxy of all boxes with extents that are larger by a share; f64[4, n]."""
        wide, high = self.wide * (1 + share) / 2, self.high * (1 + share) / 2
        return np.stack([self.x - wide, self.y - high, self.x + wide, self.y + high])

    def shapes(self, share: float = 0.0) -> np.ndarray:
        """The boxes as polygons, or the points where nothing was enlarged."""
        if not (self.wide.any() or self.high.any()):
            return np.asarray(shapely.points(self.x, self.y))
        return np.asarray(shapely.box(*self.sized(share)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """What the steps of a plan say of fixes; `properties` is what a joined feature may have instead of the fix."""

    members: Members
    boxes: Boxes
    properties: tuple[str, ...]


def stepped(
    plan: Plan, frame: pd.DataFrame, attributes: Sequence[str], *, space: Space
) -> Stepped:
    """The fixes that get through all steps and the comparison, with their boxes then."""
    x, y = frame["x"].to_numpy(float), frame["y"].to_numpy(float)
    boxes = Boxes(x=x, y=y, wide=np.zeros(len(x)), high=np.zeros(len(x)))
    found, properties = certain(np.ones(len(x), bool)), []
    for step in plan.transforms:
        boxes = _enlarged(boxes, step, space=space)
        if _is_property(step):
            properties.append(step.text or "")
        else:
            found &= _passed(step, frame, boxes)
    if plan.compare is not None:
        met = _meeting(boxes, plan.compare.box)
        found &= (
            Members(sure=~met.maybe, maybe=~met.sure) if plan.compare.negative else met
        )
    if plan.join is None:
        for text in properties:
            found &= certain(having(text, frame, attributes, space=space))
    return Stepped(members=found, boxes=boxes, properties=tuple(properties))


def having(
    text: str, frame: pd.DataFrame, attributes: Sequence[str], *, space: Space
) -> np.ndarray:
    """Which fixes have a value of an attribute (`name:value`), as text."""
    name, _, value = text.partition(":")
    own = [known for known in attributes if known.lower() == name.strip().lower()]
    if not own or not len(frame):
        return np.zeros(len(frame), bool)
    quoted = own[0].replace('"', '""')
    found = values_of(frame, [f'CAST("{quoted}" AS VARCHAR)'], attributes, space=space)[
        "0"
    ]
    return (found.astype(object) == value).to_numpy(bool)


def tagged(text: str, features: pd.DataFrame) -> np.ndarray:
    """Which features have a fid, a kind or a tag of a value (`name:value`)."""
    name, _, value = text.partition(":")
    return (column_of(name.strip(), features) == value).to_numpy(bool)


def column_of(name: str, features: pd.DataFrame) -> "pd.Series[str]":
    """The fid, the kind or a tag of features; None for none."""
    if name in ("fid", "kind"):
        return features[name]
    return features["tags"].map(lambda tags: dict(tags).get(name)).astype(object)


def _is_property(step: Transform) -> bool:
    is_text = step.text is not None and not step.text.lstrip().startswith("{")
    return step.kind == "filter" and (
        step.name == "property" or (step.name == "geojson" and is_text)
    )


def _enlarged(boxes: Boxes, step: Transform, *, space: Space) -> Boxes:
    wide, high, doubt = boxes.wide, boxes.high, boxes.doubt
    if step.kind == "factor":
        wide, high = wide * (1 + step.amount), high * (1 + step.amount)
    elif step.kind == "value":
        wide, high = wide + step.amount, high + step.amount
    elif step.kind == "metres":
        across, along = (1.0, 1.0) if space.is_flat else _degree_m(boxes.y)
        wide, high = wide + step.amount / across, high + step.amount / along
        doubt = doubt if space.is_flat else DOUBT
    return Boxes(x=boxes.x, y=boxes.y, wide=wide, high=high, doubt=doubt)


def _degree_m(latitude: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How long a degree of longitude and one of latitude are, measured over small pieces."""
    nothing, middle = np.zeros(len(latitude)), np.clip(latitude, -89.9, 89.9)
    across = _GEOD.inv(nothing - 0.005, latitude, nothing + 0.005, latitude)[2]
    along = _GEOD.inv(nothing, middle - 0.05, nothing, middle + 0.05)[2]
    return np.maximum(np.asarray(across) * 100, 1e-3), np.asarray(along) * 10


def _meeting(boxes: Boxes, box: Box) -> Members:
    minx, miny, maxx, maxy = zip(
        boxes.sized(-boxes.doubt), boxes.sized(boxes.doubt), strict=True
    )
    sure, maybe = (
        (minx[n] <= box.maxx)
        & (maxx[n] >= box.minx)
        & (miny[n] <= box.maxy)
        & (maxy[n] >= box.miny)
        for n in (0, 1)
    )
    return Members(sure=sure, maybe=maybe)


def _passed(step: Transform, frame: pd.DataFrame, boxes: Boxes) -> Members:
    """Which fixes a step lets through."""
    if step.kind == "key" or step.name == "key":
        return certain((frame["object"] == step.text).to_numpy(bool))
    if step.kind == "box" and step.box is not None:
        return _meeting(boxes, step.box)
    if step.kind != "filter" or step.text is None:
        return certain(np.ones(len(frame), bool))
    if step.name == "wkt":
        shape = shapely.from_wkt(step.text)
    else:
        value = json.loads(step.text)
        shape = shapely.geometry.shape(value.get("geometry", value))
    sure, maybe = (
        np.asarray(shapely.intersects(shape, boxes.shapes(n * boxes.doubt)), bool)
        for n in (-1, 1)
    )
    return Members(sure=sure, maybe=maybe)
