"""Parquet and Arrow: a file cut into chunks of rows, and rows as records, with the types that they have."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from st_common.errors import ConfigError
from st_common.formats.arrow_rows import MAGIC as ARROW
from st_common.formats.chunk import Chunk
from st_common.formats.format_settings import FormatSettings, Source, parts
from st_common.formats.numbers import mask
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import Ints, Spans

# --- GeoParquet: which column is the geometry, and in which system it is ---

Metadata = Mapping[bytes, bytes] | None

WGS84 = "EPSG:4326"
_DEGREES = (WGS84, "OGC:CRS84")  # of both x is the longitude here


def primary_column(metadata: Metadata) -> str | None:
    """The column that is the geometry of a row; None: the file says of none."""
    name = _geo(metadata).get("primary_column")
    return name if isinstance(name, str) else None


def system_of(metadata: Metadata, column: str) -> str | None:
    """The system of a column of geometries.

        no `crs`                      EPSG:4326, as GeoParquet has it
        `crs` null, no GeoParquet     None: nobody knows
        PROJJSON without a number     EPSG:3067, if it is that; else its name

    Args:
        metadata: of the file's schema.
        column: the column; a path inside of one counts by its first part.
    """
    columns = _geo(metadata).get("columns")
    about = columns.get(column.partition(".")[0]) if isinstance(columns, dict) else None
    if not isinstance(about, dict):
        return None
    if "crs" not in about:
        return WGS84
    return None if about["crs"] is None else _named(about["crs"])


def _named(crs: Any) -> str | None:
    said = crs.get("id") if isinstance(crs, dict) else None
    if isinstance(said, dict) and {"authority", "code"} <= said.keys():
        system = f"{said['authority']}:{said['code']}"
        return WGS84 if system in _DEGREES else system
    import pyproj  # slow to import, and seldom needed

    try:
        known = pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError:
        return "a system that is not known"
    number = known.to_epsg()
    return known.name if number is None else f"EPSG:{number}"


def _geo(metadata: Metadata) -> Mapping[str, Any]:
    try:
        said = json.loads((metadata or {}).get(b"geo", b"{}"))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


# --- chunks: their segments are written as streams of Arrow ---

BROKEN = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError)
_PORTION = 1 << 20  # bytes read at once
_MOST_IN_BATCH = 1 << 16  # of a batch
_BETWEEN = 16  # bytes that a value takes beside itself, at most


@dataclass(frozen=True, slots=True)
class RowsChunk(Chunk):
    """Rows; their spans say about how many bytes each of them takes."""

    table: Any = None  # pa.Table

    def payload(self, start: int, stop: int) -> bytes:
        """Rows `start` to `stop` (not included) as an Arrow stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table.slice(start, stop - start))
        data: bytes = sink.getvalue().to_pybytes()
        return data

    def part(self, start: int, stop: int) -> Self:
        """See `Chunk.part`."""
        cut = Chunk.part(self, start, stop)  # slots: `super` finds no class here
        return replace(cut, table=self.table.slice(start, stop - start))

    def rows(self) -> pa.Table:
        """See `Chunk.rows`: the rows of the file."""
        return self.table

    def of_rows(self, rows: pa.Table) -> Self:
        """See `Chunk.of_rows`."""
        return self.with_columns({}, spans=_spans(rows), table=rows)


def parquet_chunks(
    source: Source, stream: FormatSettings, *, size: int
) -> Iterator[Chunk]:
    """Chunks of at most 65,536 rows, of about `size` bytes where rows are large.

    Raises:
        ConfigError: the source is no Parquet, breaks, or says that its points are in another system.
    """
    with opened(source) as file:
        _check_system(file, stream)
        for batch in batches(file):
            yield from _cut(pa.Table.from_batches([batch]), size)


def _cut(rows: pa.Table, size: int) -> Iterator[Chunk]:
    portions = np.cumsum(_sizes(rows)) // max(size, 1)
    borders = (np.flatnonzero(np.diff(portions)) + 1).tolist()
    for start, stop in zip([0, *borders], [*borders, len(rows)], strict=True):
        yield _chunk(rows.slice(start, stop - start))


@contextmanager
def opened(source: Source) -> Iterator[pq.ParquetFile]:
    """A Parquet file, by its footer; what cannot be read from behind is put into a file without a name first.

    Raises:
        ConfigError: it is none.
    """
    with _seekable(source) as file:
        try:
            parquet = pq.ParquetFile(file)
        except BROKEN as error:
            raise _no_parquet(error) from None
        yield parquet


def batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """The rows of a file, in batches that hold some.

    Raises:
        ConfigError: the file breaks.
    """
    try:
        for batch in file.iter_batches(batch_size=_MOST_IN_BATCH):
            if len(batch):
                yield batch
    except BROKEN as error:
        raise _no_parquet(error) from None


def _no_parquet(error: Exception) -> ConfigError:
    why = " ".join(str(error).split()) or type(error).__name__
    return ConfigError(
        f"it is no whole Parquet file: {why}", hint="is the file complete?"
    )


@contextmanager
def _seekable(source: Source) -> Iterator[Any]:
    if getattr(source, "seekable", lambda: False)():
        yield source
        return
    with tempfile.TemporaryFile() as spooled:
        while data := source.read(_PORTION):
            spooled.write(data)
        spooled.seek(0)
        yield spooled


def _check_system(file: pq.ParquetFile, stream: FormatSettings) -> None:
    """Points of a GeoParquet file that says another system than the stream has would be somewhere else."""
    columns = stream.columns
    place = columns.place or columns.shape or next(iter(parts(columns.x)), "")
    own = system_of(file.schema_arrow.metadata, place)
    if own in (None, stream.crs) or not stream.crs.startswith("EPSG:"):
        return
    hint = f'crs = "{own}", or convert the file'
    if not str(own).startswith("EPSG:"):
        hint = 'crs = "planar", or convert the file'
    raise ConfigError(
        f"the points of {place!r} are in {own}, the stream's in {stream.crs}", hint=hint
    )


def _chunk(rows: pa.Table) -> Chunk:
    return RowsChunk(b"", _spans(rows), table=rows)


def _spans(rows: pa.Table) -> Spans:
    ends = np.cumsum(_sizes(rows))
    return Spans(np.zeros(0, np.uint8), np.append(0, ends[:-1])[: len(ends)], ends)


def _sizes(rows: pa.Table) -> NDArray[np.int64]:
    """About how many bytes each row takes."""
    sizes = np.zeros(len(rows), np.int64)
    for column in rows.columns:
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            lengths = pc.fill_null(pc.binary_length(column), 0)
            sizes += lengths.to_numpy().astype(np.int64) + _BETWEEN
        else:
            sizes += column.nbytes // max(len(rows), 1) + _BETWEEN
    return sizes


# --- records ---

_MAGIC = b"PAR1"
_NOTHING = b"\xef\xbb\xbf \t\r\n"  # no records, as in all formats
_MOST_ROWS = 16_777_216  # of a payload, as of text that is unpacked
_LATEST_S = 7_258_118_400  # 2200-01-01
_OUTSIDE = -1  # an instant that no unit of a stream takes


class _TooManyError(ValueError):
    """A payload that unpacks to more rows than a segment may hold."""


def read_rows(
    payload: bytes, stream: FormatSettings, *, may_lack: bool = False
) -> Records:
    """The records of a payload; total, as all formats are.

    Whole numbers of all sizes are int64, numbers with fractions float64, instants timestamp[us], texts and all others
    texts; the column of places or shapes stays binary where it is.

    Args:
        payload: a file of Parquet, or a stream of Arrow.
        stream: names the columns.
        may_lack: a column that the rows lack is null in all, as a key that a JSON object lacks; else a fault of all.
    """
    if not payload.strip(_NOTHING):
        return _one(b"", None, stream)
    try:
        rows = _rows(payload)
    except _TooManyError:
        return _one(payload, Reason.TOO_LARGE, stream)
    except BROKEN:
        return _one(payload, Reason.UNREADABLE, stream)
    records = _records(rows, stream, may_lack=may_lack)
    return _one(payload, Reason.UNREADABLE, stream) if records is None else records


def read_joined(
    payloads: Sequence[bytes], stream: FormatSettings, *, may_lack: bool
) -> tuple[Records, list[int]] | None:
    """The records of streams of Arrow with one schema, and how many each has; None where one must be read by itself.

    Args:
        payloads: streams of Arrow.
        stream: names the columns.
        may_lack: see `read_rows`.
    """
    try:
        parts = [_rows(payload) for payload in payloads]
        rows = pa.concat_tables(parts).combine_chunks()
    except (_TooManyError, *BROKEN):
        return None
    records = _records(rows, stream, may_lack=may_lack)
    return None if records is None else (records, [len(part) for part in parts])


def _records(
    rows: pa.Table, stream: FormatSettings, *, may_lack: bool
) -> Records | None:
    """The records that rows are; None where these break."""
    try:
        rows.validate(full=True)
        values = {name: _column(rows, name) for name in columns_read(stream)}
        places = (stream.columns.place, stream.columns.shape)
        fields = {
            name: _typed(one, keeps_bytes=name in places)
            for name, one in values.items()
            if one is not None
        }
        if may_lack:
            nothing = pa.nulls(len(rows), pa.string())
            fields |= {name: nothing for name in values if name not in fields}
    except BROKEN:
        return None
    if len(fields) < len(values):
        fault = np.full(len(rows), Reason.MISSING_COLUMN, np.int8)
        return Records(fault=fault, fields={}, raw=_raw_of(rows))
    return Records(fault=np.zeros(len(rows), np.int8), fields=fields, raw=_raw_of(rows))


def whole_rows(payload: bytes) -> tuple[pa.Table, pa.Array] | None:
    """The rows of a payload, and each as `rejects` has it; None where the payload is no stream of Arrow, or breaks."""
    if not payload.startswith(ARROW):
        return None
    try:
        rows = _rows(payload)
        rows.validate(full=True)
    except (_TooManyError, *BROKEN):
        return None
    return rows, _raw_of(rows)(np.arange(len(rows)))


def are_rows(payload: bytes) -> bool:
    """Whether a payload begins as a stream of Arrow does."""
    try:
        pa.ipc.open_stream(payload)
    except BROKEN:
        return False
    return True


def _one(payload: bytes, reason: Reason | None, stream: FormatSettings) -> Records:
    """One record for all of a payload; without a reason none."""
    fault = np.array([] if reason is None else [reason], np.int8)
    fields = {name: pa.array([], pa.string()) for name in columns_read(stream)}
    raw = pa.array([payload[:RAW_LIMIT]], pa.binary())
    return Records(
        fault=fault, fields=fields, raw=lambda rows: raw.take(pa.array(rows))
    )


def _rows(payload: bytes) -> pa.Table:
    if payload.startswith(_MAGIC):
        file = pq.ParquetFile(pa.BufferReader(payload))
        _require_few(file.metadata.num_rows)
        return file.read()
    stream, count, batches = pa.ipc.open_stream(payload), 0, []
    for batch in stream:
        count += len(batch)
        _require_few(count)
        batches.append(batch)
    return pa.Table.from_batches(batches, stream.schema)


def _require_few(rows: int) -> None:
    if rows > _MOST_ROWS:
        raise _TooManyError


def _column(rows: pa.Table, name: str) -> pa.Array | None:
    """A column by its name, or by its path inside of structs; None: there is none, or several of that name."""
    if rows.column_names.count(name) == 1:
        return _as_array(rows[name])
    head, *steps = name.split(".")
    if not steps or rows.column_names.count(head) != 1:
        return None
    values = _as_array(rows[head])
    for step in steps:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(step) < 0:
            return None
        values = pc.struct_field(values, step)
    return values


def _as_array(column: pa.ChunkedArray) -> pa.Array:
    if not column.num_chunks:
        return pa.array([], column.type)
    return (
        column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    )


def _typed(values: pa.Array, *, keeps_bytes: bool) -> pa.Array:
    """The values in one of the types that records may have."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    for belongs, convert in _CONVERTERS:
        if belongs(kind):
            return convert(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return values.cast(pa.binary()) if keeps_bytes else _texts_of_bytes(values)
    return _json(values)


def _whole(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:  # beyond int64: as texts they are judged one by one
        return values.cast(pa.string())


def _instants(values: pa.Array) -> pa.Array:
    """Timestamps of any unit as microseconds; those beyond all that a stream takes as one in front of 1970.

    Those that have a zone are in UTC, whichever it is; those that have none keep none.
    """
    per_s = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[
        values.type.unit
    ]
    missing = mask(values.is_null())
    numbers = pc.fill_null(values.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    inside = (numbers >= 0) & (numbers < _LATEST_S * per_s)
    known = np.where(inside, numbers, 0)
    us = known * (1_000_000 // per_s) if per_s <= 1_000_000 else known // 1_000
    kind = pa.timestamp("us", None if values.type.tz is None else "UTC")
    return pa.array(np.where(inside, us, _OUTSIDE), kind, mask=missing)


def _texts_of_bytes(values: pa.Array) -> pa.Array:
    texts = [
        None if one is None else one.decode("utf-8", "replace")
        for one in values.to_pylist()
    ]
    return pa.array(texts, pa.string())


def _json(values: pa.Array) -> pa.Array:
    texts = [
        None if one is None else json.dumps(one, ensure_ascii=False, default=str)
        for one in values.to_pylist()
    ]
    return pa.array(texts, pa.string())


def _to(kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    return lambda values: values.cast(kind)


_CONVERTERS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...
] = (
    (pa.types.is_string, lambda values: values),
    (pa.types.is_large_string, _to(pa.string())),
    (pa.types.is_string_view, _to(pa.string())),
    (pa.types.is_boolean, lambda values: values),
    (pa.types.is_integer, _whole),
    (pa.types.is_floating, _to(pa.float64())),
    (pa.types.is_timestamp, _instants),
    (pa.types.is_decimal, _to(pa.string())),
    (pa.types.is_date, _to(pa.string())),
    (pa.types.is_time, _to(pa.string())),
    (pa.types.is_null, _to(pa.string())),
)
"""What becomes of the values of which types; all others are texts of JSON."""


def _shown(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column for people; null where Python has none for one of them, as for the year 100,000."""
    try:
        values: list[Any] = column.to_pylist()
    except BROKEN:
        return [None] * len(column)
    return values


def _raw_of(rows: pa.Table) -> Callable[[Ints], pa.Array]:
    def raw(which: Ints) -> pa.Array:
        taken = rows.take(pa.array(which, pa.int64()))
        columns = [_shown(column) for column in taken.columns]
        texts = [
            json.dumps(
                dict(zip(rows.column_names, row, strict=True)),
                ensure_ascii=False,
                default=repr,
            )
            for row in zip(*columns, strict=True)
        ]
        cut = [text.encode("utf-8", "replace")[:RAW_LIMIT] for text in texts]
        return pa.array(cut, pa.binary())

    return raw
