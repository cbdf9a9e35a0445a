"""One segment of a log as bytes: a header of 64 bytes, then the payload as it arrived.

    0   magic "FWSG", format version (u2), kind (u1), codec (u1), flags (u1), 3 unused, CRC-32 of the raw bytes (u4)
    16  number (i8), arrival in us UTC (i8), statement before it (i8), length of the payload (i8)
    48  CRC-32 of the payload (u4), reading before it and 1 (i8), CRC-32 of the header up to here (u4)

`statement before it` is the number of the newest segment of statements in front of this one, -1 for none: so the rows
that register queries and announce layers are found from the log's end without looking at what lies between. `reading
before it` is the same for rows that say how records are read (see `reading`); 0 stands for none. A segment with one in
front has version 2: who does not know of readings does not read it by wrong ones.

The codec says what the payload is: the bytes as they arrived (raw), or what was decoded of them when they were captured
(packet, version 2). Then the raw bytes lie beside the segment for a time, and the header has their checksum.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

from st_common.errors import LogError

HEADER_BYTES = 64
SEGMENT_LIMIT = (
    1 << 24
)  # bytes; a payload is smaller, so that its rows fit into a position
NONE = -1
_PLAIN, _NEWER = (
    1,
    2,
)  # format versions: the second one for what older readers would misread
_MAGIC = b"FWSG"
_HEADER = struct.Struct("<4sHBBB3xIqqqqIq")
_CRC = struct.Struct("<I")
_DATA, _STATEMENT, _CLOCK = 0, 1, 2
_RAW, _PACKET = 0, 1
_LIVE, _RAISED, _READING = 1, 2, 4
_FLAGS = _LIVE | _RAISED | _READING
_MAX_ARRIVAL_US = 10**16  # the year 2286
_IDENTITY = struct.Struct("<qqI")  # number, arrival, checksum of the bytes that arrived
_MARK_BITS = 31  # of a mark say what a segment holds, those above which one it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment: where it stands in its log, and what its header says.

    Attributes:
        number: its place in the log, from 0 on, without gaps.
        arrival_us: when it arrived, us UTC; never less than that of the segment before it.
        control: it holds control rows instead of records.
        clock: its control rows only say how late it is.
        live: its records came from a feed as they happened; a replay's did not.
        raised: its arrival was given earlier than that of the segment before it: a clock was set back.
        size: bytes of the payload.
        checksum: CRC-32 of the payload.
        statement_before: the newest segment of control rows that are no clock in front of this one, -1 for none.
        reading: its control row says how records are read from here on.
        reading_before: the newest such segment in front of this one, -1 for none.
        packet: the payload is what was decoded of the raw bytes when they were captured.
        raw_checksum: CRC-32 of the raw bytes of a packet.
        skipped: it was damaged or missing, and somebody said that it is passed over: it holds nothing.
    """

    number: int
    arrival_us: int
    control: bool
    clock: bool = False
    live: bool = False
    raised: bool = False
    size: int
    checksum: int
    statement_before: int = NONE
    reading: bool = False
    reading_before: int = NONE
    packet: bool = False
    raw_checksum: int = 0
    skipped: bool = False

    @property
    def statement(self) -> bool:
        """Whether it holds control rows that say more than how late it is."""
        return self.control and not self.clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What whoever appends says about a payload.

    Attributes:
        arrival_us: when it arrived, us UTC.
        control: it holds control rows.
        clock: these only say how late it is.
        live: its records came from a feed as they happened.
        timeless: its records have no time but their arrival.
        reading: it is the control row that says how records are read from here on.
    """

    arrival_us: int
    control: bool = False
    clock: bool = False
    live: bool = False
    timeless: bool = False
    reading: bool = False

    @property
    def of_rows(self) -> bool:
        """Whether the payload is control rows, of whatever kind, and no records."""
        return self.control or self.clock or self.reading


def make_segment(payload: bytes, before: Segment | None, marks: Marks) -> Segment:
    """The header of a new segment, given the one in front of it.

    Its arrival is raised so that arrivals never fall; records without times of their own get a microsecond each before
    it:

        before arrived at 100, this one at 90                                ->   100, raised
        before arrived at 100, this one at 100, timeless, 2 lines of records ->   103

    Args:
        payload: fewer than 16 MiB.
        before: the segment in front of it; None: the log is empty.
        marks: what its writer says.

    Raises:
        LogError: a payload of 16 MiB or more, an arrival before 1970 or after 2286, or live control rows.
    """
    _check(payload, marks)
    first = Segment(
        number=0,
        arrival_us=marks.arrival_us,
        control=marks.of_rows,
        clock=marks.clock,
        live=marks.live,
        reading=marks.reading,
        size=len(payload),
        checksum=zlib.crc32(payload),
    )
    if before is None:
        return first
    instants = payload.count(b"\n") + 1 if marks.timeless else 0
    return replace(
        first,
        number=before.number + 1,
        arrival_us=max(marks.arrival_us, before.arrival_us + instants),
        raised=marks.arrival_us < before.arrival_us,
        statement_before=before.number if before.statement else before.statement_before,
        reading_before=reading_behind(before),
    )


def _check(payload: bytes, marks: Marks) -> None:
    """Whether a segment can be made of a payload with such marks."""
    if marks.of_rows and marks.live:
        raise LogError(
            "control rows are not live",
            hint="live says of data that it is told as it happens",
        )
    if len(payload) >= SEGMENT_LIMIT:
        raise LogError(
            f"a segment of {len(payload)} bytes",
            hint=f"it must be below {SEGMENT_LIMIT}; cut it smaller",
        )
    if not 0 <= marks.arrival_us < _MAX_ARRIVAL_US:
        raise LogError(
            f"a segment cannot arrive at {marks.arrival_us}",
            hint="microseconds since 1970",
        )


def as_packet(segment: Segment, packet: bytes) -> Segment:
    """The header of a segment whose payload is a packet instead of the raw bytes.

    Args:
        segment: the header as it is for the raw bytes; their checksum becomes `raw_checksum`.
        packet: what was decoded of them.
    """
    checksum = zlib.crc32(packet)
    return replace(
        segment,
        packet=True,
        raw_checksum=segment.checksum,
        size=len(packet),
        checksum=checksum,
    )


def reading_behind(before: Segment | None) -> int:
    """The number of the segment that says how records behind another one are read; -1 for none.

    Args:
        before: the segment in front; None: the log begins.
    """
    if before is None:
        return NONE
    return before.number if before.reading else before.reading_before


def mark_of(segment: Segment) -> int:
    """A number by which a segment is known from another one of the same number, in a log that went another way.

    It follows from when the segment arrived and what its bytes were then, so neither a purge nor whether a packet is
    stored changes it. The number of a segment stands in its upper half: see `marked_segment`.

    Args:
        segment: its header.

    Returns:
        An int64, 0 or more; 0 says nothing: the segment is passed over, or beyond what a mark can name.
    """
    if segment.skipped or segment.number >= 1 << (63 - _MARK_BITS) - 1:
        return 0
    raw = segment.raw_checksum if segment.packet else segment.checksum
    said = zlib.crc32(_IDENTITY.pack(segment.number, segment.arrival_us, raw))
    return (segment.number + 1) << _MARK_BITS | said >> (32 - _MARK_BITS)


def marked_segment(mark: int) -> int:
    """The number of the segment of a mark; -1 for one that says nothing."""
    return (mark >> _MARK_BITS) - 1


def stand_in(before: Segment | None) -> Segment:
    """The header that readers see in place of a damaged segment that is passed over: data without a record.

    Args:
        before: the segment in front of it; None when it is the first.
    """
    return replace(
        make_segment(b"", before, Marks(arrival_us=before.arrival_us if before else 0)),
        skipped=True,
    )


def to_bytes(segment: Segment, payload: bytes) -> bytes:
    """The bytes of a segment as they are stored: the header of 64 bytes, then the payload."""
    kind = _DATA if not segment.control else _CLOCK if segment.clock else _STATEMENT
    flags = _LIVE * segment.live | _RAISED * segment.raised | _READING * segment.reading
    is_plain = reading_behind(segment) == NONE and not segment.packet
    header = _HEADER.pack(
        _MAGIC,
        _PLAIN if is_plain else _NEWER,
        kind,
        _PACKET if segment.packet else _RAW,
        flags,
        segment.raw_checksum,
        segment.number,
        segment.arrival_us,
        segment.statement_before,
        segment.size,
        segment.checksum,
        segment.reading_before + 1,
    )
    return header + _CRC.pack(zlib.crc32(header)) + payload


def _check_header(data: bytes, where: str) -> None:
    """Whether bytes begin with a header as it was written."""
    if len(data) < HEADER_BYTES or data[:4] != _MAGIC:
        raise _damaged(where, "it has no header")
    checksum = _CRC.unpack_from(data, _HEADER.size)[0]
    if checksum != zlib.crc32(data[: _HEADER.size]):
        raise _damaged(where, "its header was changed")


def read_header(data: bytes, number: int, where: str) -> Segment:
    """The header at the beginning of some bytes.

    Args:
        data: 64 bytes or more.
        number: the segment that it must be.
        where: the place of the object, for people; errors name it.

    Raises:
        LogError: they are no header, a damaged one, that of another segment, or of a later version.
    """
    _check_header(data, where)
    _, version, kind, codec, flags, raw_checksum, *numbers = _HEADER.unpack_from(data)
    if (
        version not in (_PLAIN, _NEWER)
        or kind > _CLOCK
        or codec > (_PACKET if kind == _DATA else _RAW)
        or flags & ~_FLAGS
    ):
        raise LogError(
            f"{where} has format {version}, kind {kind}, codec {codec}, flags {flags}",
            hint="a newer version of Fairway wrote it: go on with that version",
        )
    found_number, arrival_us, statement_before, size, checksum, reading_before = numbers
    if found_number != number:
        raise _damaged(where, f"it is segment {found_number}")
    return Segment(
        number=number,
        arrival_us=arrival_us,
        control=kind != _DATA,
        clock=kind == _CLOCK,
        live=bool(flags & _LIVE),
        raised=bool(flags & _RAISED),
        size=size,
        checksum=checksum,
        statement_before=statement_before,
        reading=bool(flags & _READING),
        reading_before=reading_before - 1,
        packet=codec == _PACKET,
        raw_checksum=raw_checksum,
    )


def numbered_size(header: bytes) -> tuple[int, int, bool] | None:
    """The number of a segment, the bytes of its payload, whether it has control rows; None for a damaged header."""
    try:
        _check_header(header, "")
    except LogError:
        return None
    fields = _HEADER.unpack_from(header)
    return fields[6], fields[9], fields[2] != _DATA


def payload_of(segment: Segment, data: bytes, where: str) -> bytes:
    """The payload of a segment, checked against its header.

    Args:
        segment: what the header says.
        data: the whole object.
        where: the place of the object, for people; errors name it.

    Raises:
        LogError: bytes are missing, or changed.
    """
    if len(data) != HEADER_BYTES + segment.size:
        raise _damaged(
            where, f"{len(data) - HEADER_BYTES} bytes instead of {segment.size}"
        )
    payload = data[HEADER_BYTES:]
    if zlib.crc32(payload) != segment.checksum:
        raise _damaged(where, "its bytes were changed")
    return payload


def _damaged(where: str, what: str) -> LogError:
    hint = "restore this file from a copy; without one `fairway streams skip` passes over it, and what it held is lost"
    return LogError(f"{where} is damaged: {what}", hint=hint)


def runs_of(segments: Iterable[Segment], run_bytes: int) -> list[tuple[int, int]]:
    """Adjacent segments in runs of about so many bytes, for tasks that read a log side by side.

        segments 4 to 9 of 6 MB each, runs of 16 MB   ->   (4, 6), (6, 9), (9, 10)

    Args:
        segments: in their order.
        run_bytes: about how many bytes a run has.

    Returns:
        The first number of each run, and the one behind its last.
    """
    sized = list(segments)
    sizes = accumulate(segment.size for segment in sized)
    cut = groupby(zip(sized, sizes, strict=True), lambda one: one[1] // run_bytes)
    runs = [[segment.number for segment, _ in of] for _, of in cut]
    return [(run[0], run[-1] + 1) for run in runs]
