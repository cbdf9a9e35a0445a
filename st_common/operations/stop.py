"""Asking an engine to stop: a marker file that it reads between batches, so that no batch is cut in two."""

from dataclasses import dataclass
from pathlib import Path

from st_common.operations.records import read_record, write_record

STOP_FILE = "stop"
_SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopMarker:
    """A wish to stop. One that a person made (an empty file will do) holds the stream until it is removed.

    Attributes:
        by_supervisor: the supervisor made it, and will take it away.
        since_us: when it was made, us since 1970.
    """

    by_supervisor: bool
    since_us: int


def stop_wanted(folder: Path) -> bool:
    """Whether the engine of this stream shall end after its present batch."""
    return (folder / STOP_FILE).exists()


def read_marker(folder: Path) -> StopMarker | None:
    """The marker in the stream's folder, or None."""
    path = folder / STOP_FILE
    try:
        mtime_us = int(path.stat().st_mtime * 1e6)
    except FileNotFoundError:
        return None
    record = read_record(path) or {}
    by_supervisor = record.get("by") == _SUPERVISOR
    return StopMarker(
        by_supervisor=by_supervisor, since_us=int(record.get("since_us", mtime_us))
    )


def place_marker(folder: Path, *, now_us: int) -> None:
    """Asks the engine to stop, in the supervisor's name; a marker that is there already stays.

    Args:
        folder: the stream's folder.
        now_us: now, us since 1970.
    """
    if not stop_wanted(folder):
        write_record(folder / STOP_FILE, {"by": _SUPERVISOR, "since_us": now_us})


def clear_marker(folder: Path) -> None:
    """Takes the supervisor's marker away; a person's marker stays."""
    marker = read_marker(folder)
    if marker is not None and marker.by_supervisor:
        (folder / STOP_FILE).unlink(missing_ok=True)
