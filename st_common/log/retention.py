"""How long raw bytes stay beside the packets that were made of them."""

from st_common.errors import LogError
from st_common.log.keys import RAW, raw_key
from st_common.log.log import Log, Segment
from st_common.log.record_settings import Record, record_of
from st_common.log.whole import is_whole


def remove_raw(log: Log, *, before_us: int) -> int:
    """Removes the raw bytes of packets that arrived before a time; segments all stay.

    Bytes that a reset wants to decode stay too, and those that stand in for a damaged packet. Those that no segment
    holds on to, of writers that died or lost their number to another, go when the log comes to where they stand. It
    ends at a segment whose header is damaged, which `fairway verify` names and readers stop at, and passes over files
    that are none of its own.

    Args:
        log: the log.
        before_us: us UTC, not included.

    Returns:
        How many objects were removed.
    """
    record, end = record_of(log), log.end()
    removed = _remove_packs(log, record, before_us)
    for folder in log.storage.names(RAW):
        for name in log.storage.names(f"{RAW}/{folder}"):
            key, number = f"{RAW}/{folder}/{name}", _number(name)
            if number is None:
                continue
            segment = _segment(log, number) if number < end else None
            if segment is None or segment.arrival_us >= before_us:
                return removed  # it is young, or damaged, or its writer is about to name it
            is_own = segment.packet and raw_key(segment) == key
            # A reset has said that these are decoded again; without their raw bytes they could not be.
            is_awaited = record.anew <= number < record.upto
            if not (is_own and (is_awaited or not is_whole(log, segment))):
                log.storage.delete(key)
                removed += 1
    return removed


def _remove_packs(log: Log, record: Record, before_us: int) -> int:
    """Removes packs of raw bytes whose packets all arrived before a time, none awaited by a reset, none damaged."""
    removed = 0
    for span in log.raw_packs.stored():
        last = _segment(log, span.end - 1) if span.end > log.first() else None
        if last is not None and last.arrival_us >= before_us:
            break
        is_awaited = record.anew < span.end and span.first < record.upto
        if not is_awaited and _are_whole(log, max(span.first, log.first()), span.end):
            log.raw_packs.delete(span)
            removed += 1
    return removed


def _are_whole(log: Log, start: int, end: int) -> bool:
    try:
        segments = log.segments(start, end=end) if start < end else []
    except LogError:
        return False
    return all(is_whole(log, one) for one in segments if one.packet)


def _segment(log: Log, number: int) -> Segment | None:
    try:
        return log.segment(number)
    except LogError:
        return None


def _number(name: str) -> int | None:
    number, _, checksum = name.removesuffix(".raw").partition("-")
    return int(number) if number.isdigit() and len(checksum) == 8 else None
