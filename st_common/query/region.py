"""Where a query looks: regions that stand still, and regions that go with an object (GPAC section 5, SPEC G4)."""

from dataclasses import dataclass, field
from typing import Any

from st_common.query.record import values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A closed rectangle in the stream's CRS; `minx <= maxx` and `miny <= maxy`."""

    minx: float
    miny: float
    maxx: float
    maxy: float
    westwards: bool = field(
        default=False, compare=False, repr=False
    )  # how corners were given: no part of the value

    @staticmethod
    def of_corners(x1: float, y1: float, x2: float, y2: float) -> "Box":
        """The box between two corners, given in either order; it may have no extent (GPAC, spec G4)."""
        return Box(
            minx=min(x1, x2),
            miny=min(y1, y2),
            maxx=max(x1, x2),
            maxy=max(y1, y2),
            westwards=x1 > x2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """All points within `radius_m` of a centre, closed; metres are geodesic on longitude and latitude."""

    x: float
    y: float
    radius_m: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A polygon or multipolygon as canonical WKT in the stream's CRS; its border belongs to it."""

    wkt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingBox:
    """A closed rectangle centred on an object; `width` and `height` are full side lengths (GPAC `('M', id, x, y)`).

    They are in the stream's coordinates, or with `metres` in metres.
    """

    focal: str
    width: float
    height: float
    metres: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingCircle:
    """All points within `radius_m` of an object, closed (`('M', id, radius)`)."""

    focal: str
    radius_m: float


Region = Box | Circle | Area | MovingBox | MovingCircle

_KINDS: dict[str, type[Any]] = {
    "box": Box,
    "circle": Circle,
    "area": Area,
    "moving_box": MovingBox,
    "moving_circle": MovingCircle,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def region_to_json(region: Region) -> dict[str, Any]:
    """The region as JSON values with its `kind`."""
    return {"kind": _NAMES[type(region)], **values_of(region)}


def region_from_json(value: dict[str, Any]) -> Region:
    """The region that `region_to_json` gave; without a `kind` it is a box, as the first version of plans wrote it."""
    fields = dict(value)
    region: Region = _KINDS[fields.pop("kind", "box")](**fields)
    return region
