"""Rows for people and for programs: a table, JSON lines, CSV."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Literal

import typer

from st_common.answers.csv_rows import csv_lines
from st_common.answers.json_rows import json_line, plain
from st_common.errors import ConfigError, one_line

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["table", "jsonl", "csv"]
FileFormat = Literal["table", "jsonl", "csv", "parquet"]
_ROWS = 10_000  # written at a time
_SELDOM = (
    "value",
    "fields",
)  # columns that most queries leave empty: programs always get them


def write_columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes rows of text below their names in columns, the last as long as it is."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    _write_lines((names, *rows), widths)


def _write_lines(rows: Iterable[Sequence[str]], widths: Sequence[int]) -> None:
    """Writes rows in columns; on a terminal each on one line, cut where that ends: `…` says so."""
    most = get_terminal_size().columns if sys.stdout.isatty() else None
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        line = "  ".join(cells).rstrip()
        is_cut = most is not None and len(line) > most
        typer.echo(f"{line[: most - 1]}…" if is_cut and most else line)


def write_listing(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    records: Iterable[Mapping[str, Any]],
    *,
    json_lines: bool,
) -> None:
    """Writes a listing: text in columns for people, or JSON lines for programs.

    Args:
        names: of the columns.
        rows: the cells, as people read them.
        records: the same as values, whose names stay what they are.
        json_lines: which of both.
    """
    if not json_lines:
        write_columns(names, rows)
        return
    for record in records:
        typer.echo(json_line(record))


def write_said(said: str, record: Mapping[str, Any], *, json_lines: bool) -> None:
    """Writes one line: text for people, or the same as values."""
    typer.echo(json_line(record) if json_lines else one_line(said))


def shown(table: "pa.Table", form: Format) -> "pa.Table":
    """The columns to be written: for people without those of values and fields in which nothing stands."""
    empty = [
        name
        for name in _SELDOM
        if name in table.column_names and table[name].null_count == len(table)
    ]
    return table.drop_columns(empty) if form == "table" else table


def write(table: "pa.Table", form: Format) -> None:
    """Writes an Arrow table to standard output. Times are ISO 8601, UTC, with Z; bytes are hexadecimal."""
    if form == "csv":
        _write_csv(table)
    elif form == "jsonl":
        for batch in table.to_batches(max_chunksize=_ROWS):
            sys.stdout.write(
                "".join(f"{json_line(row)}\n" for row in batch.to_pylist())
            )
    else:
        rows = [[_shown(value) for value in row.values()] for row in table.to_pylist()]
        write_columns(table.column_names, rows)


def write_growing(
    parts: Iterable["pa.Table"], form: Format, *, limit: int | None = None
) -> None:
    """Writes tables with the same columns as they come, as if they were one; at most `limit` rows in all.

    Each is out when the next is asked for. Ctrl-C ends it between two rows, and is no error.
    """
    written, widths = 0, [0]
    try:
        for part in parts if limit != 0 else ():
            rows = part if limit is None else part.slice(0, limit - written)
            if form == "table":
                widths = _write_aligned(rows, widths, first=written == 0)
            elif form == "csv":
                _write_csv(rows, names=written == 0)
            else:
                write(rows, form)
            sys.stdout.flush()
            written += len(rows)
            if written == limit:
                return
    except KeyboardInterrupt:
        return


def write_parquet(parts: Iterable["pa.Table"]) -> None:
    """Writes tables with the same columns, one at least, to standard output as one Parquet file.

    Raises:
        ConfigError: standard output is a terminal.
    """
    import pyarrow.parquet as pq

    if sys.stdout.isatty():
        raise ConfigError(
            "a terminal cannot show Parquet", hint="fairway .. > answer.parquet"
        )
    tables = iter(parts)
    first = next(tables)
    with pq.ParquetWriter(sys.stdout.buffer, first.schema) as writer:
        writer.write_table(first)
        for part in tables:
            writer.write_table(part)


def _write_aligned(
    table: "pa.Table", widths: Sequence[int], *, first: bool
) -> list[int]:
    """Writes rows in columns that are at least as wide as those before; gives the widths."""
    rows = [[_shown(value) for value in row.values()] for row in table.to_pylist()]
    shown = [table.column_names, *rows] if first else rows
    before = widths if len(widths) == table.num_columns else [0] * table.num_columns
    if not shown:
        return [*before]
    wide = [
        max(width, *map(len, column))
        for width, column in zip(before, zip(*shown, strict=True), strict=True)
    ]
    _write_lines(shown, wide)
    return wide


def _write_csv(table: "pa.Table", *, names: bool = True) -> None:
    if names:
        sys.stdout.write(csv_lines([table.column_names]))
    for batch in table.to_batches(max_chunksize=_ROWS):
        rows = ([_cell(value) for value in row.values()] for row in batch.to_pylist())
        sys.stdout.write(csv_lines(rows))


def _shown(value: Any) -> str:
    """A value for people: nothing in it ends the line, or is obeyed by a terminal."""
    return one_line(_cell(value))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else plain(value)
    if isinstance(text, str):
        return text
    return (
        json.dumps(text, default=plain, ensure_ascii=False)
        if isinstance(text, (list, dict))
        else str(text)
    )
