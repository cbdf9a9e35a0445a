"""Rows for people and for programs: a table, JSON lines, CSV."""

import json
import math
import sys
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import typer

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["table", "jsonl", "csv"]
_ROWS = 10_000  # written at a time
_SELDOM = ("value", "fields")  # columns that most queries leave empty: programs always get them


def write_columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes rows of text below their names in columns, the last as long as it is."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in (names, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def shown(table: "pa.Table", form: Format) -> "pa.Table":
    """The columns to be written: for people without those of values and fields in which nothing stands."""
    empty = [name for name in _SELDOM if name in table.column_names and table[name].null_count == len(table)]
    return table.drop_columns(empty) if form == "table" else table


def write(table: "pa.Table", form: Format) -> None:
    """Writes an Arrow table to standard output. Times are ISO 8601, UTC, with Z; bytes are hexadecimal."""
    if form == "csv":
        _write_csv(table)
    elif form == "jsonl":
        for batch in table.to_batches(max_chunksize=_ROWS):
            sys.stdout.write("".join(_line(row) for row in batch.to_pylist()))
    else:
        rows = [[_cell(value) for value in row.values()] for row in table.to_pylist()]
        write_columns(table.column_names, rows)


def _write_csv(table: "pa.Table") -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS):
        writer.writerows([_cell(value) for value in row.values()] for row in batch.to_pylist())


def _line(row: dict[str, Any]) -> str:
    """A row as one line of JSON; numbers that JSON does not have become "inf", "-inf" and "nan"."""
    try:
        return json.dumps(row, default=_plain, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_without_nan(row), default=_plain, ensure_ascii=False) + "\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    plain = value if isinstance(value, str) else _plain(value)
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, default=_plain, ensure_ascii=False) if isinstance(plain, (list, dict)) else str(plain)


def _plain(value: Any) -> Any:
    """A value of Python in the values of JSON."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value if isinstance(value, (int, float, list, dict, bool)) else str(value)
