"""From segments of a log to packets for shards: what every engine begins with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from st_common.capture.log import Log, Segment
from st_common.capture.reading import Readings
from st_common.decode.joined import Part, Raw, decode_all
from st_common.engine.pace import taken
from st_common.operators.packet import Packet, control_packet, pack
from st_common.operators.settings import Settings
from st_common.settings import StreamSettings

_US = 1_000_000
_READ_BYTES = 1 << 20
_READ_SEGMENTS = 4096


def step_settings(stream: StreamSettings, *, shard: int = 0, shards: int = 1) -> Settings:
    """What of a stream's settings decides its answers, in microseconds, for one of its shards."""
    silence_us = None if stream.silence_s is None else round(stream.silence_s * _US)
    reach_m = (stream.max_speed_mps or 0.0) * (stream.silence_s or 0.0)  # how far an object comes before it is silent
    return Settings(
        lateness_us=round(stream.lateness_s * _US), silence_us=silence_us, tick_us=round(stream.tick_s * _US),
        geographic=stream.geographic, margin=stream.cache_share * reach_m / stream.unit_m, refills=stream.cache_refills,
        unit_m=stream.unit_m,
        window_rows=stream.window_rows, shard=shard, shards=shards, id_key=stream.id_key,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Adjacent segments that were decoded together, or one of control rows, which has no part.

    `stream` has the settings by which they were read.
    """

    segments: Sequence[Segment]
    part: Part | None
    stream: StreamSettings

    @property
    def rows(self) -> int:
        """How many records there are."""
        return self.part.decoded.rows if self.part else 0


def pieces(log: Log, segments: Sequence[Segment], stream: StreamSettings) -> Iterator[Piece]:
    """Adjacent segments in log order, the small ones decoded together.

    Each by the settings in force at its place in the log. They are read as they are asked for, so that whoever asks can
    stop between two of them.
    """
    readings = Readings(log, stream)
    for (control, _), of in groupby(segments, key=lambda segment: (segment.control, segment.reading_before)):
        for some in _batches(list(of)):
            read_by = readings.of(some[0])
            if control:
                yield from (Piece(segments=[one], part=None, stream=read_by) for one in some)
                continue
            found = [Raw(payload=log.read(one), arrival_us=one.arrival_us) for one in some]
            first = 0
            for part in decode_all(found, read_by):
                yield Piece(segments=some[first : first + part.segments], part=part, stream=read_by)
                first += part.segments


def packets_of(log: Log, segments: Sequence[Segment], stream: StreamSettings, *, shards: int) -> Iterator[list[Packet]]:
    """One packet per shard for every segment, or for many small ones that follow each other, in log order.

    Control rows go to all shards; fixes too, or to the shard of their object.
    """
    for piece in pieces(log, segments, stream):
        first = piece.segments[0]
        if piece.part is None:
            yield [control_packet(first.number, log.read(first))] * shards
        else:
            yield _pack(first.number, piece.part, stream, shards)


def packets_in(log: Log, segments: Sequence[Segment], stream: StreamSettings) -> list[Packet]:
    """The packets of a batch for the one shard there is: of the first of the segments, up to what a batch may take."""
    made = packets_of(log, segments, stream, shards=1)
    return [one[0] for one in taken(made, lambda one: one[0].rows)]


def packets(log: Log, segment: Segment, stream: StreamSettings, *, shards: int) -> list[Packet]:
    """One packet per shard for a segment; see `packets_of`."""
    return next(packets_of(log, [segment], stream, shards=shards))


def _pack(first: int, part: Part, stream: StreamSettings, shards: int) -> list[Packet]:
    found = part.decoded
    return pack(
        first, found.fixes, rows=found.rows, rejects=len(found.rejects), nulled=found.nulled, shards=shards,
        moving=stream.moving, id_key=stream.id_key, segments=part.segments,
        at=part.fix_at if part.segments > 1 else None,
    )  # fmt: skip


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
