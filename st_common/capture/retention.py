"""How long raw bytes stay beside the packets that were made of them."""

from st_common.capture.keys import RAW, raw_key
from st_common.capture.log import Log, Segment
from st_common.capture.reading import record_of
from st_common.capture.whole import is_whole
from st_common.errors import LogError


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
    removed = 0
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


def _segment(log: Log, number: int) -> Segment | None:
    try:
        return log.segment(number)
    except LogError:
        return None


def _number(name: str) -> int | None:
    number, _, checksum = name.removesuffix(".raw").partition("-")
    return int(number) if number.isdigit() and len(checksum) == 8 else None
