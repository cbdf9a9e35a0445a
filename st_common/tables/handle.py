"""Open tables, one handle per process and path, brought up to date at each use."""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from st_common.asking import require_descriptors
from st_common.errors import FairwayError, TableError
from st_common.tables.foreign import refused, unsupported

_Identity = tuple[int, int]
"""Device and inode of a table's log; or inode and change of a commit, a time that no copy can keep (`st_ctime_ns`).

A table that was deleted and made again, or brought back from a copy, is another one: also where the file system gives
it the same inodes, and the copy the same times.
"""


@dataclass(slots=True)
class _Open:
    table: DeltaTable
    folder: _Identity
    newest: _Identity | None  # the commit that the handle stands at
    process: int  # a forked child must not use its parent's handles: the threads behind them are not there


_DESCRIPTORS = 16  # ten are those of the threads; the others are for the table
_begun: set[int] = set()  # the processes in which delta-rs has its threads: this one
_open: dict[str, _Open] = {}
_lock = threading.RLock()


def newest(path: Path) -> DeltaTable | None:
    """The newest version of the table at `path`; None when there is none.

    The handle is shared in the process and moves on when somebody asks for the path again: whoever needs one version
    through several steps asks for that version by number.

    Raises:
        TableError: the table's log cannot be read.
    """
    folder = _log_folder(path)
    if folder is None:
        return None
    with _lock:
        known = _open.get(str(path))
        if known is None or not _is_same(known, path, folder):
            return _kept(path, folder)
        before = known.table.version()
        try:
            known.table.update_incremental()
        except (DeltaError, OSError):
            return _kept(path, folder)  # what lay between was cleaned away
        if known.table.version() != before:
            known.newest = _commit(path, known.table)
        return known.table


def required(path: Path) -> DeltaTable:
    """The newest version of the table at `path`, as `newest`.

    Raises:
        FairwayError: there is no table yet, or its log cannot be read.
    """
    table = newest(path)
    if table is None:
        raise FairwayError(
            f"there is no table {path}", hint="nothing was written to it yet"
        )
    return table


def opened(path: Path) -> DeltaTable | None:
    """The newest version of the table at `path`, by a handle of its own, which stays at that version; None for none.

    Raises:
        TableError: the table's log cannot be read.
    """
    try:
        return at_version(path)
    except TableNotFoundError:  # a log folder in which no commit stands yet, too
        return None
    except (DeltaError, OSError) as error:
        raise unreadable(path, error) from error


def at_version(path: Path, version: int | None = None) -> DeltaTable:
    """A version of a table, by a handle of its own; None: the newest. All are opened here.

    Raises:
        DeltaError: there is no such table or version, or its log cannot be read.
        OSError: the process may open too few files more.
    """
    with beginning():
        return DeltaTable(str(path), version=version)


@contextmanager
def beginning() -> Iterator[None]:
    """In the body delta-rs may begin its threads, as it does with the first table of a process.

    Where they get no descriptors, or cannot begin, it panics, which no `except Exception` catches.

    Raises:
        OSError: the process may open too few files more, or has no threads left.
    """
    if os.getpid() in _begun:
        yield
        return
    require_descriptors(_DESCRIPTORS)
    try:
        yield
    except BaseException as error:
        if (
            type(error).__name__ != "PanicException"
        ):  # of a module that is not to be had
            raise
        raise OSError(errno.EAGAIN, str(error)) from error
    _begun.add(os.getpid())


def forget(path: Path) -> None:
    """Drops the open handle of a table; the next use opens it again."""
    with _lock:
        _open.pop(str(path), None)


def _kept(path: Path, folder: _Identity) -> DeltaTable | None:
    table = opened(path)
    if table is None:
        return None
    _open[str(path)] = _Open(table, folder, _commit(path, table), os.getpid())
    return table


def unreadable(path: Path, error: Exception) -> TableError:
    """The error for people of a table whose log cannot be read."""
    features = unsupported(error)
    if features:
        return refused(path, features, "read")
    return TableError(
        f"{path} cannot be opened: {_said(error)}",
        hint="its engine brings it back at its next start, or `fairway doctor --repair` does",
    )


def _said(error: Exception) -> str:
    """What an error of Delta says, on one line, without its values printed for programmers."""
    return str(error).splitlines()[0].partition(": ParsedLogPath")[0]


def _is_same(known: _Open, path: Path, folder: _Identity) -> bool:
    return (
        known.folder == folder
        and known.process == os.getpid()
        and known.newest == _commit(path, known.table)
    )


def _commit(path: Path, table: DeltaTable) -> _Identity | None:
    """The commit of the table's version; None where no file of it is left."""
    try:
        found = (path / "_delta_log" / f"{table.version():020d}.json").stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_ctime_ns


def _log_folder(path: Path) -> _Identity | None:
    try:
        folder = (path / "_delta_log").stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return folder.st_dev, folder.st_ino
