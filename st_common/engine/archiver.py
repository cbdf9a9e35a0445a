"""The archive beside an engine: a thread that wakes every 30 seconds, and once more at the end.

In a backlog it takes what the engine has decoded as soon as that is a batch (see `Sink`).

After it come the levels that are made from its tables: `latest` and the snapshots.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from st_common.engine.archive import Archive
from st_common.engine.owner import now_us
from st_common.operations.status import Phase, StreamStatus, write_status
from st_common.position import position_of

EVERY_S = 30.0
BACKLOG_S = 0.25
"""Seconds between two looks while the engine hands over what it decodes of a backlog."""


@contextmanager
def archiving(archive: Archive, *, every_s: float | None = None) -> Iterator[Archive]:
    """Keeps the archive going in a thread while the body runs; at the end everything that the log has is archived.

    Where the body raises, the rest of the log is left to the next run.

    Args:
        archive: the archive of the stream that the body runs.
        every_s: seconds between two looks at the log; None is 30, or the stream's `latest_flush_s` when that is less.

    Raises:
        Exception: whatever stopped the archive; `Archive.check` raises it earlier.
    """
    ended = threading.Event()
    flush_s = min(EVERY_S, archive.levels.stream.latest_flush_s)
    pause_s = flush_s if every_s is None else every_s
    thread = threading.Thread(
        target=_follow, args=(archive, ended, pause_s), name="archive", daemon=True
    )
    # Before its first look nothing is archived: without a clock of its own the engine's alone would close days.
    _say(archive, "idle", Phase.WAITING)
    thread.start()
    try:
        yield archive
    finally:
        ended.set()
        thread.join()
    archive.check()
    _work(archive, at_end=True)


def _follow(archive: Archive, ended: threading.Event, pause_s: float) -> None:
    """Archives again and again until the stream has ended; what goes wrong is left for the stream's thread."""
    try:
        worked_s = time.monotonic()
        while not ended.wait(min(pause_s, BACKLOG_S)):
            if time.monotonic() - worked_s >= pause_s:
                _work(archive)
                worked_s = time.monotonic()
            elif archive.sink is not None:
                archive.sink.compact()
                while archive.sink.has_batch and archive.batch():
                    pass
    except Exception as error:  # noqa: BLE001 - raised again in the thread that runs the stream
        archive.failure = error


def _work(archive: Archive, *, at_end: bool = False) -> None:
    """Archives all that the log has, and makes what follows from it."""
    _say(archive, "running", Phase.BATCH)
    goal = (
        archive.goal()
    )  # what comes meanwhile is for the next time, else a live stream has no end
    while archive.next_segment < goal and archive.batch():
        # At each batch: a long backlog must not look like an archive that stands still.
        _say(archive, "running", Phase.BATCH)
    archive.levels.keep(at_end=at_end)
    archive.keep_house()
    _say(archive, "idle", Phase.WAITING)


def _say(archive: Archive, state: str, phase: Phase) -> None:
    status = StreamStatus(
        state=state,
        job="archive",
        beat_ts=now_us(),
        position=archive.position(),
        end_position=position_of(archive.log.end(), 0),
        now_ts=archive.clock_us(),
        fixes=archive.totals.fixes,
        rejects=archive.totals.rejects,
        phase=phase,
    )
    write_status(archive.stream_folder, status)
