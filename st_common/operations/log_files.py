"""Logs of processes that run for months: one that has grown is emptied, and what it held is kept beside it.

    streams/S/engine.log      16 MiB and more    ->    streams/S/engine.log.1, and engine.log is empty

Who writes has the file open to append and goes on in it, without being asked. What he writes in the moment between copy
and cut is lost: some lines of a log at most, and nothing else reads them.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from st_common.config.home import Home

LIMIT_BYTES = 16 << 20
_PLACES = ("logs/*.log", "streams/*/*.log", "streams/*/join/*.log", "deliveries/*/*.log")  # fmt: skip


def rotate_logs(home: Home) -> None:
    """Rotates every log of a home that has grown.

    Args:
        home: the home folder.
    """
    for pattern in _PLACES:
        for path in home.root.glob(pattern):
            rotate(path)


def rotate(path: Path) -> None:
    """Empties a log that has reached `LIMIT_BYTES`; what it held replaces PATH.1, for its owner alone.

    One that cannot be copied now, for the disk is full, stays as it is.

    Args:
        path: the log; it need not be there.
    """
    before = path.with_name(f"{path.name}.1")
    part = before.with_name(f".{before.name}.part")
    with suppress(OSError):
        if path.stat().st_size < LIMIT_BYTES:
            return
        try:
            _copy(path, part)
            part.replace(before)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        os.truncate(path, 0)


def _copy(path: Path, to: Path) -> None:
    """Copies a file to one that only its owner may read."""
    number = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with path.open("rb") as source, os.fdopen(number, "wb") as target:
        shutil.copyfileobj(source, target)
