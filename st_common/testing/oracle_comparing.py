"""BBoxDB's transformations and comparison, one fix and one step after the other (BBoxDB sections 4.3 and 4.4)."""

import json
from collections.abc import Callable

import shapely
from shapely.geometry.base import BaseGeometry

from st_common.query.comparing import Transform
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from st_common.testing.oracle_expressions import text_of
from st_common.testing.oracle_readings import Point, Reading, degree_m
from st_common.testing.oracle_rows import Feature, Rules


def transformed(
    plan: Plan, reading: Reading, rules: Rules, feature: Feature | None = None
) -> Point | None:
    """The extents of a fix's box after all steps; None where a step stops it, or the comparison does.

    A `feature` is what the fix may be joined with: filters see it.
    """
    extents = (0.0, 0.0)
    for step in plan.transforms:
        extents = _enlarged(step, extents, reading, rules)
        if not _passes(step, extents, reading, feature, rules):
            return None
    compare = plan.compare
    if (
        compare is not None
        and _meets(compare.box, reading.at, extents, rules) == compare.negative
    ):
        return None
    return extents


def turns(at: Point, reach: float, rules: Rules) -> list[Point]:
    """A point, and on degrees the same one a whole turn away on either side when it reaches 180 degrees."""
    if not rules.geographic or abs(at[0]) + reach <= 180:
        return [at]
    return [at, (at[0] - 360, at[1]), (at[0] + 360, at[1])]


def shape_of(at: Point, extents: Point) -> BaseGeometry:
    """The box around a point, or the point itself."""
    if extents == (0.0, 0.0):
        return shapely.Point(at)
    return shapely.box(
        at[0] - extents[0] / 2,
        at[1] - extents[1] / 2,
        at[0] + extents[0] / 2,
        at[1] + extents[1] / 2,
    )


def _enlarged(step: Transform, extents: Point, reading: Reading, rules: Rules) -> Point:
    match step.kind:
        case "factor":
            return extents[0] + step.amount * extents[0], extents[
                1
            ] + step.amount * extents[1]
        case "value":
            return extents[0] + step.amount, extents[1] + step.amount
        case "metres":
            across, along = degree_m(reading.at[1]) if rules.geographic else (1.0, 1.0)
            return extents[0] + step.amount / across, extents[1] + step.amount / along
    return extents


def _passes(
    step: Transform,
    extents: Point,
    reading: Reading,
    feature: Feature | None,
    rules: Rules,
) -> bool:
    if step.kind == "key":
        return reading.fix.object == step.text
    if step.kind == "box":
        assert step.box is not None  # noqa: S101 - for the type: such a step has a box
        return _meets(step.box, reading.at, extents, rules)
    return step.kind != "filter" or _FILTERS[str(step.name)](
        step.text, extents, reading, feature
    )


def _meets(box: Box, at: Point, extents: Point, rules: Rules) -> bool:
    """Boxes that touch each other meet, on degrees also across 180 of them."""
    wide, high = extents[0] / 2, extents[1] / 2
    meets_x = any(
        x - wide <= box.maxx and x + wide >= box.minx for x, _ in turns(at, wide, rules)
    )
    return meets_x and at[1] - high <= box.maxy and at[1] + high >= box.miny


def _has(text: str | None, _: Point, reading: Reading, feature: Feature | None) -> bool:
    """`name:value`: an attribute of the fix, the fid, the kind or a tag of the feature."""
    name, value = str(text).split(":", 1)
    own = reading.fix.attributes.get(name)
    if own is not None and text_of(own) == value:
        return True
    return (
        feature is not None
        and {**feature.tags, "fid": feature.fid, "kind": feature.kind}.get(name)
        == value
    )


def _lies_in_wkt(
    text: str | None, extents: Point, reading: Reading, _: Feature | None
) -> bool:
    return shapely.from_wkt(str(text)).intersects(shape_of(reading.at, extents))


def _geojson(
    text: str | None, extents: Point, reading: Reading, feature: Feature | None
) -> bool:
    if text is None:
        return True
    if not text.startswith("{"):
        return _has(text, extents, reading, feature)
    value = json.loads(text)
    found = shapely.geometry.shape(value.get("geometry", value))
    return found.intersects(shape_of(reading.at, extents))


_FILTERS: dict[str, Callable[[str | None, Point, Reading, Feature | None], bool]] = {
    "key": lambda text, _, reading, __: reading.fix.object == text,
    "property": _has,
    "wkt": _lies_in_wkt,
    "geojson": _geojson,
}
