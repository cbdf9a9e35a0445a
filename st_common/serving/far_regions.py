"""Queries whose region lies where no object of their stream is: often x and y are exchanged."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from st_common import tables
from st_common.home import Home
from st_common.query.control import QueryRow
from st_common.regions.region import StillRegion
from st_common.settings import StreamSettings

if TYPE_CHECKING:
    from st_common.geometry.space import Space

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FarRegion:
    """A region that is away from all objects.

    Attributes:
        query: its name.
        stream: likewise.
        extent: where objects were last: minx, miny, maxx, maxy.
        is_exchanged: whether it would lie there with x and y exchanged.
    """

    query: str
    stream: str
    extent: Box
    is_exchanged: bool


def far_regions(
    home: Home, streams: Mapping[str, StreamSettings], rows: Iterable[QueryRow]
) -> Iterator[FarRegion]:
    """Those among queries that were just registered whose region stands still and meets no part of the extent.

    The extent is that of the table `latest`; streams without it are left out.

    Args:
        home: the home folder.
        streams: the settings; other streams are left out.
        rows: control rows that were just written, of any kind.
    """
    extents: dict[str, Box | None] = {}
    for row in rows:
        region = row.plan.inside if row.plan is not None else None
        if row.stream not in streams or not isinstance(region, StillRegion):
            continue
        if row.stream not in extents:
            extents[row.stream] = _extent(home, row.stream)
        extent = extents[row.stream]
        box = _box_of(region, streams[row.stream].space)
        if extent is None or _meet(box, extent):
            continue
        x1, y1, x2, y2 = box
        yield FarRegion(
            query=row.name,
            stream=row.stream,
            extent=extent,
            is_exchanged=_meet((y1, x1, y2, x2), extent),
        )


def said(one: FarRegion) -> str:
    """A far region for people."""
    x1, y1, x2, y2 = one.extent
    where = f"x {x1:.10g} to {x2:.10g}, y {y1:.10g} to {y2:.10g}"
    away = f"the region of {one.query} lies away from all objects of {one.stream} ({where})"
    return f"{away}: are x and y exchanged?" if one.is_exchanged else away


def _box_of(region: StillRegion, space: "Space") -> Box:
    x1, y1, x2, y2 = type(region).bounds([region], space=space)[0].tolist()
    return x1, y1, x2, y2


def _meet(one: Box, other: Box) -> bool:
    is_beside = one[0] <= other[2] and other[0] <= one[2]
    return is_beside and one[1] <= other[3] and other[1] <= one[3]


def _extent(home: Home, stream: str) -> Box | None:
    path = home.table("latest", stream)
    if not tables.exists(path):
        return None
    places = tables.read(path, columns=["x", "y"])
    x, y = (pc.min_max(places[name]).as_py() for name in ("x", "y"))
    sides = (x["min"], y["min"], x["max"], y["max"])
    return None if None in sides else sides
