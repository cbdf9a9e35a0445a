"""Who runs a stream, as people ask for it: what the process said last is true only while the process lives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_common.ops.lease import Lease, current, is_held
from st_common.ops.process import Owner
from st_common.ops.status import StreamStatus, read_exit

_LIVING = ("starting", "running", "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Who runs a stream.

    Attributes:
        state: what the engine said, while it lives; else `dead`, `ended` or `failed`.
        owner: the process that lives, or that died; None: nobody's.
        age_s: seconds since it spoke last.
    """

    state: str
    owner: Owner | None
    age_s: float


def presence(folder: Path, status: StreamStatus, *, now_us: int) -> Presence:
    """How the engine of a stream is, given what it said last.

    One that said it was running and whose process is gone is `dead`: it was killed, or its machine stopped. One that
    gave its lease back has `ended`, or `failed`. An engine on another host counts as living for two minutes after its
    last beat.

    Args:
        folder: the stream's folder.
        status: what it said last.
        now_us: now, us since 1970.
    """
    lease = current(folder)
    held = lease is not None and is_held(lease, now_us=now_us)
    state = status.state
    if state in _LIVING and not held:
        state = (
            _ended(folder, lease) if lease is not None and lease.released else "dead"
        )
    spoke = max(status.beat_ts, lease.beat_ts if lease is not None else 0)
    owner = lease.owner if lease is not None and (held or state == "dead") else None
    return Presence(state=state, owner=owner, age_s=max(now_us - spoke, 0) / 1e6)


def workers_of(status: StreamStatus, now: Presence) -> list[dict[str, Any]]:
    """The processes at a stream as they spoke of themselves last; none of a stream that nobody runs."""
    return status.workers if now.state in _LIVING else []


def _ended(folder: Path, lease: Lease) -> str:
    end = read_exit(folder)
    return (
        "failed"
        if end is not None and end.owner == lease.owner and end.code
        else "ended"
    )
