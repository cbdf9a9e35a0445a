"""Layers as vector tiles: made when they are asked for, kept while there is room.

A feature is chosen, cut at the tile's edge, simplified to what can be seen, encoded. A tile is 4096 units wide and its
y points down; it has some room around it, so that lines go on over the edge.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from starlette.responses import Response

from st_common.config.home import Home
from st_common.config.parameters import Parameter
from st_common.config.values import whole
from st_common.errors import ConfigError, LayerError
from st_common.layers.table import AT_HOME, newest_version, read_rows, stored_bytes
from st_common.server.endpoint import Endpoint
from st_common.server.page.frame import Frame
from st_common.server.page.known import layer_frame
from st_common.server.parameters import AbsentError, Parameters
from st_common.written import whole_number

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Shapes = npt.NDArray[np.object_]
Key = TypeVar("Key")
Value = TypeVar("Value")

MOST_BYTES = 1 << 30
_EDGES = ("minx", "miny", "maxx", "maxy")
_NAME = "name"
WIDTH, _ROOM = 4096, 64
MOST_FEATURES = 5000
MOST_POINTS = 150_000
"""Corners of all features of a tile; the smallest features go first."""
_SEEN = 6.0  # units; what is smaller cannot be seen
_TOLERANCE = 3.0
_FARTHEST = 85.051128779806604
_POINT, _LINE, _POLYGON = 1, 2, 3
_LAYER = "features"
TILE = "application/vnd.mapbox-vector-tile"
_DEEPEST = 22
_LAYERS_BYTES, _TILES_BYTES = 1 << 30, 64 << 20
_TILE_BYTES = 200  # of an entry, beside the tile itself


@dataclass(frozen=True, slots=True, kw_only=True)
class TileLayer:
    """The features of a layer, each once.

    Attributes:
        boxes: float64[n, 4], minx, miny, maxx, maxy in the layer's coordinates.
        rows: columns fid, kind and name (null where a feature has none) and geometry (WKB).
        nbytes: of all of it.
    """

    boxes: Floats
    rows: pa.Table
    nbytes: int

    def touching(self, box: Floats) -> Ints:
        """The features whose boxes touch a box (float64[4]), by their numbers."""
        low, high = self.boxes[:, :2], self.boxes[:, 2:]
        return np.flatnonzero(
            (low <= box[2:]).all(axis=1) & (high >= box[:2]).all(axis=1)
        )


def read_tile_layer(home: Home, layer: str, version: int) -> TileLayer:
    """The features of a version of a layer.

    Raises:
        LayerError: it takes more memory than there is for a layer.
    """
    columns = ["fid", "kind", "tags", "geometry", *_EDGES]
    nbytes = stored_bytes(home, layer)
    if nbytes > MOST_BYTES:
        raise LayerError(
            f"layer {layer!r} is too large for the map: {nbytes >> 20} MiB",
            hint=f"up to {MOST_BYTES >> 20} MiB; load fewer kinds into a layer of its own",
        )
    rows = read_rows(home, layer, version, columns=columns, filters=AT_HOME)
    boxes = np.stack([rows[edge].to_numpy() for edge in _EDGES], axis=1)
    names = pc.map_lookup(rows["tags"].combine_chunks(), pa.scalar(_NAME), "first")
    kept = rows.select(["fid", "kind", "geometry"]).append_column(_NAME, names)
    return TileLayer(boxes=boxes, rows=kept, nbytes=boxes.nbytes + kept.nbytes)


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


class Recent(Generic[Key, Value]):
    """The values that were asked for last, up to some bytes; the newest stays, however large it is.

    Args:
        most_bytes: of all values.
        size_of: how many bytes a value takes.
    """

    def __init__(self, most_bytes: int, size_of: Callable[[Value], int]) -> None:
        self._most_bytes, self._size_of = most_bytes, size_of
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._nbytes = 0

    def of(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key, made where it is not there."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        value = self._values[key] = make()
        self._nbytes += self._size_of(value)
        while self._nbytes > self._most_bytes and len(self._values) > 1:
            _, old = self._values.popitem(last=False)
            self._nbytes -= self._size_of(old)
        return value


class Tiles:
    """The tiles and the layers that were looked at last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._layers: Recent[tuple[str, int], TileLayer] = Recent(
            _LAYERS_BYTES, lambda one: one.nbytes
        )
        self._tiles: Recent[tuple[object, ...], bytes] = Recent(
            _TILES_BYTES, lambda one: len(one) + _TILE_BYTES
        )

    def of(
        self, asked: Parameters, at: tuple[str, int], where: tuple[int, int, int]
    ) -> bytes:
        """A tile of a version of a layer."""
        frame = layer_frame(asked, at[0])

        def layer() -> TileLayer:
            return read_tile_layer(asked.place.home, *at)

        def make() -> bytes:
            return tile_of(self._layers.of(at, layer), frame, *where)

        with self._lock:  # one at a time: the map asks for many at once
            return self._tiles.of((*at, frame.tag, *where), make)


@Endpoint(
    "GET",
    "/page/tiles/{layer}/{z}/{x}/{y}.mvt",
    params=(Parameter("v", whole(least=0), "the version of the layer"),),
    gives=TILE,
    lane="tiles",
)
def tile(asked: Parameters) -> Response:
    """Features of a layer as a vector tile for a map; 204 where nothing lies in it.

    Of a version that was asked for it does not change.
    """
    name = asked.path["layer"]
    newest = newest_version(asked.place.home, name)
    version = asked.params.get("v", newest)
    if newest is None or version != newest:
        has = "" if newest is None else f": it is at version {newest}"
        raise AbsentError(f"there is no such layer {name!r}{has}", hint="see /layers")
    where = _place(asked)
    data = asked.kept.of(Tiles).of(asked, (name, newest), where)
    kept = "max-age=86400" if "v" in asked.params else "no-cache"
    headers = {"Cache-Control": f"private, {kept}"}
    return Response(data, 200 if data else 204, headers, media_type=TILE)


def _place(asked: Parameters) -> tuple[int, int, int]:
    """Zoom, column and row of a tile.

    Raises:
        ConfigError: there is no such tile.
    """
    parts = [asked.path[name] for name in "zxy"]
    z = whole_number(parts[0], _DEEPEST)
    x, y = (None if z is None else whole_number(one, (1 << z) - 1) for one in parts[1:])
    if z is None or x is None or y is None:
        raise ConfigError(
            f"there is no tile {'/'.join(parts)!r}", hint="zoom/column/row"
        )
    return z, x, y
