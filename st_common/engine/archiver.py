"""The archive beside an engine: a thread that wakes every 30 seconds, and once more at the end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from st_common.engine.archive import Archive
from st_common.engine.owner import now_us
from st_common.ops.status import StreamStatus, write_status
from st_common.position import position_of

EVERY_S = 30.0


@contextmanager
def archiving(archive: Archive, *, every_s: float = EVERY_S) -> Iterator[Archive]:
    """Keeps the archive going while the body runs; at its end everything that the log has is archived.

    Raises:
        Exception: whatever stopped the archive; `Archive.check` raises it earlier.
    """
    ended = threading.Event()

    def follow() -> None:
        try:
            while not ended.wait(every_s):
                _drain(archive)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that runs the stream
            archive.failure = error

    thread = threading.Thread(target=follow, name="archive", daemon=True)
    thread.start()
    try:
        yield archive
    finally:
        ended.set()
        thread.join()
    archive.check()
    _drain(archive)


def _drain(archive: Archive) -> None:
    while archive.batch():
        _say(archive, "running")  # at each batch: a long backlog must not look like an archive that stands still
    _say(archive, "idle")


def _say(archive: Archive, state: str) -> None:
    status = StreamStatus(
        state=state, job="archive", beat_ts=now_us(), position=archive.position(),
        end_position=position_of(archive.log.end(), 0), now_ts=archive.clock_us(),
        fixes=archive.totals.fixes, rejects=archive.totals.rejects,
    )  # fmt: skip
    write_status(archive.stream_folder, status)
