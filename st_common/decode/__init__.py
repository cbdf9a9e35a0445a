"""Bytes of a segment to fixes and rejects: times, numbers, places, attributes, and what is wrong with a record.

How bytes are cut into records is a format's affair (`formats`). Each reject keeps its bytes and its reason. Begin with
`interpret`, then `columns`.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode.decoded import REJECTS_SCHEMA, Decoded, fixes_schema
from st_common.decode.gzipped import MAGIC, unpack
from st_common.decode.interpret import interpret, one_arrival, times_in
from st_common.formats.arrow_rows import MAGIC as ARROW
from st_common.formats.encodings import as_utf8, with_own_bytes
from st_common.formats.format_settings import parts
from st_common.formats.numbers import Mask
from st_common.formats.records import RAW_LIMIT, Reason, Records
from st_common.formats.registry import format_of
from st_common.formats.said_before import put_in_front, said_before

__all__ = [
    "REJECTS_SCHEMA",
    "Decoded",
    "Reason",
    "Records",
    "decode",
    "event_times",
    "fixes_schema",
]


def decode(payload: bytes, stream: StreamSettings, *, arrival_us: int) -> Decoded:
    """The fixes and rejects of one segment (docs/architecture.md); total: whatever the bytes are, it raises nothing.

    Every record is in exactly one of the two tables, with its number in the segment as `row`. Blank lines and headers
    are no records. A gzip payload is unpacked; where it breaks, one more record stands for what is lost. Rows of Arrow
    are taken as they are, whatever the format of the stream (`formats.arrow_rows`). `arrival_us` (us UTC) dates fixes
    without an event time; fixes further ahead of it than the stream allows are rejected. What stands in front of a
    payload (`said_before`) is no record.
    """
    form, trouble, lost = format_of(stream.format), Reason.NONE, b""
    before, body = said_before(payload)
    if not form.remembers or body.startswith(MAGIC):
        payload = body
    if payload.startswith(MAGIC):
        payload, trouble = unpack(payload)
        if form.remembers:
            payload = put_in_front(payload, before)
    if trouble:
        end = form.whole_bytes(payload)
        payload, lost = payload[:end], payload[end:]
    records = _records(payload, stream)
    decoded = interpret(records, stream, one_arrival(arrival_us, records), before)
    return _with_loss(decoded, trouble, lost) if trouble else decoded


def event_times(
    payload: bytes, stream: StreamSettings
) -> tuple[NDArray[np.int64], Mask]:
    """When each record of a payload was made (us UTC), and where it says so; only its times are read.

    Args:
        payload: whole records, unpacked.
        stream: it has a column of times.

    Returns:
        int64[n] and bool[n], for all records, also those that are no fixes.
    """
    form, times = format_of(stream.format), stream.columns.event_ts
    (first, *_) = parts(times)
    # All other columns are left where they are; made by hand, so that nobody asks for places.
    columns = Columns(object=first, event_ts=times, age=stream.columns.age)
    narrow = replace(stream, columns=columns, attributes={}, where=None)
    made_at = form.made_at(payload, narrow)
    text = as_utf8(payload, stream.encoding)
    return times_in(form.records(text, narrow), made_at, stream)


def _records(payload: bytes, stream: StreamSettings) -> Records:
    """The records of a payload in the stream's format, or of rows of Arrow."""
    if payload.startswith(ARROW) and not format_of(stream.format).is_arrow:
        from st_common.formats.parquet_records import are_rows, read_rows

        if are_rows(payload):
            return read_rows(payload, stream, may_lack=True)
    text = as_utf8(payload, stream.encoding)
    records = format_of(stream.format).records(text, stream)
    return with_own_bytes(records, stream.encoding)


def _with_loss(decoded: Decoded, reason: Reason, lost: bytes) -> Decoded:
    row = pa.table(
        [[decoded.rows], [reason.name.lower()], [lost[:RAW_LIMIT]], [None]],
        schema=REJECTS_SCHEMA,
    )
    return replace(
        decoded, rejects=pa.concat_tables([decoded.rejects, row]), rows=decoded.rows + 1
    )
