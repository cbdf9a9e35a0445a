"""Rows that have types already, as those of a DataFrame, to fixes and rejects: judged as texts of a feed are."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.decode.decoded import REASONS, REJECTS_SCHEMA, Decoded, fixes_schema
from st_common.decode.instants import LATEST_US
from st_common.decode.judge import Faults, coordinates, empty_ids
from st_common.formats.numbers import Mask, Parsed, mask
from st_common.formats.records import Reason
from st_common.settings import StreamSettings


def judge_columns(rows: pa.Table, stream: StreamSettings) -> Decoded:
    """The fixes and rejects of rows: each becomes exactly one of them, with its place as `row`.

    Args:
        rows: `object` string, `event_ts` int64 (us UTC), `x` and `y` float64, `gone` bool (null: no), then the
            attributes of the stream, of the types that it declares.
        stream: what x and y mean, and the attributes.

    Returns:
        As `decode` gives it; what a reject held is not kept.
    """
    rows = rows.combine_chunks()
    faults, columns = Faults(len(rows)), {n: _one(rows[n]) for n in rows.column_names}
    objects = columns["object"].dictionary_encode()
    faults.mark(empty_ids(objects), Reason.MISSING_OBJECT)
    event_us = columns["event_ts"].fill_null(0).to_numpy()
    faults.mark(mask(columns["event_ts"].is_null()), Reason.MISSING_TIME)
    faults.mark((event_us < 0) | (event_us >= LATEST_US), Reason.BAD_TIME)
    gone = mask(columns["gone"])
    x, y = coordinates(
        _parsed(columns["x"]), _parsed(columns["y"]), stream, gone, faults
    )
    fixes = pa.table(
        {
            "row": pa.array(np.arange(len(rows), dtype=np.int32)),
            "object": objects,
            "event_ts": pa.array(event_us),
            "x": pa.array(x),
            "y": pa.array(y),
            "gone": pa.array(gone),
            **{name: _finite(columns[name]) for name in stream.attributes},
        },
        schema=fixes_schema(stream),
    )
    bad = faults.reasons != Reason.NONE
    return Decoded(
        fixes=fixes.filter(pa.array(~bad)) if bad.any() else fixes,
        rejects=_rejects(faults.reasons, bad),
        rows=len(rows),
    )


def _rejects(reasons: np.ndarray, bad: Mask) -> pa.Table:
    places = np.flatnonzero(bad)
    columns = [
        pa.array(places, pa.int32()),
        REASONS.take(pa.array(reasons[places])),
        pa.repeat(pa.scalar(b""), len(places)),
    ]
    return pa.table(columns, schema=REJECTS_SCHEMA)


def _parsed(numbers: pa.Array) -> Parsed:
    missing = mask(numbers.is_null())
    values = numbers.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return Parsed(values, missing, np.zeros(len(values), bool))


def _finite(values: pa.Array) -> pa.Array:
    """Attributes; doubles that are no numbers are null, as they are where a feed has them as texts."""
    if not pa.types.is_floating(values.type):
        return values
    finite = pc.is_finite(values)
    return pc.if_else(finite, values, pa.scalar(None, values.type))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
