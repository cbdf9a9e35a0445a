"""One committer at a time per table: on local disk two of them can lose a commit (docs/adr/0014)."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from st_common.storage import make_folder

_held = threading.local()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a table's lock while the body of a `with` runs, against other processes and threads.

    The same thread may enter it again. The lock is the file `.NAME.lock` beside the table's folder `NAME`.
    """
    lock = path.parent / f".{path.name}.lock"
    depths: dict[Path, int] = _held.__dict__.setdefault("depths", {})
    if depths.get(lock):
        yield
        return
    make_folder(lock.parent)
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        depths[lock] = 1
        yield
    finally:
        depths.pop(lock, None)
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)
