"""From segments of a log to packets for shards: what every engine begins with."""

from collections.abc import Callable, Iterator, Sequence

from st_common.capture.control import check_announced
from st_common.capture.log import Log, Segment
from st_common.capture.pieces import Piece, pieces
from st_common.engine.pace import taken
from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.state.limits import Limits
from st_common.operators.state.settings import Settings
from st_common.settings import StreamSettings

_US = 1_000_000


def step_settings(
    stream: StreamSettings, *, shard: int = 0, shards: int = 1
) -> Settings:
    """What of a stream's settings decides its answers, in microseconds, for one of its shards."""
    silence_us = None if stream.silence_s is None else round(stream.silence_s * _US)
    reach_m = (stream.max_speed_mps or 0.0) * (
        stream.silence_s or 0.0
    )  # how far an object comes before it is silent
    return Settings(
        lateness_us=round(stream.lateness_s * _US),
        silence_us=silence_us,
        tick_us=round(stream.tick_s * _US),
        space=stream.space,
        margin=stream.cache_share * reach_m / stream.unit_m,
        refills=stream.cache_refills,
        unit_m=stream.unit_m,
        window_rows=stream.window_rows,
        shard=shard,
        shards=shards,
        id_key=stream.id_key,
    )


def limits_of(stream: StreamSettings) -> Limits | None:
    """By which limits the fixes of a stream are filtered; None when they are not."""
    position_filter = stream.position_filter
    if position_filter is None:
        return None
    after_s = position_filter.accept_after_s
    return Limits(
        accuracy=position_filter.accuracy,
        accuracy_unit_m=stream.accuracy_unit_m,
        max_accuracy_m=position_filter.max_accuracy_m,
        beyond_accuracy=position_filter.beyond_accuracy,
        min_distance_m=position_filter.min_distance_m,
        max_speed_mps=position_filter.max_speed_mps,
        accept_after_us=None if after_s is None else round(after_s * _US),
    )


def packets_of(
    log: Log,
    segments: Sequence[Segment],
    stream: StreamSettings,
    *,
    shards: int,
    notice: Callable[[str], None] | None = None,
) -> Iterator[list[Packet]]:
    """One packet per shard for every segment, or for many small ones that follow each other, in log order.

    Control rows go to all shards; fixes too, or to the shard of their object. `notice` is told of damaged segments that
    others stand in for.
    """
    for piece in pieces(log, segments, stream):
        if notice is not None and piece.damage is not None:
            notice(piece.damage)
        yield _packets_of(log, piece, stream, shards)


def _control(log: Log, segment: Segment, stream: StreamSettings) -> Packet:
    packet = control_packet(segment.number, log.read(segment), stream=stream.name)
    check_announced(packet.controls, segment, stream=stream.name)
    return packet


def packets_in(
    log: Log,
    segments: Sequence[Segment],
    stream: StreamSettings,
    notice: Callable[[str], None],
) -> list[Packet]:
    """The packets of a batch for the one shard there is: of the first of the segments, up to what a batch may take.

    For `notice` see `packets_of`.
    """
    made = packets_of(log, segments, stream, shards=1, notice=notice)
    return [one[0] for one in taken(made, lambda one: one[0].rows)]


def packets(
    log: Log, segment: Segment, stream: StreamSettings, *, shards: int
) -> list[Packet]:
    """One packet per shard for a segment; see `packets_of`."""
    return next(packets_of(log, [segment], stream, shards=shards))


def packet_of(log: Log, piece: Piece, stream: StreamSettings) -> Packet:
    """The packet of a piece of the log for one who reads all of it, as `packets_of` makes them."""
    return _packets_of(log, piece, stream, shards=1)[0]


def _packets_of(
    log: Log, piece: Piece, stream: StreamSettings, shards: int
) -> list[Packet]:
    first, part = piece.segments[0], piece.part
    if part is None:
        return [_control(log, first, stream)] * shards
    packets = part.decoded
    return pack(
        first.number,
        packets.fixes,
        rows=packets.rows,
        rejects=len(packets.rejects),
        nulled=packets.nulled,
        shards=shards,
        moving=stream.moving,
        id_key=stream.id_key,
        segments=part.segments,
        at=part.fix_at if part.segments > 1 else None,
        limits=limits_of(piece.stream),
    )
