"""Queries whose region lies where no object of their stream is: often x and y are exchanged."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.geometry.extent import Box, extent_of_rows
from st_common.query.control import QueryRow
from st_common.regions.region import StillRegion

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


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
    still: dict[tuple[str, type[StillRegion]], list[tuple[str, StillRegion]]] = {}
    for row in rows:
        region = row.plan.inside if row.plan is not None else None
        if row.stream in streams and isinstance(region, StillRegion):
            still.setdefault((row.stream, type(region)), []).append((row.name, region))
    extents = {stream: _extent(home, stream) for stream, _ in still}
    for (stream, kind), named in still.items():
        extent = extents[stream]
        if extent is None:
            continue
        regions = [region for _, region in named]
        boxes = kind.bounds(regions, space=streams[stream].space)
        exchanged = _meet(boxes[:, [1, 0, 3, 2]], extent)
        for place in np.flatnonzero(~_meet(boxes, extent)).tolist():
            yield FarRegion(
                query=named[place][0],
                stream=stream,
                extent=extent,
                is_exchanged=bool(exchanged[place]),
            )


def said(one: FarRegion) -> str:
    """A far region for people."""
    x1, y1, x2, y2 = one.extent
    where = f"x {x1:.10g} to {x2:.10g}, y {y1:.10g} to {y2:.10g}"
    away = f"the region of {one.query} lies away from all objects of {one.stream} ({where})"
    return f"{away}: are x and y exchanged?" if one.is_exchanged else away


def _meet(boxes: Floats, extent: Box) -> Bools:
    """Which boxes (float64[n, 4]) have a point in common with an extent."""
    low, high = np.array(extent[:2]), np.array(extent[2:])
    beside = (boxes[:, :2] <= high) & (boxes[:, 2:] >= low)
    return np.asarray(beside.all(axis=1), np.bool_)


def _extent(home: Home, stream: str) -> Box | None:
    path = home.table("latest", stream)
    if not tables.exists(path):
        return None
    return extent_of_rows(tables.read(path, columns=["x", "y"]))
