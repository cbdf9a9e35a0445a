"""From segments of a log to packets for shards: what every engine begins with."""

from st_common.capture.log import Log, Segment
from st_common.decode import Decoded, decode
from st_common.operators.evaluate import Settings
from st_common.operators.packet import Packet, control_packet, pack
from st_common.settings import StreamSettings

_US = 1_000_000


def step_settings(stream: StreamSettings) -> Settings:
    """What of a stream's settings decides its answers, in microseconds."""
    silence_us = None if stream.silence_s is None else round(stream.silence_s * _US)
    return Settings(lateness_us=round(stream.lateness_s * _US), silence_us=silence_us)


def decoded(log: Log, segment: Segment, stream: StreamSettings) -> Decoded:
    """The fixes and the rejects of a data segment; see `decode`."""
    return decode(log.read(segment), stream, arrival_us=segment.arrival_us)


def packets(log: Log, segment: Segment, stream: StreamSettings, *, shards: int) -> list[Packet]:
    """One packet per shard for a segment: control rows go to all, a fix to the shard of its object."""
    if segment.control:
        return [control_packet(segment.number, log.read(segment))] * shards
    found = decoded(log, segment, stream)
    return pack(segment.number, found.fixes, rows=found.rows, rejects=len(found.rejects), shards=shards)
