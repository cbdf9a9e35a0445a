"""Segments of a log that are kept no longer: their control rows stay, in one pack.

    before   7 records   8 control rows   9 records   10 ..
    after                8 control rows               10 ..      purged.json: before 10

So control rows are found as ever: they lie in a rest (`packs`). Who reads what is gone is refused by name. First it is
said what goes, then the rest is made, then packs and files go: a purge that is killed is brought to its end by the
next. What goes ends where a pack does: one that holds younger segments too stays whole.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial

from st_common.errors import LogError
from st_common.log.log import Log
from st_common.log.packing import remove_packed
from st_common.log.packs import Span
from st_common.log.segment import HEADER_BYTES, Segment
from st_common.log.stored_log import PURGED
from st_common.record import sealed


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a purge took out of a log: segments, and the bytes of their records."""

    segments: int = 0
    bytes: int = 0


def arrived_before(log: Log, before_us: int) -> int:
    """The first segment that arrived at a time or later, of those that are there; the log's end, when there is none.

    Args:
        log: the log.
        before_us: the time, us UTC.
    """
    numbers = range(log.first(), log.end())
    at = bisect_left(numbers, before_us, key=lambda each: log.segment(each).arrival_us)
    return numbers.start + at


def to_cut(log: Log, before: int) -> Cut:
    """What `purge_records` would take out now; nothing is changed."""
    done = max(log.purged()[1], log.first())
    before = _border(log, before)
    sizes = (
        [_size(log, one) for one in log.segments(done, end=before)]
        if before > done
        else []
    )
    return Cut(segments=sum(map(bool, sizes)), bytes=sum(sizes))


def purge_records(log: Log, before: int) -> Cut:
    """Takes all segments before one out of a log, but control rows, and raw bytes of packets.

    Args:
        log: the log.
        before: the segment. Whoever calls knows that no reader needs what comes before it. Segments in one pack with it
            stay.

    Raises:
        LogError: the log ends before it, or the header of a segment is damaged.
    """
    if before > log.end():
        raise LogError(
            f"the log of stream {log.stream!r} ends before {before}", hint="purge less"
        )
    with log.storage.locked("packing"):
        before = _border(log, before)
        _, done = log.purged()
        if before <= done:
            return Cut()
        cut = to_cut(log, before)
        _note(log, before=before, done=done)
        _thin(log, before)
        _note(log, before=before, done=before)
    return cut


def _border(log: Log, before: int) -> int:
    """Where a purge ends that may go up to a segment: in front of the pack that has it."""
    span = log.packs.span(before, anew=True)
    return before if span is None else span.first


def _thin(log: Log, before: int) -> None:
    """Puts one pack of what stays in the place of all that comes before a segment."""
    sizes = _kept(log, before)
    span = Span(0, before, len(sizes), is_rest=True)
    log.packs.create(span, sizes, partial(_bytes, log, sizes))
    for packs in (log.packs, log.raw_packs):
        for old in packs.stored():
            if old != span and old.end <= before:
                packs.delete(old)
    remove_packed(log)


def _kept(log: Log, before: int) -> dict[int, int]:
    """The bytes that stay of what comes before a segment, by number.

    That are control rows whole, and headers that others are made from: of what is passed over, and of the next segment.
    """
    headers = {number - 1 for number in (*log.skipped(), before)}
    sizes: dict[int, int] = {}
    for one in [*log.kept(), *log.segments(log.first(), end=before)]:
        if one.control:
            sizes[one.number] = HEADER_BYTES + one.size
        elif one.number in headers and not one.skipped:
            sizes[one.number] = HEADER_BYTES
    return sizes


def _bytes(log: Log, sizes: dict[int, int], number: int) -> bytes:
    return log.stored(number, length=sizes[number])


def _size(log: Log, segment: Segment) -> int:
    """How many bytes of records a segment holds; none of control rows, of what is passed over, and of what is gone."""
    if segment.control or segment.skipped:
        return 0
    found = log.stored(segment.number, length=HEADER_BYTES + 1)
    return segment.size if len(found) > HEADER_BYTES else 0


def _note(log: Log, *, before: int, done: int) -> None:
    noted = {"before": max(before, log.purged_before()), "done": done}
    log.storage.put(PURGED, sealed(noted))
