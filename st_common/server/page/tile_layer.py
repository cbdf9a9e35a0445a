"""A version of a layer as tiles are made from it: where each feature lies, and its shape as bytes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.errors import LayerError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_BYTES = 1 << 30
_EDGES = ("minx", "miny", "maxx", "maxy")
_NAME = "name"


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
    path = home.table("layers", layer)
    columns = ["fid", "kind", "tags", "geometry", *_EDGES]
    _, stored_bytes = tables.stored(path)
    if stored_bytes > MOST_BYTES:
        raise LayerError(
            f"layer {layer!r} is too large for the map: {stored_bytes >> 20} MiB",
            hint=f"up to {MOST_BYTES >> 20} MiB; load fewer kinds into a layer of its own",
        )
    rows = tables.read(
        path, version=version, columns=columns, filters=[("home", "=", True)]
    )
    boxes = np.stack([rows[edge].to_numpy() for edge in _EDGES], axis=1)
    names = pc.map_lookup(rows["tags"].combine_chunks(), pa.scalar(_NAME), "first")
    kept = rows.select(["fid", "kind", "geometry"]).append_column(_NAME, names)
    return TileLayer(boxes=boxes, rows=kept, nbytes=boxes.nbytes + kept.nbytes)
