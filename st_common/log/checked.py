"""Every byte of a log read once, whoever asks whether it is whole."""

from dataclasses import dataclass

from st_common.errors import LogError
from st_common.log.control import control_rows
from st_common.log.log import Log, Segment
from st_common.log.record_settings import record_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a log has: segments, and how many of them are packets whose raw bytes are gone."""

    segments: int
    bare: int


def check_bytes(log: Log, start: int = 0) -> Checked:
    """Reads all of a log: its numbers, the checksums of its segments, and its control rows.

    Args:
        log: the log; nothing in it is changed.
        start: the first segment that is read.

    Raises:
        LogError: a segment is missing or damaged, or says what this version does not know; or a record beside them is.
    """
    record_of(log)
    log.purged()
    count = bare = 0
    first = max(log.first(), start)
    kept = log.kept(start)
    for segment in (*kept, *log.segments(first)):
        bare += _is_bare(log, segment)
        count += 1
    if count < log.end() - first + len(kept):
        raise LogError(
            f"{count} segments are read, but the newest is {log.end() - 1}",
            hint="restore the others",
        )
    return Checked(segments=count, bare=bare)


def _is_bare(log: Log, segment: Segment) -> bool:
    """Reads all of a segment; whether it is a packet whose raw bytes are gone."""
    if log.is_purged(segment):
        return False
    if segment.control:
        control_rows(log, segment)
    else:
        log.read(segment)
    if segment.packet and log.has_raw(segment):
        log.raw(segment)
        return False
    return segment.packet
