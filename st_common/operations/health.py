"""How a stream is: judged by its progress against its log, for a process that lives may still do nothing."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from st_common.config.operations import Limits
from st_common.log.log import Log
from st_common.operations.launcher import Running, find
from st_common.operations.process import start_of
from st_common.operations.status import (
    Exit,
    Phase,
    StreamStatus,
    most_in_flight,
    read_all_status,
    read_exit,
    read_status,
)
from st_common.operations.stop import StopMarker, read_marker
from st_common.position import segment_of


class Health(StrEnum):
    """What a look at a stream finds."""

    DEAD = "dead"
    """No process."""
    FINISHED = "finished"
    """No process, and none is needed: the engine ended in order and the log holds nothing new."""
    STARTING = "starting"
    """A young process that has not said anything yet."""
    STUCK = "stuck"
    """A process, segments wait, and it has not moved on for longer than it may."""
    SLOW = "slow"
    """It moves on, and yet more and more waits."""
    IDLE = "idle"
    """A process, and nothing waits."""
    HEALTHY = "healthy"
    """It works through what waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything that one look at a stream saw. Times in microseconds since 1970.

    Attributes:
        stream: the stream, or `delivery NAME`.
        wanted: whether it shall run.
        running: its living process; None without one.
        status: what the engine said last.
        marker: a wish to stop.
        ended: how the last process that ended by itself ended.
        next_segment: the first that the slowest job of the engine (the queries, the archive) has not committed: so an
            archive that died inside a living engine shows as well.
        waiting: how many segments there are from it on.
        waiting_since_us: when the first of them arrived; None when nothing waits.
        slowest: what that slowest job said last; None when no job said anything.
        rejoins: control rows that are no clocks wait, for which all objects may be joined anew.
        basis: a digest of what a start depends on: settings, packages, environment.
    """

    stream: str
    wanted: bool
    running: Running | None
    status: StreamStatus | None
    marker: StopMarker | None
    ended: Exit | None
    next_segment: int
    waiting: int
    waiting_since_us: int | None
    slowest: StreamStatus | None = None
    rejoins: bool = False
    basis: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a look has to remember of the looks before it to see movement.

    Attributes:
        next_segment: as the last look saw it; -1 before the first.
        moved_us: when a look saw it change last, us since 1970.
        waiting: how many segments waited at the last look.
        growing_looks: for how many looks in a row more and more have waited.
    """

    next_segment: int = -1
    moved_us: int = 0
    waiting: int = 0
    growing_looks: int = 0


def observe(folder: Path, *, wanted: bool, now_us: int) -> Observation:
    """Looks at a stream's process, status, marker and log.

    Args:
        folder: The stream's folder; one that does not exist yet is a stream that never ran, with an empty log.
        wanted: Whether the stream shall run.
        now_us: The time in microseconds since 1970.

    Raises:
        LogError: the log has a hole or a foreign file.
    """
    status = read_status(folder)
    log = Log(folder / "log")
    # Of jobs at one place the engine: the archive waits there until its next look, however long a batch takes.
    slowest = min(
        read_all_status(folder),
        key=lambda each: (each.position, each.job != "engine"),
        default=None,
    )
    next_segment = segment_of(slowest.position) if slowest is not None else 0
    waiting, since_us = waiting_from(log, next_segment)
    return Observation(
        stream=folder.name,
        wanted=wanted,
        running=find(folder, now_us=now_us),
        status=status,
        marker=read_marker(folder),
        ended=read_exit(folder),
        next_segment=next_segment,
        waiting=waiting,
        waiting_since_us=since_us,
        slowest=slowest,
        rejoins=_has_statement(log, next_segment, min(waiting, most_in_flight(folder))),
    )


def waiting_from(log: Log, first: int) -> tuple[int, int | None]:
    """How many segments a log has from one on, and when that one arrived, us since 1970; None where there is none."""
    waiting = max(log.end() - first, 0)
    oldest = log.segments(first, end=first + 1) if waiting else []
    return waiting, oldest[0].arrival_us if oldest else None


def _has_statement(log: Log, start: int, segments: int) -> bool:
    """Whether a batch of some segments may hold control rows that are no clocks, by the header of the last of them."""
    end = start + segments
    last = log.segments(end - 1, end=end) if segments else []
    return any(one.statement or one.statement_before >= start for one in last)


def remember(seen: Observation, before: Progress, *, now_us: int) -> Progress:
    """The progress up to this look: when the engine last moved on, and for how many looks more and more waits.

    Args:
        seen: this look.
        before: as the look before gave it.
        now_us: now, us since 1970.
    """
    # An earlier place is movement too: a stream that was reset begins again.
    moved = seen.next_segment != before.next_segment
    growing = seen.running is not None and seen.waiting > before.waiting > 0
    return Progress(
        next_segment=seen.next_segment,
        moved_us=now_us if moved else before.moved_us,
        waiting=seen.waiting,
        growing_looks=before.growing_looks + 1 if growing else 0,
    )


def judge(
    seen: Observation, progress: Progress, *, now_us: int, limits: Limits
) -> Health:
    """How the stream is.

    Nothing waiting is never a fault: a feed may be silent for hours. Patience begins when the engine last moved on,
    when the first waiting segment was written, or when the process started, whichever is latest; so an engine that has
    slept through an idle night gets its full time with the first fix of the morning. How long it lasts depends on what
    the process says that it does, as long as it says something:

        it says             start-up     batch      batch, a layer or a query waits   waiting    nothing
        it may stand still  start_up_s   batch_s    rejoin_s                          stuck_s    stuck_s

    Args:
        seen: this look.
        progress: as `remember` made it from this look.
        now_us: now, us since 1970.
        limits: how patient to be.
    """
    if seen.running is None:
        return Health.FINISHED if _is_finished(seen) else Health.DEAD
    started_us = start_of(seen.running.owner)
    age_us = now_us - started_us
    spoke = seen.status is not None and seen.status.beat_ts >= started_us
    if not spoke and age_us < limits.start_grace_s * 1e6:
        return Health.STARTING
    if seen.waiting_since_us is None:
        return Health.IDLE
    still_us = now_us - max(progress.moved_us, seen.waiting_since_us, started_us)
    if still_us > patience_s(seen, now_us=now_us, limits=limits) * 1e6:
        return Health.STUCK
    if (
        progress.growing_looks >= limits.slow_looks
        and now_us - seen.waiting_since_us > limits.slow_s * 1e6
    ):
        return Health.SLOW
    return Health.HEALTHY


def phase_of(seen: Observation, *, now_us: int, limits: Limits) -> Phase | None:
    """What the living process of a stream is in the middle of, as it says itself.

    Args:
        seen: this look.
        now_us: now, us since 1970.
        limits: `silent_s` of them.

    Returns:
        None when it says nothing any more, or has said nothing yet.
    """
    if seen.running is None or seen.status is None or seen.slowest is None:
        return None
    started_us = start_of(seen.running.owner)
    if seen.status.beat_ts < max(started_us, now_us - limits.silent_s * 1e6):
        return None
    # A job that has not spoken since the start left its last words in another process.
    job = seen.slowest if seen.slowest.beat_ts >= started_us else seen.status
    return Phase(job.phase) if job.phase in tuple(Phase) else None


def patience_s(seen: Observation, *, now_us: int, limits: Limits) -> float:
    """For how long a stream with segments waiting may stand still before it counts as stuck; see `judge`."""
    match phase_of(seen, now_us=now_us, limits=limits):
        case Phase.START_UP:
            return limits.start_up_s
        case Phase.BATCH:
            return limits.rejoin_s if seen.rejoins else limits.batch_s
        case _:
            return limits.stuck_s


def _is_finished(seen: Observation) -> bool:
    return (
        seen.status is not None and seen.status.state == "finished" and not seen.waiting
    )
