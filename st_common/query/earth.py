"""What is wrong with places on Earth: coordinates that are none, and regions that can be read the other way around."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from st_common.geometry.longitudes import HALF_TURN, has_two_readings
from st_common.geometry.space import GLOBE
from st_common.query.complaint import Complaint
from st_common.query.crossing import corners_across
from st_common.query.neighbours import places_of
from st_common.query.plan import Plan
from st_common.query.region import Area, Box, Circle, Region

Places = npt.NDArray[np.float64]

_ORDER = "longitude first: -180 to 180, then latitude: -90 to 90"
_NAMES: dict[type[Region], str] = {
    Box: "box",
    Circle: "centre of the circle",
    Area: "area",
}


def complaints_of_places(plan: Plan) -> Iterator[Complaint]:
    """What is wrong with the regions and places of a plan that stand still, on a stream in degrees."""
    for at, region in _regions(plan):
        yield from _of_region(at, region)
    for place in places_of(plan.neighbours) if plan.neighbours is not None else ():
        if place.focal is None:
            yield from _off_earth("knn", "place", np.array([[place.x, place.y]]))


def complaints_of_plane(plan: Plan) -> Iterator[Complaint]:
    """What of a plan has a meaning in degrees alone."""
    for at, region in _regions(plan):
        if isinstance(region, Area) and corners_across(region) is not None:
            hint = "it is for streams in degrees; give the plane's own coordinates"
            yield Complaint(
                at=at, message="CROSSING 180 has no meaning on a plane", hint=hint
            )


def complaints_of_named(region: Region) -> Iterator[Complaint]:
    """What is wrong with a region that has a name alone, when nobody knows yet whether its numbers are degrees."""
    degrees = isinstance(region, Box) and not _outside(_places(region)).any()
    if isinstance(region, Box) and degrees:
        yield from _other_way("region", region)


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


def _of_region(at: str, region: Region) -> Iterator[Complaint]:
    if type(region) not in _NAMES:
        return
    yield from _off_earth(at, _NAMES[type(region)], _places(region))
    if isinstance(region, Box):
        yield from _other_way(at, region)
    if (
        isinstance(region, Area)
        and corners_across(region) is None
        and leaps(region.wkt)
    ):
        hint = "split it at 180 degrees into a MULTIPOLYGON, or give long sides more corners"
        yield Complaint(
            at=at,
            message="a side of the area is longer than 180 degrees: which way around?",
            hint=hint,
        )


def _off_earth(at: str, what: str, places: Places) -> Iterator[Complaint]:
    """The first coordinate that is none, with its value."""
    rows, columns = np.nonzero(_outside(places))
    if len(rows):
        value, name = places[rows[0], columns[0]], ("longitude", "latitude")[columns[0]]
        yield Complaint(
            at=at,
            message=f"the {what} lies off the Earth: {name} {value:.15g}",
            hint=_ORDER,
        )


def _outside(places: Places) -> npt.NDArray[np.bool_]:
    return ~(np.abs(places) <= GLOBE.farthest)


def _other_way(at: str, box: Box) -> Iterator[Complaint]:
    """Corners from east to west more than half a turn apart: who means the way over 180 degrees writes them so."""
    if box.westwards and box.maxx - box.minx > HALF_TURN:
        west, east, south, north = (
            f"{value:.15g}" for value in (box.maxx, box.minx, box.miny, box.maxy)
        )
        yield Complaint(
            at=at,
            message=f"from {west} to {east} degrees: over 180, or the other way around?",
            hint=f"({west}, {south}, {east}, {north}) CROSSING 180, or ({east}, {south}, {west}, {north})",
        )


def _places(region: Region) -> Places:
    """The corners of a region that stands still, of a circle its centre alone."""
    if isinstance(region, Box):
        return np.array([[region.minx, region.miny], [region.maxx, region.maxy]])
    if isinstance(region, Circle):
        return np.array([[region.x, region.y]])
    import shapely  # slow to import, and seldom needed

    return (
        np.asarray(shapely.get_coordinates(shapely.from_wkt(region.wkt)))
        if isinstance(region, Area)
        else np.empty((0, 2))
    )


def leaps(wkt: str) -> bool:
    """Whether a side of an area spans more than half a turn and less than a whole one, so that it has two readings.

    A side from -180 to 180 goes along the border of the map, as at the poles.
    """
    import shapely

    places, ring = shapely.get_coordinates(
        shapely.get_rings(shapely.get_parts(shapely.from_wkt(wkt))), return_index=True
    )
    sides = np.diff(places[:, 0])[np.diff(ring) == 0]
    return bool(has_two_readings(sides).any())
