"""Scalar expressions over fixes, evaluated by DuckDB over whole columns (SPEC G9)."""

import threading
from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.errors import QueryError

_local = threading.local()


def evaluated(expressions: Sequence[str], table: pa.Table) -> list[pa.Array]:
    """The value of each expression for each row; null where it has none or fails for that row.

    Raises:
        QueryError: an expression names a column that the stream does not have, or cannot be understood.
    """
    if not expressions:
        return []
    if not table.num_rows:
        return [pa.nulls(0) for _ in expressions]
    listed = ", ".join(f"TRY({text}) AS c{number}" for number, text in enumerate(expressions))
    connection = _connection()
    connection.register("fixes", table)
    try:
        found = connection.sql(f"SELECT {listed} FROM fixes").to_arrow_table()  # noqa: S608 - checked by `query`
    except duckdb.Error as error:
        raise QueryError(f"an expression cannot be evaluated: {str(error).splitlines()[0]}",
                         hint="are all attributes that it names declared for the stream?") from None  # fmt: skip
    finally:
        connection.unregister("fixes")
    return [column.combine_chunks() for column in found.columns]


def masks(expressions: Sequence[str], table: pa.Table) -> np.ndarray:
    """bool[e, n]: where each expression is true; null counts as false."""
    if not expressions:
        return np.empty((0, table.num_rows), bool)
    return np.stack([_true(column, table.num_rows) for column in evaluated(expressions, table)])


def known(expressions: Sequence[str], table: pa.Table) -> np.ndarray:
    """bool[e, n]: where each expression is not null."""
    return masks([f"({text}) IS NOT NULL" for text in expressions], table)


def texts(expressions: Sequence[str], table: pa.Table) -> list[pa.Array]:
    """The values as text, `NULL` for null: names of groups."""
    return evaluated([f"COALESCE(CAST({text} AS VARCHAR), 'NULL')" for text in expressions], table)


def numbers(expressions: Sequence[str], table: pa.Table) -> list[np.ndarray]:
    """The values as f64, NaN for null."""
    found = evaluated([f"CAST({text} AS DOUBLE)" for text in expressions], table)
    return [column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in found]


def objects_of(columns: Sequence[tuple[str, str]]) -> str:
    """The expression of a JSON object with the given names and expressions."""
    parts = ", ".join(f"{_text(name)}, {text}" for name, text in columns)
    return f"CAST(json_object({parts}) AS VARCHAR)"


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _true(column: pa.Array, rows: int) -> np.ndarray:
    if pa.types.is_null(column.type):
        return np.zeros(rows, bool)
    values: np.ndarray = pc.fill_null(column.cast(pa.bool_()), fill_value=False).to_numpy(zero_copy_only=False)
    return values


def _connection() -> duckdb.DuckDBPyConnection:
    """One connection per thread; expressions reach no file and no network."""
    if not hasattr(_local, "connection"):
        settings: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1, "enable_external_access": False, "autoload_known_extensions": False,
        }  # fmt: skip
        _local.connection = duckdb.connect(":memory:", config=settings)
    connection: duckdb.DuckDBPyConnection = _local.connection
    return connection


def values_as_text(expressions: Sequence[str], table: pa.Table) -> list[pa.Array]:
    """The values as text, null for null: keys of joins."""
    return evaluated([f"CAST({text} AS VARCHAR)" for text in expressions], table)
