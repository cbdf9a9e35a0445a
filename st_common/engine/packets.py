"""From segments of a log to packets for shards: what every engine begins with."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from st_common.config.stream import StreamSettings
from st_common.engine.pace import taken
from st_common.log.control import check_announced
from st_common.log.log import Log, Segment
from st_common.log.reader import Piece, pieces
from st_common.log.seeds import seeds_in
from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.state.limits import Limits
from st_common.operators.state.settings import Settings

_US = 1_000_000


def step_settings(
    stream: StreamSettings, *, shard: int = 0, shards: int = 1
) -> Settings:
    """What of a stream's settings decides its answers, as the step of one shard takes it.

    Seconds become microseconds. The margin by which cache areas are wider than regions is how far an object comes
    before it counts as silent, in the unit of the stream's coordinates (SPEC G6):

        max_speed_mps 15, silence_s 60, cache_share 1.0   ->   margin 900.0, in metres; 0.0 without both settings

    Args:
        stream: the stream.
        shard: the number of the shard, from 0 on.
        shards: how many there are.
    """
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
        filters=stream.filters,
    )


def limits_of(stream: StreamSettings) -> Limits | None:
    """The limits by which the fixes of a stream are filtered (SPEC X11); None when they are not."""
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
    following: Collection[int] | None = None,
    notice: Callable[[str], None] | None = None,
    seen: Callable[[Piece], None] | None = None,
) -> Iterator[list[Packet]]:
    """The packets of some segments, in log order.

    Adjacent small segments come as one packet, for decoding them one by one costs more. Segments are read as packets
    are asked for.

    Args:
        log: the log of the stream.
        segments: adjacent segments, in order.
        stream: how they are read, unless rows in the log say otherwise, and how objects are dealt out.
        shards: how many packets each segment gives. Control rows go to all shards.
        following: the shards that get all fixes; others get those of the objects whose hash is their own. None: all
            with `moving` of the stream, else none.
        notice: told of each damaged packet that raw bytes stand in for, as a line for people.
        seen: given each piece as it was decoded.

    Yields:
        For a segment or some that were decoded together: a list of `shards` packets, by the number of the shard.

    Raises:
        LogError: a segment is missing or damaged, or says what this version does not know.
    """
    for piece in pieces(log, segments, stream):
        if notice is not None and piece.damage is not None:
            notice(piece.damage)
        if seen is not None:
            seen(piece)
        yield _packets_of(log, piece, stream, shards, following)


def _control(log: Log, segment: Segment, stream: StreamSettings) -> Packet:
    packet = control_packet(segment.number, log.read(segment), stream=stream.name)
    check_announced(packet.controls, segment, stream=stream.name)
    seeds = seeds_in(log.folder, packet.controls)
    return replace(packet, seeds=seeds) if seeds else packet


def packets_in(
    log: Log,
    segments: Sequence[Segment],
    stream: StreamSettings,
    notice: Callable[[str], None],
    seen: Callable[[Piece], None] | None = None,
) -> list[Packet]:
    """The packets of one batch for an engine with one shard.

    It stops early once a batch has half a million rows or decoding took 2 s, so the packets may cover the first of
    `segments` only; `State.next_segment` after the step says where to go on.

    Args:
        log: the log of the stream.
        segments: adjacent segments, in order.
        stream: as for `packets_of`.
        notice: as for `packets_of`.
        seen: as for `packets_of`.

    Raises:
        LogError: as `packets_of`.
    """
    made = packets_of(log, segments, stream, shards=1, notice=notice, seen=seen)
    return [one[0] for one in taken(made, lambda one: one[0].rows)]


def packets(
    log: Log, segment: Segment, stream: StreamSettings, *, shards: int
) -> list[Packet]:
    """The packets of one segment, one per shard, without its neighbours.

    Args:
        log: the log.
        segment: the segment.
        stream: as for `packets_of`.
        shards: how many packets there are.

    Raises:
        LogError: as `packets_of`.
    """
    return next(packets_of(log, [segment], stream, shards=shards))


def packets_of_piece(
    log: Log, piece: Piece, stream: StreamSettings, *, shards: int
) -> list[Packet]:
    """The packets of a piece of the log, one for each shard, as `packets_of` makes them where nobody follows others."""
    return _packets_of(log, piece, stream, shards, following=())


def _packets_of(
    log: Log,
    piece: Piece,
    stream: StreamSettings,
    shards: int,
    following: Collection[int] | None = None,
) -> list[Packet]:
    first, part = piece.segments[0], piece.part
    if part is None:
        return [_control(log, first, stream)] * shards
    if following is None and not stream.moving:
        following = ()
    packets = part.decoded
    return pack(
        first.number,
        packets.fixes,
        rows=packets.rows,
        rejects=len(packets.rejects),
        nulled=packets.nulled,
        filtered_out=packets.filtered_out,
        shards=shards,
        following=following,
        id_key=stream.id_key,
        segments=part.segments,
        at=part.fix_at if part.segments > 1 else None,
        limits=limits_of(piece.stream),
    )
