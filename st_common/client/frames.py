"""Frames of pandas, Polars, GeoPandas and Arrow as Parquet, whose places are columns that a stream can have."""

import json
import re
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from st_common.errors import ConfigError

_WHOLE = ("geoarrow.wkb", "ogc.wkb", "geoarrow.wkt")
_POINTS = "geoarrow.point"
_INDEX = re.compile(r"__index_level_\d+__")
_EPSG = re.compile(r"EPSG:\d+")


class Frame(Protocol):
    """What gives a stream of Arrow: frames of pandas, Polars, GeoPandas, DuckDB, tables of Arrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows."""


def write_frame(frame: Frame, path: Path) -> tuple[Path, dict[str, str], str | None]:
    """Writes a frame as Parquet.

    Returns:
        The path; the columns that are known to hold places, by their keys in a stream's `columns`; and the system that
        these say they are in, as "EPSG:3067".

    Raises:
        ConfigError: it gives no stream of Arrow, has no rows, or its places are in a system that has no EPSG number.
    """
    table = _without_numbers_of_rows(_table_of(frame))
    if not len(table):
        raise ConfigError("the frame has no rows")
    places = next(filter(_is_geometry, table.schema), None)
    crs: str | None = None
    columns: dict[str, str] = {}
    if places is not None:
        crs = _crs_of(places)
        table, columns = _with_places(table, places)
    pq.write_table(_plain(table), path)
    return path, columns, crs


def _table_of(frame: Any) -> pa.Table:
    """The rows; of GeoPandas by its own way, which knows what geometries are."""
    if hasattr(frame, "to_arrow") and hasattr(frame, "active_geometry_name"):
        frame = frame.to_arrow(index=None)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise ConfigError(
            f"a {type(frame).__name__} gives no stream of Arrow",
            hint="give a path, or a frame of pandas, Polars, GeoPandas or Arrow",
        )
    return pa.table(frame)


def _without_numbers_of_rows(table: pa.Table) -> pa.Table:
    """Without the index of pandas that has no name; with one of times, which may be those of the rows."""
    unnamed = [
        field.name
        for field in table.schema
        if _INDEX.fullmatch(field.name) and not pa.types.is_temporal(field.type)
    ]
    return table.drop_columns(unnamed)


def _is_geometry(field: pa.Field) -> bool:
    return _extension(field) in (*_WHOLE, _POINTS)


def _with_places(table: pa.Table, field: pa.Field) -> tuple[pa.Table, dict[str, str]]:
    """The table with a column of geometries as a stream can read it, and how it is named there."""
    if _extension(field) in _WHOLE:
        return table, {"place": field.name}
    return _split(table, field.name), {"x": "x", "y": "y"}


def _crs_of(field: pa.Field) -> str | None:
    """The system that GeoArrow's metadata name, by an authority or as PROJJSON; None where they name none.

    Raises:
        ConfigError: it has no EPSG number.
    """
    said = json.loads(_metadata(field) or "{}").get("crs")
    if isinstance(said, str) and said.startswith("{"):
        said = json.loads(said)
    if isinstance(said, dict) and "id" in said:
        said = f"{said['id'].get('authority')}:{said['id'].get('code')}"
    if said is None or (isinstance(said, str) and _EPSG.fullmatch(said)):
        return said
    if said == "OGC:CRS84":
        return "EPSG:4326"
    name = said.get("name", "one of its own") if isinstance(said, dict) else said
    raise ConfigError(
        f"the column {field.name!r} is in the system {name}, which has no EPSG number",
        hint='.to_crs("EPSG:4326") of GeoPandas converts it',
    )


def _extension(field: pa.Field) -> str:
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    name: bytes = (field.metadata or {}).get(b"ARROW:extension:name", b"")
    return name.decode()


def _metadata(field: pa.Field) -> str:
    said: bytes = (field.metadata or {}).get(b"ARROW:extension:metadata", b"")
    if isinstance(field.type, pa.ExtensionType):
        said = field.type.__arrow_ext_serialize__()
    return said.decode()


def _split(table: pa.Table, name: str) -> pa.Table:
    """Points of GeoArrow as two columns `x` and `y`, in place of theirs and of others that are called so."""
    points = _stored(table[name].combine_chunks())
    if pa.types.is_struct(points.type):
        axes = [pc.struct_field(points, axis) for axis in "xy"]
    else:
        axes = [pc.list_element(points, number) for number in (0, 1)]
    others = table.drop_columns(
        [n for n in (name, "x", "y") if n in table.column_names]
    )
    for axis, values in zip("xy", axes, strict=True):
        others = others.append_column(axis, values)
    return others


def _stored(column: Any) -> Any:
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _plain(table: pa.Table) -> pa.Table:
    """The columns in types that Parquet and a stream's records have: no dictionaries, views and extensions."""
    columns = [_plain_column(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_column(column.cast(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return _plain_column(column.cast(kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.binary())
    return column
