"""Fixes as they are sent, in the format of the stream that they are for.

What is sent in the stream's own format is stored byte by byte. JSON, CSV, GeoJSON and Arrow are taken by streams of
JSON, CSV and TSV: they are read as those formats read them, and written by the names of the stream's columns.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from st_common.client.result import ARROW, from_stream
from st_common.decode.zones import local_of, utc_of
from st_common.errors import ConfigError
from st_common.feeds.arrival import Arrival
from st_common.feeds.framing import (
    has_header,
    of_document,
    of_message,
)
from st_common.formats.format_settings import named_columns
from st_common.formats.records import columns_read
from st_common.formats.registry import FORMATS, format_of
from st_common.server.asked import UnsupportedError
from st_common.settings import StreamSettings
from st_common.times import COUNTED_PER_S, EXCEL_EPOCH_DAYS, form_of

RAW = "application/octet-stream"
_FORMATS: Mapping[str, str] = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/json": "ndjson",
    "text/csv": "csv",
    "application/geo+json": "geojson",
}
_OF_A_FIX = ("object", "x", "y", "place")
MEDIA = (RAW, *_FORMATS, ARROW)
"""All kinds of bodies."""


def arrival_of(body: bytes, media: str, stream: StreamSettings) -> Arrival:
    """The records of a body, as the stream's format has them.

    Args:
        body: the bytes.
        media: of which kind they are; "" is the format of the stream.
        stream: whose records these are.

    Raises:
        UnsupportedError: bodies of this kind are not taken, or not by streams of this format.
        ConfigError: there is no record in it.
    """
    known = _FORMATS.get(media)
    if media in ("", RAW) or known == stream.format:
        arrivals = _cut(body, stream)
    elif format_of(stream.format).written_as is None:
        raise UnsupportedError(
            f"stream {stream.name!r} takes {stream.format} alone", hint=RAW
        )
    elif media == ARROW:
        arrivals = [_written(_of_arrow(body, stream), stream)]
    elif known in FORMATS:
        arrivals = [_written(_read(body, str(known), stream), stream)]
    else:
        hint = f"one of {', '.join(MEDIA)}"
        raise UnsupportedError(f"a body of {media} is not taken", hint=hint)
    if not arrivals:
        raise ConfigError("the body has no records")
    return _together(arrivals)


def _together(arrivals: list[Arrival]) -> Arrival:
    first, *more = arrivals
    if not more:
        return first
    if any(one.header != first.header or not one.is_lines for one in arrivals):
        raise ConfigError("the body is too large", hint="send it in parts")
    body = b"".join(one.body for one in arrivals)
    return replace(first, body=body, records=sum(one.records for one in arrivals))


def _read(body: bytes, name: str, stream: StreamSettings) -> pa.Table:
    """The fields of a body in another format.

    Raises:
        ConfigError: a record cannot be taken apart: who sends it is told, for in the log it would be of another format.
    """
    read_by = replace(stream, format=name, header=True, delimiter=",", quote='"')
    arrivals = _cut(body, read_by)
    if not arrivals:
        raise ConfigError("the body has no records")
    one = _together(arrivals)
    records = FORMATS[name].records(one.header + one.body, read_by)
    if records.fault.any():
        row = int(records.fault.nonzero()[0][0])
        raise ConfigError(f"record {row + 1} of the body cannot be read as {name}")
    return pa.table({name: records.fields[name] for name in columns_read(stream)})


def _cut(body: bytes, stream: StreamSettings) -> list[Arrival]:
    """The records of a body; JSON may be one object in several lines."""
    if format_of(stream.format).takes_objects:
        return of_message(body, stream)
    return of_document(body, stream)


def _of_arrow(body: bytes, stream: StreamSettings) -> pa.Table:
    """Rows, whose times are in the unit of the stream where they come as such."""
    try:
        rows = from_stream(body)
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"the body is no stream of Arrow: {error}") from None
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            told = _told(rows[field.name], stream)
            rows = rows.set_column(at, field.name, told)
    return rows


def _told(times: pa.ChunkedArray, stream: StreamSettings) -> pa.Array | pa.ChunkedArray:
    """Times as the stream writes them; those without a zone stand in that of the stream."""
    unit, zone = stream.time_unit, stream.time_zone
    utc = times.cast(pa.timestamp("us", "UTC"))
    if zone is not None and times.type.tz is None:
        utc = _moved(utc, lambda us: utc_of(us, zone).us)
    if unit in COUNTED_PER_S:
        return _counted(utc.cast(pa.int64()), COUNTED_PER_S[unit])
    form = form_of(unit)
    says_zone = unit in ("iso", "rfc2822") or (form is not None and "%z" in form)
    if zone is not None and not says_zone:
        utc = _moved(utc, lambda us: local_of(us, zone))
    if form is not None:
        return pc.strftime(utc, form)
    days = pc.divide(utc.cast(pa.int64()).cast(pa.float64()), 86_400e6)
    return pc.add(days, float(EXCEL_EPOCH_DAYS))


def _counted(us: pa.ChunkedArray, per_s: int) -> pa.ChunkedArray:
    if per_s > 1_000_000:
        return pc.multiply(us, per_s // 1_000_000)
    unit = 1_000_000 // per_s
    whole = pc.divide(us, unit)
    is_whole = pc.all(pc.equal(pc.multiply(whole, unit), us)).as_py()
    return whole if is_whole else pc.divide(us.cast(pa.float64()), float(unit))


def _moved(
    utc: pa.ChunkedArray, by: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> pa.Array:
    """Times that are moved by their zone; null stays null."""
    us = utc.cast(pa.int64()).combine_chunks()
    known = pc.fill_null(us, 0).to_numpy(zero_copy_only=False)
    missing = us.is_null().to_numpy(zero_copy_only=False)
    return pa.array(by(known), pa.timestamp("us", "UTC"), mask=missing)


def _written(rows: pa.Table, stream: StreamSettings) -> Arrival:
    """Rows in the stream's own format, by the names of its columns.

    Raises:
        ConfigError: a column is missing.
        UnsupportedError: the stream names no columns.
    """
    wanted = columns_read(stream)
    missing = [name for name in wanted if name not in rows.column_names]
    must = {name for key, name in named_columns(stream) if key in _OF_A_FIX}
    if must & set(missing):
        raise ConfigError(f"the column {min(must & set(missing))!r} is missing")
    if any("." in name for name in must):
        raise UnsupportedError(
            f"stream {stream.name!r} reads columns inside of others", hint=RAW
        )
    named = [name for name in wanted if name in rows.column_names]
    written_as = format_of(stream.format).written_as or ""
    return _WRITERS[written_as](rows.select(named), stream)


def _delimited(rows: pa.Table, stream: StreamSettings) -> Arrival:
    if not has_header(stream):
        raise UnsupportedError(
            f"stream {stream.name!r} names no columns (header = false)", hint=RAW
        )
    delimiter = stream.delimiter
    sink = io.BytesIO()
    options = pa_csv.WriteOptions(include_header=False, delimiter=delimiter)
    pa_csv.write_csv(rows, sink, options)
    header = delimiter.join(rows.column_names).encode() + b"\n"
    return Arrival(header=header, body=sink.getvalue(), records=len(rows))


def _json(rows: pa.Table, _stream: StreamSettings) -> Arrival:
    import duckdb

    with duckdb.connect(":memory:") as connection:
        connection.register("fixes", rows)
        lines = connection.sql("SELECT to_json(fixes) AS line FROM fixes")
        texts = lines.to_arrow_table()["line"].cast(pa.string())
    joined = pc.binary_join(
        pa.ListArray.from_arrays([0, len(texts)], _one(texts)), "\n"
    )
    body = joined[0].as_py().encode() + b"\n"
    return Arrival(body=body, records=len(rows))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


_WRITERS: Mapping[str, Callable[[pa.Table, StreamSettings], Arrival]] = {
    "objects": _json,
    "delimited": _delimited,
}
