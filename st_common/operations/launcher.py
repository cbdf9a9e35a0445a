"""Starting an engine that outlives whoever started it, and never starting it twice.

It is a process of this machine, in a session of its own, or a driver that a cluster owns. Which of them it is stands in
`engine.json`, so that settings may change while it runs: whoever looks for it, or kills it, asks the record.
"""

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from st_common.config.spark import SparkSettings
from st_common.errors import FencedError, StorageError, TransientError
from st_common.operations import standalone
from st_common.operations.lease import current, is_held, named
from st_common.operations.process import (
    Owner,
    find_command,
    kill_session,
    lives,
    owner_of,
    this_host,
)
from st_common.operations.records import (
    held_lock,
    private_append,
    read_record,
    write_record,
)
from st_common.operations.status import read_exit, write_exit

ENGINE_FILE = "engine.json"
LOG_FILE = "engine.log"
_LAST_BYTES = 4096
_LOST_S = 180.0  # a driver whose id was lost with the master's answer counts as living so long


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A living engine.

    Attributes:
        owner: its process.
        launched: it was started by a launcher, and not by a person.
    """

    owner: Owner
    launched: bool


class Launcher(Protocol):
    """How engines are started."""

    def launch(self, folder: Path, command: Sequence[str], *, now_us: int) -> None:
        """Starts an engine and records it; see `launch`.

        Args:
            folder: the stream's folder.
            command: program and arguments.
            now_us: now, us since 1970.

        Raises:
            FencedError: an engine of this stream lives.
            TransientError: it cannot be started now.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """Engines are processes of this machine.

    Attributes:
        cwd: the folder that they run in; None: the present one.
        place: where their tasks run. A cluster must answer before an engine is started.
    """

    cwd: Path | None = None
    place: SparkSettings = field(default_factory=SparkSettings)

    def launch(self, folder: Path, command: Sequence[str], *, now_us: int) -> None:
        """See `Launcher.launch`."""
        standalone.check_master(folder.name, self.place)
        launch(folder, command, now_us=now_us, cwd=self.cwd)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCluster:
    """Engines are drivers of a standalone cluster; their command is a Python, a file and its arguments."""

    place: SparkSettings

    def launch(self, folder: Path, command: Sequence[str], *, now_us: int) -> None:
        """See `Launcher.launch`.

        The submission is recorded before it is made: an answer that is lost leaves an engine that somebody knows.
        """
        standalone.check_rest(folder.name, self.place)
        with held_lock(folder / ".launch.lock"):
            running = find(folder, now_us=now_us)
            if running is not None:
                raise _already(folder, running)
            lost = standalone.Submission(
                rest=str(self.place.rest), id="", submitted_s=now_us / 1e6
            )
            _record_driver(folder, lost, command)
            python, *words = command
            try:
                made = standalone.submit(
                    self.place, f"fairway-{folder.name}", words, python=python
                )
            except standalone.RefusedError:
                (folder / ENGINE_FILE).unlink()
                raise
            _record_driver(folder, replace(lost, id=made), command)


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

    Raises:
        TransientError: a cluster was handed the engine, and its master does not answer.
    """
    submission = submitted(folder)
    if submission is not None:
        return _find_driver(folder, submission, now_us=now_us)
    launched = recorded(folder)
    if launched is not None and lives(launched):
        return Running(owner=launched, launched=True)
    return _holder(folder, now_us=now_us)


def submitted(folder: Path) -> standalone.Submission | None:
    """The driver that a cluster was handed last for this stream, living or not; None when it was no driver."""
    record = read_record(folder / ENGINE_FILE)
    return standalone.Submission.from_json(record) if record else None


def kill_launched(folder: Path) -> int:
    """Kills what was launched last for a stream, and what is left of it; a person's engine is left alone.

    Returns:
        How many processes, or drivers, were killed.

    Raises:
        TransientError: a master does not answer.
    """
    submission = submitted(folder)
    if submission is not None:
        return int(bool(submission.id) and standalone.kill(submission))
    launched = recorded(folder)
    return 0 if launched is None else kill_session(launched)


def _holder(folder: Path, *, now_us: int) -> Running | None:
    """Who holds the lease without having been launched."""
    lease = current(folder)
    if lease is not None and is_held(lease, now_us=now_us):
        return Running(owner=lease.owner, launched=False)
    return None


def _find_driver(
    folder: Path, submission: standalone.Submission, *, now_us: int
) -> Running | None:
    """A driver as its master and the lease tell; where the master is silent, a held lease is enough."""
    holder = _holder(folder, now_us=now_us)
    driver = Owner(host=submission.rest, pid=0, started_s=submission.submitted_s)
    if not submission.id:
        is_young = now_us / 1e6 - submission.submitted_s < _LOST_S
        return holder or (Running(owner=driver, launched=True) if is_young else None)
    try:
        fate = standalone.fate_of(submission)
    except TransientError:
        if holder is None:
            raise
        return holder
    if fate is standalone.Fate.GONE:
        return holder
    return Running(owner=driver, launched=True)


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
        with private_append(folder / LOG_FILE) as log:
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
        owner = owner_of(process.pid) or Owner(
            host=this_host(), pid=process.pid, started_s=now_us / 1e6
        )
        _record(folder, owner, command)
        threading.Thread(
            target=_collect, args=(process, folder, owner), daemon=True
        ).start()
        return owner


def _collect(process: subprocess.Popen[bytes], folder: Path, owner: Owner) -> None:
    """Waits for a process, or it stays a zombie while this one lives; records how it ended where it did not itself.

    A process says how it ended when its own code sees the end: not of an unknown option, nor where a library ended it.
    """
    code = process.wait()
    left = read_exit(folder)
    said = left is not None and _is_same(left.owner, owner)
    if code <= 0 or said or not folder.is_dir():
        return
    with suppress(StorageError, OSError):  # a full disk: the next look sees it dead
        write_exit(folder, code=code, message=_last_line(folder), owner=owner)


def _is_same(one: Owner, other: Owner) -> bool:
    return (one.pid, one.ticks) == (other.pid, other.ticks)


def _last_line(folder: Path) -> str:
    """The last line that an engine wrote that says something; "" when there is none."""
    with (folder / LOG_FILE).open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - _LAST_BYTES, 0))
        lines = file.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _refuse_second(folder: Path, command: Sequence[str], *, now_us: int) -> None:
    running = find(folder, now_us=now_us)
    if running is None:
        # A launcher that died between start and record left an engine that nobody knows.
        lost = find_command(command[1:])
        if lost is None:
            return
        _record(folder, lost, command)
        running = Running(owner=lost, launched=True)
    raise _already(folder, running)


def _already(folder: Path, running: Running) -> FencedError:
    return FencedError(
        f"{named(folder)} is run by process {running.owner.pid} already",
        hint="it has one process at a time",
    )


def _record_driver(
    folder: Path, submission: standalone.Submission, command: Sequence[str]
) -> None:
    record: dict[str, Any] = {**submission.to_json(), "command": list(command)}
    write_record(folder / ENGINE_FILE, record)


def _record(folder: Path, owner: Owner, command: Sequence[str]) -> None:
    write_record(
        folder / ENGINE_FILE,
        {**owner.to_json(), "command": list(command), "log": str(folder / LOG_FILE)},
    )
