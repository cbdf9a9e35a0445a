"""Layers as vector tiles: made when they are asked for, kept while there is room."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from starlette.responses import Response

from st_common.errors import ConfigError
from st_common.layers.announce import newest_version
from st_common.server.asked import AbsentError, Asked
from st_common.server.page.known import layer_frame
from st_common.server.page.tile_layer import TileLayer, read_tile_layer
from st_common.server.page.tile_shapes import tile_of
from st_common.written import whole_number

TILE = "application/vnd.mapbox-vector-tile"
_DEEPEST = 22
_LAYERS_BYTES, _TILES_BYTES = 1 << 30, 64 << 20
_TILE_BYTES = 200  # of an entry, beside the tile itself
Key = TypeVar("Key")
Value = TypeVar("Value")


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
        self, asked: Asked, at: tuple[str, int], where: tuple[int, int, int]
    ) -> bytes:
        """A tile of a version of a layer."""
        frame = layer_frame(asked, at[0])

        def layer() -> TileLayer:
            return read_tile_layer(asked.place.home, *at)

        def make() -> bytes:
            return tile_of(self._layers.of(at, layer), frame, *where)

        with self._lock:  # one at a time: the map asks for many at once
            return self._tiles.of((*at, frame.tag, *where), make)


def tile(asked: Asked) -> Response:
    """One tile; 204 where nothing lies in it. Of a version that was asked for it does not change."""
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


def _place(asked: Asked) -> tuple[int, int, int]:
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
