"""What was decoded when it was captured, as bytes: two Arrow streams, the fixes and behind them the rejects.

The metadata of the fixes say how many records there are, in how many fixes an attribute could not be read, and whether
times are relative: a stream without times takes the arrival for them, which is known only once a segment has its place.
"""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.decode.decoded import (
    FIX_SCHEMA,
    REASONS,
    REJECTS_SCHEMA,
    Decoded,
    fixes_schema,
)
from st_common.errors import LogError

_META = b"fairway"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_OWN = len(FIX_SCHEMA)
_LINE = "line"


class Encoder:
    """Decodes a payload once, and again only if it arrived at another time and that may decide what a record is."""

    def __init__(
        self,
        payload: bytes,
        stream: StreamSettings,
        *,
        arrival_us: int,
        decoded: Decoded | None = None,
    ) -> None:
        self._payload, self._stream = payload, stream
        self._timed = stream.columns.event_ts is not None
        self._arrival_us = arrival_us
        self._bytes = self._encoded(arrival_us, decoded)

    def __call__(self, arrival_us: int) -> bytes:
        """The packet of the payload, given that it arrived then (us UTC)."""
        judged = self._timed and self._stream.max_ahead_s is not None
        if judged and arrival_us != self._arrival_us:
            self._arrival_us, self._bytes = arrival_us, self._encoded(arrival_us)
        return self._bytes

    def _encoded(self, arrival_us: int, decoded: Decoded | None = None) -> bytes:
        if decoded is None:
            decoded = decode(self._payload, self._stream, arrival_us=arrival_us)
        return to_bytes(decoded, relative_to_us=None if self._timed else arrival_us)


def to_bytes(decoded: Decoded, *, relative_to_us: int | None = None) -> bytes:
    """What was decoded as bytes; event times less `relative_to_us`, unless that is None."""
    fixes = decoded.fixes
    if relative_to_us is not None:
        fixes = _moved(fixes, -relative_to_us)
    meta = {
        "rows": decoded.rows,
        "nulled": dict(decoded.nulled),
        "filtered_out": dict(decoded.filtered_out),
        "relative": relative_to_us is not None,
    }
    sink = pa.BufferOutputStream()
    for table in (
        fixes.replace_schema_metadata({_META: json.dumps(meta).encode()}),
        decoded.rejects,
    ):
        with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
            writer.write_table(table.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data


_NO_PACKET = (
    pa.ArrowException,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OSError,
)
"""What reading bytes that are no packet raises."""


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return dict(zip(schema.names, schema.types, strict=True))


def from_bytes(
    data: bytes,
    stream: StreamSettings,
    *,
    arrival_us: int,
    where: str,
    exact: bool = True,
) -> Decoded:
    """What `to_bytes` gave, of a segment that arrived then; `where` names it in errors.

    With `exact` its attributes must be those of the stream. Without, it was decoded by other settings: an attribute
    that it lacks, or has in another type, is null (and counted in the second case), and those of its own are left out.

    Raises:
        LogError: it is no packet, or not one of such a stream.
    """
    try:
        fixes, rejects, meta = _opened(data)
        _check(fixes, rejects, meta)
        nulled = _counts(meta["nulled"])
        filtered_out = _counts(meta.get("filtered_out", {}))  # older ones have none
    except _NO_PACKET as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _refused(where, f"it is no packet: {reason}") from None
    schema = fixes_schema(stream)
    if not exact:
        fixes, nulled = _fitted(fixes, schema, nulled)
    elif _types(fixes.schema) != _types(schema):
        raise _refused(
            where,
            f"its columns are {', '.join(fixes.column_names)}, not {', '.join(schema.names)}",
        )
    if meta["relative"]:
        fixes = _moved(fixes, arrival_us)
    return Decoded(
        fixes=fixes.select(schema.names),
        rejects=rejects,
        rows=meta["rows"],
        nulled=nulled,
        filtered_out=filtered_out,
    )


def _counts(said: Any) -> dict[str, int]:
    return {str(name): int(count) for name, count in said.items()}


def _opened(data: bytes) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    source = pa.BufferReader(data)
    fixes = pa.ipc.open_stream(source).read_all()
    rejects = pa.ipc.open_stream(source).read_all()
    if source.tell() != len(data):
        raise ValueError(f"{len(data) - source.tell()} bytes too many")
    meta: dict[str, Any] = json.loads((fixes.schema.metadata or {})[_META])
    if _LINE not in rejects.column_names:  # a packet of before files were sorted
        rejects = rejects.append_column(_LINE, pa.nulls(len(rejects), pa.int64()))
    return fixes.replace_schema_metadata(None), rejects, meta


def _check(fixes: pa.Table, rejects: pa.Table, meta: dict[str, Any]) -> None:
    """Makes sure that every record is a fix or a reject, whole and with a place of its own."""
    if list(fixes.schema)[:_OWN] != list(FIX_SCHEMA):
        raise ValueError("the columns of its fixes are others")
    if rejects.schema != REJECTS_SCHEMA:
        raise ValueError("the columns of its rejects are others")
    fixes.validate(full=True)
    rejects.validate(full=True)
    sure = [*fixes.columns[:_OWN], *rejects.drop_columns([_LINE]).columns]
    if any(column.null_count for column in sure):
        raise ValueError("it has nulls")
    rows = np.concatenate([fixes["row"].to_numpy(), rejects["row"].to_numpy()])
    if not isinstance(meta["relative"], bool) or meta["rows"] != len(rows):
        raise ValueError(
            f"{meta['rows']} records are {len(fixes)} fixes and {len(rejects)} rejects"
        )
    has_place = np.zeros(len(rows), bool)
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(rows):
        raise ValueError("the numbers of its records have gaps")
    has_place[rows] = True
    if not has_place.all():
        raise ValueError("a record is there twice")
    if not pc.all(pc.is_in(rejects["reason"], REASONS)).as_py() and len(rejects):
        raise ValueError("a reason is not known")


def _fitted(
    fixes: pa.Table, schema: pa.Schema, nulled: dict[str, int]
) -> tuple[pa.Table, dict[str, int]]:
    """The fixes with the attributes of a schema: null where they have none of that name and type."""
    out, lost = {}, {}
    for field in schema:
        values = fixes[field.name] if field.name in fixes.column_names else None
        if values is not None and values.type != field.type:
            lost[field.name] = len(values) - values.null_count
        same = values is not None and values.type == field.type
        out[field.name] = values if same else pa.nulls(len(fixes), field.type)
    kept = {name: count for name, count in nulled.items() if name in out}
    return pa.table(out, schema=schema), kept | {
        name: count for name, count in lost.items() if count
    }


def _moved(fixes: pa.Table, by_us: int) -> pa.Table:
    at = fixes.schema.get_field_index("event_ts")
    return fixes.set_column(
        at, fixes.schema.field(at), pc.add(fixes["event_ts"], by_us)
    )


def _refused(where: str, why: str) -> LogError:
    return LogError(
        f"{where} cannot be read: {why}",
        hint="restore it from a copy, or `fairway streams skip` it",
    )
