"""INSIDE and KNN: where a query looks, and which objects are near (SPEC G4, G5, G8)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast, get_args

from sqlglot import exp

from st_common.crs import without_srid
from st_common.query.areas import Areas
from st_common.query.grammar.nodes import Inside, Knn, Quantity, Refused, span_of
from st_common.query.group_names import Tables, found_table, split_name, why_unknown
from st_common.query.lowering.quantity import (
    duration,
    expect,
    is_moving,
    metres,
    object_id,
    plain,
    shown,
    whole,
)
from st_common.query.neighbours import (
    GroupNearest,
    Nearest,
    Neighbours,
    Place,
    ReverseNearest,
)
from st_common.query.problem import did_you_mean, wkt_hint
from st_common.regions.combining import DEEPEST, depth_of
from st_common.regions.forecast import STANDS, By, Forecast
from st_common.regions.region import MovingRegion, Region, ShapeError
from st_common.regions.registry import (
    Area,
    Box,
    ByExtent,
    Circle,
    Complement,
    Corridor,
    Intersection,
    MovingBox,
    MovingCircle,
    Union,
    joined_region,
)

MOST_NEIGHBOURS = 10_000
_MOVING_BOX = 4
_Total = Literal["sum", "max", "min"]


def region_of(inside: Inside, areas: Areas) -> Region:
    """A region as it is written; named areas and features are those of now.

    Raises:
        Refused: it is none.
    """
    region = _region(inside, areas)
    if depth_of(region) > DEEPEST:
        raise Refused("nested too deeply", span_of(inside))
    return joined_region(region)


def _region(inside: Inside, areas: Areas) -> Region:
    parts, form = inside.expressions, inside.args["form"].name
    if form in _ASKED:
        return _ASKED[form](parts, areas)
    if form in _JOINED:
        return _JOINED[form](tuple(_region(part, areas) for part in parts))
    if form in _FORMS:
        return _FORMS[form](parts)
    if form in ("name", "frozen"):
        return _named(parts[0], areas, is_frozen=form == "frozen")
    if form == "feature":
        return _feature(parts, areas)
    if is_moving(parts):
        return _moving(parts)
    if len(parts) == 1 and isinstance(parts[0], exp.Literal):
        return _area(parts)
    hint = (
        "INSIDE CIRCLE (x, y, radius), or two corners"
        if len(parts) == len("xyr")
        else ""
    )
    return box_of(parts, hint or "INSIDE (x1, y1, x2, y2): two corners")


def _forecast(parts: Sequence[exp.Expr], areas: Areas) -> Forecast:
    """Who will enter a region within a time, by its heading where nothing else is said."""
    region, lasting, *said = parts
    part = joined_region(_region(cast("Inside", region), areas))
    if isinstance(part, MovingRegion):
        raise Refused(STANDS, span_of(region))
    by = said[0].name.lower() if said else "heading"
    if by not in get_args(By):
        raise Refused("expected HEADING or SPEED", span_of(said[0]), "BY SPEED")
    if part.no_border:
        message = f"WILL ENTER and {part.no_border} exclude each other"
        raise Refused(message, span_of(region), "register one query for each region")
    within_s = duration(cast("Quantity", lasting), "WITHIN")
    return Forecast(part=part, within_s=within_s, by=cast("By", by))


def _meeting(parts: Sequence[exp.Expr], areas: Areas) -> ByExtent:
    """Whose extent meets a region; on a stream of places who is in it."""
    part = joined_region(_region(cast("Inside", parts[0]), areas))
    return ByExtent(part=part, how="intersects")


_ASKED: Mapping[str, Callable[[Sequence[exp.Expr], Areas], Region]] = {
    "ahead": _forecast,
    "meets": _meeting,
}
"""What is asked of a region in a clause of its own, by the form in which it is written."""


def _complement(parts: tuple[Region, ...]) -> Region:
    (part,) = parts
    return Complement(part=part)


_JOINED: Mapping[str, Callable[[tuple[Region, ...]], Region]] = {
    "all": lambda parts: Intersection(parts=parts),
    "any": lambda parts: Union(parts=parts),
    "not": _complement,
}
"""Regions made of others, by the form in which they are written."""


def _area(parts: Sequence[exp.Expr]) -> Area:
    try:
        return Area.of_wkt(without_srid(parts[0].this, 0))
    except ShapeError as error:
        raise Refused(error.message, span_of(parts[0]), error.hint) from None


def _circle(parts: Sequence[exp.Expr]) -> Circle:
    expect(parts, 3, "CIRCLE (x, y, 500 m)")
    x, y = plain(parts[0]), plain(parts[1])
    return Circle(x=x, y=y, radius_m=metres(parts[2], "a radius"))


def _corridor(parts: Sequence[exp.Expr]) -> Corridor:
    like = "CORRIDOR ('LINESTRING (x y, x y)', 50 m)"
    expect(parts, 2, like)
    line, width = parts
    if not isinstance(line, exp.Literal):
        raise Refused("expected a line in single quotes", span_of(line), like)
    width_m = metres(width, "a width")
    try:
        return Corridor.along(without_srid(line.this, 0), width_m)
    except ShapeError as error:
        raise Refused(error.message, span_of(line), error.hint) from None


def box_of(
    parts: Sequence[exp.Expr], like: str = "(x1, y1, x2, y2): two corners"
) -> Box:
    """The box between two corners."""
    expect(parts, 4, like)
    return Box.of_corners(*(plain(part) for part in parts))


def _across(parts: Sequence[exp.Expr]) -> Area:
    like = "(170, -20, -170, -10) CROSSING 180"
    expect(parts, 4, like)
    west, y1, east, y2 = (plain(part) for part in parts)
    for at, value, most in zip(
        parts, (west, y1, east, y2), (180.0, 90.0) * 2, strict=True
    ):
        if abs(value) > most:
            what = "a longitude" if most > 90.0 else "a latitude"
            raise Refused(
                f"{value:g} is no {what.split()[1]}",
                span_of(at),
                f"{what} is from -{most:g} to {most:g}",
            )
    if not (-180.0 < east < west < 180.0):
        message = (
            "what crosses 180 degrees begins west of it and ends east of it: x1 > x2"
        )
        raise Refused(message, (span_of(parts[0])[0], span_of(parts[2])[1]), like)
    if y1 == y2:
        raise Refused(
            "what crosses 180 degrees has two latitudes", span_of(parts[3]), like
        )
    return Area.across(west, min(y1, y2), east, max(y1, y2))


_FORMS: Mapping[str, Callable[[Sequence[exp.Expr]], Region]] = {
    "circle": _circle,
    "corridor": _corridor,
    "across": _across,
    "wkt": _area,
}
"""Regions that say themselves where they are, by the form in which they are written."""


def _frozen(region: Region) -> Region:
    """A region that goes with no layer: what it has of features are surfaces of their own."""
    if isinstance(region, Area) and region.layer is not None:
        return Area(wkt=region.wkt)
    return region.with_parts(_frozen)


def _named(name: exp.Expr, areas: Areas, *, is_frozen: bool) -> Region:
    find = areas.as_it_is if is_frozen else areas.named
    area = find(name.name)
    if area is None:
        hint = (
            did_you_mean(name.name, areas.names())
            or wkt_hint(name.name)
            or f"CREATE AREA {name.name} AS (x1, y1, x2, y2)"
        )
        raise Refused(f"unknown area {name.name!r}", span_of(name), hint)
    return _frozen(area) if is_frozen else area


def _feature(parts: Sequence[exp.Expr], areas: Areas) -> Region:
    expect(parts, 2, "FEATURE (layer, 'fid')")
    layer, fid = parts
    if not isinstance(layer, exp.Identifier):
        raise Refused(
            "expected the name of a layer", span_of(layer), "FEATURE (layer, 'fid')"
        )
    name = _layer(layer, areas)
    called = object_id(fid, "of a feature", "FEATURE (layer, 'fid')")
    surface = areas.feature(name, called)
    if surface is None:
        why = areas.why_not(name, called)
        raise Refused(
            f"layer {name} has no feature {called!r} that covers anything",
            span_of(fid),
            f"its load left it out, {why}"
            if why
            else f"the table layer_{name} lists them: column fid",
        )
    return surface


def _layer(layer: exp.Identifier, areas: Areas) -> str:
    """The layer of this name, with or without its group."""
    known = Tables(what="layer", names=areas.layers(), group_of=areas.group_of)
    name = found_table(layer.name, known)
    if name in known.names:
        return name
    if split_name(layer.name)[0]:
        message, hint = why_unknown(layer.name, known)
        raise Refused(message, span_of(layer), hint)
    loads = "fairway layer load brings a layer in"
    hint = did_you_mean(layer.name, known.names) or loads
    raise Refused(f"unknown layer {layer.name!r}", span_of(layer), hint)


def neighbours_of(knn: Knn) -> Neighbours:
    """What a KNN clause asks for."""
    parts, kind = knn.expressions, knn.this.name
    if kind == "reverse":
        return ReverseNearest(
            place=_place(parts, "REVERSE KNN (x, y), or REVERSE KNN ('M', 'id')")
        )
    if kind == "group":
        return _group(knn, parts)
    if is_moving(parts):
        expect(parts, 3, "KNN ('M', k, 'id')")
        return Nearest(
            k=whole(parts[1], "k", MOST_NEIGHBOURS),
            place=Place(focal=object_id(parts[2])),
        )
    expect(parts, 3, "KNN (k, x, y), or KNN ('M', k, 'id')")
    k = whole(parts[0], "k", MOST_NEIGHBOURS)
    return Nearest(k=k, place=Place(x=plain(parts[1]), y=plain(parts[2])))


def _moving(parts: Sequence[exp.Expr]) -> Region:
    if len(parts) == _MOVING_BOX - 1:
        return MovingCircle(
            focal=object_id(parts[1]), radius_m=metres(parts[2], "a radius")
        )
    expect(
        parts,
        _MOVING_BOX,
        "INSIDE ('M', 'id', width, height), or INSIDE ('M', 'id', 500 m)",
    )
    focal, sides = object_id(parts[1]), parts[2:]
    units = [side.args.get("unit") is not None for side in sides]
    if any(units):
        if not all(units):
            raise Refused(
                "expected a unit at both sides, or at none",
                span_of(sides[units.index(False)]),
            )
        width, height = (metres(side, "a side") for side in sides)
        return MovingBox(focal=focal, width=width, height=height, metres=True)
    width, height = (_side(side) for side in sides)
    return MovingBox(focal=focal, width=width, height=height)


def _side(part: exp.Expr) -> float:
    value = plain(part)
    if value < 0:
        raise Refused("a side is 0 or more", span_of(part))
    return abs(value)  # no -0.0


def _group(knn: Knn, parts: Sequence[exp.Expr]) -> GroupNearest:
    like = "GROUP KNN (k, SUM, (x, y), ('M', 'id'), ...)"
    if len(parts) <= len(("k", "total")):
        raise Refused("expected k, a total and at least one place", span_of(knn), like)
    k, total, places = whole(parts[0], "k", MOST_NEIGHBOURS), parts[1], parts[2:]
    known = get_args(_Total)
    name = total.name.lower() if isinstance(total, exp.Identifier) else ""
    if name not in known:
        hint = did_you_mean(total.name, ("SUM", "MAX", "MIN")) or like
        raise Refused(
            f"expected SUM, MAX or MIN, not {shown(total)}", span_of(total), hint
        )
    chosen: _Total = next(each for each in known if each == name)
    return GroupNearest(
        k=k, total=chosen, places=tuple(_place_in(part, like) for part in places)
    )


def _place_in(part: exp.Expr, like: str) -> Place:
    if not isinstance(part, exp.Tuple):
        raise Refused(
            f"expected a place such as (x, y), not {shown(part)}", span_of(part), like
        )
    return _place(part.expressions, like)


def _place(parts: Sequence[exp.Expr], like: str) -> Place:
    expect(parts, 2, like)
    if is_moving(parts):
        return Place(focal=object_id(parts[1]))
    return Place(x=plain(parts[0]), y=plain(parts[1]))
