"""Which points lie in regions that stand still: an index for each type of region (SPEC P8)."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from st_common.errors import StateError
from st_common.geometry.areas import AreaIndex
from st_common.geometry.circles import CircleIndex
from st_common.geometry.grid import BoxIndex
from st_common.geometry.space import Space
from st_common.query.plan import Region
from st_common.query.region import Area, Box, Circle, MovingBox, MovingCircle

Index = BoxIndex | CircleIndex | AreaIndex


def _boxes(boxes: list[Box], *, space: Space) -> Index:  # noqa: ARG001 - one signature for all
    columns = (
        [b.minx for b in boxes],
        [b.miny for b in boxes],
        [b.maxx for b in boxes],
        [b.maxy for b in boxes],
    )
    return BoxIndex(np.array(columns, float).T)


def _circles(circles: list[Circle], *, space: Space) -> Index:
    x, y, radius_m = (
        np.array([getattr(c, name) for c in circles], float)
        for name in ("x", "y", "radius_m")
    )
    return CircleIndex(x, y, radius_m, space=space)


def _areas(areas: list[Area], *, space: Space) -> Index:  # noqa: ARG001 - one signature for all
    return AreaIndex([area.wkt for area in areas])


_INDEX: dict[type, Callable[..., Index]] = {Box: _boxes, Circle: _circles, Area: _areas}


_MOVING: tuple[type, ...] = (MovingBox, MovingCircle)


def has_index(kind: type) -> bool:
    """Whether regions of a type have an index.

    Those that go with an object have none, for their kind finds what lies in them, nor has no region at all (the type
    of None): whoever matches by an index looks everywhere for these.

    Raises:
        StateError: regions of this type are not known here.
    """
    if kind in _INDEX:
        return True
    if kind is type(None) or kind in _MOVING:
        return False
    raise StateError(
        f"no index for regions of the type {kind.__name__} is known",
        hint="a newer version of Fairway registered the query: go on with that version",
    )


def index_of(regions: Sequence[Any], *, space: Space) -> Index:
    """An index of regions of one type that stand still."""
    return _INDEX[type(regions[0])](regions, space=space)


def region_mask(
    region: Region, x: np.ndarray, y: np.ndarray, *, space: Space
) -> np.ndarray:
    """Which points lie in one region that stands still; bool[n]."""
    mask = np.zeros(len(x), bool)
    point, _ = _index_of_one(region, space=space).probe(x, y)
    mask[point] = True
    return mask


@lru_cache(maxsize=256)
def _index_of_one(region: Region, *, space: Space) -> Index:
    """The index of a single region: ticks ask for the same ones again and again."""
    return index_of([region], space=space)
