"""Parquet cut into chunks of rows, each of which writes its segments as Arrow streams."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from st_common.errors import ConfigError
from st_common.formats.chunk import Chunk
from st_common.formats.format_settings import FormatSettings, Source, parts
from st_common.formats.geoparquet import system_of
from st_common.formats.spans import Spans

BROKEN = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError)
_PORTION = 1 << 20  # bytes read at once
_MOST_ROWS = 1 << 16  # of a batch
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
        for batch in file.iter_batches(batch_size=_MOST_ROWS):
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
