"""Which process: a pid means nothing alone, for it is given out again; with host and start time it is one process."""

import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import psutil

_PROC = Path("/proc")
_SAME_START_S = 2.0  # of records without start ticks: start times shift a little with corrections of the clock
_START_FIELD = 19  # of /proc/PID/stat, counted behind the command's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One process on one host.

    A pid is given out again, and clocks are set; so a process is known by its machine's start, its space of process
    numbers and its start in ticks, none of which a clock that is set, or that stood still while the machine slept,
    changes. Records of older versions lack these three.

    Attributes:
        host: the name of the machine.
        pid: its number.
        started_s: when it started, seconds since 1970, for people.
        boot: which start of the machine.
        namespace: the space of process numbers that it lives in, a container's own.
        ticks: its start in clock ticks since the machine's; -1: not recorded.
    """

    host: str
    pid: int
    started_s: float
    boot: str = ""
    namespace: str = ""
    ticks: int = -1

    def to_json(self) -> dict[str, Any]:
        """A JSON object with all fields."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self | None:
        """The owner in a record, or None when the record names none."""
        try:
            return cls(
                host=str(record["host"]),
                pid=int(record["pid"]),
                started_s=float(record["started_s"]),
                boot=str(record.get("boot", "")),
                namespace=str(record.get("namespace", "")),
                ticks=int(record.get("ticks", -1)),
            )
        except (KeyError, TypeError, ValueError):
            return None


def this_host() -> str:
    """The name under which processes of this machine are recorded."""
    return socket.gethostname()


def this_boot() -> str:
    """What tells this start of the machine from all others."""
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def this_namespace() -> str:
    """What tells this space of process numbers from those of other containers of the machine."""
    return str((_PROC / "self/ns/pid").readlink())


def owner_of(pid: int) -> Owner | None:
    """The living process with a pid.

    Returns:
        None when there is none; a zombie, which nobody has collected yet, is dead.
    """
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        return Owner(
            host=this_host(),
            pid=pid,
            started_s=process.create_time(),
            boot=this_boot(),
            namespace=this_namespace(),
            ticks=_start_ticks(pid),
        )
    except (psutil.Error, OSError):
        return None


def this_process() -> Owner:
    """The process that asks."""
    me = owner_of(os.getpid())
    assert me is not None  # noqa: S101 - who asks lives
    return me


def can_look_at(owner: Owner) -> bool:
    """Whether the process, if it lives, would be seen from here: on this host, and not in another container."""
    if owner.boot and owner.boot == this_boot():
        return owner.namespace == this_namespace()
    return owner.host == this_host()


def lives(owner: Owner) -> bool:
    """Whether exactly this process runs here.

    Another process with the same pid is not it, nor one from before the machine started anew. A process that cannot be
    looked at from here, on another host or in another container, does not count as living: ask `can_look_at` first.

    Args:
        owner: the process.
    """
    if not can_look_at(owner) or (owner.boot and owner.boot != this_boot()):
        return False
    now = owner_of(owner.pid)
    if now is None:
        return False
    return (
        now.ticks == owner.ticks
        if owner.ticks >= 0
        else abs(now.started_s - owner.started_s) < _SAME_START_S
    )


def _start_ticks(pid: int) -> int:
    fields = (
        (_PROC / str(pid) / "stat")
        .read_text(encoding="utf-8", errors="replace")
        .rpartition(")")[2]
        .split()
    )
    return int(fields[_START_FIELD])


def start_of(owner: Owner) -> int:
    """When a process of this machine started, us since 1970, to a hundredth of a second; of others what is recorded.

    The start of the machine in /proc/stat is whole seconds: by the recorded time a process seems to have started up to
    a second early, and to have said what the one before it said last.
    """
    if owner.ticks < 0 or owner.boot != this_boot():
        return int(owner.started_s * 1e6)
    up_us = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    age_us = up_us - owner.ticks * 1_000_000 // os.sysconf("SC_CLK_TCK")
    return time.time_ns() // 1000 - age_us


def find_command(arguments: Sequence[str]) -> Owner | None:
    """The oldest living process whose command line after the program is exactly `arguments`, or None.

    Costs a walk over the process table: for the moment before a start, not for every look.
    """
    owners: list[Owner] = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        info = process.info
        if (
            info["cmdline"]
            and info["cmdline"][1:] == list(arguments)
            and info["status"] != psutil.STATUS_ZOMBIE
        ):
            owner = owner_of(info["pid"])
            owners += [owner] if owner is not None else []
    return min(owners, key=lambda owner: owner.started_s, default=None)


def kill_session(owner: Owner) -> int:
    """Kills the process and everything that it started and that stayed in its session (a JVM, Python workers).

    Returns:
        How many processes were sent the kill signal; see `session_of` for which.
    """
    return sum(map(_kill, session_of(owner)))


def session_of(owner: Owner) -> list[int]:
    """The process, if it lives, and everything that it started and that stayed in its session, without this process.

    Works after the process itself has died: its number is not given out again while members of its session live.
    Never a later process that got the same pid, nor one of another start of the machine.
    """
    if not can_look_at(owner) or _is_of_another_boot(owner):
        return []
    leader = owner_of(owner.pid)
    if leader is not None and not lives(owner):
        return []
    return [
        pid
        for pid in psutil.pids()
        if pid != os.getpid() and (pid == owner.pid or _session(pid) == owner.pid)
    ]


def _is_of_another_boot(owner: Owner) -> bool:
    if owner.boot:
        return owner.boot != this_boot()
    return owner.started_s < psutil.boot_time() - _SAME_START_S


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
