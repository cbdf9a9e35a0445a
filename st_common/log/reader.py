"""From segments of a log to fixes and rejects, by the settings that are in force where each segment stands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from st_common.config.stream import StreamSettings
from st_common.decode.batch import Part, Raw, decode_all, of_one
from st_common.decode.packed import from_bytes
from st_common.errors import LogError
from st_common.log.log import Log, Segment
from st_common.log.record_settings import Readings
from st_common.log.whole import is_raw_whole

_READ_BYTES = 1 << 20
_READ_SEGMENTS = 4096
_WAY_OUT = "its raw bytes are decoded in its place, and stay until it is whole: restore it from a copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Adjacent segments that were decoded together, or one of control rows.

    Attributes:
        segments: their headers, in order.
        part: the fixes and rejects; None for control rows.
        stream: the settings by which they were read.
        damage: a line for people about a packet that was damaged, so that its raw bytes had to be decoded in its place;
            whoever runs a stream tells it. None when all is well.
    """

    segments: Sequence[Segment]
    part: Part | None
    stream: StreamSettings
    damage: str | None = None

    @property
    def rows(self) -> int:
        """How many records there are, rejects included; 0 for control rows."""
        return self.part.decoded.rows if self.part else 0


def pieces(
    log: Log, segments: Sequence[Segment], stream: StreamSettings
) -> Iterator[Piece]:
    """The fixes and rejects of some segments, in log order.

    Each is read by the settings in force at its place in the log (docs/adr/0022). Small segments that follow each other
    are decoded together. What was decoded at capture is taken as it is, unless a reset asked for its raw bytes to be
    decoded anew.

    Args:
        log: the log.
        segments: in order, without a gap.
        stream: what does not change, and how records are read where the log does not say.

    Yields:
        Pieces. Segments are read as these are asked for, so that a reader can stop between two of them.

    Raises:
        LogError: a segment is damaged, or says what this version does not know.
    """
    readings = Readings(log, stream)
    # Also where the reading changes a run ends, so that all segments of one are read by the same settings.
    for (control, packet, _), of in groupby(segments, key=_kind):
        for some in _batches(list(of)):
            read_by = readings.of(some[0])
            if control:
                yield from (
                    Piece(segments=[one], part=None, stream=read_by) for one in some
                )
            elif packet:
                yield from (_unpacked(log, one, readings) for one in some)
            else:
                yield from _decoded(log, some, read_by)


def _kind(segment: Segment) -> tuple[bool, bool, int]:
    return segment.control, segment.packet, segment.reading_before


def _decoded(
    log: Log, segments: Sequence[Segment], stream: StreamSettings
) -> Iterator[Piece]:
    payloads = [
        Raw(payload=log.read(one), arrival_us=one.arrival_us) for one in segments
    ]
    first = 0
    for part in decode_all(payloads, stream):
        yield Piece(
            segments=segments[first : first + part.segments], part=part, stream=stream
        )
        first += part.segments


def _unpacked(log: Log, segment: Segment, readings: Readings) -> Piece:
    """What was decoded when it was captured; after a reset its raw bytes decoded anew, as long as there are any.

    So are those of a packet that is damaged: by the settings that it was decoded with, they say the same.
    """
    stream, was_reset = readings.of(segment), readings.was_reset(segment)
    if readings.is_anew(segment):
        return _of_raw(log, segment, stream)
    try:
        packet = log.read(segment)
    except LogError as error:
        if was_reset or not is_raw_whole(log, segment):
            raise
        return replace(
            _of_raw(log, segment, stream), damage=f"{error.message}; {_WAY_OUT}"
        )
    decoded = from_bytes(
        packet,
        stream,
        arrival_us=segment.arrival_us,
        where=log.place(segment.number),
        exact=not was_reset,
    )
    return Piece(segments=[segment], part=of_one(decoded), stream=stream)


def _of_raw(log: Log, segment: Segment, stream: StreamSettings) -> Piece:
    part = next(
        decode_all(
            [Raw(payload=log.raw(segment), arrival_us=segment.arrival_us)], stream
        )
    )
    return Piece(segments=[segment], part=part, stream=stream)


def _batches(segments: Sequence[Segment]) -> Iterator[Sequence[Segment]]:
    """Segments that are read before the first of them is decoded: many when they are small."""
    start, size = 0, 0
    for number, segment in enumerate(segments):
        size += segment.size
        if number > start and (size > _READ_BYTES or number - start >= _READ_SEGMENTS):
            yield segments[start:number]
            start, size = number, segment.size
    if start < len(segments):
        yield segments[start:]
