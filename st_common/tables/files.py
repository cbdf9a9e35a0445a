"""Parquet files of a Delta table, and the actions by which a commit takes them in.

A commit of files that are written here takes a tenth of `write_deltalake`'s time in a table of 1,000 commits, for it
looks at no other file.
"""

import datetime as dt
import itertools
import json
import math
import re
import sys
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from st_common.contracts import Contract
from st_common.tables.clustering import in_clusters

_ROW_GROUP = 1 << 17
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CHECKSUM = re.compile(_UUID + r"-([0-9a-f]{8})\.parquet$")
_LONG_TEXT = 32  # longer texts are cut in statistics, as Spark does
_AFTER_ALL = chr(
    0x10FFFF
)  # a cut text with this behind it is not less than the whole one
STATISTICS_COLUMNS = 32  # of a table; the first ones
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001, statistics are UTC without saying so


def write_files(
    path: Path, data: pa.Table, contract: Contract, *, data_change: bool = True
) -> list[AddAction]:
    """Writes rows below a table's folder, a file per partition; nobody sees them before a commit takes them in.

    Args:
        path: the table's folder.
        data: rows with all columns of the table.
        contract: says by which columns the table is partitioned, which the files do not hold, and by which column rows
            lie together in a file; beyond that they keep their order.
        data_change: False when the rows were in the table before, in other files.

    Returns:
        The actions that add the files; none for no rows. The commit that names the files makes them durable.
    """
    return [
        write_file(path, rows, values, prefix="part", data_change=data_change)
        for values, rows in _partitions(
            in_clusters(data, contract.cluster_by), contract.partition_by
        )
        if len(rows)
    ]  # synced by the commit that names them


def write_file(
    path: Path,
    rows: pa.Table,
    values: Mapping[str, str | None],
    *,
    prefix: str,
    data_change: bool,
) -> AddAction:
    """Writes rows of one partition as a Parquet file, with statistics for readers to skip it by.

    Its name is `prefix`-UUID-CRC.parquet: no format within says whether a byte was changed, so the name does (SPEC S2).

    Args:
        path: the table's folder.
        rows: without the partition's columns.
        values: the partition: columns and their values as the log writes them.
        prefix: what the file is for, such as `part` or `zorder`.
        data_change: False when the rows were in the table before, in other files.

    Returns:
        The action that adds the file.
    """
    folder = "/".join(
        f"{name}={re.sub('[^A-Za-z0-9_.-]', '_', str(value))}"
        for name, value in values.items()
    )
    texts = [field.name for field in rows.schema if pa.types.is_string(field.type)]
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows, sink, compression="zstd", use_dictionary=texts, row_group_size=_ROW_GROUP
    )
    content = sink.getvalue()
    name = f"{prefix}-{uuid.uuid4()}-{zlib.crc32(content):08x}.parquet"
    name = f"{folder}/{name}" if folder else name
    file = path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return AddAction(
        path=name,
        size=content.size,
        partition_values=values,
        modification_time=time.time_ns() // 1_000_000,
        data_change=data_change,
        # Not as \u escapes: delta-rs reads a pair of surrogates as another character, and then skips the file.
        stats=json.dumps(_statistics(rows), ensure_ascii=False),
    )


def checksum_in(name: str) -> int | None:
    """The checksum in the name of a file that `write_file` wrote; None: the name has none."""
    found = _CHECKSUM.search(name)
    return None if found is None else int(found[1], 16)


def partition_text(value: object) -> str | None:
    """A partition's value as the Delta log writes it: ISO 8601 for dates and times, which are in UTC; None is null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(
        value, dt.datetime
    ):  # with Z: without a zone Spark would take its session's
        return (
            value.astimezone(dt.UTC)
            .isoformat(timespec="microseconds")
            .replace("+00:00", "Z")
        )
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _partitions(
    data: pa.Table, by: tuple[str, ...]
) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    if not by:
        yield {}, data
        return
    # One number per combination of partition values: each column is a digit, and null is one more value of it.
    codes = np.zeros(len(data), np.int64)
    for name in by:
        column = data.column(name).combine_chunks().dictionary_encode()
        codes = (
            codes * (len(column.dictionary) + 1)
            + column.indices.fill_null(len(column.dictionary)).to_numpy()
        )
    if len(codes) and (codes != codes[0]).any():
        order = np.argsort(codes, kind="stable")
        data, codes = data.take(order), codes[order]
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1), len(codes)]
    rest = data.drop_columns(list(by))
    for start, end in itertools.pairwise(edges):
        if end > start:
            yield (
                {name: partition_text(data.column(name)[start].as_py()) for name in by},
                rest.slice(start, end - start),
            )


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """What Delta's readers skip files by: rows, nulls, least and greatest values of the leading columns.

    A column with a value always has both bounds, if need be wider ones: delta-rs turns a missing bound into a promise
    that no filter on the column can keep, and the file's rows are lost from the answer.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in rows.column_names[:STATISTICS_COLUMNS]:
        column = rows.column(name)
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            continue
        nulls[name] = column.null_count
        if column.null_count < len(column):
            least[name], greatest[name] = _bounds(column)
    return {
        "numRecords": len(rows),
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """The least and greatest value as JSON; what JSON cannot hold gives way to a wider bound that it can."""
    ends = pc.min_max(column)
    if pa.types.is_timestamp(column.type):
        return _instant(ends["min"].value), _instant(ends["max"].value)
    low, high = ends.as_py().values()
    if pa.types.is_floating(column.type):
        high = (
            math.inf if pc.any(pc.is_nan(column)).as_py() else high
        )  # NaN is the greatest, to Spark and DuckDB
        low = high if math.isnan(low) else low
        return clamped(low), clamped(high)
    if pa.types.is_string(column.type):
        return low[:_LONG_TEXT], high if len(high) <= _LONG_TEXT else high[
            :_LONG_TEXT
        ] + _AFTER_ALL
    return (
        (low.isoformat(), high.isoformat()) if isinstance(low, dt.date) else (low, high)
    )


def clamped(value: float) -> float:
    """A number that JSON can hold: an infinite one becomes the largest finite one of its sign."""
    return max(-sys.float_info.max, min(sys.float_info.max, value))


def _instant(value: int) -> str:
    try:
        return (_EPOCH + dt.timedelta(microseconds=value)).isoformat(
            timespec="microseconds"
        ) + "Z"
    except OverflowError:  # before the year 1 or after 9999
        return (
            "0001-01-01T00:00:00.000000Z"
            if value < 0
            else "9999-12-31T23:59:59.999999Z"
        )
