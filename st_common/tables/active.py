"""The files that make up a version of a table, and how one takes the place of others."""

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from st_common.observed import note_written
from st_common.tables.durable import sync_before, sync_files, sync_log
from st_common.tables.files import partition_text
from st_common.tables.foreign import require_writable


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A data file of a version of a table.

    Attributes:
        path: below the table's folder, with `/`.
        size: bytes.
        day: the date among the values of its partition; None when there is none.
        values: pairs of a partition column and its value, as the log writes it; None is null.
    """

    path: str
    size: int
    day: dt.date | None
    values: tuple[tuple[str, str | None], ...]


def active_files(table: DeltaTable) -> list[File]:
    """The files of the version at which `table` stands, in no order."""
    by, day = table.metadata().partition_columns, day_column(table)
    return [
        File(
            path=unquote(action["path"]),
            size=action["size_bytes"],
            day=action[f"partition.{day}"] if day else None,
            values=tuple(
                (name, partition_text(action[f"partition.{name}"])) for name in by
            ),
        )
        for action in pa.table(table.get_add_actions(flatten=True)).to_pylist()
    ]


def day_column(table: DeltaTable) -> str | None:
    """The first partition column that is a date; None when there is none."""
    schema = pa.schema(table.schema().to_arrow())
    return next(
        (
            name
            for name in table.metadata().partition_columns
            if schema.field(name).type == pa.date32()
        ),
        None,
    )


def commit(
    table: DeltaTable,
    actions: Sequence[AddAction | RemoveAction],
    apps: Sequence[Transaction] = (),
) -> None:
    """Commits files that come and go, and how far `apps` are, as one version after the one at which `table` stands.

    Files are durable before the commit names them, the version before it too, and the commit when this returns (SPEC
    S2). Call it inside `locked`.

    Args:
        table: a handle that is up to date.
        actions: what is added and removed.
        apps: app transactions: names, each with a version that only grows.

    Raises:
        CommitFailedError: another committer was there before; nothing was committed.
        TableError: another program has made of the table what is not written here.
    """
    path = local_path(table)
    takes_out = any(isinstance(action, RemoveAction) for action in actions)
    require_writable(path, table, takes_out=takes_out)
    sync_before(path)
    added = [
        path / unquote(action.path)
        for action in actions
        if isinstance(action, AddAction)
    ]
    if added:
        sync_files(added, path)
    by = table.metadata().partition_columns
    properties = CommitProperties(app_transactions=list(apps))
    table.create_write_transaction(
        list(actions), "append", table.schema(), by, commit_properties=properties
    )
    sync_log(path)
    note_written(path, table.version() + 1)


def local_path(table: DeltaTable) -> Path:
    """The folder of an open table."""
    return Path(unquote(urlsplit(table.table_uri).path))


def removals(files: Iterable[File], *, data_change: bool) -> list[RemoveAction]:
    """The actions by which a commit takes files out of a table.

    Args:
        files: files of the newest version.
        data_change: False when the same rows are added by the same commit, in other files: who follows the table by its
            log passes over it then.
    """
    now = time.time_ns() // 1_000_000
    return [
        RemoveAction(
            file.path,
            data_change=data_change,
            deletion_timestamp=now,
            size=file.size,
            partition_values=dict(file.values),
        )
        for file in files
    ]


def read_files(path: Path, schema: pa.Schema, files: list[File]) -> pa.Table:
    """The rows of data files of one partition, in the order of the files, without the partition's columns.

    Args:
        path: the table's folder.
        schema: of the table; a column that a file does not have is null, others are cast to its types.
        files: one or more, all of the same partition.
    """
    inner = pa.schema(
        [field for field in schema if field.name not in dict(files[0].values)]
    )
    parts = [
        pq.ParquetFile(path / file.path, coerce_int96_timestamp_unit="us").read()
        for file in files
    ]
    return pa.concat_tables([_shaped(part, inner) for part in parts]).combine_chunks()


def _shaped(part: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        part.column(field.name).cast(field.type)
        if field.name in part.column_names
        else pa.chunked_array([pa.nulls(len(part), field.type)])
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
