"""What an engine says about itself: `status.json` after each batch, `exit.json` when it ends."""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from st_common.config.home import TOPOLOGY_FILE
from st_common.config.redaction import redacted
from st_common.errors import FairwayError, StorageError
from st_common.extras import missing, of_spark
from st_common.operations.process import Owner, this_process
from st_common.operations.records import read_record, write_record
from st_common.storage import refused

STATUS_FILE = "status.json"
EXIT_FILE = "exit.json"
MOST_SEGMENTS = 4096
"""Segments that a batch has at most, for each shard."""


class Phase(StrEnum):
    """What a job is in the middle of: how long it may stand still depends on it."""

    START_UP = "start-up"
    """It loads its state, starts a JVM, or is in its first batch, which loads layers too."""
    BATCH = "batch"
    """It works on a batch, or on what follows one."""
    WAITING = "waiting"
    """It looks at the log again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus:
    """One beat of one job of a stream. Times are microseconds since 1970, counts are totals since the stream began.

    Attributes:
        state: starting, running, idle, stopped (was asked to), finished (the log has its end mark) or failed.
        beat_ts: when it was said.
        position: the position after the last committed row: a reader that has committed segments 0 to 4 stands at
            `position_of(5, 0)`.
        end_position: the same for the log as the job saw it last.
        now_ts: the stream's clock: no fix before it will change an answer any more; None before the first fix.
        job: `engine`, or another that writes the stream's tables, such as `archive`.
        engine: `local` or `spark`.
        epoch: of the owner's lease.
        pid: of the owner.
        fixes: records that are fixes.
        rejects: records that are none.
        late: fixes that came too late to take effect.
        double: fixes with the event time of an earlier fix of their object.
        cut: fixes that a travelled frame dropped.
        changes: rows that were told.
        nulled: by attribute, in how many fixes it could not be read.
        filtered_out: by clause of the stream's `where`, how many records it stopped.
        filtered: by reason, how many fixes were stored and changed nothing.
        caches: by kind of query, what caches cost (see `operators.skeleton.cache_counts`).
        phase: what the job is in the middle of, one of `Phase`.
        workers: the processes at it, as `operations.workers.Worker` has them; none in records of older versions.
    """

    state: str
    beat_ts: int
    position: int
    end_position: int
    now_ts: int | None = None
    job: str = "engine"
    engine: str = ""
    epoch: int = 0
    pid: int = 0
    fixes: int = 0
    rejects: int = 0
    late: int = 0
    double: int = 0
    cut: int = 0
    changes: int = 0
    nulled: dict[str, int] = field(default_factory=dict)
    filtered_out: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    caches: dict[str, dict[str, float]] = field(default_factory=dict)
    phase: str = Phase.WAITING
    workers: list[dict[str, Any]] = field(default_factory=list)


def write_status(folder: Path, status: StreamStatus) -> None:
    """Replaces what a job said last in the stream's folder: `status.json`, for other jobs `status-JOB.json`.

    The clock does not go back: a job that has started again has seen old fixes alone, or none, and what it told before
    still holds.

    Args:
        folder: the stream's folder.
        status: what it says now; its `job` names the file.
    """
    path = folder / (
        STATUS_FILE if status.job == "engine" else f"status-{status.job}.json"
    )
    before = _status(read_record(path))
    if before is not None and before.now_ts is not None:
        latest = max(before.now_ts, status.now_ts or before.now_ts)
        status = dataclasses.replace(status, now_ts=latest)
    write_record(path, dataclasses.asdict(status))


def read_status(folder: Path) -> StreamStatus | None:
    """The engine's last status, or None when it has written none that can be read."""
    return _status(read_record(folder / STATUS_FILE))


def read_all_status(folder: Path) -> list[StreamStatus]:
    """The last status of every job of the stream that writes its tables: the engine and, beside it, others."""
    statuses = (_status(read_record(path)) for path in status_files(folder))
    return [status for status in statuses if status is not None]


def most_in_flight(folder: Path) -> int:
    """How many segments a batch of a stream may have at most, by its shards; of one that never ran, as of one shard."""
    shards = (read_record(folder / TOPOLOGY_FILE) or {}).get("shards", 1)
    return MOST_SEGMENTS * int(shards)


def status_files(folder: Path) -> list[Path]:
    """Where the jobs of a stream say how they are."""
    return sorted(folder.glob("status*.json"))


def _status(record: Mapping[str, Any] | None) -> StreamStatus | None:
    if record is None:
        return None
    names = {field.name for field in dataclasses.fields(StreamStatus)}
    known = {
        name: value
        for name, value in record.items()
        if name in names and value is not None
    }
    try:
        return StreamStatus(**known)
    except TypeError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process of a stream ended by itself; a process that was killed leaves none.

    Attributes:
        owner: the process.
        code: its exit code.
        message: the error, for people; "" when it ended in order.
    """

    owner: Owner
    code: int
    message: str


def write_exit(
    folder: Path, *, code: int, message: str, owner: Owner | None = None
) -> None:
    """Leaves behind how a process ends, for whoever looks after the stream; only its owner may read it.

    Args:
        folder: the stream's folder.
        code: the exit code.
        message: the error, for people; secrets in it are replaced.
        owner: the process; None: this one.
    """
    record = {
        **(owner or this_process()).to_json(),
        "code": code,
        "message": redacted(message),
    }
    write_record(folder / EXIT_FILE, record, private=True)


@contextmanager
def failure_recorded(folder: Path) -> Iterator[None]:
    """Leaves behind how this process fails in the body of a `with`, also before it owns the stream.

    Nothing is left where there is no folder: a name that was mistyped makes none.
    """
    try:
        yield
    except Exception as error:
        told = of_spark(missing(refused(error)))
        code = told.exit_code if isinstance(told, FairwayError) else 1
        message = str(told) or type(told).__name__
        if folder.is_dir():
            with suppress(
                StorageError, OSError
            ):  # a full disk: the error itself counts
                write_exit(folder, code=code, message=message)
        raise


def is_newer(ended: Exit, status: StreamStatus | None) -> bool:
    """Whether a process ended that said nothing, or was started after who spoke last."""
    return status is None or ended.owner.started_s * 1e6 > status.beat_ts


def ended_well(status: StreamStatus | None, ended: Exit | None) -> bool:
    """Whether who spoke last ended in order: it was asked to, or came to the end of what there was."""
    if status is None or ended is None:
        return False
    return ended.code == 0 and ended.owner.pid == status.pid


def read_exit(folder: Path) -> Exit | None:
    """How the last process that ended by itself ended, or None."""
    record = read_record(folder / EXIT_FILE)
    owner = Owner.from_json(record) if record else None
    if record is None or owner is None:
        return None
    return Exit(
        owner=owner,
        code=int(record.get("code", 1)),
        message=str(record.get("message", "")),
    )
