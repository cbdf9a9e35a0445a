"""Many small files into few, beside writers that go on."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
from st_common.tables.clustering import cut, in_clusters
from st_common.tables.files import write_file
from st_common.tables.foreign import require_writable
from st_common.tables.handle import required
from st_common.tables.lock import locked
from st_common.tables.reading import dataset_of
from st_common.tables.zorder import in_cells
from st_common.tables.zorder import zorder as in_zorder

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

_SORTED, _JOINED = (
    "zorder",
    "joined",
)  # how the names of files begin that were written here
_MB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """How files shall be: `target` bytes large, their rows by `cluster`, inside of it by `zorder`, or in `cells`."""

    target: int
    cluster: str | None
    zorder: tuple[str, ...]
    cells: tuple[str, ...]

    @property
    def cuts(self) -> bool:
        """Whether the files of a day are cut along the values of `cluster`."""
        return self.cluster is not None and bool(self.zorder)


def compact(
    path: Path,
    *,
    before: dt.date | None,
    zorder: tuple[str, ...] | None = None,
    cluster: str | None = None,
    cells: tuple[str, ...] = (),
    target_mb: int = 64,
) -> dict[str, int]:
    """Joins the small files of each partition whose day is over, and says what it did.

    Files below half of `target_mb` are joined into files of about `target_mb`; with `zorder` rows are put into Z-order
    of those columns as well, and files that are not yet in it are written again; without it those that are in order are
    left alone. With `cluster` and `zorder` all that is written again of a partition is cut along the values of that
    column, so that who asks for some of them reads few files. What was done is not done again. Rows stay the same, the
    table's version moves on by one per commit, and apps stand where they stood. Writers are stopped for the moment of
    a commit only; a partition that another one compacted meanwhile is left to the next run.

        files of 3, 40, 5 and 10 MiB, target 64   ->   3, 5 and 10 become one; 40 is more than half, and stays

    Args:
        path: the table.
        before: the first day that is not touched, by the date among the partition columns; None: every partition.
        zorder: columns, as the contract's `zorder_by`; None: rows stay in the order of their files.
        cluster: a column, as the contract's `cluster_by`, by whose values rows lie together in each file.
        cells: columns, as the contract's `zorder_by`, by which rows that are joined without `zorder` lie near each
            other all the same, where they are of floating point (`zorder.in_cells`); files are due as without it.
        target_mb: how large files become, in MiB.

    Returns:
        partitions, files_before, files_after, rows, bytes_before, bytes_after: of what was written again.

    Raises:
        FairwayError: there is no table, or it has no date to go by; a TableError: see `foreign`.
    """
    table = required(path)
    _check(path, table, before)
    wanted = _Wanted(
        target=target_mb * _MB, cluster=cluster, zorder=zorder or (), cells=cells
    )
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
    for bins in _partitions(table, before, wanted):
        for files in bins:
            _rewrite(path, files, wanted, done)
        done["partitions"] += 1
    return done


def vacuum(path: Path, *, retention_h: int | None = None) -> int:
    """Deletes data files that no version needs any more that somebody may still read; gives how many.

    Args:
        path: the table.
        retention_h: how many hours a version can be read after it was replaced. None: the table's
            `delta.deletedFileRetentionDuration`; less than that is used as given, and takes old versions from their
            readers.

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
            )
        )


def _check(path: Path, table: DeltaTable, before: dt.date | None) -> None:
    require_writable(path, table, takes_out=True)
    if before is not None and day_column(table) is None:
        raise FairwayError(
            f"{path} is not partitioned by a date",
            hint="before = None compacts every partition",
        )


def _partitions(
    table: DeltaTable, before: dt.date | None, wanted: _Wanted
) -> list[list[list[File]]]:
    """Per partition, which files to join with each other; partitions with nothing to do are left out."""
    groups: dict[tuple[tuple[str, str | None], ...], list[File]] = {}
    for file in active_files(table):
        if before is None or (file.day is not None and file.day < before):
            groups.setdefault(file.values, []).append(file)
    return [bins for files in groups.values() if (bins := _bins(files, wanted))]


def _bins(files: list[File], wanted: _Wanted) -> list[list[File]]:
    small = [file for file in files if _is_due(file, wanted)]
    if wanted.cuts:
        return [small] if _is_worth(small, wanted.target) else []
    bins: list[list[File]] = []
    room = 0
    for file in small:
        if file.size > room or not bins:
            bins.append([])
            room = wanted.target
        bins[-1].append(file)
        room -= file.size
    return [
        files_of_bin
        for files_of_bin in bins
        if len(files_of_bin) > 1 or (wanted.zorder and not _is_sorted(files_of_bin[0]))
    ]


def _is_due(file: File, wanted: _Wanted) -> bool:
    """Whether a file is small, or its rows are not in order; what is in order is no matter of who asks for none."""
    is_small = file.size < wanted.target // 2
    if wanted.zorder:
        return is_small or not _is_sorted(file)
    return is_small and not _is_sorted(file)


def _is_worth(files: list[File], target: int) -> bool:
    """Whether files that are cut anew come into order, or become fewer."""
    fewest = -(-sum(file.size for file in files) // target)
    return fewest < len(files) or not all(map(_is_sorted, files))


def _is_sorted(file: File) -> bool:
    return Path(file.path).name.startswith(_SORTED)


def _rewrite(
    path: Path, files: list[File], wanted: _Wanted, done: dict[str, int]
) -> None:
    """Writes the rows of some files into new ones, which take their place in one commit."""
    schema = pa.schema(required(path).schema().to_arrow())
    prefix = _SORTED if wanted.zorder else _JOINED
    values = dict(files[0].values)
    added: list[AddAction] = []
    rows = 0
    for part in _rewritten(path, schema, files, wanted):
        added.append(write_file(path, part, values, prefix=prefix, data_change=False))
        rows += len(part)
    with locked(path):
        table = required(path)
        # Read and written without the lock, so that writers go on; who lost the race drops what it wrote.
        if not {file.path for file in files} <= {
            file.path for file in active_files(table)
        }:
            for action in added:
                (path / action.path).unlink()
            return
        commit(table, [*added, *removals(files, data_change=False)])
    done["files_before"] += len(files)
    done["files_after"] += len(added)
    done["rows"] += rows
    done["bytes_before"] += sum(file.size for file in files)
    done["bytes_after"] += sum(action.size for action in added)


def _rewritten(
    path: Path, schema: pa.Schema, files: list[File], wanted: _Wanted
) -> Iterator[pa.Table]:
    """The rows of the new files, one after the other."""
    if not wanted.cuts:
        joined = read_files(path, schema, files)
        yield _by_region(joined, wanted)
        return
    partition = dict(files[0].values)
    inner = pa.schema([field for field in schema if field.name not in partition])
    parts = dataset_of(path, inner, [], [(file.path, []) for file in files])
    bytes_a_row = sum(file.size for file in files) / max(parts.count_rows(), 1)
    for part in cut(
        parts, wanted.cluster or "", max(int(wanted.target / bytes_a_row), 1)
    ):
        yield _by_region(part, wanted)


def _by_region(part: pa.Table, wanted: _Wanted) -> pa.Table:
    """Rows in Z-order, then by their cluster: in Z-order inside of each; or in cells."""
    is_floating = [
        pa.types.is_floating(part.schema.field(n).type) for n in wanted.cells
    ]
    if is_floating and all(is_floating) and not wanted.zorder:
        return in_cells(part, wanted.cluster, wanted.cells)
    return in_clusters(in_zorder(part, wanted.zorder), wanted.cluster)
