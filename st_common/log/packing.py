"""Closed segments of a log go into packs, so that its files do not grow with the number of its segments (SPEC S4).

    segments      .. 17,640 | 17,641 .. 20,100 | 20,101 ..
                  in packs    to be packed       younger than ten minutes: files of their own

A pack is made once more than 64 segments lie beside packs, the oldest of them for fifty minutes. It is stored whole
before the files that it stands for go, and who is killed between leaves both, with the same bytes: the next packer
removes what is left. A segment stays as it is, with its number and its checksums; one that is damaged is not packed,
nor what lies behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from st_common.errors import MissingError
from st_common.log.keys import PER_FOLDER, RAW, SEGMENTS, number_of
from st_common.log.log import Log
from st_common.log.packs import Span
from st_common.log.segment import HEADER_BYTES, Segment
from st_common.log.whole import is_whole

CLOSED_US = 600_000_000
"""How long ago a segment arrived that is packed: 10 min. A writer notices a pause longer than a minute (`log`)."""
DUE_US = 3_000_000_000
"""How long ago the oldest one arrived where a pack is due: 50 min."""
MOST_FILES = 64
"""So many segments may lie beside packs for ever: a log that grows no more, or hardly."""
PACK_BYTES = 1 << 30
"""How large the payloads in a pack are together, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What was packed: segments, and the files that are there less."""

    segments: int = 0
    files: int = 0


def pack_when_due(log: Log, *, now_us: int) -> Packed:
    """Packs what has lain long enough, if a pack is due; looks at one header else.

    Args:
        log: the log.
        now_us: now, us UTC.

    Raises:
        LogError: the header of the oldest segment beside packs is damaged.
        StorageError: the disk is full, or refuses; nothing is lost.
    """
    first = log.packs.end(anew=True)
    if log.end() - first <= MOST_FILES:
        return Packed()
    (oldest,) = log.segments(first, max_segments=1)
    if oldest.arrival_us > now_us - DUE_US:
        return Packed()
    return pack(log, before_us=now_us - CLOSED_US)


def pack(log: Log, *, before_us: int | None = None, upto: int | None = None) -> Packed:
    """Packs the segments beside packs that arrived before a time, or that come before a number.

    Args:
        log: the log.
        before_us: us UTC, not included; None: all up to `upto`.
        upto: the number to stop before; None: the log's end.

    Returns:
        What was done; less than asked for where a segment is damaged.

    Raises:
        LogError: a header is damaged.
        StorageError: the disk is full, or refuses; nothing is lost.
    """
    segments = files = 0
    with log.storage.locked("packing"):
        files += remove_packed(log)
        while found := list(_closed(log, before_us, upto)):
            span = Span(found[0].number, found[-1].number + 1, len(found))
            _make_raw(log, span, found)
            sizes = {one.number: _size(log, one) for one in found}
            log.packs.create(span, sizes, partial(_bytes, log))
            segments += len(found)
            files += remove_packed(log)
    return Packed(segments=segments, files=files)


def remove_packed(log: Log) -> int:
    """Removes the files that packs stand for, and folders that no writer comes to any more; gives how many files.

    Raises:
        LogError: another file lies among them.
        StorageError: the system refuses.
    """
    end = log.packs.end(anew=True)
    removed = 0
    for kind in (SEGMENTS, RAW):
        for name in log.storage.names(kind):
            folder = f"{kind}/{name}"
            if int(name) * PER_FOLDER < end:
                removed += _remove_below(log, folder, end)
            if (int(name) + 1) * PER_FOLDER <= end:
                log.storage.forget(folder)
    return removed


def _remove_below(log: Log, folder: str, end: int) -> int:
    where = str(log.folder)
    below = [name for name in log.storage.names(folder) if number_of(name, where) < end]
    for name in below:
        log.storage.delete(f"{folder}/{name}")
    return len(below)


def _closed(log: Log, before_us: int | None, upto: int | None) -> Iterator[Segment]:
    """The segments that go into the next pack: whole ones, and those that are passed over."""
    total = 0
    for segment in log.segments(log.packs.end(anew=True), end=upto):
        is_first, total = not total, total + segment.size
        is_young = before_us is not None and segment.arrival_us >= before_us
        is_full = total > PACK_BYTES and not is_first
        if is_young or is_full or not _is_sound(log, segment):
            return
        yield segment


def _is_sound(log: Log, segment: Segment) -> bool:
    return segment.skipped or log.is_purged(segment) or is_whole(log, segment)


def _size(log: Log, segment: Segment) -> int:
    """The bytes of a segment as it is stored: of one that is passed over, or purged, whatever is left."""
    if segment.skipped or log.is_purged(segment):
        return len(_bytes(log, segment.number))
    return HEADER_BYTES + segment.size


def _bytes(log: Log, number: int) -> bytes:
    try:
        return log.stored(number)
    except MissingError:
        return b""  # it is passed over


def _make_raw(log: Log, span: Span, segments: list[Segment]) -> None:
    """Packs the raw bytes of packets, in front of these: whoever finds packets in a pack looks for them there."""
    packets = {one.number: one for one in segments if log.has_raw(one) and one.packet}
    sizes = {number: len(log.stored_raw(packet)) for number, packet in packets.items()}
    if sizes:
        raw_span = replace(span, count=len(sizes))
        log.raw_packs.create(
            raw_span, sizes, lambda number: log.stored_raw(packets[number])
        )
