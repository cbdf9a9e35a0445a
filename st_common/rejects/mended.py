"""The rejected records of a segment that are good by other settings than those they were read by."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.asking import asking
from st_common.capture.chunks import chunks
from st_common.capture.log import Log, Segment
from st_common.decode import decode
from st_common.decode.gzipped import MAGIC, unpack
from st_common.errors import ConfigError
from st_common.formats.chunk import Chunk
from st_common.formats.numbers import Mask
from st_common.formats.records import RAW_LIMIT
from st_common.formats.said_before import put_in_front, said_before
from st_common.rejects.notes import Identity
from st_common.settings import StreamSettings

PAYLOAD_BYTES = 8 << 20

_NAMED = """
    SELECT *, md5(raw) AS digest, row_number() OVER (PARTITION BY segment, raw ORDER BY "row") AS nth
    FROM records ORDER BY segment, "row"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """Records that make a segment of their own.

    Attributes:
        header: goes in front of them.
        body: the records as they came, each with a line end.
        footer: goes behind them.
        records: which rejected records they are, in their order.
    """

    header: bytes
    body: bytes
    footer: bytes
    records: tuple[Identity, ...]

    @property
    def payload(self) -> bytes:
        """The bytes of their segment."""
        return self.header + self.body + self.footer


def named(records: pa.Table) -> pa.Table:
    """Records with their identities: the columns `digest` and `nth` beside `segment`, `row` and `raw`, in their order.

    segment  raw   ->  digest  nth
         12  a,b       9dd4..    1
         12  a,b       9dd4..    2
         13  a,b       9dd4..    1
    """
    with asking() as connection:
        connection.register("records", records)
        return connection.sql(_NAMED).to_arrow_table()


def mended_in(
    log: Log, segment: Segment, wanted: pa.Table, stream: StreamSettings
) -> Iterator[Mended]:
    """Some rejected records of a segment, as far as they are good by these settings, as they would stand alone.

    A record is known by its bytes, not by its row, which other settings may count otherwise. It is judged as of its
    own arrival: what was too far ahead of it is so still.

    Args:
        log: the log.
        segment: the segment that the records came in.
        wanted: the records, with the columns `digest` and `nth` of `named`.
        stream: the settings.

    Yields:
        At most 8 MiB of records at a time, or a single larger one.

    Raises:
        LogError: the bytes of the segment as they arrived are gone or damaged.
    """
    payload = log.raw(segment)
    before, body = said_before(payload)
    if body.startswith(MAGIC):
        payload = put_in_front(unpack(body)[0], before)
    parts = list(_chunks(payload, stream))
    if not parts:
        return
    keys = _keys(_spans_of(parts, segment))
    is_wanted = pc.is_in(keys, _keys(wanted)).to_numpy(zero_copy_only=False)
    start = 0
    for chunk in parts:
        end = start + len(chunk.spans)
        good = is_wanted[start:end] & _are_fixes(chunk, stream, segment)
        if good.any():
            records = _identities(segment, keys[start:end].filter(pa.array(good)))
            yield _alone(chunk, good, records)
        start = end


def are_all_good(one: Mended, stream: StreamSettings, *, arrival_us: int) -> bool:
    """Whether records are fixes, all of them, when they stand together and alone."""
    decoded = decode(one.payload, stream, arrival_us=arrival_us)
    return decoded.rows == len(decoded.fixes) == len(one.records)


def _chunks(payload: bytes, stream: StreamSettings) -> Iterator[Chunk]:
    """The records of a payload; of a document that breaks those in front of the break that fill a chunk.

    What was said before the payload stands in front of each.
    """
    before, records = said_before(payload)
    # Rows count anew where records stand alone; that they were too far ahead is judged anew, too.
    said = put_in_front(b"", replace(before, ahead=(), lines=()))
    try:
        for chunk in chunks(io.BytesIO(records), stream, size=PAYLOAD_BYTES):
            yield replace(chunk, header=said + chunk.header)
    except ConfigError:
        return


def _spans_of(parts: list[Chunk], segment: Segment) -> pa.Table:
    """All records of a segment, named as its rejects are."""
    raw = pa.concat_arrays([chunk.spans.texts(RAW_LIMIT) for chunk in parts])
    rows = np.arange(len(raw))
    numbers = np.full(len(raw), segment.number)
    return named(pa.table({"segment": numbers, "row": rows, "raw": raw}))


def _keys(records: pa.Table) -> pa.Array:
    """The identities of records of one segment as texts: digest:nth."""
    nth = records["nth"].cast(pa.string())
    keys = pc.binary_join_element_wise(records["digest"], nth, ":")
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def _identities(segment: Segment, keys: pa.Array) -> tuple[Identity, ...]:
    pairs = (key.split(":") for key in keys.to_pylist())
    return tuple((segment.number, digest, int(nth)) for digest, nth in pairs)


def _are_fixes(chunk: Chunk, stream: StreamSettings, segment: Segment) -> Mask:
    """Which records of a chunk are fixes; none where they are cut in two ways."""
    count = len(chunk.spans)
    payload = chunk.payload(0, count)
    decoded = decode(payload, stream, arrival_us=segment.arrival_us)
    are_fixes = np.zeros(count, bool)
    if decoded.rows == count:
        are_fixes[decoded.fixes["row"].to_numpy()] = True
    return are_fixes


def _alone(chunk: Chunk, good: Mask, records: tuple[Identity, ...]) -> Mended:
    """Some records of a chunk, each with what ends it."""
    texts = chunk.spans.select(good).texts().to_pylist()
    body = b"".join(text + chunk.line_end for text in texts)
    return Mended(header=chunk.header, body=body, footer=chunk.footer, records=records)
