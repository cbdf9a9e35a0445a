"""Features from the files of GIS: what GDAL reads (Shapefile, GeoPackage, KML, ..), and GeoParquet."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
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
_SHAPEFILE, _FLATGEOBUF = ".shp", ".fgb"
_DELETED = ord("*")  # how the record of a deleted feature begins
_CUT = (_SHAPEFILE, ".gpkg", _FLATGEOBUF)
GDAL_SUFFIXES = (_SHAPEFILE, ".gpkg", _FLATGEOBUF, kml.SUFFIX, ".gpx", ".topojson")
PARQUET_SUFFIXES = (".parquet", ".geoparquet")
SUFFIXES = (*GDAL_SUFFIXES, *PARQUET_SUFFIXES)
_LONGITUDE_LATITUDE = "OGC:CRS84"  # what GeoParquet has where it says nothing
DEGREES = "EPSG:4326"
_GEOMETRY = "wkb_geometry"  # as GDAL calls a column that has no name
_WRITTEN_AS = {
    _SHAPEFILE: "a Shapefile",
    ".gpkg": "a GeoPackage",
    _FLATGEOBUF: "FlatGeobuf",
    kml.SUFFIX: "KML",
    ".gpx": "GPX",
    ".topojson": "TopoJSON",
    ".parquet": "GeoParquet",
    ".geoparquet": "GeoParquet",
}
_AT_ONCE = 4096  # features
# GDAL's own columns of FlatGeobuf are broken behind a feature without a geometry: other shapes, or the process ends.
pyogrio.set_gdal_config_options({"OGR_FLATGEOBUF_STREAM_BASE_IMPL": "YES"})
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


class Slice(NamedTuple):
    """Features of a file that follow each other: the place of the first, from 0, and how many there are.

    `groups` are the row groups of a Parquet file that hold them, and nothing else.
    """

    start: int
    features: int
    groups: tuple[int, ...] = ()


NOTHING = Slice(0, 0)
"""No feature: what is read of a file then is what it says of itself."""


def slices_of(file: Path, options: FileOptions, size: int) -> list[Slice]:
    """A file in slices of about so many bytes, which can be read side by side; one where it is read as a whole.

    Files are cut whose features stand in an order and name themselves: .shp, .gpkg, .fgb, .parquet and .geoparquet.

    Args:
        file: one that `read_vector` has read, if only `NOTHING` of it.
        options: which table of the file.
        size: bytes of the file for each slice.
    """
    if file.name.lower().endswith(PARQUET_SUFFIXES):
        return _by_row_groups(pq.ParquetFile(file).metadata, size)
    if _suffix(file) not in _CUT:
        return []
    layer = _one_of(_names_in(file), options.table, file)
    about = pyogrio.read_info(file, layer=layer, force_feature_count=True)
    count = int(about["features"])
    if _suffix(file) == _SHAPEFILE and _has_deleted(file):
        return []  # they have places, which count where a slice begins and not where it ends
    at_once = max(count * size // max(file.stat().st_size, 1), 1)
    return [
        Slice(start, min(at_once, count - start)) for start in range(0, count, at_once)
    ]


def _by_row_groups(metadata: pq.FileMetaData, size: int) -> list[Slice]:
    slices: list[Slice] = []
    start, room = 0, 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not slices or group.total_byte_size > room:
            slices.append(Slice(start, 0))
            room = size
        last = slices[-1]
        count = last.features + group.num_rows
        slices[-1] = Slice(last.start, count, (*last.groups, number))
        start, room = start + group.num_rows, room - group.total_byte_size
    return slices


def _has_deleted(file: Path) -> bool:
    """Whether a Shapefile's table has records that are marked as deleted; or nobody knows, for there is no table."""
    beside = file.with_suffix(".dbf")
    if not beside.is_file():
        return True
    data = np.memmap(beside, np.uint8, "r")
    header, record = (int(data[at]) + 256 * int(data[at + 1]) for at in (8, 10))
    return bool((data[header::record] == _DELETED).any())


def read_vector(
    file: Path,
    kinds: Kinds,
    options: FileOptions,
    *,
    part: Slice | None = None,
    progress: Progress | None = None,
) -> tuple[Found, str | None]:
    """The features of a file, and the system of their coordinates as pyproj understands it; None: it does not say.

    Columns become tags, as the properties of GeoJSON do, and the kind is found likewise. Heights are dropped.
    Reasons of rejects: `no_geometry`, `bad_geometry`, `bad_id` (the column of ids holds nothing).

    Args:
        file: .shp (with .shx, .dbf and .prj beside it), .gpkg, .fgb, .kml, .gpx, .topojson, .parquet or .geoparquet.
        kinds: the rules.
        options: which table of the file, and which of its columns holds ids.
        part: which of the features; None: all.
        progress: told now and then how many features were read.

    Raises:
        LayerError: the file cannot be read, has several tables or none of that name, or no column of geometries.
    """
    is_parquet = file.name.lower().endswith(PARQUET_SUFFIXES)
    try:
        table = (
            _of_parquet(file, part)
            if is_parquet
            else _of_gdal(file, options.table, part)
        )
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
    first = 1 if part is None else part.start + 1
    return _found(table, kinds, ids, progress, first=first), table.crs


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


def _of_gdal(file: Path, wanted: str | None, part: Slice | None) -> _Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rings and the like: they are judged here
        names = _names_in(file)
        if _suffix(file) == kml.SUFFIX:
            return _of_kml(file, names, wanted)
        if _suffix(file) == ".gpx":
            names = [name for name in names if _holds_lines_of(file, name)]
        bounds = {} if part is None else _bounds(part)
        layer = _one_of(names, wanted, file)
        meta, rows = pyogrio.read_arrow(file, layer=layer, **bounds)
        if _suffix(file) == _FLATGEOBUF:
            _require_whole(file, layer, rows, part)
    geometry = meta["geometry_name"] or _GEOMETRY
    is_in_degrees = _suffix(file) in _DEGREES_BY_NAME
    crs = _LONGITUDE_LATITUDE if is_in_degrees else meta["crs"]
    return _Table(rows=rows, geometry=geometry, crs=crs)


def _require_whole(file: Path, layer: str, rows: pa.Table, part: Slice | None) -> None:
    """Raises a ValueError where a FlatGeobuf ends before the features that its head counts: GDAL says nothing."""
    about = pyogrio.read_info(file, layer=layer, force_feature_count=True)
    wanted = about["features"] if part is None else part.features
    if len(rows) < wanted:
        raise ValueError(f"{len(rows)} of {wanted} features")


def _names_in(file: Path) -> list[str]:
    """The tables of a file that have geometries."""
    return [str(name) for name, kind in pyogrio.list_layers(file) if kind]


def _bounds(part: Slice) -> dict[str, int]:
    """A slice as GDAL is told of it."""
    return {"skip_features": part.start, "max_features": part.features}


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


def _of_parquet(file: Path, part: Slice | None) -> _Table:
    """A GeoParquet file: its metadata name the column of geometries and their system.

    Raises:
        LayerError: it has no such metadata, or geometries that are not WKB.
    """
    opened = pq.ParquetFile(file)
    groups = range(opened.num_row_groups) if part is None else part.groups
    rows = opened.read_row_groups(list(groups))
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
    table: _Table,
    kinds: Kinds,
    ids: str | None,
    progress: Progress | None,
    *,
    first: int,
) -> Found:
    found = Found(notes=list(table.notes))
    rows = enumerate(_rows(table), start=first)
    for number, (row, geometry, kind_of_geometry) in rows:
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
