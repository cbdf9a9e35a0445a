"""Regions on streams whose elements have an extent: all of it counts, and not its place alone (docs/adr/0097)."""

from collections.abc import Iterator
from dataclasses import replace

from st_common.query.comparing import Transform
from st_common.query.complaint import Complaint
from st_common.query.plan import Plan
from st_common.regions.by_extent import ByExtent, Extent
from st_common.regions.forecast import Forecast
from st_common.regions.region import Region, StillRegion


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


def _looks_at_boxes(step: Transform) -> bool:
    """Whether a step looks at the box around a place; one by key or properties does not."""
    return step.kind != "key" and step.name not in ("key", "property")


def _nests_extents(region: Region) -> bool:
    """Whether a region of extents is a part of another region."""
    return any(
        isinstance(part, ByExtent) or _nests_extents(part) for part in region.operands
    )
