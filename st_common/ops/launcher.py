"""Starting an engine as a process of its own that outlives whoever started it, and never starting it twice."""

import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from st_common.errors import FencedError
from st_common.ops.lease import current, is_held, named
from st_common.ops.process import Owner, find_command, lives, owner_of, this_host
from st_common.ops.records import held_lock, private_append, read_record, write_record

ENGINE_FILE = "engine.json"
LOG_FILE = "engine.log"
_LOG_LIMIT = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A living engine.

    Attributes:
        owner: its process.
        launched: it was started by `launch`, and not by a person.
    """

    owner: Owner
    launched: bool


def recorded(folder: Path) -> Owner | None:
    """The process that was launched last for this stream, living or not."""
    record = read_record(folder / ENGINE_FILE)
    return Owner.from_json(record) if record else None


def find(folder: Path, *, now_us: int) -> Running | None:
    """The living engine of a stream as its records tell: what was launched, or else who holds the lease.

    Args:
        folder: the stream's folder.
        now_us: now, us since 1970; by it a process that cannot be looked at from here counts as living for a while.

    Returns:
        None when no process lives.
    """
    launched = recorded(folder)
    if launched is not None and lives(launched):
        return Running(owner=launched, launched=True)
    lease = current(folder)
    if lease is not None and is_held(lease, now_us=now_us):
        return Running(owner=lease.owner, launched=False)
    return None


def launch(
    folder: Path,
    command: Sequence[str],
    *,
    now_us: int,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Owner:
    """Starts `command` in a session of its own, its output in `engine.log`, and records pid and start time.

    Looks before it starts, at the records and at the process table: whoever launched before may have died between
    starting and recording, and such an engine is recorded now. Holds a lock file over look, start and record.

    Args:
        folder: The stream's folder.
        command: Program and arguments; they name stream and home, so that they identify the engine.
        now_us: The time in microseconds since 1970.
        cwd: The working folder of the engine, by default the present one.
        env: The engine's environment, by default the present one.

    Raises:
        FencedError: an engine of this stream lives.
    """
    with held_lock(folder / ".launch.lock"):
        _refuse_second(folder, command, now_us=now_us)
        with _open_log(folder) as log:
            process = subprocess.Popen(  # noqa: S603 - the command is built by the supervisor, never by a shell
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=dict(env) if env is not None else None,
                # It outlives this process, and a kill of its session takes all that it started.
                start_new_session=True,
            )
        threading.Thread(
            target=process.wait, daemon=True
        ).start()  # or it stays a zombie while this process lives
        owner = owner_of(process.pid) or Owner(
            host=this_host(), pid=process.pid, started_s=now_us / 1e6
        )
        _record(folder, owner, command)
        return owner


def _refuse_second(folder: Path, command: Sequence[str], *, now_us: int) -> None:
    running = find(folder, now_us=now_us)
    if running is None:
        # A launcher that died between start and record left an engine that nobody knows.
        lost = find_command(command[1:])
        if lost is None:
            return
        _record(folder, lost, command)
        running = Running(owner=lost, launched=True)
    raise FencedError(
        f"{named(folder)} is run by process {running.owner.pid} already",
        hint="it has one process at a time",
    )


def _record(folder: Path, owner: Owner, command: Sequence[str]) -> None:
    write_record(
        folder / ENGINE_FILE,
        {**owner.to_json(), "command": list(command), "log": str(folder / LOG_FILE)},
    )


def _open_log(folder: Path) -> FileIO:
    path = folder / LOG_FILE
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        path.replace(path.with_suffix(".log.1"))
    return private_append(path)
