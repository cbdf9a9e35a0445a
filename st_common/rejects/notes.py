"""Which rejected records went into the log again: noted beside it, so that each goes once, whenever a replay dies.

    log/again/000000000000.json   {"start": 16, "records": [[12, "9dd4..", 1]], "checksum": 77, .., "segment": 17}

A note is written before its segment, under a lock that replays share. One without a `segment` is of a replay that died:
its bytes are in the log from `start` on, or they are not and the note is void.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import pyarrow as pa

from st_common.errors import LogError
from st_common.log.control import write_end
from st_common.log.log import Log
from st_common.record import opened, sealed

AGAIN = "again"
"""The folder of the notes beside the segments, and the name of the lock that replays share."""

_LOOKED_AT = 4096  # headers at once

Identity = tuple[int, str, int]
"""A rejected record: its segment, the MD5 of its bytes, and the how many-eth of these bytes it is in the segment."""

IDENTITY = pa.schema(
    [("segment", pa.int64()), ("digest", pa.string()), ("nth", pa.int64())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What one segment has of rejected records.

    Attributes:
        start: the log's end before; the segment is there, or behind.
        checksum: CRC-32 of its bytes.
        is_end: an end mark follows it, because the log ended with one.
        records: which records.
        segment: its number; None until it is known that the log has it.
    """

    start: int
    checksum: int
    is_end: bool
    records: tuple[Identity, ...]
    segment: int | None = None


def finish_notes(log: Log, *, arrival_us: int) -> None:
    """Brings the notes of a replay that died to their end; whoever calls it holds `AGAIN` locked in the log's storage.

    Args:
        log: the log of the stream.
        arrival_us: now, us UTC: the arrival of an end mark that the dead replay owes.
    """
    for key, note in _stored(log):
        if note.segment is None:
            _finish(log, key, note, arrival_us=arrival_us)


def append_noted(
    log: Log,
    payload: bytes,
    records: tuple[Identity, ...],
    *,
    append: Callable[[bytes], object],
    is_end: bool,
    arrival_us: int,
) -> int:
    """Notes what a payload holds, appends it, and notes that the log has it; `AGAIN` is locked.

    Args:
        log: the log of the stream.
        payload: whole records.
        records: which rejected records these are.
        append: appends the payload to the log.
        is_end: whether an end mark follows.
        arrival_us: its arrival, us UTC.

    Returns:
        The number of its segment.

    Raises:
        LogError: the log has no such segment after it was appended.
    """
    checksum = zlib.crc32(payload)
    note = Note(start=log.end(), checksum=checksum, is_end=is_end, records=records)
    key = f"{AGAIN}/{_next_number(log):012d}.json"
    _put(log, key, note)
    append(payload)
    number = _finish(log, key, note, arrival_us=arrival_us)
    if number is None:
        raise LogError(
            f"the log of stream {log.stream!r} has lost what was just appended to it",
            hint="look at the disk",
        )
    return number


def noted(log: Log) -> pa.Table:
    """The rejected records that are in the log again, with the columns of IDENTITY, in no order."""
    records = [
        record
        for _, note in _stored(log)
        if note.segment is not None
        for record in note.records
    ]
    columns = zip(*records, strict=True) if records else ((), (), ())
    return pa.table(list(map(list, columns)), schema=IDENTITY)


def _finish(log: Log, key: str, note: Note, *, arrival_us: int) -> int | None:
    """Notes the segment of a note, with the end mark behind it; takes a void note away."""
    number = _segment_of(log, note)
    if number is None:
        log.storage.delete(key)
        return None
    if note.is_end:
        write_end(log, arrival_us=arrival_us)
    _put(log, key, replace(note, segment=number))
    return number


def _segment_of(log: Log, note: Note) -> int | None:
    """The first segment from the note's start on that has its bytes."""
    number = max(note.start, log.first())
    while segments := log.segments(number, max_segments=_LOOKED_AT):
        for one in segments:
            checksum = one.raw_checksum if one.packet else one.checksum
            if not one.control and checksum == note.checksum:
                return one.number
        number += len(segments)
    return None


def _stored(log: Log) -> Iterator[tuple[str, Note]]:
    for name in log.storage.names(AGAIN):
        if not name.endswith(".json"):
            continue
        key = f"{AGAIN}/{name}"
        try:
            yield key, _read(log.storage.read(key))
        except (ValueError, KeyError, TypeError):
            raise LogError(
                f"{key} of the log of stream {log.stream!r} cannot be read",
                hint="it says which rejected records are in the log again: restore it from a copy",
            ) from None


def _read(data: bytes) -> Note:
    value = opened(data)
    records = tuple((int(s), str(digest), int(n)) for s, digest, n in value["records"])
    return Note(
        start=int(value["start"]),
        checksum=int(value["checksum"]),
        is_end=bool(value["is_end"]),
        records=records,
        segment=None if value["segment"] is None else int(value["segment"]),
    )


def _put(log: Log, key: str, note: Note) -> None:
    log.storage.put(key, sealed(asdict(note)))


def _next_number(log: Log) -> int:
    numbers = [
        int(name.removesuffix(".json"))
        for name in log.storage.names(AGAIN)
        if name.endswith(".json")
    ]
    return max(numbers, default=-1) + 1
