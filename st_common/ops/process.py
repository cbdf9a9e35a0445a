"""Which process: a pid means nothing alone, for it is given out again; with host and start time it is one process."""

import os
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import psutil

_SAME_START_S = 2.0  # psutil derives start times from the boot time, which clock corrections shift a little


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One process on one host; `started_s` is its start in seconds since 1970."""

    host: str
    pid: int
    started_s: float

    def to_json(self) -> dict[str, Any]:
        """A JSON object with host, pid and start time."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self | None:
        """The owner in a record, or None when the record names none."""
        try:
            return cls(host=str(record["host"]), pid=int(record["pid"]), started_s=float(record["started_s"]))
        except (KeyError, TypeError, ValueError):
            return None


def this_host() -> str:
    """The name under which processes of this machine are recorded."""
    return socket.gethostname()


def owner_of(pid: int) -> Owner | None:
    """The living process with this pid, or None; a zombie, which nobody has collected yet, is dead."""
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        return Owner(host=this_host(), pid=pid, started_s=process.create_time())
    except psutil.Error:
        return None


def this_process() -> Owner:
    """The process that asks."""
    return Owner(host=this_host(), pid=os.getpid(), started_s=psutil.Process().create_time())


def lives(owner: Owner) -> bool:
    """Whether exactly this process runs on this host; another process with the same pid is not it."""
    if owner.host != this_host():
        return False
    now = owner_of(owner.pid)
    return now is not None and abs(now.started_s - owner.started_s) < _SAME_START_S


def find_command(arguments: Sequence[str]) -> Owner | None:
    """The oldest living process whose command line after the program is exactly `arguments`, or None.

    Costs a walk over the process table: for the moment before a start, not for every look.
    """
    found: list[Owner] = []
    for process in psutil.process_iter(["pid", "cmdline", "create_time", "status"]):
        info = process.info
        if info["cmdline"] and info["cmdline"][1:] == list(arguments) and info["status"] != psutil.STATUS_ZOMBIE:
            found.append(Owner(host=this_host(), pid=info["pid"], started_s=info["create_time"]))
    return min(found, key=lambda owner: owner.started_s, default=None)


def kill_session(owner: Owner) -> int:
    """Kills the process and everything that it started and that stayed in its session (a JVM, Python workers).

    Works after the process itself has died: its number is not given out again while members of its session live.
    Never touches a later process that got the same pid, nor one of another start of the machine.

    Returns:
        How many processes were sent the kill signal.
    """
    if owner.host != this_host() or owner.started_s < psutil.boot_time() - _SAME_START_S:
        return 0
    leader = owner_of(owner.pid)
    if leader is not None and not lives(owner):
        return 0
    members = [pid for pid in psutil.pids() if pid != os.getpid() and (pid == owner.pid or _session(pid) == owner.pid)]
    return sum(_kill(pid) for pid in members)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
