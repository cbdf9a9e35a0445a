"""Many small segments decoded by one call: what they cost apart is mostly the call itself.

Payloads are put behind each other only where that cannot change a record: nothing in one of them reaches into the next.
Where it is doubtful each is decoded by itself, so the outcome is always that of `decode` one by one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.decode.decoded import Decoded
from st_common.decode.gzipped import MAGIC
from st_common.decode.interpret import Arrivals, interpret
from st_common.formats.arrow_rows import MAGIC as ARROW
from st_common.formats.arrow_rows import header_of
from st_common.formats.encodings import as_utf8, with_own_bytes
from st_common.formats.records import Records
from st_common.formats.registry import format_of
from st_common.formats.said_before import MARK

_MOST_BYTES = 1 << 20
_MOST_PAYLOADS = 4096
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """The payload of a segment, and when it arrived (us UTC)."""

    payload: bytes
    arrival_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Adjacent segments decoded together; `row` counts in each segment, and `decoded.rows` is the sum.

    `fix_at` and `reject_at` say of which segment each fix and each reject is, counted from 0 for the first.
    """

    segments: int
    decoded: Decoded
    fix_at: NDArray[np.int32]
    reject_at: NDArray[np.int32]


def decode_all(segments: Sequence[Raw], stream: StreamSettings) -> Iterator[Part]:
    """The fixes and rejects of adjacent segments: the same as `decode` of each, in parts of one segment or of many."""
    for run in _runs(segments, stream):
        yield from _decode_run(run, stream)


def _decode_run(run: Sequence[Raw], stream: StreamSettings) -> Iterator[Part]:
    """Halves a run in which something is out of shape, until that stands alone."""
    part = _together(run, stream) if len(run) > 1 else of_one(_decoded(run[0], stream))
    if part is not None:
        yield part
        return
    half = len(run) // 2
    yield from _decode_run(run[:half], stream)
    yield from _decode_run(run[half:], stream)


def _decoded(one: Raw, stream: StreamSettings) -> Decoded:
    return decode(one.payload, stream, arrival_us=one.arrival_us)


def of_one(decoded: Decoded) -> Part:
    """What was decoded of one segment by itself."""
    return Part(
        segments=1,
        decoded=decoded,
        fix_at=np.zeros(len(decoded.fixes), np.int32),
        reject_at=np.zeros(len(decoded.rejects), np.int32),
    )


def _runs(segments: Sequence[Raw], stream: StreamSettings) -> Iterator[Sequence[Raw]]:
    """Adjacent segments that may be decoded together: those with one header, up to some size."""
    start, size = 0, 0
    header: bytes | None = None
    for number, one in enumerate(segments):
        mine = _header(one.payload, stream)
        size += len(one.payload)
        is_full = size > _MOST_BYTES or number - start >= _MOST_PAYLOADS
        if number > start and (mine is None or mine != header or is_full):
            yield segments[start:number]
            start, size = number, len(one.payload)
        header = mine
    if start < len(segments):
        yield segments[start:]


def _header(payload: bytes, stream: StreamSettings) -> bytes | None:
    """The header line of a payload that others may stand beside, b"" where there are none; None: it stands alone."""
    form = format_of(stream.format)
    if (
        not payload
        or len(payload) > form.small_bytes
        or payload.startswith((MAGIC, MARK))
        or (payload.endswith(b"\r") and not payload.startswith(ARROW))
    ):
        return None
    if payload.startswith(ARROW):
        return header_of(payload)
    if _BOM in payload:
        return None
    return form.shared_head(payload, stream)


def _together(run: Sequence[Raw], stream: StreamSettings) -> Part | None:
    """The segments of a run by one call, None where something is out of shape."""
    if run[0].payload.startswith(ARROW):
        return _rows_together(run, stream)
    header, form = _header(run[0].payload, stream) or b"", format_of(stream.format)
    bodies = [one.payload[len(header) :] for one in run]
    ended = [_ended(body, form.line_end) for body in bodies]
    whole = b"".join(ended)
    ends = np.cumsum([len(body) for body in ended])
    starts = form.joined_starts(whole, ends)
    if starts is None:
        return None
    joined = as_utf8(header + whole, stream.encoding)
    records = form.joined_records(joined, stream)
    if records is None:
        return None
    records = with_own_bytes(records, stream.encoding)
    counts = np.bincount(
        np.searchsorted(ends, starts, side="right"), minlength=len(run)
    )
    return (
        _judged(records, counts, run, stream)
        if len(starts) == len(records.fault)
        else None
    )


def _rows_together(run: Sequence[Raw], stream: StreamSettings) -> Part | None:
    """The segments of a run that are rows of Arrow with one schema."""
    from st_common.formats.parquet_records import read_joined

    payloads = [one.payload for one in run]
    may_lack = not format_of(stream.format).is_arrow
    read = read_joined(payloads, stream, may_lack=may_lack)
    if read is None:
        return None
    records, counts = read
    return _judged(records, np.array(counts, np.int64), run, stream)


def _ended(body: bytes, line_end: bytes) -> bytes:
    return body if body.endswith(line_end) or not body else body + line_end


def _judged(
    records: Records,
    counts: NDArray[np.int64],
    run: Sequence[Raw],
    stream: StreamSettings,
) -> Part:
    arrivals = Arrivals(
        at_us=np.array([one.arrival_us for one in run], np.int64), counts=counts
    )
    decoded = interpret(records, stream, arrivals)
    first = np.cumsum(counts) - counts
    fixes, fix_at = _by_segment(decoded.fixes, first)
    rejects, reject_at = _by_segment(decoded.rejects, first)
    judged = replace(decoded, fixes=fixes, rejects=rejects)
    return Part(segments=len(run), decoded=judged, fix_at=fix_at, reject_at=reject_at)


def _by_segment(
    rows: pa.Table, first: NDArray[np.int64]
) -> tuple[pa.Table, NDArray[np.int32]]:
    """The rows with their numbers counted in each segment, and which segment each is of."""
    row = rows["row"].to_numpy()
    at = np.searchsorted(first, row, side="right") - 1
    local = pa.array((row - first[at]).astype(np.int32))
    return rows.set_column(rows.schema.get_field_index("row"), "row", local), at.astype(
        np.int32
    )
