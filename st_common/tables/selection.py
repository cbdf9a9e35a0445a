"""Rows that a predicate in SQL selects, and how they leave a table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from st_common.asking import asking
from st_common.errors import FairwayError
from st_common.tables.active import File, active_files, read_files, removals
from st_common.tables.files import write_file


def selected(rows: pa.Table, predicate: str) -> pa.ChunkedArray:
    """Per row whether a predicate is true; where it is null the row is not selected.

    Args:
        rows: n rows.
        predicate: SQL on their columns, as DuckDB understands it.

    Returns:
        bool[n], without nulls.

    Raises:
        FairwayError: `predicate` is no SQL on these columns.
    """
    import duckdb

    query = f"SELECT coalesce(({predicate}), false) AS hit FROM the_rows"  # noqa: S608, the caller's own words
    with asking() as connection:
        connection.register("the_rows", rows)
        try:
            return connection.sql(query).to_arrow_table()["hit"]
        except duckdb.Error as error:
            raise FairwayError(
                f"{predicate} cannot be asked of these rows: {error}"
            ) from None


def taken_out(
    path: Path, table: DeltaTable, predicate: str | None
) -> list[AddAction | RemoveAction]:
    """The actions by which some rows leave a table; a commit has to take them in.

    A file that also holds other rows is written again without them, a file that holds none of them stays.

    Args:
        path: the table's folder.
        table: its handle, up to date.
        predicate: SQL that selects the rows; None: every row.

    Raises:
        FairwayError: `predicate` is no SQL on the table's columns.
    """
    if predicate is None:
        return [*removals(active_files(table), data_change=True)]
    schema = pa.schema(table.schema().to_arrow())
    actions: list[AddAction | RemoveAction] = []
    for file in active_files(table):
        rows = read_files(path, schema, [file])
        rest = rows.filter(
            pc.invert(selected(_with_partition(rows, schema, file), predicate))
        )
        if len(rest) < len(rows):
            actions += removals([file], data_change=True)
        if 0 < len(rest) < len(rows):
            actions.append(
                write_file(
                    path, rest, dict(file.values), prefix="rest", data_change=True
                )
            )
    return actions


def _with_partition(rows: pa.Table, schema: pa.Schema, file: File) -> pa.Table:
    for name, value in file.values:
        values = pa.array([value] * len(rows), pa.string()).cast(
            schema.field(name).type
        )
        rows = rows.append_column(name, values)
    return rows
