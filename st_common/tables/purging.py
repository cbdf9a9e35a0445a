"""Rows that a table keeps no longer: whole files go in one commit, which says before which place rows are gone."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import Transaction

from st_common.tables.active import active_files, commit, removals
from st_common.tables.durable import checkpointed, sync_log
from st_common.tables.handle import newest, required
from st_common.tables.lock import locked
from st_common.tables.reading import PURGED, PURGED_ROWS, purged_rows
from st_common.tables.sums import trim_sums

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What went: files, the rows in them, their bytes. The files are deleted when no reader can want them any more."""

    files: int = 0
    rows: int = 0
    bytes: int = 0


def purge(
    path: Path,
    is_gone: Callable[[pa.Table], Mask],
    *,
    before: int | None = None,
    dry: bool = False,
) -> Purged:
    """Takes files out of a table, all in one commit; a crash leaves all of them or none.

    Args:
        path: the table's folder.
        is_gone: given the table's add actions, flattened (columns `partition.NAME`, `min.NAME`, `max.NAME`), a file a
            row, which of them go.
        before: the place in the log before which rows are gone then, as `purged_before` gives it; None: the table has
            no such places.
        dry: only say what would go.

    Returns:
        What went; nothing is committed when nothing goes.

    Raises:
        FairwayError: there is no table.
    """
    with locked(path):
        _, gone, purged = purgeable(path, is_gone)
        if len(gone) and not dry:
            table, names = required(path), set(gone["path"].to_pylist())
            files = [file for file in active_files(table) if file.path in names]
            marks = _marks(path, purged.rows, before)
            commit(table, removals(files, data_change=True), marks)
    return purged


def purgeable(
    path: Path, is_gone: Callable[[pa.Table], Mask]
) -> tuple[pa.Table, pa.Table, Purged]:
    """The add actions of a table, those whose files go, and what these come to; see `purge`.

    Raises:
        FairwayError: there is no table.
    """
    actions = pa.table(required(path).get_add_actions(flatten=True))
    gone = actions.filter(pa.array(is_gone(actions)))
    purged = Purged(
        files=len(gone),
        rows=sum(gone["num_records"].to_pylist()),
        bytes=sum(gone["size_bytes"].to_pylist()),
    )
    return actions, gone, purged


def mark_purged(path: Path, rows: int, before: int | None) -> None:
    """Notes in a commit of its own that rows go, as `purge` does in the one that takes them.

    Call it inside `locked(path)`.

    Args:
        path: the table's folder.
        rows: how many.
        before: as for `purge`.
    """
    commit(required(path), [], _marks(path, rows, before))


def _marks(path: Path, rows: int, before: int | None) -> list[Transaction]:
    marks = [Transaction(PURGED_ROWS, purged_rows(path) + rows)]
    return marks if before is None else [*marks, Transaction(PURGED, before)]


def checkpoint(path: Path, *, keeps_commits: bool = False) -> None:
    """Writes a Delta checkpoint when commits came since the last one, and deletes old commits that it holds.

    Old is older than the table's `delta.logRetentionDuration`.

    Args:
        path: the table's folder; nothing happens when there is no table.
        keeps_commits: none is deleted: old versions can be read by their numbers, see `drop_versions`.
    """
    with locked(path):
        table = newest(path)
        if table is None:
            return
        if table.version() > checkpointed(path):
            table.create_checkpoint()
        if not keeps_commits:
            table.cleanup_metadata()
        sync_log(path)
        trim_sums(path)
