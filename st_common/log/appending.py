"""Records into a stream's log: judged once whether they leap ahead of it, and decoded once where it is worth it.

payload --> ahead of the stream? --> #said {"ahead": [..]} in front --> segment, or packet and raw bytes
                ^
            the log so far: its last segments say how far event time has come
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.stream import StreamSettings
from st_common.decode import Decoded, decode
from st_common.decode.packed import Encoder
from st_common.errors import LogError
from st_common.formats.said_before import put_in_front, said_before
from st_common.log.event_time import EventTime
from st_common.log.leaps import judged, most_us_of
from st_common.log.log import Log
from st_common.log.segment import Segment

PACKED_BYTES = 1 << 16  # so large must a payload be to be worth a packet
_SURE_US = 60_000_000
"""For so long nothing is looked at of a stream that was at its arrivals."""
_LOOKED_AT = 4
"""Of a log that others have written, the last segments of records say how far its event time has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A payload with the rows in front that are ahead of its stream.

    Attributes:
        payload: the bytes.
        ahead: the rows, in ascending order.
        decoded: of the payload; None where nobody has decoded it as it is.
    """

    payload: bytes
    ahead: Sequence[int] = ()
    decoded: Decoded | None = None


def marked(
    log: Log,
    stream: StreamSettings,
    payload: bytes,
    *,
    arrival_us: int,
    decoded: Decoded | None = None,
) -> Marked:
    """A payload as it is to be appended next; whoever says more of its bytes holds the log's lock from here on.

    Args:
        log: the log of the stream.
        stream: how the records are read.
        payload: whole records, with what stands in front of them (`said_before`).
        arrival_us: when they arrive, us UTC.
        decoded: of the payload, where somebody has decoded it a moment ago.
    """
    if _is_sure(log, stream, arrival_us):
        return Marked(payload=payload, decoded=decoded)
    if decoded is None:
        decoded = decode(payload, stream, arrival_us=arrival_us)
    with log.locked():
        found = _marked(log, stream, payload, decoded, arrival_us)
    if found is payload:
        return Marked(payload=payload, decoded=decoded)
    return Marked(payload=found, ahead=said_before(found)[0].ahead)


def append_records(
    log: Log,
    stream: StreamSettings,
    payload: bytes,
    *,
    arrival_us: int,
    live: bool,
    is_judged: bool = False,
    decoded: Decoded | None = None,
) -> None:
    """Appends a payload, which is read by these settings, also when another process has changed them in between.

    Fixes that leap ahead of the stream are marked so in the log. A large payload is decoded here, once for all who will
    read it; many small ones are decoded together faster than they are read one by one.

    Args:
        log: the log of the stream.
        stream: how the records are read.
        payload: whole records, below 16 MiB, with what stands in front of them (`said_before`).
        arrival_us: when they arrived, us UTC.
        live: they are told as they happen.
        is_judged: what is ahead of the stream is marked already.
        decoded: of the payload, where somebody has decoded it a moment ago.

    Raises:
        LogError: as `Log.append`.
        StorageError: the disk is full, or refuses.
    """
    timeless = stream.columns.event_ts is None
    known = Marked(payload=payload, decoded=decoded)
    if not (is_judged or decoded or _is_sure(log, stream, arrival_us)):
        decoded = decode(payload, stream, arrival_us=arrival_us)
    with log.locked():
        if not is_judged:
            known = marked(log, stream, payload, arrival_us=arrival_us, decoded=decoded)
        payload = known.payload
        is_packed = stream.codec == "packet" and len(payload) >= PACKED_BYTES
        coded = (
            Encoder(payload, stream, arrival_us=arrival_us, decoded=known.decoded)
            if is_packed
            else None
        )
        log.append(
            payload, arrival_us=arrival_us, live=live, timeless=timeless, coded=coded
        )


def _is_sure(log: Log, stream: StreamSettings, arrival_us: int) -> bool:
    """Whether nothing can be ahead: a moment ago the stream was at its arrivals, and what is past them is rejected."""
    if stream.max_jump_s is None or not most_us_of(stream):
        return True
    at_us = log.event_time.agreed_us
    is_bounded = (
        stream.max_ahead_s is not None and stream.max_ahead_s <= stream.max_jump_s
    )
    return is_bounded and at_us is not None and 0 <= arrival_us - at_us <= _SURE_US


def time_of(log: Log, stream: StreamSettings) -> EventTime:
    """How far the event time of a stream has come at the end of its log; the log is locked.

    Args:
        log: the log.
        stream: how its records are read.
    """
    time, end = log.event_time, log.end()
    if time.segment > end:  # it was begun anew
        time = EventTime()
    for segment in _records_since(log, time.segment, end):
        time = _behind(log, segment, stream, time)
    log.event_time = replace(time, segment=end)
    return log.event_time


def _marked(
    log: Log,
    stream: StreamSettings,
    payload: bytes,
    decoded: Decoded,
    arrival_us: int,
) -> bytes:
    """The payload, with the rows in front that are ahead of the stream; itself where none is."""
    fixes, most_us = decoded.fixes, most_us_of(stream)
    last = pc.max(fixes["event_ts"]).as_py()
    if last is None:
        return payload
    if (
        abs(last - arrival_us) <= most_us
    ):  # so there is nobody who could not be believed
        log.event_time = replace(log.event_time, agreed_us=arrival_us)
        return payload
    time = time_of(log, stream)
    ahead, behind = judged(fixes, time, arrival_us=arrival_us, most_us=most_us)
    # What is appended next is this payload: so much of the log is known then.
    log.event_time = replace(behind, segment=time.segment + 1)
    if not ahead.any():
        return payload
    before, body = said_before(payload)
    rows = fixes["row"].to_numpy()[ahead].tolist()
    return put_in_front(body, replace(before, ahead=rows))


def _records_since(log: Log, start: int, end: int) -> Iterator[Segment]:
    """The last segments of records from a number on, in their order."""
    some: list[Segment] = []
    number, start = end - 1, max(start, log.first())
    while number >= start and len(some) < _LOOKED_AT:
        segment = log.segment(number)
        if not segment.control and not segment.skipped:
            some.append(segment)
        number -= 1
    yield from reversed(some)


def _behind(
    log: Log, segment: Segment, stream: StreamSettings, time: EventTime
) -> EventTime:
    """How far the time has come behind a segment, by what its writer believed."""
    try:
        before, body = said_before(log.raw(segment))
    except LogError:
        return time  # packets whose raw bytes are gone, or what is damaged: those behind it say as much
    payload = put_in_front(body, replace(before, ahead=()))
    fixes = decode(payload, stream, arrival_us=segment.arrival_us).fixes
    if not len(fixes):
        return time
    is_ahead = np.isin(fixes["row"].to_numpy(), before.ahead)
    believed = fixes.filter(pa.array(~is_ahead))["event_ts"].to_numpy()
    high = max([int(believed.max())] if len(believed) else [], default=None)
    known = [one for one in (time.high_us, high) if one is not None]
    last = np.flatnonzero(~is_ahead)
    waiting = fixes.slice(int(last[-1]) + 1 if len(last) else 0)
    pairs = zip(
        waiting["object"].to_pylist(), waiting["event_ts"].to_pylist(), strict=True
    )
    return replace(time, high_us=max(known, default=None), waiting=tuple(pairs)[-3:])
