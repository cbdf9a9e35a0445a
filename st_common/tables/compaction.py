"""Many small files into few, beside writers that go on."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from st_common.errors import FairwayError
from st_common.tables.active import (
    File,
    active_files,
    commit,
    day_column,
    read_files,
    removals,
)
from st_common.tables.files import write_file
from st_common.tables.handle import required
from st_common.tables.lock import locked
from st_common.tables.reading import require_plain
from st_common.tables.zorder import zorder as in_zorder

_SORTED, _JOINED = (
    "zorder",
    "joined",
)  # how the names of files begin that were written here
_MB = 1 << 20


def compact(
    path: Path,
    *,
    before: dt.date | None,
    zorder: tuple[str, ...] | None = None,
    target_mb: int = 64,
) -> dict[str, int]:
    """Joins the small files of each partition whose day is over, and says what it did.

    Files below half of `target_mb` are joined into files of about `target_mb`; with `zorder` rows are put into Z-order
    of those columns as well, and files that are not yet in it are written again. What was done is not done again. Rows
    stay the same, the table's version moves on by one per file. Writers are stopped for the moment of a commit
    only; a partition that another one compacted meanwhile is left to the next run.

        files of 3, 40, 5 and 10 MiB, target 64   ->   3, 5 and 10 become one; 40 is more than half, and stays

    Args:
        path: the table.
        before: the first day that is not touched, by the date among the partition columns; None: every partition.
        zorder: columns, as the contract's `zorder_by`; None: rows stay in the order of their files.
        target_mb: how large files become, in MiB.

    Returns:
        partitions, files_before, files_after, rows, bytes_before, bytes_after: of what was written again.

    Raises:
        FairwayError: there is no table, it has no date to go by, or deletion vectors of another writer.
    """
    table = required(path)
    _check(path, table, before)
    done = dict.fromkeys(
        (
            "partitions",
            "files_before",
            "files_after",
            "rows",
            "bytes_before",
            "bytes_after",
        ),
        0,
    )
    for bins in _partitions(table, before, zorder, target_mb * _MB):
        for files in bins:
            _rewrite(path, files, zorder or (), done)
        done["partitions"] += 1
    return done


def vacuum(
    path: Path, *, retention_h: int | None = None, keep_versions: tuple[int, ...] = ()
) -> int:
    """Deletes data files that no version needs any more that somebody may still read; gives how many.

    Args:
        path: the table.
        retention_h: how many hours a version can be read after it was replaced. None: the table's
            `delta.deletedFileRetentionDuration`; less than that is used as given, and takes old versions from their
            readers.
        keep_versions: versions whose files stay however old they are.

    Raises:
        FairwayError: there is no table.
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
    require_plain(path, table)
    if before is not None and day_column(table) is None:
        raise FairwayError(
            f"{path} is not partitioned by a date",
            hint="before = None compacts every partition",
        )


def _partitions(
    table: DeltaTable,
    before: dt.date | None,
    zorder: tuple[str, ...] | None,
    target: int,
) -> list[list[list[File]]]:
    """Per partition, which files to join with each other; partitions with nothing to do are left out."""
    groups: dict[tuple[tuple[str, str | None], ...], list[File]] = {}
    for file in active_files(table):
        if before is None or (file.day is not None and file.day < before):
            groups.setdefault(file.values, []).append(file)
    return [bins for files in groups.values() if (bins := _bins(files, zorder, target))]


def _bins(
    files: list[File], zorder: tuple[str, ...] | None, target: int
) -> list[list[File]]:
    wanted = [
        file
        for file in files
        if file.size < target // 2 or (zorder and not _is_sorted(file))
    ]
    bins: list[list[File]] = []
    room = 0
    for file in wanted:
        if file.size > room or not bins:
            bins.append([])
            room = target
        bins[-1].append(file)
        room -= file.size
    return [
        files_of_bin
        for files_of_bin in bins
        if len(files_of_bin) > 1 or (zorder and not _is_sorted(files_of_bin[0]))
    ]


def _is_sorted(file: File) -> bool:
    return Path(file.path).name.startswith(_SORTED)


def _rewrite(
    path: Path, files: list[File], zorder: tuple[str, ...], done: dict[str, int]
) -> None:
    schema = pa.schema(required(path).schema().to_arrow())
    rows = in_zorder(read_files(path, schema, files), zorder)
    prefix = _SORTED if zorder else _JOINED
    added = write_file(
        path, rows, dict(files[0].values), prefix=prefix, data_change=False
    )
    with locked(path):
        table = required(path)
        # Read and written without the lock, so that writers go on; who lost the race drops what it wrote.
        if not {file.path for file in files} <= {
            file.path for file in active_files(table)
        }:
            (path / added.path).unlink()
            return
        commit(table, [added, *removals(files, data_change=False)])
    done["files_before"] += len(files)
    done["files_after"] += 1
    done["rows"] += len(rows)
    done["bytes_before"] += sum(file.size for file in files)
    done["bytes_after"] += added.size
