"""Bytes of a segment to fixes and rejects, one format per file."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from st_common.decode.csv import read_csv
from st_common.decode.decoded import (
    RAW_LIMIT,
    REJECTS_SCHEMA,
    Decoded,
    Reason,
    Records,
    fixes_schema,
)
from st_common.decode.gzipped import MAGIC, unpack
from st_common.decode.json_array import is_array
from st_common.decode.judge import judge, one_arrival
from st_common.decode.ndjson import read_ndjson
from st_common.settings import StreamSettings

__all__ = [
    "FORMATS",
    "REJECTS_SCHEMA",
    "Decoded",
    "Decoder",
    "Reason",
    "Records",
    "decode",
    "fixes_schema",
]

Decoder = Callable[[bytes, StreamSettings], Records]
FORMATS: Mapping[str, Decoder] = MappingProxyType(
    {"csv": read_csv, "tsv": read_csv, "ndjson": read_ndjson}
)


def decode(payload: bytes, stream: StreamSettings, *, arrival_us: int) -> Decoded:
    """The fixes and rejects of one segment (DESIGN section 2); total: whatever the bytes are, it raises nothing.

    Every record is in exactly one of the two tables, with its number in the segment as `row`. Blank lines and headers
    are no records. A gzip payload is unpacked; where it breaks, one more record stands for what is lost. `arrival_us`
    (us UTC) dates fixes without an event time; fixes further ahead of it than the stream allows are rejected.
    """
    trouble, lost = Reason.NONE, b""
    if payload.startswith(MAGIC):
        payload, trouble = unpack(payload)
    if trouble and not is_array(payload):
        end = payload.rfind(b"\n") + 1
        payload, lost = payload[:end], payload[end:]
    records = FORMATS[stream.format](payload, stream)
    decoded = judge(records, stream, one_arrival(arrival_us, records))
    return _with_loss(decoded, trouble, lost) if trouble else decoded


def _with_loss(decoded: Decoded, reason: Reason, lost: bytes) -> Decoded:
    row = pa.table(
        [[decoded.rows], [reason.name.lower()], [lost[:RAW_LIMIT]]],
        schema=REJECTS_SCHEMA,
    )
    return replace(
        decoded, rejects=pa.concat_tables([decoded.rejects, row]), rows=decoded.rows + 1
    )
