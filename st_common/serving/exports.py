"""Rows with places as files that other programs read: GeoJSON, Parquet and GeoParquet."""

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.crs import WGS84
from st_common.errors import ConfigError
from st_common.serving.json_rows import json_line

_VERSION = "1.1.0"
_GEOMETRY = "geometry"
_WKB_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
_ROWS = 10_000  # written at a time


def write_parquet(rows: pa.Table, out: IO[bytes]) -> None:
    """Writes rows as they are, `x` and `y` among them."""
    import pyarrow.parquet as pq

    pq.write_table(rows, out)


def write_geoparquet(rows: pa.Table, out: IO[bytes], *, epsg: int) -> None:
    """Writes rows as GeoParquet 1.1: a column `geometry` of points (WKB) in the place of `x` and `y`.

    Args:
        rows: with `x` and `y`; a row without them has no geometry.
        out: where to.
        epsg: of the coordinates; 0 for a plane without a place on Earth, whose CRS is unknown.
    """
    import pyarrow.parquet as pq

    x, y = _places(rows)
    table = rows.drop_columns(["x", "y"]).append_column(_GEOMETRY, _wkb(x, y))
    about: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": ["Point"],
        "crs": _projjson(epsg),
    }
    known = ~np.isnan(x)
    if known.any():
        edges = (x[known].min(), y[known].min(), x[known].max(), y[known].max())
        about["bbox"] = [float(edge) for edge in edges]
    geo = {
        "version": _VERSION,
        "primary_column": _GEOMETRY,
        "columns": {_GEOMETRY: about},
    }
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), out)


def require_on_earth(epsg: int) -> None:
    """Nothing, when GeoJSON can say where coordinates are.

    Raises:
        ConfigError: they are on a plane without a place on Earth.
    """
    if epsg == 0:
        raise ConfigError(
            "the stream's plane has no place on Earth, and GeoJSON is in longitude and latitude",
            hint="--format geoparquet keeps coordinates as they are",
        )


def write_geojson(rows: pa.Table, out: IO[bytes], *, epsg: int) -> None:
    """Writes rows as one GeoJSON collection: a point each, in longitude and latitude, all other columns its properties.

    Args:
        rows: with `x` and `y`; a row without them has the geometry null.
        out: where to.
        epsg: of the coordinates, which are converted.

    Raises:
        ConfigError: the coordinates have no place on Earth.
    """
    require_on_earth(epsg)
    longitude, latitude = _on_earth(*_places(rows), epsg)
    others = rows.drop_columns(["x", "y"])
    out.write(b'{"type": "FeatureCollection", "features": [')
    between = b"\n"
    for start in range(0, len(others), _ROWS):
        part = others.slice(start, _ROWS).to_pylist()
        ends = slice(start, start + len(part))
        lines = _features(part, longitude[ends], latitude[ends])
        out.write(between + b",\n".join(lines))
        between = b",\n"
    out.write(b"\n]}\n")


def _features(
    rows: list[dict[str, Any]], longitude: np.ndarray, latitude: np.ndarray
) -> Iterator[bytes]:
    for row, x, y in zip(rows, longitude.tolist(), latitude.tolist(), strict=True):
        known = {"type": "Point", "coordinates": [round(x, 9), round(y, 9)]}
        feature = {
            "type": "Feature",
            "geometry": None if np.isnan(x) else known,
            "properties": _properties(row),
        }
        yield json_line(feature).encode()


def _properties(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with what its query selects as an object, and not as a text of one."""
    fields = row.get("fields")
    return {**row, "fields": json.loads(fields)} if fields else dict(row)


def _places(rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    x, y = (rows[name].to_numpy().astype(np.float64) for name in "xy")
    return x, y


def _on_earth(x: np.ndarray, y: np.ndarray, epsg: int) -> tuple[np.ndarray, np.ndarray]:
    if epsg == WGS84:
        return x, y
    from pyproj import Transformer

    known = ~np.isnan(x)
    longitude, latitude = x.copy(), y.copy()
    change = Transformer.from_crs(epsg, WGS84, always_xy=True)
    longitude[known], latitude[known] = change.transform(x[known], y[known])
    return longitude, latitude


def _wkb(x: np.ndarray, y: np.ndarray) -> pa.Array:
    """Points as WKB, null where there is none."""
    points = np.zeros(len(x), _WKB_POINT)
    points["order"], points["kind"], points["x"], points["y"] = 1, 1, x, y
    data = pa.py_buffer(points.tobytes())
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_WKB_POINT.itemsize), len(x), [None, data]
    )
    missing = pa.array(np.isnan(x))
    nothing = pa.scalar(None, pa.binary())
    return pc.if_else(missing, nothing, fixed.cast(pa.binary()))


def _projjson(epsg: int) -> dict[str, Any] | None:
    if epsg == 0:
        return None
    from pyproj import CRS

    described: dict[str, Any] = CRS.from_epsg(epsg).to_json_dict()
    return described
