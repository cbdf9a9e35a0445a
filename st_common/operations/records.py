"""Small JSON records in a stream's folder: written whole or not at all, read even while they are replaced."""

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from io import FileIO
from pathlib import Path
from typing import Any

from st_common.record import opened, sealed
from st_common.storage import LocalStorage, make_folder


def write_record(
    path: Path,
    record: Mapping[str, Any],
    *,
    private: bool = False,
) -> None:
    """Replaces a record, durable when this returns: a reader sees the old one or the new one, whole.

    Args:
        path: the file; its folder is made when it is absent.
        record: JSON values by name.
        private: only its owner may read it.

    Raises:
        StorageError: the disk is full, or refuses.
    """
    LocalStorage(path.parent).put(path.name, sealed(record), private=private)


def read_record(path: Path) -> dict[str, Any] | None:
    """A record; None when there is none, when it is no JSON object (what a torn disk leaves behind) or was changed."""
    try:
        return opened(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Adds one line to a JSON-lines file; a single write, so that two writers never mix their lines.

    Nobody but its owner may read the file: its lines hold words of others. A line of which a full disk took a part
    ends where the next one begins.

    Raises:
        OSError: the disk did not take all of it.
    """
    make_folder(path.parent)
    line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    with private_append(path) as file:
        torn = (
            file.seek(0, os.SEEK_END) > 0
            and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n"
        )
        line = b"\n" * torn + line
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def private_append(path: Path) -> FileIO:
    """A file to append to that only its owner may read and write, also when it was there before."""
    number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with suppress(PermissionError):  # it belongs to somebody else, who let us write
        os.fchmod(number, 0o600)
    return FileIO(number, "ab")


def private_folder(path: Path) -> None:
    """Makes a folder, when there is none, that only its owner may look into."""
    make_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def held_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Holds a lock file between processes while the body of a `with` runs; the system frees it when its holder dies.

    Args:
        path: the file; it stays there.
        wait: wait for another holder; otherwise the body runs without the lock and is told so.

    Yields:
        True while the lock is held; False, only with `wait=False`, when somebody else holds it.
    """
    make_folder(path.parent)
    with path.open("a+b") as file:
        try:
            flock(file, LOCK_EX if wait else LOCK_EX | LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            flock(file, LOCK_UN)
