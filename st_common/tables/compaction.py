"""Many small files into few, beside writers that go on."""

import datetime as dt
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import RemoveAction

from st_common.errors import FairwayError
from st_common.tables.files import partition_text, write_file
from st_common.tables.handle import required
from st_common.tables.lock import locked
from st_common.tables.zorder import zorder as in_zorder

_SORTED, _JOINED = "zorder", "joined"  # how the names of files begin that were written here
_MB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    path: str  # as the log names it
    size: int
    day: dt.date | None
    values: tuple[tuple[str, str | None], ...]

    @property
    def is_sorted(self) -> bool:
        return self.path.rpartition("/")[2].startswith(_SORTED)


def compact(
    path: Path, *, before: dt.date | None, zorder: tuple[str, ...] | None = None, target_mb: int = 64
) -> dict[str, int]:
    """Joins the small files of each partition whose day is over, and says what it did.

    Files below half of `target_mb` are joined into files of about `target_mb`; with `zorder` rows are put into Z-order
    of those columns as well, and files that are not yet in it are written again. What was done is not done again. Rows
    stay the same, the table's version moves on by one per file. Writers are stopped for the moment of a commit
    only; a partition that another one compacted meanwhile is left to the next run.

    Args:
        path: the table.
        before: the first day that is not touched, by the date among the partition columns; None: every partition.
        zorder: columns, as the contract's `zorder_by`.
        target_mb: how large files become.

    Returns:
        partitions, files_before, files_after, rows, bytes_before, bytes_after: of what was written again.

    Raises:
        FairwayError: there is no table, it has no date to go by, or deletion vectors of another writer.
    """
    table = required(path)
    _check(path, table, before)
    done = dict.fromkeys(("partitions", "files_before", "files_after", "rows", "bytes_before", "bytes_after"), 0)
    for bins in _partitions(table, before, zorder, target_mb * _MB).values():
        for files in bins:
            _rewrite(path, files, zorder or (), done)
        done["partitions"] += 1
    return done


def vacuum(path: Path, *, retention_h: int | None = None, keep_versions: tuple[int, ...] = ()) -> int:
    """How many files were deleted: those that no version younger than the retention needs, nor any of `keep_versions`.

    `retention_h` None: the table's `delta.deletedFileRetentionDuration`; a smaller one than that is used as given, and
    takes old versions from their readers.
    """
    with locked(path):
        return len(
            required(path).vacuum(
                retention_hours=retention_h,
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
                keep_versions=list(keep_versions) or None,
            )
        )


def _check(path: Path, table: DeltaTable, before: dt.date | None) -> None:
    if before is not None and _day_column(table) is None:
        raise FairwayError(f"{path} is not partitioned by a date", hint="before = None compacts every partition")
    if "deletionVectors" in (table.protocol().reader_features or []):
        raise FairwayError(f"{path} has deletion vectors", hint="compact it with the engine that wrote them")


def _day_column(table: DeltaTable) -> str | None:
    schema = pa.schema(table.schema().to_arrow())
    return next((name for name in table.metadata().partition_columns if schema.field(name).type == pa.date32()), None)


def _files(table: DeltaTable) -> list[_File]:
    by, day = table.metadata().partition_columns, _day_column(table)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return [
        _File(
            path=action["path"],
            size=action["size_bytes"],
            day=action[f"partition.{day}"] if day else None,
            values=tuple((name, partition_text(action[f"partition.{name}"])) for name in by),
        )
        for action in actions
    ]


def _partitions(
    table: DeltaTable, before: dt.date | None, zorder: tuple[str, ...] | None, target: int
) -> dict[tuple[tuple[str, str | None], ...], list[list[_File]]]:
    """Per partition, which files to join with each other; partitions with nothing to do are left out."""
    groups: dict[tuple[tuple[str, str | None], ...], list[_File]] = {}
    for file in _files(table):
        if before is None or (file.day is not None and file.day < before):
            groups.setdefault(file.values, []).append(file)
    bins = {values: _bins(files, zorder, target) for values, files in groups.items()}
    return {values: found for values, found in bins.items() if found}


def _bins(files: list[_File], zorder: tuple[str, ...] | None, target: int) -> list[list[_File]]:
    wanted = [file for file in files if file.size < target // 2 or (zorder and not file.is_sorted)]
    bins: list[list[_File]] = []
    room = 0
    for file in wanted:
        if file.size > room or not bins:
            bins.append([])
            room = target
        bins[-1].append(file)
        room -= file.size
    return [found for found in bins if len(found) > 1 or (zorder and not found[0].is_sorted)]


def _rewrite(path: Path, files: list[_File], zorder: tuple[str, ...], done: dict[str, int]) -> None:
    rows = in_zorder(_rows(path, files), zorder)
    added = write_file(path, rows, dict(files[0].values), prefix=_SORTED if zorder else _JOINED, data_change=False)
    with locked(path):
        table = required(path)
        if not {file.path for file in files} <= {file.path for file in _files(table)}:
            (path / added.path).unlink()
            return
        now = time.time_ns() // 1_000_000
        removed = [
            RemoveAction(
                file.path,
                data_change=False,
                deletion_timestamp=now,
                size=file.size,
                partition_values=dict(file.values),
            )
            for file in files
        ]
        table.create_write_transaction([added, *removed], "append", table.schema(), table.metadata().partition_columns)
    done["files_before"] += len(files)
    done["files_after"] += 1
    done["rows"] += len(rows)
    done["bytes_before"] += sum(file.size for file in files)
    done["bytes_after"] += added.size


def _rows(path: Path, files: list[_File]) -> pa.Table:
    """The rows of some files of one partition, without its columns; attributes that a file does not have are null."""
    table = required(path)
    stored = pa.schema(table.schema().to_arrow())
    schema = pa.schema([field for field in stored if field.name not in dict(files[0].values)])
    parts = [pq.ParquetFile(path / unquote(file.path), coerce_int96_timestamp_unit="us").read() for file in files]
    return pa.concat_tables([_shaped(part, schema) for part in parts]).combine_chunks()


def _shaped(part: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        part.column(field.name).cast(field.type)
        if field.name in part.column_names
        else pa.chunked_array([pa.nulls(len(part), field.type)])
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
