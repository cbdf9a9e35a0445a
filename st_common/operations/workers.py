"""Processes that work for a stream, as each says of itself: version, CPU, memory, disk (SPEC B18)."""

import shutil
import time
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from st_common.installed import own_version
from st_common.operations.process import this_host


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What a process says of itself.

    Attributes:
        role: `engine`, which leads a stream, or `task`, which steps shards for it.
        host: its machine.
        pid: its number there.
        version: of Fairway; None: the process has it as a folder, which has none.
        cpu_s: the seconds of CPU that it took since it was started.
        cpu_share: of one core, since it spoke before; None: it had not.
        memory_bytes: what it holds in memory.
        disk_free_bytes: what is free where the home lies; None: nobody can tell.
        disk_bytes: how large that disk is.
        shards: which shards it has; None: all of them.
    """

    role: str
    host: str
    pid: int
    version: str | None
    cpu_s: float
    cpu_share: float | None
    memory_bytes: int
    disk_free_bytes: int | None
    disk_bytes: int | None
    shards: list[int] | None = None

    def to_json(self) -> dict[str, Any]:
        """A JSON object with all fields."""
        return asdict(self)


def _version_of_this() -> str | None:
    try:
        return own_version()
    except metadata.PackageNotFoundError:
        return None


@dataclass
class Meter:
    """Reads what this process takes.

    Attributes:
        role: see `Worker`.
        folder: on the disk that counts.
    """

    role: str
    folder: Path
    _version: str | None = field(default_factory=_version_of_this)
    _process: psutil.Process = field(default_factory=psutil.Process)
    _before: tuple[float, float] | None = None  # monotonic seconds, CPU seconds

    def read(self) -> Worker:
        """What it takes now; its share of a core counts from the reading before."""
        now_s, cpu_s = time.monotonic(), time.process_time()
        share = None
        if self._before is not None and now_s > self._before[0]:
            share = (cpu_s - self._before[1]) / (now_s - self._before[0])
        self._before = now_s, cpu_s
        free, size = _disk_of(self.folder)
        return Worker(
            role=self.role,
            host=this_host(),
            pid=self._process.pid,
            version=self._version,
            cpu_s=round(cpu_s, 3),
            cpu_share=None if share is None else round(share, 3),
            memory_bytes=self._process.memory_info().rss,
            disk_free_bytes=free,
            disk_bytes=size,
        )


def _disk_of(folder: Path) -> tuple[int | None, int | None]:
    """Bytes that are free, and that there are; None where the folder is on no disk."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None, None
    return usage.free, usage.total
