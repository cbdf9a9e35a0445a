"""One vector tile of features: chosen, cut at the tile's edge, simplified to what can be seen, encoded.

A tile is 4096 units wide and its y points down; it has some room around it, so that lines go on over the edge.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import shapely

from st_common.server.page.frame import Frame
from st_common.server.page.tile_layer import TileLayer

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]

WIDTH, _ROOM = 4096, 64
MOST_FEATURES = 5000
MOST_POINTS = 150_000
"""Corners of all features of a tile; the smallest features go first."""
_SEEN = 6.0  # units; what is smaller cannot be seen
_TOLERANCE = 3.0
_FARTHEST = 85.051128779806604
_POINT, _LINE, _POLYGON = 1, 2, 3
_LAYER = "features"


def tile_box(z: int, x: int, y: int, *, room: float = _ROOM) -> Floats:
    """West, south, east, north of a tile with its room, in degrees; float64[4]."""
    wide = 1 / (1 << z)
    more = wide * room / WIDTH
    west, east = x * wide - more, (x + 1) * wide + more
    north, south = y * wide - more, (y + 1) * wide + more
    south, north = _latitude(south), _latitude(north)
    return np.array([west * 360 - 180, south, east * 360 - 180, north])


def _latitude(down: float) -> float:
    return float(np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * down)))))


def tile_of(layer: TileLayer, frame: Frame, z: int, x: int, y: int) -> bytes:
    """The tile in the format of Mapbox; empty where nothing lies in it.

    Args:
        layer: whose features.
        frame: where the map shows them.
        z: zoom.
        x: column; y: row, from the north.
        y: see x.
    """
    box = tile_box(z, x, y)
    which = _chosen(layer, frame.back(box), frame.s * WIDTH * (1 << z) / 360)
    rows = layer.rows.take(which)
    shapes = shapely.from_wkb(rows["geometry"].to_numpy(zero_copy_only=False))
    shapes = shapely.transform(shapes, frame.placed)
    cut = _simple(_in_units(shapely.clip_by_rect(shapes, *box), z, x, y))
    kept = _not_too_many(cut)
    columns = (rows[name].to_pylist() for name in ("fid", "kind", "name"))
    told = [
        {"fid": fid, "kind": kind, "name": name}
        for fid, kind, name in zip(*columns, strict=True)
    ]
    parts = [
        part | {"id": int(which[number]), "tags": told[number]}
        for number, part in _parts(cut, kept)
    ]
    return _encoded(parts)


def _chosen(layer: TileLayer, box: Floats, scale: float) -> Ints:
    """The features of a tile: those that can be seen, the largest first, and of points those with a name."""
    which = layer.touching(box)
    boxes = layer.boxes[which]
    size = (boxes[:, 2:] - boxes[:, :2]).max(axis=1) * scale
    is_seen = (size >= _SEEN) | (size == 0)
    which, size = which[is_seen], size[is_seen]
    named = pc.is_valid(layer.rows["name"].take(which)).to_numpy()
    order: Ints = np.lexsort((which, ~named, -size))
    chosen: Ints = which[order[:MOST_FEATURES]]
    return chosen


def _in_units(shapes: Shapes, z: int, x: int, y: int) -> Shapes:
    def placed(points: Floats) -> Floats:
        across = (points[:, 0] + 180) / 360
        latitude = np.radians(np.clip(points[:, 1], -_FARTHEST, _FARTHEST))
        down = (1 - np.arcsinh(np.tan(latitude)) / np.pi) / 2
        both = np.stack([across, down], axis=1)
        return (both * (1 << z) - [x, y]) * WIDTH

    return np.asarray(shapely.transform(shapes, placed), object)


def _simple(shapes: Shapes) -> Shapes:
    """With corners on whole units, as few as show the shape."""
    simple = shapely.simplify(shapes, _TOLERANCE, preserve_topology=False)
    is_lost = shapely.is_empty(simple) | ~shapely.is_valid(simple)
    simple = np.where(is_lost, shapely.make_valid(shapes), simple)
    return np.asarray(shapely.set_precision(simple, 1.0), object)


def _not_too_many(shapes: Shapes) -> Ints:
    """The first shapes that together do not have too many corners, and are not empty."""
    corners = np.cumsum(shapely.get_num_coordinates(shapes))
    return np.flatnonzero((corners <= MOST_POINTS) & ~shapely.is_empty(shapes))


def _parts(shapes: Shapes, kept: Ints) -> Iterator[tuple[int, dict[str, Any]]]:
    """Points, lines and polygons that shapes are made of, with the numbers of their shapes."""
    parts, of = shapely.get_parts(shapes[kept], return_index=True)
    parts, again = shapely.get_parts(parts, return_index=True)  # of collections
    of, kinds = kept[of[again]], shapely.get_type_id(parts)
    parts = shapely.orient_polygons(parts)
    for number, kind, part in zip(of.tolist(), kinds.tolist(), parts, strict=True):
        if kind == shapely.GeometryType.POINT:
            yield number, {"type": _POINT, "geometry": _corners(part)}
        elif kind == shapely.GeometryType.POLYGON:
            rings = [_corners(ring) for ring in shapely.get_rings(part)]
            yield number, {"type": _POLYGON, "geometry": rings}
        else:
            yield number, {"type": _LINE, "geometry": [_corners(part)]}


def _corners(shape: shapely.Geometry) -> list[list[int]]:
    corners: list[list[int]] = (
        np.rint(shapely.get_coordinates(shape)).astype(np.int64).tolist()
    )
    return corners


def _encoded(parts: list[dict[str, Any]]) -> bytes:
    from vt2pbf import vt2pbf

    if not parts:
        return b""
    return bytes(vt2pbf({"features": parts}, layer_name=_LAYER, extend=WIDTH))
