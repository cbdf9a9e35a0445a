"""Expressions tried on made-up fixes before they are registered: what can never have a value is an error (SPEC S3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle, islice
from typing import Any

from st_common.query.binding import Columns, said
from st_common.query.connections import OfThread
from st_common.query.grammar.words import quoted

_PLAIN = 2  # rows with values as they come every day; after them come edges, and a row of nulls
_ROWS = 8
_VALUES: dict[str, tuple[Any, ...]] = {
    "VARCHAR": ("abc", "", "1", "-1.5", "2024-01-01", "2024-01-01 12:00:00", "true"),
    "DOUBLE": (1.5, -2.0, math.nan, math.inf, -math.inf, 1.7976931348623157e308, 0.0),
    "BIGINT": (1, 2, 0, -1, 2**63 - 1, -(2**63)),
    "BOOLEAN": (True, False),
    "TIMESTAMP": (
        "2024-01-01 12:00:00",
        "1970-01-01",
        "9999-12-31 23:59:59",
        "0001-01-01",
    ),
}
_AT_ONCE = 100
_TOLD = 20
_of_thread = OfThread()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What became of an expression.

    It has an `error` when it fails for every fix, nulls too; `some` is the error when it fails for a plain one, and
    `row` are the values of the columns of that fix.
    """

    error: str = ""
    some: str = ""
    row: tuple[tuple[str, Any], ...] = ()


def tried(expressions: Sequence[str], columns: Columns) -> list[Tried]:
    """What becomes of each expression, which is bound to these columns already, over made-up fixes.

    Every one that fails for all is found; of those that fail for some only the first ones, which a reader takes in.
    """
    outcomes: list[Tried] = []
    for start in range(0, len(expressions), _AT_ONCE):
        part = expressions[start : start + _AT_ONCE]
        together = ", ".join(
            f"({text}) AS c{number}" for number, text in enumerate(part)
        )
        many = sum(bool(one.some) for one in outcomes) >= _TOLD
        if _error(together, columns, "<", _PLAIN) is None or (
            many and _error(together, columns, "=", _ROWS) is None
        ):
            outcomes += [Tried() for _ in part]
        else:
            outcomes += [_tried(text, columns) for text in part]
    return outcomes


@lru_cache(maxsize=4096)
def _tried(text: str, columns: Columns) -> Tried:
    errors = (_error(f"({text})", columns, "=", number) for number in range(_PLAIN))
    some, error = next(
        ((number, error) for number, error in enumerate(errors) if error is not None),
        (0, ""),
    )
    if not error:
        return Tried()
    if all(
        _error(f"({text})", columns, "=", number) is not None
        for number in range(_ROWS, -1, -1)
    ):
        return Tried(error=error)
    return Tried(
        some=error, row=tuple((name, _made_up(kind)[some]) for name, kind in columns)
    )


def _error(chosen: str, columns: Columns, which: str, number: int) -> str | None:
    import duckdb

    try:
        name = _table(columns)
        _of_thread.connection(chosen).sql(
            f"SELECT {chosen} FROM {name} WHERE rowid {which} {number}"  # noqa: S608 - checked
        ).fetchall()
    except duckdb.Error as error:
        return said(error)
    except (OverflowError, ValueError):
        return None  # a value that Python does not have, such as a time far away: DuckDB has it
    return None


def _table(columns: Columns) -> str:
    """The name of the table of made-up fixes with these columns, made when this thread has none yet."""
    tables = _of_thread.tables
    if columns not in tables:
        name = f"m{len(tables)}"
        fields = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns)
        connection = _of_thread.connection(fields)
        connection.execute(f"CREATE TABLE {name} ({fields})")
        rows = [
            *zip(*(_made_up(kind) for _, kind in columns), strict=True),
            [None] * len(columns),
        ]
        connection.executemany(
            f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})",  # noqa: S608
            rows,
        )
        tables[columns] = name
    return tables[columns]


def _made_up(kind: str) -> list[Any]:
    return list(islice(cycle(_VALUES[kind]), _ROWS))
