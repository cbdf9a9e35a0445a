"""From segments of a log to packets for shards: what every engine begins with."""

from st_common.capture.log import Log, Segment
from st_common.decode import Decoded, decode
from st_common.operators.packet import Packet, control_packet, pack
from st_common.operators.settings import Settings
from st_common.settings import StreamSettings

_US = 1_000_000


def step_settings(stream: StreamSettings, *, shard: int = 0, shards: int = 1) -> Settings:
    """What of a stream's settings decides its answers, in microseconds, for one of its shards."""
    silence_us = None if stream.silence_s is None else round(stream.silence_s * _US)
    reach = (stream.max_speed_mps or 0.0) * (stream.silence_s or 0.0)  # how far an object comes before it is silent
    return Settings(
        lateness_us=round(stream.lateness_s * _US), silence_us=silence_us, tick_us=round(stream.tick_s * _US),
        geographic=stream.geographic, margin=stream.cache_share * reach, window_rows=stream.window_rows, shard=shard,
        shards=shards, id_key=stream.id_key,
    )  # fmt: skip


def decoded(log: Log, segment: Segment, stream: StreamSettings) -> Decoded:
    """The fixes and the rejects of a data segment; see `decode`."""
    return decode(log.read(segment), stream, arrival_us=segment.arrival_us)


def packets(log: Log, segment: Segment, stream: StreamSettings, *, shards: int) -> list[Packet]:
    """One packet per shard for a segment: control rows go to all, fixes too, or to the shard of their object."""
    if segment.control:
        return [control_packet(segment.number, log.read(segment))] * shards
    found = decoded(log, segment, stream)
    return pack(segment.number, found.fixes, rows=found.rows, rejects=len(found.rejects), nulled=found.nulled,
                shards=shards, moving=stream.moving, id_key=stream.id_key)  # fmt: skip
