"""Queries for the nearest objects (SPEC G5, G8)."""

from dataclasses import dataclass
from typing import Any, Literal

from st_common.record import values_of
from st_common.regions.by_extent import Extent

Total = Literal["sum", "max", "min"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A point of the plane, or with `focal` wherever that object is; x and y mean nothing then."""

    x: float = 0.0
    y: float = 0.0
    focal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The `k` objects that are nearest to a place; of equally far ones those whose id comes first as text.

    With an `extent` the nearest point of each element counts, on a stream whose elements are of that kind.
    """

    k: int
    place: Place
    extent: Extent = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverseNearest:
    """The objects to which no other object is nearer than the place is: it is (one of) their nearest neighbours."""

    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNearest:
    """The `k` objects with the least sum, maximum or minimum of distances to several places; ties as in `Nearest`."""

    k: int
    total: Total
    places: tuple[Place, ...]


Neighbours = Nearest | ReverseNearest | GroupNearest

_KINDS: dict[str, type[Any]] = {
    "nearest": Nearest,
    "reverse": ReverseNearest,
    "group": GroupNearest,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def kind_of(neighbours: Neighbours) -> str:
    """What the kind is called in JSON, and where it is judged: `nearest`, `reverse` or `group`."""
    return _NAMES[type(neighbours)]


def places_of(neighbours: Neighbours) -> tuple[Place, ...]:
    """The places that distances are measured from."""
    return (
        neighbours.places
        if isinstance(neighbours, GroupNearest)
        else (neighbours.place,)
    )


def neighbours_to_json(neighbours: Neighbours) -> dict[str, Any]:
    """As JSON values with the `kind`."""
    value = {"kind": kind_of(neighbours), **values_of(neighbours)}
    if isinstance(neighbours, GroupNearest):
        value["places"] = [values_of(place) for place in neighbours.places]
    else:
        value["place"] = values_of(neighbours.place)
    return value


def neighbours_from_json(value: dict[str, Any]) -> Neighbours:
    """What `neighbours_to_json` gave."""
    fields = dict(value)
    kind = _KINDS[fields.pop("kind")]
    if "places" in fields:
        fields["places"] = tuple(Place(**place) for place in fields["places"])
    else:
        fields["place"] = Place(**fields["place"])
    neighbours: Neighbours = kind(**fields)
    return neighbours
