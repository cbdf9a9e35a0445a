"""Records of a log that are kept no longer: their segments stay, as headers alone.

    before   7 [header records]   8 [header control rows]   9 [header records]   10 ..
    after    7 [header]           8 [header control rows]   9 [header]           10 ..      purged.json: before 10

So numbers have no gap, control rows are found as ever, and arrivals are known. Who reads records that are gone is
refused by name. First it is said what goes, then it goes: a purge that is killed is brought to its end by the next.
"""

import json
from bisect import bisect_left
from dataclasses import dataclass

from st_common.capture.keys import key_of, raw_key
from st_common.capture.log import Log
from st_common.capture.segment import HEADER_BYTES, Segment
from st_common.capture.stored_log import PURGED
from st_common.errors import LogError
from st_common.record import with_sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a purge took out of a log: segments, and the bytes of their records."""

    segments: int = 0
    bytes: int = 0


def arrived_before(log: Log, before_us: int) -> int:
    """The first segment that arrived at a time or later; the log's end, when there is none.

    Args:
        log: the log.
        before_us: the time, us UTC.
    """
    numbers = range(log.end())
    return bisect_left(
        numbers, before_us, key=lambda each: log.segment(each).arrival_us
    )


def to_cut(log: Log, before: int) -> Cut:
    """What `purge_records` would take out now; nothing is changed."""
    _, done = log.purged()
    sizes = (
        [_size(log, one) for one in log.segments(done, end=before)]
        if before > done
        else []
    )
    return Cut(segments=sum(map(bool, sizes)), bytes=sum(sizes))


def purge_records(log: Log, before: int) -> Cut:
    """Takes the records of all segments before one out of a log, and raw bytes that lie beside packets.

    Args:
        log: the log.
        before: the segment. Whoever calls knows that no reader needs what comes before it.

    Raises:
        LogError: the log ends before it, or the header of a segment is damaged.
    """
    if before > log.end():
        raise LogError(
            f"the log of stream {log.stream!r} ends before {before}", hint="purge less"
        )
    _, done = log.purged()
    if before <= done:
        return Cut()
    count = size = 0
    _note(log, before=before, done=done)
    for segment in log.segments(done, end=before):
        taken = _take(log, segment)
        count += taken > 0
        size += taken
    _note(log, before=before, done=before)
    return Cut(segments=count, bytes=size)


def _take(log: Log, segment: Segment) -> int:
    """Leaves the header of a segment of records alone; gives how many bytes went."""
    size = _size(log, segment)
    if size:
        header = log.storage.read(key_of(segment.number), length=HEADER_BYTES)
        log.storage.put(key_of(segment.number), header)
    if segment.packet:
        log.storage.delete(raw_key(segment))
    return size


def _size(log: Log, segment: Segment) -> int:
    """How many bytes of records a segment holds; none of control rows, of what is passed over, and of what is gone."""
    if segment.control or segment.skipped:
        return 0
    beyond = log.storage.read(key_of(segment.number), start=HEADER_BYTES, length=1)
    return segment.size if beyond else 0


def _note(log: Log, *, before: int, done: int) -> None:
    noted = {"before": max(before, log.purged_before()), "done": done}
    log.storage.put(PURGED, json.dumps(with_sum(noted)).encode())
