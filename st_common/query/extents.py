"""Regions on streams whose elements have an extent: all of it counts, and not its place alone (docs/adr/0033)."""

from collections.abc import Iterator
from dataclasses import replace

from st_common.query.comparing import Transform
from st_common.query.complaint import Complaint
from st_common.query.frame import Frame
from st_common.query.neighbours import (
    GroupNearest,
    Nearest,
    Neighbours,
    ReverseNearest,
)
from st_common.query.plan import Plan
from st_common.regions.by_extent import ByExtent, Extent
from st_common.regions.forecast import Forecast
from st_common.regions.region import MovingRegion, Region, StillRegion


def with_extent(plan: Plan, extent: Extent) -> Plan:
    """The plan with a region that is asked about what the elements of its stream are.

        on a stream of     INSIDE r                    INTERSECTS r
        places             places in r                 places in r
        shapes, boxes      all of the element in r     a point of it in r

    A region that goes with an object, and what will enter one, ask about places on any stream.

    Args:
        plan: a plan as it was written.
        extent: what the elements of its stream are.
    """
    near = plan.neighbours
    if extent == "shape" and isinstance(near, Nearest) and near.extent != extent:
        plan = replace(plan, neighbours=replace(near, extent=extent))
    if plan.inside is None:
        return plan
    region = _asked(plan.inside, extent)
    return plan if region is plan.inside else replace(plan, inside=region)


def _asked(region: Region, extent: Extent) -> Region:
    if isinstance(region, ByExtent):
        return replace(region, extent=extent) if extent else region.part
    if (
        not extent
        or not isinstance(region, StillRegion)
        or isinstance(region, Forecast)
    ):
        return region
    return ByExtent(part=region, how="covered", extent=extent)


def complaints_of_extents(plan: Plan) -> Iterator[Complaint]:
    """What cannot stand beside, or around, a region that is asked about extents."""
    if plan.inside is not None and _nests_extents(plan.inside):
        yield Complaint(
            at="inside",
            message="INTERSECTS and AND, OR, NOT of regions exclude each other",
            hint="register one query for each region",
        )
    if not isinstance(plan.inside, ByExtent):
        return
    parts = {
        "USING": next(filter(_looks_at_boxes, plan.transforms), None),
        "COMPARE WITH": plan.compare,
        "a window in brackets": plan.frame,
    }
    for name in (name for name, part in parts.items() if part is not None):
        yield Complaint(
            at="inside",
            message=f"{name} and a region that looks at extents exclude each other",
            hint=f"{name} looks at the places of elements; conditions on x and y do too",
        )


def complaints_of_middles(
    plan: Plan, stream: str, extent: Extent, *, is_layer: bool
) -> Iterator[Complaint]:
    """What asks about places, on a stream whose elements are more than one: a middle says too little of them.

    Args:
        plan: a plan, whose region is asked as `with_extent` says.
        stream: the name of its stream.
        extent: what the elements of the stream are.
        is_layer: whether they are the features of a layer, of which the nearest are found by their shapes.
    """
    if not extent:
        return
    what = "geometries" if extent == "shape" else "boxes"
    for at, name in _of_places(plan, is_layer=is_layer):
        yield Complaint(
            at=at,
            message=f"{name} looks at places, and the elements of stream {stream!r} are {what}",
            hint=f"ask it of a stream of their middles: CREATE STREAM middles AS SELECT x, y FROM {stream}",  # noqa: S608 - a text for people
        )


def _of_places(plan: Plan, *, is_layer: bool) -> Iterator[tuple[str, str]]:
    """The clauses of a plan that look at places alone, each with what it is called."""
    join, pairs, frame = plan.join, plan.pairs, plan.frame
    is_extent = isinstance(plan.inside, ByExtent)
    asked = {
        ("inside", "WILL ENTER"): isinstance(plan.inside, Forecast),
        ("inside", "INSIDE a region that goes with an object"): isinstance(
            plan.inside, MovingRegion
        ),
        ("knn", _NEIGHBOURS[type(plan.neighbours)]): plan.neighbours
        and not (is_layer and _looks_at_shapes(plan.neighbours)),
        ("layer", "a join with a layer"): join
        and (join.predicate != "equals" or join.nearest is not None),
        ("layer", "ST_DWithin"): pairs and pairs.distance_m is not None,
        ("layer", "NEAREST"): pairs and pairs.nearest,
        ("frame", "RANGE BY"): frame and (frame.regions or _slides_by_space(frame)),
        ("using", "USING"): not is_extent
        and any(map(_looks_at_boxes, plan.transforms)),
        ("using", "COMPARE WITH"): not is_extent and plan.compare,
    }
    return (name for name, is_asked in asked.items() if is_asked)


_NEIGHBOURS = {
    type(None): "KNN",
    Nearest: "KNN",
    GroupNearest: "GROUP KNN",
    ReverseNearest: "REVERSE KNN",
}


def _looks_at_shapes(neighbours: Neighbours) -> bool:
    """Whether the nearest ones are found by their extents: from a place, which is a point."""
    if not isinstance(neighbours, Nearest):
        return False
    return bool(neighbours.extent) and neighbours.place.focal is None


def _slides_by_space(frame: Frame) -> bool:
    """Whether a window goes by how far objects have gone."""
    extents = [part for one in frame.sliding for part in (one.range, one.slide)]
    return any(part is not None and part.by == "space" for part in extents)


def _looks_at_boxes(step: Transform) -> bool:
    """Whether a step looks at the box around a place; one by key or properties does not."""
    return step.kind != "key" and step.name not in ("key", "property")


def _nests_extents(region: Region) -> bool:
    """Whether a region of extents is a part of another region."""
    return any(
        isinstance(part, ByExtent) or _nests_extents(part) for part in region.operands
    )
