"""Rows of a DataFrame to fixes and rejects: judged as records of a feed are."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode.decoded import Decoded
from st_common.decode.interpret import interpret, one_arrival
from st_common.formats.records import Records

_ROLES = Columns(object="object", event_ts="event_ts", x="x", y="y", gone="gone")


def judge_columns(rows: pa.Table, stream: StreamSettings) -> Decoded:
    """The fixes and rejects of rows: each becomes exactly one of them, with its place as `row`.

    Args:
        rows: `object` string, `event_ts` int64 (us UTC), `x` and `y` float64, `gone` bool (null: no), then the
            attributes of the stream, of the types that it declares.
        stream: what x and y mean, and the attributes.

    Returns:
        As `decode` gives it; what a reject held is not kept. No row is too far ahead: nobody knows when it arrived.
    """
    rows = rows.combine_chunks()
    fields = {name: _one(rows[name]) for name in rows.column_names}
    fields["event_ts"] = fields["event_ts"].view(pa.timestamp("us", "UTC"))
    records = Records(
        fault=np.zeros(len(rows), np.int8),
        fields=fields,
        raw=lambda places: pa.repeat(pa.scalar(b""), len(places)),
    )
    by_role = replace(stream, columns=_ROLES, nulls=(), max_ahead_s=None)
    return interpret(records, by_role, one_arrival(0, records))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
