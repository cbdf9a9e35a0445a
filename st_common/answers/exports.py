"""Rows with places as files that other programs read: GeoJSON, Parquet and GeoParquet."""

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np
import pyarrow as pa
import shapely

from st_common.answers.json_rows import json_line
from st_common.config.columns import GEOMETRY
from st_common.crs import WGS84
from st_common.errors import ConfigError

_VERSION = "1.1.0"
_ROWS = 10_000  # written at a time
_KINDS = (
    "Point",
    "LineString",
    "LinearRing",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    "GeometryCollection",
)  # by shapely's numbers


def write_parquet(rows: pa.Table, out: IO[bytes]) -> None:
    """Writes rows as they are, `x` and `y` among them."""
    import pyarrow.parquet as pq

    pq.write_table(rows, out)


def write_geoparquet(rows: pa.Table, out: IO[bytes], *, epsg: int) -> None:
    """Writes rows as GeoParquet 1.1: a column `geometry` (WKB) of points in the place of `x` and `y`, or of shapes.

    Args:
        rows: with `x` and `y`; a row without them has no geometry. With `geometry` (WKT) that is written, and `x` and
            `y` stay.
        out: where to.
        epsg: of the coordinates; 0 for a plane without a place on Earth, whose CRS is unknown.
    """
    import pyarrow.parquet as pq

    shapes, table = shapes_of(rows), others_of(rows)
    table = table.append_column(GEOMETRY, pa.array(shapely.to_wkb(shapes), pa.binary()))
    known = shapes[~shapely.is_missing(shapes)]
    about: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": _kinds(known),
        "crs": _projjson(epsg),
    }
    if len(known):
        about["bbox"] = shapely.total_bounds(known).tolist()
    geo = {
        "version": _VERSION,
        "primary_column": GEOMETRY,
        "columns": {GEOMETRY: about},
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
    """Writes rows as one GeoJSON collection in longitude and latitude: a point each, all other columns its properties.

    Args:
        rows: with `x` and `y`; a row without them has the geometry null. With `geometry` (WKT) that is written, and `x`
            and `y` are properties.
        out: where to.
        epsg: of the coordinates, which are converted.

    Raises:
        ConfigError: the coordinates have no place on Earth.
    """
    require_on_earth(epsg)
    shapes, others = on_earth(shapes_of(rows), epsg), others_of(rows)
    out.write(b'{"type": "FeatureCollection", "features": [')
    between = b"\n"
    for start in range(0, len(others), _ROWS):
        part = others.slice(start, _ROWS).to_pylist()
        ends = slice(start, start + len(part))
        lines = _features(part, shapes[ends])
        out.write(between + b",\n".join(lines))
        between = b",\n"
    out.write(b"\n]}\n")


def _features(rows: list[dict[str, Any]], shapes: np.ndarray) -> Iterator[bytes]:
    for row, written in zip(rows, shapely.to_geojson(shapes), strict=True):
        feature = {
            "type": "Feature",
            "geometry": None if written is None else json.loads(written),
            "properties": _properties(row),
        }
        yield json_line(feature).encode()


def _properties(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with what its query selects as an object, and not as a text of one."""
    fields = row.get("fields")
    return {**row, "fields": json.loads(fields)} if fields else dict(row)


def shapes_of(rows: pa.Table) -> np.ndarray:
    """The geometry of each row, None where there is none: as it is written, else the point of x and y."""
    if GEOMETRY in rows.column_names:
        texts = rows[GEOMETRY].to_numpy(zero_copy_only=False)
        return np.asarray(shapely.from_wkt(texts), object)
    x, y = (rows[name].to_numpy().astype(np.float64) for name in "xy")
    shapes = np.full(len(x), None, object)
    known = ~np.isnan(x)
    shapes[known] = shapely.points(x[known], y[known])
    return shapes


def _kinds(shapes: np.ndarray) -> list[str]:
    """The kinds of some geometries, as GeoParquet calls them; points where there are none."""
    pairs = np.stack([shapely.get_type_id(shapes), shapely.has_z(shapes)], axis=1)
    kinds = np.unique(pairs.astype(np.int64), axis=0).tolist()
    return [f"{_KINDS[kind]}{' Z' * has_z}" for kind, has_z in kinds] or ["Point"]


def others_of(rows: pa.Table) -> pa.Table:
    """All columns but those of the geometry."""
    own = [GEOMETRY] if GEOMETRY in rows.column_names else ["x", "y"]
    return rows.drop_columns(own)


def on_earth(shapes: np.ndarray, epsg: int) -> np.ndarray:
    """Geometries in longitude and latitude, to nine digits behind the point."""
    from pyproj import Transformer

    change = Transformer.from_crs(epsg, WGS84, always_xy=True)

    def moved(places: np.ndarray) -> np.ndarray:
        if epsg != WGS84:
            places[:, :2] = np.column_stack(change.transform(*places[:, :2].T))
        return places.round(9)

    return shapely.transform(shapes, moved, include_z=bool(shapely.has_z(shapes).any()))


def _projjson(epsg: int) -> dict[str, Any] | None:
    if epsg == 0:
        return None
    from pyproj import CRS

    described: dict[str, Any] = CRS.from_epsg(epsg).to_json_dict()
    return described
