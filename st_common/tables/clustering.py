"""Rows of a file, and files of a day, in the order of a column that many rows share, such as their region."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pyarrow.dataset as ds


def in_clusters(rows: pa.Table, column: str | None) -> pa.Table:
    """The rows in the order of a column; rows with the same value keep their order. None: they stay as they are.

    Args:
        rows: any rows.
        column: one of their columns; nulls come last.
    """
    return rows if column is None or len(rows) < 2 else rows.sort_by(column)


def cut(parts: "ds.Dataset", column: str, rows: int) -> Iterator[pa.Table]:
    """The rows of some files, cut along the values of a column into pieces that are about equally large.

    Values that follow each other are taken together until they have enough rows; one that alone has more is cut in the
    order of the files. At no time is more than one piece in memory, for the files are read once for each run of values.

        regions   "00" 40 rows, "01" 70, "10" 20, "11" 250; rows = 100
        pieces    "00" and "01" 110,  "10" and "11" 100, 100, 70

    Args:
        parts: the files.
        column: a column of theirs.
        rows: how many rows a piece has, about; up to half as many more, and the last of a value fewer.

    Yields:
        The pieces; rows keep the order of the files.
    """
    counts = _counts(parts, column)
    for values in _runs(counts, rows):
        yield from _pieces(parts, _among(column, values), rows)


def _counts(parts: "ds.Dataset", column: str) -> list[tuple[object, int]]:
    """The values of the column, in order, each with its number of rows."""
    grouped = (
        parts.to_table(columns=[column]).group_by(column).aggregate([([], "count_all")])
    )
    ordered = grouped.sort_by(column)
    return list(
        zip(ordered[column].to_pylist(), ordered["count_all"].to_pylist(), strict=True)
    )


def _runs(counts: list[tuple[object, int]], rows: int) -> Iterator[list[object]]:
    """Values that go together; the last run takes what would be less than half a piece.

    Several go together only where they fit into one piece, which is cut in the order of the files, not of the values.
    """
    left = sum(count for _, count in counts)
    run: list[object] = []
    size = 0
    for value, count in counts:
        if run and size + count > rows + rows // 2:
            yield run
            run, size = [], 0
        run.append(value)
        size, left = size + count, left - count
        if size >= rows and left >= rows // 2:
            yield run
            run, size = [], 0
    if run:
        yield run


def _among(column: str, values: list[object]) -> pc.Expression:
    """The condition that a column has one of some values, null among them."""
    plain = pc.field(column).isin([value for value in values if value is not None])
    return plain | pc.field(column).is_null() if None in values else plain


def _pieces(parts: "ds.Dataset", keep: pc.Expression, rows: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in parts.to_batches(filter=keep):
        held.append(batch)
        count += len(batch)
        if count >= rows + rows // 2:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if count:
        yield pa.Table.from_batches(held)
