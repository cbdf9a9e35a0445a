"""The rejected records of a segment that are good by other settings than those they were read by."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.asking import asking
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.decode.gzipped import MAGIC, unpack
from st_common.errors import ConfigError
from st_common.formats.arrow_rows import packed
from st_common.formats.chunk import Chunk
from st_common.formats.numbers import Mask
from st_common.formats.parquet_records import whole_rows
from st_common.formats.records import RAW_LIMIT
from st_common.formats.said_before import SaidBefore, put_in_front, said_before
from st_common.formats.spans import Ints
from st_common.log.log import Log, Segment
from st_common.rejects.notes import Identity
from st_common.replay.chunks import chunks

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
    rows = whole_rows(said_before(payload)[1])
    if rows is not None:
        yield from _mended_rows(segment, wanted, stream, payload, *rows)
        return
    parts = list(_chunks(payload, stream))
    if not parts:
        return
    keys = _keys(_named(segment, _spans_of(parts)))
    is_wanted = pc.is_in(keys, _keys(wanted)).to_numpy(zero_copy_only=False)
    start = 0
    for chunk in parts:
        end = start + len(chunk.spans)
        rows_of = np.arange(start, end)
        whole = replace(chunk, header=_said(before, rows_of) + chunk.header)
        good = is_wanted[start:end] & _are_fixes(whole, stream, segment)
        if good.any():
            records = _identities(segment, keys[start:end].filter(pa.array(good)))
            header = _said(before, rows_of[good]) + chunk.header
            yield _alone(replace(chunk, header=header), good, records)
        start = end


def _mended_rows(
    segment: Segment,
    wanted: pa.Table,
    stream: StreamSettings,
    payload: bytes,
    rows: pa.Table,
    raw: pa.Array,
) -> Iterator[Mended]:
    """As `mended_in`, of a payload that is rows of Arrow, each of which is known by what `rejects` has of it."""
    numbers = np.arange(len(rows))
    keys = _keys(_named(segment, raw))
    before, bare = said_before(payload)
    whole = _said(before, numbers) + bare
    decoded = decode(whole, stream, arrival_us=segment.arrival_us)
    good = pc.is_in(keys, _keys(wanted)).to_numpy(zero_copy_only=False)
    good = good & np.isin(numbers, decoded.fixes["row"].to_numpy())
    if decoded.rows != len(rows) or not good.any():
        return
    header, body = packed(rows.filter(pa.array(good)))
    yield Mended(
        header=_said(before, numbers[good]) + header,
        body=body,
        footer=b"",
        records=_identities(segment, keys.filter(pa.array(good))),
    )


def are_all_good(one: Mended, stream: StreamSettings, *, arrival_us: int) -> bool:
    """Whether records are fixes, all of them, when they stand together and alone."""
    decoded = decode(one.payload, stream, arrival_us=arrival_us)
    return decoded.rows == len(decoded.fixes) == len(one.records)


def _chunks(payload: bytes, stream: StreamSettings) -> Iterator[Chunk]:
    """The records of a payload; of a document that breaks those in front of the break that fill a chunk."""
    whole = replace(stream, skip_lines=0)  # a log has no lines to be skipped
    try:
        yield from chunks(
            io.BytesIO(said_before(payload)[1]), whole, size=PAYLOAD_BYTES
        )
    except ConfigError:
        return


def _said(before: SaidBefore, rows: Ints) -> bytes:
    """What was said before a payload, as it stands in front of some of its records.

    Rows count anew where records stand alone; that they were too far ahead is judged anew, too.
    """
    owner_of = [before.owner_of[row] for row in rows] if before.owner_of else ()
    said = replace(before, ahead=(), lines=(), owner_of=owner_of)
    return put_in_front(b"", said)


def _spans_of(parts: list[Chunk]) -> pa.Array:
    """All records of a segment, each as `rejects` has it."""
    return pa.concat_arrays([chunk.spans.texts(RAW_LIMIT) for chunk in parts])


def _named(segment: Segment, raw: pa.Array) -> pa.Table:
    """All records of a segment, named as its rejects are."""
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
