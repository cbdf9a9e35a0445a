"""What makes a commit survive a power cut: neither Parquet's nor Delta's writer syncs a file (SPEC S2)."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from st_common.tables.sums import note_sums

_LOG = "_delta_log"
_CHECKPOINT = "_last_checkpoint"
_DOUBTED = 8  # versions before the newest that a process syncs at its first commit: their writer may have been killed

_synced: dict[
    Path, int
] = {}  # the newest version of each table's log that this process has synced
_noted: dict[Path, str] = {}  # the checkpoint of each whose checksum this process noted


def sync_files(paths: Iterable[Path], table: Path) -> None:
    """Makes data files of a table durable, with the folders down to them; called before the commit that names them.

    Args:
        paths: the files.
        table: the table's folder.
    """
    folders = {table}
    for path in paths:
        _sync(path)
        folders.update(
            parent for parent in path.parents if parent.is_relative_to(table)
        )
    for folder in sorted(folders):
        _sync(folder)


def sync_before(table: Path) -> None:
    """Makes durable what stands in a table's log, where another process committed it: it may have died before it had.

    Called before each commit, so that a power cut never takes a version and leaves one that was built on it: a hole.

    Call it inside `locked(table)`.
    """
    folder, known = table / _LOG, _synced.get(table)
    if (
        known is None
        or not (folder / log_name(known)).exists()
        or (folder / log_name(known + 1)).exists()
    ):
        sync_log(table)


def sync_log(table: Path) -> None:
    """Makes the newest versions of a table durable, whoever committed them; nobody may rely on a commit before.

    Their checksums are noted: see `sums`.

    Call it inside `locked(table)`.
    """
    folder = table / _LOG
    version = _synced.get(table)
    doubted = version is None or not (folder / log_name(version)).exists()
    if version is None or doubted:
        version = max(newest_version(table) - _DOUBTED, -1)
    commits = []
    while (folder / log_name(version + 1)).exists():
        version += 1
        _sync(folder / log_name(version))
        commits.append(log_name(version))
    checkpoint = _checkpoint_files(table)
    for name in checkpoint:
        with suppress(FileNotFoundError):
            _sync(folder / name)
    note_sums(table, commits, known=doubted)
    if checkpoint and _noted.get(table) != checkpoint[0]:
        note_sums(table, checkpoint[:1], known=True)
        _noted[table] = checkpoint[0]
    for place in (folder, table, table.parent):
        _sync(place)
    _synced[table] = version


def sync_cut(table: Path) -> None:
    """Makes durable that versions were taken away: no power cut brings one back behind those that follow now."""
    _sync(table / _LOG)


def log_name(version: int) -> str:
    """The name of the file of a version in the table's log."""
    return f"{version:020d}.json"


def newest_version(table: Path) -> int:
    """The newest version that the table's log has a file of; -1 for none."""
    names = [path.stem for path in (table / _LOG).glob("*.json")]
    return max((int(name) for name in names if name.isdigit()), default=-1)


def checkpointed(table: Path) -> int:
    """The version of the table's newest checkpoint; -1 for none."""
    try:
        pointer = json.loads((table / _LOG / _CHECKPOINT).read_bytes())
        return int(pointer["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return -1


def _checkpoint_files(table: Path) -> list[str]:
    """The newest checkpoint and the file that points to it."""
    version = checkpointed(table)
    return [f"{version:020d}.checkpoint.parquet", _CHECKPOINT] if version >= 0 else []


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
