"""Scalar expressions over fixes, evaluated by DuckDB over whole columns (SPEC G9)."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.errors import QueryError, TransientError
from st_common.operators.expressions.failures import note
from st_common.query.connections import OfThread

if TYPE_CHECKING:
    import duckdb

_AT_ONCE = 200  # constants in one statement
_of_thread = OfThread()


class _DatabaseError(Exception):
    """What DuckDB says that it cannot do."""


class _OutOfMemoryError(_DatabaseError):
    """It has too little memory for it."""


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raises DuckDB's errors as those of this module: so it is imported where something is evaluated.

    After an error that the connection does not survive the thread gets another one.
    """
    import duckdb  # slow to import, and many streams evaluate nothing

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise _OutOfMemoryError(str(error)) from error
    except duckdb.Error as error:
        if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
            _of_thread.drop()
        raise _DatabaseError(str(error)) from error


def evaluated(
    expressions: Sequence[str],
    table: pa.Table,
    *,
    of: Sequence[Sequence[str]] | None = None,
) -> list[pa.Array]:
    """The value of each expression for each row; null where it has none or fails for that row.

    All are evaluated in one statement, and one by one when that fails: what cannot be evaluated at all is null
    everywhere and noted (see `failures`).

    Args:
        expressions: canonical SQL over the columns of the table.
        table: n rows.
        of: of each expression the texts of plans that it was made of, by which it is noted; by default itself.

    Returns:
        An array of n values for each expression, of the type that DuckDB gives it; without rows of the type null.

    Raises:
        QueryError: an expression cannot be evaluated, and nobody notes it.
        TransientError: memory is short.
    """
    if not expressions:
        return []
    if not table.num_rows:
        return [pa.nulls(0) for _ in expressions]
    try:
        return _selected(expressions, table)
    except _OutOfMemoryError as error:
        raise _short_of_memory(error) from None
    except _DatabaseError:
        parts = of or [(text,) for text in expressions]
        return [
            _alone(text, table, texts)
            for text, texts in zip(expressions, parts, strict=True)
        ]


def computed(expressions: Sequence[str], table: pa.Table) -> list[pa.Array | None]:
    """The values of expressions as of columns; None of one that cannot be evaluated, which whoever asks it notes.

    Args:
        expressions: canonical SQL over the columns of the table.
        table: n rows; without any the types are known all the same.

    Raises:
        TransientError: memory is short.
    """
    try:
        return list(_selected(expressions, table))
    except _OutOfMemoryError as error:
        raise _short_of_memory(error) from None
    except _DatabaseError:
        if len(expressions) == 1:
            return [None]
        return [one for text in expressions for one in computed([text], table)]


def _selected(expressions: Sequence[str], table: pa.Table) -> list[pa.Array]:
    listed = ", ".join(
        # TRY: what fails for a row is null there, and no error of the whole statement.
        f"TRY({text}) AS c{number}"
        for number, text in enumerate(expressions)
    )
    with _own_errors():
        connection = _of_thread.connection(listed)
        with _registered(connection, table):
            answer = connection.sql(f"SELECT {listed} FROM fixes").to_arrow_table()  # noqa: S608 - checked by `query`
    return [column.combine_chunks() for column in answer.columns]


@contextmanager
def _registered(
    connection: "duckdb.DuckDBPyConnection", table: pa.Table
) -> Iterator[None]:
    """Has a connection know a table as `fixes`."""
    connection.register("fixes", table)
    try:
        yield
    finally:
        connection.unregister("fixes")


def _alone(expression: str, table: pa.Table, texts: Sequence[str]) -> pa.Array:
    """The values of one expression; when it cannot be evaluated, nulls, and its parts that cannot be are noted."""
    error = _error_of(expression, table)
    if error is None:
        return _selected([expression], table)[0]
    wrong = {
        text: error_of_text
        for text in texts
        if (error_of_text := _error_of(text, table)) is not None
    }
    for text, error_of_text in (wrong or dict.fromkeys(texts, error)).items():
        why = f"{text} cannot be evaluated: {_said(error_of_text)}"
        hint = "are all attributes that it names declared for the stream?"
        note(("expression", text), why, QueryError(f"the expression {why}", hint=hint))
    return pa.nulls(table.num_rows)


def _error_of(expression: str, table: pa.Table) -> _DatabaseError | None:
    try:
        _selected([expression], table)
    except _DatabaseError as error:
        return error
    return None


def _short_of_memory(error: _DatabaseError) -> TransientError:
    return TransientError(f"expressions need more memory than there is: {_said(error)}")


def _said(error: Exception) -> str:
    return str(error).splitlines()[0]


def masks(expressions: Sequence[str], table: pa.Table) -> np.ndarray:
    """Where each expression is true of the rows of a table; bool[e, n], false where it is null or fails.

    Example:
        load > 2 over load 1, null, 5:  false, false, true
    """
    if not expressions:
        return np.empty((0, table.num_rows), bool)
    return np.stack(
        [_true(column, table.num_rows) for column in evaluated(expressions, table)]
    )


def known(expressions: Sequence[str], table: pa.Table) -> np.ndarray:
    """Where each expression is not null; bool[e, n]."""
    columns = evaluated(
        [f"({text}) IS NOT NULL" for text in expressions], table, of=_each(expressions)
    )
    return np.stack([_true(column, table.num_rows) for column in columns])


def groups(expressions: Sequence[str], table: pa.Table) -> list[pa.Array]:
    """The values as names of groups, string[n] for each expression, null for null.

    Texts stay as they are, in quotes those that could be taken for `NULL`: a text that is NULL, or that begins with a
    quote, stands in quotes, as in SQL. So no two groups have one name.

    Example:
        bus, NULL (a text), 'x         bus, 'NULL', '''x'
    """
    return [
        _group_names(column.cast(pa.string()))
        for column in values_as_text(expressions, table)
    ]


def _group_names(texts: pa.Array) -> pa.Array:
    odd = pc.or_(pc.equal(texts, "NULL"), pc.starts_with(texts, "'"))
    quoted = pc.binary_join_element_wise(
        "'", pc.replace_substring(texts, "'", "''"), "'", ""
    )
    return pc.if_else(odd, quoted, texts)


def numbers(expressions: Sequence[str], table: pa.Table) -> list[np.ndarray]:
    """The values of each expression as float64[n], NaN for null."""
    columns = evaluated(
        [f"CAST({text} AS DOUBLE)" for text in expressions],
        table,
        of=_each(expressions),
    )
    return [
        column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in columns
    ]


def constants(texts: Sequence[str]) -> list[float | None]:
    """The values of expressions without columns as doubles; None where one has none, or is not finite."""
    return [
        value if value is not None and math.isfinite(value) else None
        for value in values_of_constants(texts, "DOUBLE")
    ]


def types_of(
    expressions: Sequence[str], table: pa.Table | None = None
) -> list[str] | None:
    """The types of expressions in DuckDB, by name; None where one of them cannot be bound.

    Args:
        expressions: canonical SQL.
        table: whose columns they name; None: they name none.
    """
    if not expressions:
        return []
    listed = ", ".join(f"({text})" for text in expressions)
    connection = _of_thread.connection(listed)
    if table is None:
        return _types(connection, f"SELECT {listed}")
    with _registered(connection, table):
        return _types(connection, f"SELECT {listed} FROM fixes")  # noqa: S608 - checked by `query`


def _types(connection: "duckdb.DuckDBPyConnection", statement: str) -> list[str] | None:
    try:
        with _own_errors():
            return [str(kind) for kind in connection.sql(statement).types]
    except _DatabaseError:
        return None


def types_of_constants(texts: Sequence[str]) -> list[str | None]:
    """The type of each expression without columns; None where it has none.

    Example:
        1, 1.5 and 'a':  INTEGER, DECIMAL(2,1), VARCHAR
    """
    types: list[str | None] = []
    for start in range(0, len(texts), _AT_ONCE):
        some = texts[start : start + _AT_ONCE]
        # In one statement; one by one when one of them cannot be bound.
        together = types_of(some)
        types += together or [
            kinds[0] if (kinds := types_of([text])) else None for text in some
        ]
    return types


def values_of_constants(texts: Sequence[str], kind: str) -> list[Any]:
    """The values of expressions without columns as values of a type; None where one has none.

    Args:
        texts: the expressions.
        kind: a type of DuckDB; of TIMESTAMP values are microseconds since 1970.
    """
    form = (
        "TRY(epoch_us(CAST({} AS TIMESTAMP)))"
        if kind == "TIMESTAMP"
        else f"TRY(CAST({{}} AS {kind}))"
    )
    values: list[Any] = []
    for start in range(0, len(texts), _AT_ONCE):
        some = texts[start : start + _AT_ONCE]
        try:
            values += _row([form.format(text) for text in some])
        except _DatabaseError:
            values += [_alone_or_none(form.format(text)) for text in some]
    return values


def _row(expressions: Sequence[str]) -> list[Any]:
    """What expressions over nothing give. `execute` takes half of the time that `sql` does for them."""
    listed = ", ".join(expressions)
    with _own_errors():
        connection = _of_thread.connection(listed)
        return list(connection.execute(f"SELECT {listed}").fetchall()[0])


def _alone_or_none(expression: str) -> Any:
    try:
        return _row([expression])[0]
    except _DatabaseError:
        return None


def mask_of(expression: str, table: pa.Table) -> np.ndarray | None:
    """Where an expression is true; bool[n], false where it is null. None where it cannot be evaluated at all.

    Args:
        expression: canonical SQL over the columns of the table.
        table: n rows.

    Raises:
        TransientError: memory is short.
    """
    if not table.num_rows:
        return np.zeros(0, bool)
    try:
        return _true(_selected([expression], table)[0], table.num_rows)
    except _OutOfMemoryError as error:
        raise _short_of_memory(error) from None
    except _DatabaseError:
        return None


def objects_of(columns: Sequence[tuple[str, str]]) -> str:
    """The expression of a JSON object as text, with given names and expressions: `a` and `load` make `{"a":1.0}`."""
    parts = ", ".join(f"{_text(name)}, {text}" for name, text in columns)
    return f"CAST(json_object({parts}) AS VARCHAR)"


def _each(texts: Sequence[str]) -> list[Sequence[str]]:
    return [(text,) for text in texts]


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _true(column: pa.Array, rows: int) -> np.ndarray:
    if pa.types.is_null(column.type):
        return np.zeros(rows, bool)
    values: np.ndarray = pc.fill_null(
        column.cast(pa.bool_()), fill_value=False
    ).to_numpy(zero_copy_only=False)
    return values


def values_as_text(expressions: Sequence[str], table: pa.Table) -> list[pa.Array]:
    """The values of each expression as string[n], null for null: keys of joins."""
    columns = evaluated(
        [f"CAST({text} AS VARCHAR)" for text in expressions],
        table,
        of=_each(expressions),
    )
    return [column.cast(pa.string()) for column in columns]
