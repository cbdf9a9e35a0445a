"""Fixes as they are sent, in the format of the stream that they are for.

What is sent in the stream's own format is stored byte by byte. JSON, CSV, GeoJSON and Arrow are taken by streams of
JSON, CSV and TSV: they are read as those formats read them, and stored as rows of Arrow by the names of the stream's
columns. What is sent is decoded here, once: whoever sends it is told what each record is.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.client.put import payload_of, refusal_of_rows
from st_common.client.result import ARROW, from_stream
from st_common.config.stream import StreamSettings
from st_common.decode import REJECTS_SCHEMA, Decoded, decode
from st_common.decode.decoded import REASONS, rejects_table
from st_common.decode.gzipped import MAGIC, GzipSource
from st_common.errors import ConfigError
from st_common.formats.records import Reason, columns_read
from st_common.formats.registry import FORMATS, format_of
from st_common.log.log import SEGMENT_LIMIT
from st_common.replay.files import wall_clock
from st_common.server.guard import Limits
from st_common.server.parameters import TooLargeError, UnsupportedError
from st_common.sources.arrival import Arrival
from st_common.sources.framing import of_document, of_message

RAW = "application/octet-stream"
_FORMATS: Mapping[str, str] = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/json": "ndjson",
    "text/csv": "csv",
    "application/geo+json": "geojson",
}
FORM = "application/x-www-form-urlencoded"
_OWN = ("", RAW, FORM, "text/plain")
"""Kinds that say nothing of the format: `curl -d` says that it sends a form, whatever it sends."""
_LARGEST = SEGMENT_LIMIT - (1 << 20)
MEDIA = (RAW, *_FORMATS, ARROW)
"""All kinds of bodies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What was sent, ready to be stored, and what its records are.

    Attributes:
        arrival: what is stored.
        decoded: of all records that are stored; None where a record may need others that came before, so that nobody
            knows yet.
        records: how many were sent.
        faults: the records that cannot be stored, of a body in another format that could not be taken apart: `row`
            counts in the body.
        rows: where in the body each record stands that is stored; None: they are all.
        form: the settings by which the body is cut into records.
    """

    arrival: Arrival
    decoded: Decoded | None
    records: int
    faults: pa.Table
    rows: NDArray[np.int64] | None
    form: StreamSettings


def unpacked(body: bytes, packing: str) -> bytes:
    """A body as it was before it was packed by gzip, whether its headers say that or not; another one itself.

    Args:
        body: the bytes that came.
        packing: what `Content-Encoding` says; "" where it says nothing.

    Raises:
        UnsupportedError: it is packed by something else.
        ConfigError: it is broken.
        TooLargeError: it is larger than a body may be.
    """
    if packing not in ("", "identity", "gzip", "x-gzip"):
        wrong = f"a body that is packed by {packing} is not taken"
        raise UnsupportedError(wrong, hint="gzip, or not packed")
    if not body.startswith(MAGIC):
        return body
    source = GzipSource(io.BytesIO(body))
    most = Limits().body_bytes
    data = source.read(most + 1)
    if len(data) > most:
        raise TooLargeError
    if source.broken:
        raise ConfigError("the body is gzip that ends early, or is broken")
    return data


def body_of(body: bytes, media: str, stream: StreamSettings) -> Body:
    """The records of a body, as the stream's log will have them.

    Args:
        body: the bytes.
        media: of which kind they are; "" is the format of the stream.
        stream: whose records these are.

    Raises:
        UnsupportedError: bodies of this kind are not taken, or not by streams of this format.
        ConfigError: there is no record in it, or it is too large.
    """
    known = _FORMATS.get(media)
    if media in _OWN or known == stream.format:
        arrival = _together(_cut(body, stream), media)
        return _judged(arrival, stream, form=stream)
    if format_of(stream.format).written_as is None:
        raise UnsupportedError(refusal_of_rows(stream), hint=RAW)
    if media == ARROW:
        arrival = _of_rows(_of_arrow(body), stream)
        return _judged(arrival, stream, form=replace(stream, format="parquet"))
    if known in FORMATS:
        return _of_text(body, str(known), stream)
    hint = f"one of {', '.join(MEDIA)}"
    raise UnsupportedError(f"a body of {media} is not taken", hint=hint)


def _judged(arrival: Arrival, stream: StreamSettings, *, form: StreamSettings) -> Body:
    """What is stored as it was sent."""
    decoded = None
    if not format_of(stream.format).remembers:
        payload = arrival.header + arrival.body
        decoded = decode(payload, stream, arrival_us=wall_clock())
    return Body(
        arrival=replace(arrival, decoded=decoded),
        decoded=decoded,
        records=arrival.records if decoded is None else decoded.rows,
        faults=REJECTS_SCHEMA.empty_table(),
        rows=None,
        form=form,
    )


def _of_text(body: bytes, name: str, stream: StreamSettings) -> Body:
    """A body in another format: what can be taken apart is stored."""
    form = replace(
        stream,
        format=name,
        header=True,
        delimiter=",",
        quote='"',
        skip_lines=0,
        records=None,
    )
    whole = _together(_cut(body, form), "")
    records = FORMATS[name].records(whole.header + whole.body, form)
    good = np.flatnonzero(records.fault == Reason.NONE)
    bad = np.flatnonzero(records.fault)
    reasons = REASONS.take(pa.array(records.fault[bad]))
    faults = rejects_table(pa.array(bad, pa.int32()), reasons, records.raw(bad))
    if len(good):
        fields = {one: records.fields[one] for one in columns_read(stream)}
        judged = _judged(_of_rows(pa.table(fields), stream), stream, form=form)
    else:
        nothing = Arrival(body=b"", records=0)
        judged = _judged(nothing, stream, form=form)
    return replace(judged, records=len(records.fault), faults=faults, rows=good)


def _together(arrivals: list[Arrival], media: str) -> Arrival:
    if not arrivals:
        hint = "curl -d takes line ends out: --data-binary" if media == FORM else ""
        raise ConfigError("the body has no records", hint=hint)
    first, *more = arrivals
    if not more:
        return first
    if any(one.header != first.header or not one.is_lines for one in arrivals):
        raise ConfigError("the body is too large", hint="send it in parts")
    body = b"".join(one.body for one in arrivals)
    return replace(first, body=body, records=sum(one.records for one in arrivals))


def _cut(body: bytes, stream: StreamSettings) -> list[Arrival]:
    """The records of a body; JSON may be one object in several lines."""
    if format_of(stream.format).takes_objects:
        return of_message(body, stream)
    return of_document(body, stream)


def _of_arrow(body: bytes) -> pa.Table:
    """The rows of a stream of Arrow.

    Raises:
        ConfigError: it is none, or damaged.
    """
    try:
        rows = from_stream(body)
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        raise ConfigError(
            "the body is no stream of Arrow, or is cut off",
            hint="pyarrow.ipc.new_stream writes one",
        ) from None
    return rows


def _of_rows(rows: pa.Table, stream: StreamSettings) -> Arrival:
    """Rows as they are stored, by the names of the stream's columns.

    Raises:
        ConfigError: a column is missing, or there twice; there are no rows, or too many.
        UnsupportedError: the stream names no columns.
    """
    if why := refusal_of_rows(stream):
        raise UnsupportedError(why, hint=RAW)
    header, data = payload_of(rows, stream)
    if not len(rows):
        raise ConfigError("the body has no records")
    if len(header) + len(data) > _LARGEST:
        raise ConfigError("the body is too large", hint="send it in parts")
    return Arrival(header=header, body=data, records=len(rows))
