"""The regions that there are, and what is asked of a region whose kind is not known yet (docs/adr/0033)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from st_common.errors import StateError
from st_common.record import values_of
from st_common.regions.area import Area
from st_common.regions.box import Box
from st_common.regions.by_extent import ByExtent
from st_common.regions.circle import Circle
from st_common.regions.combined import Complement, Intersection, Union
from st_common.regions.combining import Combined
from st_common.regions.corridor import Corridor
from st_common.regions.forecast import Forecast
from st_common.regions.moving_box import MovingBox
from st_common.regions.moving_circle import MovingCircle
from st_common.regions.moving_combined import MovingCombined, joined_region
from st_common.regions.region import Borders, Index, MovingRegion, Region, StillRegion

if TYPE_CHECKING:
    import numpy as np

    from st_common.geometry.space import Space

REGIONS: tuple[type[Region], ...] = (
    Box,
    Circle,
    Area,
    Corridor,
    MovingBox,
    MovingCircle,
    Intersection,
    Union,
    Complement,
    Forecast,
    ByExtent,
)
"""All kinds of regions as they are written; who asks for one that is not among them gets an error that names it.

AND, OR and NOT with a part that goes with an object are written as those without, and are a `MovingCombined`.
"""

_BY_NAME = {kind.kind: kind for kind in REGIONS}


def known(kind: type[Any]) -> type[Region]:
    """The kind of a region, if it is one.

    Raises:
        StateError: there is no such region in this version.
    """
    if kind in REGIONS or kind is MovingCombined:
        return kind
    raise StateError(
        f"no region of the type {kind.__name__} is known",
        hint="a newer version of Fairway registered the query: go on with that version",
    )


def region_to_json(region: Region) -> dict[str, Any]:
    """The region as JSON values with its `kind`, such as {"kind": "circle", "x": 3, "y": 4, "radius_m": 500}.

    Raises:
        StateError: it is no region of this version.
    """
    if isinstance(region, MovingCombined):
        return region_to_json(region.of)
    kind, values = known(type(region)), values_of(region)
    if isinstance(region, Combined):
        values = {name: _parts_to_json(value) for name, value in values.items()}
    return {"kind": kind.kind, **values}


def region_from_json(value: dict[str, Any]) -> Region:
    """The region that `region_to_json` gave; without a `kind` it is a box, as the first version of plans wrote it.

    Raises:
        KeyError: there is no region of that kind.
        TypeError: it has other parts.
    """
    fields = dict(value)
    kind = _BY_NAME[fields.pop("kind", "box")]
    if issubclass(kind, Combined):
        fields = {name: _parts_from_json(part) for name, part in fields.items()}
    return joined_region(kind(**fields))


def _parts_to_json(parts: Any) -> Any:
    """What a combined region is made of: one region, several, or what is said of them, which stays."""
    if isinstance(parts, Region):
        return region_to_json(parts)
    if isinstance(parts, tuple):
        return [region_to_json(part) for part in parts]
    return parts


def _parts_from_json(value: Any) -> Any:
    """What `_parts_to_json` gave."""
    if isinstance(value, dict):
        return region_from_json(value)
    if isinstance(value, list | tuple):
        return tuple(region_from_json(part) for part in value)
    return value


def has_index(kind: type[Any]) -> bool:
    """Whether regions of a type have an index.

    Those that go with an object have none, for their kind finds what lies in them, nor has no region at all (the type
    of None): whoever matches by an index looks everywhere for these.

    Raises:
        StateError: regions of this type are not known here.
    """
    return kind is not type(None) and issubclass(known(kind), StillRegion)


def still(region: object) -> StillRegion:
    """The region, which stands still.

    Raises:
        StateError: it is no region, or goes with an object.
    """
    kind = known(type(region))
    if isinstance(region, StillRegion):
        return region
    raise StateError(f"a {kind.noun} goes with an object: it has no index nor border")


def index_of(regions: Sequence[Any], *, space: "Space") -> Index:
    """An index of regions of one kind that stand still.

    Args:
        regions: at least one, all of one kind.
        space: what coordinates mean.

    Raises:
        StateError: they are no regions, or go with an object.
    """
    return type(still(regions[0])).index(regions, space=space)


def borders_of(regions: Sequence[Any], *, space: "Space") -> Borders:
    """The borders of regions of one kind that stand still.

    Args:
        regions: at least one, all of one kind.
        space: what coordinates mean.

    Raises:
        StateError: they are no regions, or go with an object.
    """
    return type(still(regions[0])).borders(regions, space=space)


def by_kind(regions: Sequence[Any]) -> dict[type[Region], list[int]]:
    """The places of regions, by kind, in their order.

    Raises:
        StateError: one of them is no region.

    Example:
        a box, a circle, a box:  {Box: [0, 2], Circle: [1]}
    """
    kinds: dict[type[Region], list[int]] = {}
    for number, region in enumerate(regions):
        kinds.setdefault(known(type(region)), []).append(number)
    return kinds


def region_mask(
    region: Region, x: "np.ndarray", y: "np.ndarray", *, space: "Space"
) -> "np.ndarray":
    """Which points lie in one region that stands still; bool[n], borders included.

    Args:
        region: the region; its index is kept for the next time.
        x: float64[n]; NaN lies nowhere. `y` likewise.
        y: see `x`.
        space: what coordinates mean.

    Raises:
        StateError: it is no region, or goes with an object.
    """
    import numpy as np  # values are also read where no kernel runs

    mask = np.zeros(len(x), bool)
    point, _ = _index_of_one(region, space=space).probe(x, y)
    mask[point] = True
    return mask


@lru_cache(maxsize=256)
def _index_of_one(region: Region, *, space: "Space") -> Index:
    """The index of a single region: ticks ask for the same ones again and again."""
    return index_of([region], space=space)


__all__ = [
    "REGIONS",
    "Area",
    "Box",
    "ByExtent",
    "Circle",
    "Combined",
    "Complement",
    "Corridor",
    "Forecast",
    "Intersection",
    "MovingBox",
    "MovingCircle",
    "MovingCombined",
    "MovingRegion",
    "Region",
    "StillRegion",
    "Union",
    "borders_of",
    "by_kind",
    "has_index",
    "index_of",
    "joined_region",
    "known",
    "region_from_json",
    "region_mask",
    "region_to_json",
    "still",
]
