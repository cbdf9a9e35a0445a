"""Small JSON records in a stream's folder: written whole or not at all, read even while they are replaced."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path
from typing import Any


def write_record(path: Path, record: Mapping[str, Any], *, private: bool = False) -> None:
    """Replaces the record by one rename, synced to disk first: a reader sees the old one or the new one.

    A private one can be read by its owner alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("w", encoding="utf-8") as file:
        if private:
            os.fchmod(file.fileno(), 0o600)
        json.dump(record, file, separators=(",", ":"))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def read_record(path: Path) -> dict[str, Any] | None:
    """The record, or None when there is none or it is no JSON object (what a torn disk leaves behind)."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError, json.JSONDecodeError):
        return None
    return record if isinstance(record, dict) else None


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Adds one line to a JSON-lines file; a single write, so that two writers never mix their lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, separators=(",", ":")) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())


@contextmanager
def held_lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Holds a lock file between processes; the system frees it when its holder dies.

    Yields:
        True while the lock is held; False, only with `wait=False`, when somebody else holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
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
