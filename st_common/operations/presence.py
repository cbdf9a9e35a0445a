"""Who runs a stream, as people ask for it: what the process said last is true only while the process lives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_common.operations.judged import given_up
from st_common.operations.lease import Lease, current, is_held
from st_common.operations.process import Owner
from st_common.operations.status import Exit, StreamStatus, is_newer, read_exit

LIVING = ("starting", "running", "idle")
"""States in which a process runs a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Who runs a stream.

    Attributes:
        state: what the engine said, while it lives; else `dead`, `ended` or `failed`, `bad_config` or `crash_loop`
            when it was given up, and `unseen` while its log cannot be read or its cluster does not answer; `never run`
            when it has said nothing yet.
        why: the error that it ended with, or why it is not started; None: there is none.
        owner: the process that lives, or that died; None: nobody's.
        age_s: seconds since it spoke last; None: it has not.
    """

    state: str
    why: str | None
    owner: Owner | None
    age_s: float | None


def presence(folder: Path, status: StreamStatus | None, *, now_us: int) -> Presence:
    """How the engine of a stream is, given what it said last.

    One that said it was running and whose process is gone is `dead`: it was killed, or its machine stopped. One that
    gave its lease back has `ended`, or `failed`, as one that ended with an error before it said anything. An engine on
    another host counts as living for two minutes after its last beat.

    Args:
        folder: the stream's folder.
        status: what it said last; None: nothing yet.
        now_us: now, us since 1970.
    """
    lease = current(folder)
    held = lease is not None and is_held(lease, now_us=now_us)
    end = read_exit(folder)
    state = "never run" if status is None else status.state
    if state in LIVING and not held:
        state = _ended(end, lease) if lease is not None and lease.released else "dead"
    if not held and end is not None and end.code and is_newer(end, status):
        state = "failed"
    spoke = (
        None if status is None else max(status.beat_ts, lease.beat_ts if lease else 0)
    )
    given = None if held else given_up(folder, now_us=now_us)
    return Presence(
        state=state if given is None else given.health,
        why=_error_of(end, state) if given is None else given.why or None,
        owner=lease.owner if lease is not None and (held or state == "dead") else None,
        age_s=None if spoke is None else max(now_us - spoke, 0) / 1e6,
    )


def workers_of(status: StreamStatus | None, now: Presence) -> list[dict[str, Any]]:
    """The processes at a stream as they spoke of themselves last; none of a stream that nobody runs."""
    return status.workers if status is not None and now.state in LIVING else []


def _error_of(end: Exit | None, state: str) -> str | None:
    return end.message or None if end is not None and state == "failed" else None


def _ended(end: Exit | None, lease: Lease) -> str:
    failed = end is not None and end.owner == lease.owner and end.code
    return "failed" if failed else "ended"
