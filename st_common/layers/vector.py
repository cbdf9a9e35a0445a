"""Features from the files of GIS: what GDAL reads (Shapefile, GeoPackage, KML, ..), and GeoParquet."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyogrio
import shapely

from st_common.errors import LayerError
from st_common.layers import kml
from st_common.layers.features import Found, Progress
from st_common.layers.kinds import Kinds, tags_of
from st_common.layers.options import FileOptions

_DEGREES_BY_NAME = (".topojson",)  # GDAL gives them no system: RFC 7946 does
_OWN_IDS = {kml.SUFFIX: ("name", "id"), ".gpx": ("name",), ".topojson": ("id",)}
"""Columns that name features where all of their values differ, by the ends of files."""
_POINTS_OF_GPX = ("route_points", "track_points")  # of lines that are there as wholes
GDAL_SUFFIXES = (".shp", ".gpkg", ".fgb", kml.SUFFIX, ".gpx", ".topojson")
PARQUET_SUFFIXES = (".parquet", ".geoparquet")
SUFFIXES = (*GDAL_SUFFIXES, *PARQUET_SUFFIXES)
_LONGITUDE_LATITUDE = "OGC:CRS84"  # what GeoParquet has where it says nothing
DEGREES = "EPSG:4326"
_GEOMETRY = "wkb_geometry"  # as GDAL calls a column that has no name
_WRITTEN_AS = {
    ".shp": "a Shapefile",
    ".gpkg": "a GeoPackage",
    ".fgb": "FlatGeobuf",
    kml.SUFFIX: "KML",
    ".gpx": "GPX",
    ".topojson": "TopoJSON",
    ".parquet": "GeoParquet",
    ".geoparquet": "GeoParquet",
}
_AT_ONCE = 4096  # features
_BROKEN = (RuntimeError, ValueError, OSError, pa.ArrowException)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The features of a file as columns: `geometry` is the name of the one with WKB, `crs` what the file says of it.

    `ids` names the column of ids, `notes` what people should know.
    """

    rows: pa.Table
    geometry: str
    crs: str | None
    ids: str | None = None
    notes: tuple[str, ...] = ()


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
        file: .shp (with .shx, .dbf and .prj beside it), .gpkg, .fgb, .kml, .gpx, .topojson, .parquet or .geoparquet.
        kinds: the rules.
        options: which table of the file, and which of its columns holds ids.
        progress: told now and then how many features were read.

    Raises:
        LayerError: the file cannot be read, has several tables or none of that name, or no column of geometries.
    """
    is_parquet = file.name.lower().endswith(PARQUET_SUFFIXES)
    try:
        table = _of_parquet(file) if is_parquet else _of_gdal(file, options.table)
    except _BROKEN:
        raise LayerError(
            f"{file} cannot be read as {_WRITTEN_AS[_suffix(file)]}",
            hint="is the file complete, and is it what its name says? ogrinfo -al FILE looks into it",
        ) from None
    if options.ids is None:
        table = _with_own_ids(table, _OWN_IDS.get(_suffix(file), ()))
    elif options.ids not in table.rows.column_names:
        known = ", ".join(n for n in table.rows.column_names if n != table.geometry)
        raise LayerError(
            f"{file} has no column {options.ids!r} of ids", hint=f"it has {known}"
        )
    ids = options.ids or table.ids
    return _found(table, kinds, ids, progress), table.crs


def _suffix(file: Path) -> str:
    return file.suffix.lower()


def _with_own_ids(table: _Table, names: tuple[str, ...]) -> _Table:
    """The table with the first of some columns as ids whose values are all there and differ, and a word about it."""
    present = [name for name in names if name in table.rows.column_names]
    for name in present:
        values = pc.utf8_trim_whitespace(table.rows[name].cast(pa.string()))
        is_whole = not values.null_count and not pc.any(pc.equal(values, "")).as_py()
        if (
            len(values)
            and is_whole
            and pc.count_distinct(values).as_py() == len(values)
        ):
            note = f"ids are those of {name}; --id names another column"
            return replace(table, ids=name, notes=(*table.notes, note))
    if not present or not len(table.rows):
        return table
    note = f"ids are #1, #2, ..: values of {present[0]} repeat or are missing"
    return replace(table, notes=(*table.notes, note))


def _of_gdal(file: Path, wanted: str | None) -> _Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rings and the like: they are judged here
        names = [str(name) for name, kind in pyogrio.list_layers(file) if kind]
        if _suffix(file) == kml.SUFFIX:
            return _of_kml(file, names, wanted)
        if _suffix(file) == ".gpx":
            names = [name for name in names if _holds_lines_of(file, name)]
        meta, rows = pyogrio.read_arrow(file, layer=_one_of(names, wanted, file))
    geometry = meta["geometry_name"] or _GEOMETRY
    is_in_degrees = _suffix(file) in _DEGREES_BY_NAME
    crs = _LONGITUDE_LATITUDE if is_in_degrees else meta["crs"]
    return _Table(rows=rows, geometry=geometry, crs=crs)


def _holds_lines_of(file: Path, table: str) -> bool:
    """Whether a table of a GPX file has features, and others than the points of its lines."""
    about = pyogrio.read_info(file, layer=table, force_feature_count=True)
    return table not in _POINTS_OF_GPX and about["features"] > 0


def _of_kml(file: Path, folders: list[str], wanted: str | None) -> _Table:
    """The placemarks of all folders, or of one."""
    notes = kml.require_coordinates(file)
    names = folders if wanted is None else [_one_of(folders, wanted, file)]
    tables = {name: pyogrio.read_arrow(file, layer=name)[1] for name in names}
    if not tables:
        raise LayerError(f"{file} has no placemark")
    rows = kml.joined(tables, _GEOMETRY)
    there = kml.placemarks(file)
    if wanted is None and len(rows) < there:
        notes.append(f"{there - len(rows)} of {there} placemarks cannot be read")
    return _Table(rows=rows, geometry=_GEOMETRY, crs=DEGREES, notes=tuple(notes))


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
    found = Found(notes=list(table.notes))
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
