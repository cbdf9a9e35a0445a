"""Features from the vector files of GIS: Shapefile, GeoPackage and FlatGeobuf (read by GDAL), and GeoParquet."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import shapely

from st_common.errors import LayerError
from st_common.layers.features import Found, Progress
from st_common.layers.kinds import Kinds, tags_of
from st_common.layers.options import FileOptions

GDAL_SUFFIXES = (".shp", ".gpkg", ".fgb")
PARQUET_SUFFIXES = (".parquet", ".geoparquet")
SUFFIXES = (*GDAL_SUFFIXES, *PARQUET_SUFFIXES)
_LONGITUDE_LATITUDE = "OGC:CRS84"  # what GeoParquet has where it says nothing
_AT_ONCE = 4096  # features
_BROKEN = (RuntimeError, ValueError, OSError, pa.ArrowException)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The features of a file as columns: `geometry` is the name of the one with WKB, `crs` what the file says of it."""

    rows: pa.Table
    geometry: str
    crs: str | None


def read_vector(
    file: Path,
    kinds: Kinds,
    options: FileOptions,
    *,
    progress: Progress | None = None,
) -> tuple[Found, str | None]:
    """The features of a file, and the system of their coordinates as pyproj understands it; None: it does not say.

    Columns become tags, as the properties of GeoJSON do, and the kind is found likewise. Heights are dropped.
    Reasons of rejects: `no_geometry`, `bad_geometry`, `bad_id` (the column of ids holds nothing).

    Args:
        file: .shp (with .shx, .dbf and .prj beside it), .gpkg, .fgb, .parquet or .geoparquet.
        kinds: the rules.
        options: which table of the file, and which of its columns holds ids.
        progress: told now and then how many features were read.

    Raises:
        LayerError: the file cannot be read, has several tables or none of that name, or no column of geometries.
    """
    is_parquet = file.name.lower().endswith(PARQUET_SUFFIXES)
    try:
        table = _of_parquet(file) if is_parquet else _of_gdal(file, options.table)
    except _BROKEN as error:
        message = " ".join(str(error).split()) or type(error).__name__
        raise LayerError(
            f"{file} cannot be read: {message}", hint="is the file complete?"
        ) from None
    if options.ids is not None and options.ids not in table.rows.column_names:
        known = ", ".join(n for n in table.rows.column_names if n != table.geometry)
        raise LayerError(
            f"{file} has no column {options.ids!r} of ids", hint=f"it has {known}"
        )
    return _found(table, kinds, options.ids, progress), table.crs


def _of_gdal(file: Path, wanted: str | None) -> _Table:
    names = [str(name) for name, kind in pyogrio.list_layers(file) if kind is not None]
    meta, rows = pyogrio.read_arrow(file, layer=_one_of(names, wanted, file))
    geometry = meta["geometry_name"] or "wkb_geometry"
    return _Table(rows=rows, geometry=geometry, crs=meta["crs"])


def _one_of(names: list[str], wanted: str | None, file: Path) -> str:
    """The table to read, of those that have geometries.

    Raises:
        LayerError: there is none, or several and none is named.
    """
    if not names:
        raise LayerError(f"{file} has no table with geometries")
    if wanted is None and len(names) > 1:
        raise LayerError(
            f"{file} has several tables: {', '.join(names)}",
            hint="--table says which one",
        )
    if wanted is not None and wanted not in names:
        raise LayerError(
            f"{file} has no table {wanted!r}", hint=f"it has {', '.join(names)}"
        )
    return wanted or names[0]


def _of_parquet(file: Path) -> _Table:
    """A GeoParquet file: its metadata name the column of geometries and their system.

    Raises:
        LayerError: it has no such metadata, or geometries that are not WKB.
    """
    rows = pq.read_table(file)
    said = json.loads((rows.schema.metadata or {}).get(b"geo", b"{}"))
    geometry = said.get("primary_column")
    about = said.get("columns", {}).get(geometry, {})
    if geometry not in rows.column_names or about.get("encoding") != "WKB":
        raise LayerError(
            f"{file} is no GeoParquet with geometries as WKB",
            hint="its metadata `geo` names the column and its encoding",
        )
    crs = about.get("crs", _LONGITUDE_LATITUDE)
    said_crs = crs if crs is None or isinstance(crs, str) else json.dumps(crs)
    return _Table(rows=rows, geometry=geometry, crs=said_crs)


def _found(
    table: _Table, kinds: Kinds, ids: str | None, progress: Progress | None
) -> Found:
    found = Found()
    for number, (row, geometry, kind_of_geometry) in enumerate(_rows(table), start=1):
        found.wanted += 1
        fid = f"#{number}" if ids is None else _text(row[ids])
        if geometry is None:
            found.reject("no_geometry", fid, number)
        elif kind_of_geometry is None:
            found.reject("bad_geometry", fid, number)
        elif not fid:
            found.reject("bad_id", fid, number)
        else:
            tags = tags_of(row)
            kind = kinds.named_or_of(tags, kind_of_geometry)
            found.add(fid, kind, tags, geometry, number)
        if progress and number % _AT_ONCE == 0:
            progress("reading", len(found.fids))
    return found


def _rows(table: _Table) -> Iterator[tuple[dict[str, Any], bytes | None, str | None]]:
    """The properties of each feature, its WKB in two dimensions, and the type of its geometry; None: it is broken."""
    others = [name for name in table.rows.column_names if name != table.geometry]
    for start in range(0, len(table.rows), _AT_ONCE):
        part = table.rows.slice(start, _AT_ONCE)
        texts = part[table.geometry].to_numpy(zero_copy_only=False)
        built = shapely.from_wkb(texts, on_invalid="ignore")
        flat = shapely.to_wkb(shapely.force_2d(built))
        types = [None if one is None else one.geom_type for one in built]
        given = [
            None if text is None else out or b""
            for text, out in zip(texts, flat, strict=True)
        ]
        rows = part.select(others).to_pylist() if others else [{} for _ in given]
        yield from zip(rows, given, types, strict=True)


def _text(value: Any) -> str:
    """An id as text; "" for none."""
    return "" if value is None else str(value).strip()
