"""What is wrong with places of a plan: coordinates that are none, regions that can be read the other way around."""

from collections.abc import Iterator

from st_common.geometry.space import GLOBE, PLANE, Space
from st_common.query.complaint import Complaint
from st_common.query.neighbours import places_of
from st_common.query.plan import Plan
from st_common.regions.earth import off_earth
from st_common.regions.region import Region


def complaints_of_places(plan: Plan) -> Iterator[Complaint]:
    """What is wrong with the regions and places of a plan that stand still, on a stream in degrees."""
    yield from _of_regions(plan, GLOBE)
    for place in places_of(plan.neighbours) if plan.neighbours is not None else ():
        if place.focal is None:
            for wrong in off_earth("place", [(place.x, place.y)]):
                yield Complaint(at="knn", message=wrong.message, hint=wrong.hint)


def complaints_of_plane(plan: Plan) -> Iterator[Complaint]:
    """What of a plan has a meaning in degrees alone."""
    yield from _of_regions(plan, PLANE)


def _of_regions(plan: Plan, space: Space) -> Iterator[Complaint]:
    for at, region in _regions(plan):
        for wrong in region.wrong_in(space):
            yield Complaint(at=at, message=wrong.message, hint=wrong.hint)


def _regions(plan: Plan) -> list[tuple[str, Region]]:
    """The regions of a plan and in which clauses they stand."""
    regions: list[tuple[str, Region]] = (
        [("inside", plan.inside)] if plan.inside is not None else []
    )
    regions += (
        [("frame", region) for region in plan.frame.regions]
        if plan.frame is not None
        else []
    )
    regions += [("using", step.box) for step in plan.transforms if step.box is not None]
    regions += [("compare", plan.compare.box)] if plan.compare is not None else []
    return regions
