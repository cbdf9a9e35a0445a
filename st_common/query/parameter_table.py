"""Tables of values for the parameters of a text of statements: from CSV, from Parquet, from Python."""

import csv
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from st_common.errors import QueryError
from st_common.written import number

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_NOUNS = {"csv": "line", "parquet": "row", "python": "row"}


class Bare(str):
    """A value that stands in a text without quotes: a number as it is written, TRUE or FALSE."""

    __slots__ = ()


Cell = str | None
"""A text, a `Bare`, or None where there is no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterTable:
    """Values for the parameters of a text: each statement with parameters stands for as many as there are rows.

    `name` is what errors call the table, `row_names` what they call its rows, such as "line 2". Each row has a cell
    for each of `columns`, in their order.
    """

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    row_names: Sequence[str]


def read_table(path: Path) -> ParameterTable:
    """The table of a file: Parquet where its name ends so, else CSV in UTF-8, whose first line has the columns.

    What stands in CSV is a number in a column where everything is one, as it is written; else a text. A cell without
    characters has no value.

    Raises:
        QueryError: the file cannot be read, has no rows, or a row of another width, or columns of the same name.
    """
    try:
        if path.suffix.lower() == ".parquet":
            return _of_parquet(path)
        return _of_csv(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise QueryError(f"{path} cannot be read: {why}") from None
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8: byte {error.start}"
        raise QueryError(message, hint="save it as UTF-8") from None
    except csv.Error as error:
        raise QueryError(f"{path} is no CSV: {error}") from None
    except pa.ArrowInvalid as error:
        raise QueryError(f"{path} is no Parquet: {error}") from None


def table_of(rows: Iterable[Mapping[str, Any]]) -> ParameterTable:
    """The table of rows in Python, which have the same keys: numbers, texts, times, True, False; None is no value.

    Raises:
        QueryError: there is no row, or one has other keys or a value of another type.
    """
    rows = list(rows)
    columns = tuple(rows[0]) if rows else ()
    for at, row in enumerate(rows):
        if set(row) != set(columns):
            message = f"params, row {at + 1} has the keys {', '.join(row) or 'none'}"
            raise QueryError(message, hint=f"row 1 has {', '.join(columns)}")
    names = _row_names("python", range(1, len(rows) + 1))
    values = ([row[name] for name in columns] for row in rows)
    cells = [
        _cells("params", columns, *each) for each in zip(names, values, strict=True)
    ]
    return _checked("params", columns, cells, names)


def _of_parquet(path: Path) -> ParameterTable:
    table = parquet.read_table(path)
    columns = tuple(table.column_names)
    names = _row_names("parquet", range(1, len(table) + 1))
    values = [column.to_pylist() for column in table.columns]
    rows = zip(*values, strict=True)
    name = str(path)
    cells = [_cells(name, columns, *each) for each in zip(names, rows, strict=True)]
    return _checked(name, columns, cells, names)


def _of_csv(path: Path) -> ParameterTable:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        columns = tuple(next(reader, ()))
        lines: list[int] = []
        rows: list[list[str]] = []
        for row in reader:
            if row:  # an empty line is none
                rows.append(row)
                lines.append(reader.line_num)
    names = _row_names("csv", lines)
    for name, row in zip(names, rows, strict=True):
        if len(row) != len(columns):
            message = f"{path}, {name} has {len(row)} values, and the first line {len(columns)} columns"
            raise QueryError(
                message, hint="a value with a comma stands in double quotes"
            )
    as_cells = [_read_as(column) for column in zip(*rows, strict=True)]
    cells = list(zip(*as_cells, strict=True))
    return _checked(str(path), columns, cells, names)


def _read_as(column: Sequence[str]) -> list[Cell]:
    """The cells of a column of CSV: numbers where all of them are, else texts."""
    written = [text.strip() for text in column]
    is_number = all(_NUMBER.fullmatch(text) for text in written if text)
    if is_number:
        return [Bare(text) if text else None for text in written]
    return [text or None for text in column]


def _row_names(kind: str, numbers: Iterable[int]) -> list[str]:
    return [f"{_NOUNS[kind]} {at}" for at in numbers]


def _cells(
    table: str, columns: Sequence[str], row: str, values: Iterable[Any]
) -> list[Cell]:
    return [
        _cell(value, f"{table}, {row}, column {name}")
        for name, value in zip(columns, values, strict=True)
    ]


def _cell(value: Any, place: str) -> Cell:
    """A value as a cell.

    Raises:
        QueryError: it is neither a finite number nor a text, a time, True, False or None.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, date):
        return _time_written(value)
    write = _WRITTEN.get(type(value))
    if write is None:
        message = f"{place}: a value of type {type(value).__name__} cannot be bound"
        raise QueryError(message, hint="numbers, texts, times, true and false can")
    if not isinstance(value, int) and not math.isfinite(value):
        raise QueryError(f"{place}: {value} is no finite number")
    return Bare(write(value))


def _time_written(value: date) -> str:
    """A date or a time as ISO 8601: in UTC, which is meant where no zone is said, as in texts.

    Example:
        30 April 2024 10:00 in UTC+2:  2024-04-30T08:00:00Z
    """
    if not isinstance(value, datetime):
        return value.isoformat()
    known = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return known.isoformat().replace("+00:00", "Z")


_WRITTEN: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "TRUE" if value else "FALSE",
    int: str,
    float: number,
    Decimal: lambda value: format(value, "f"),
}
"""How values that need no quotes are written, by their type."""


def _checked(
    name: str,
    columns: tuple[str, ...],
    cells: Sequence[Sequence[Cell]],
    row_names: Sequence[str],
) -> ParameterTable:
    folded = [column.casefold() for column in columns]
    twice = [one for one in columns if folded.count(one.casefold()) > 1]
    if twice:
        raise QueryError(f"{name} has two columns {twice[0]!r}")
    if not cells:
        raise QueryError(f"{name} has no rows", hint="a query is registered for each")
    return ParameterTable(name=name, columns=columns, rows=cells, row_names=row_names)
