"""The last fix of every object."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.runs import firsts

_STAMP = pa.timestamp("us", tz="UTC")
LAST = pa.schema(
    [
        ("position", pa.int64()),
        ("event_ts", _STAMP),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("gone", pa.bool_()),
        ("object", pa.string()),
    ]
)
COLUMNS = tuple(name for name in LAST.names if name != "position")


def last_fixes(*parts: pa.Table) -> pa.Table:
    """Of all fixes the last of each object by event time, in no order.

    Of fixes of one object and time the first in the log counts, as everywhere. What says that an object is gone is a
    fix like others: the object stays in the result, with `gone`.

    Args:
        *parts: tables with the columns of `LAST`, in any order; fixes may overlap.

    Returns:
        Rows of `LAST`, one per object.
    """
    rows = pa.concat_tables(
        [part.select(LAST.names).cast(LAST) for part in parts if len(part)]
        or [LAST.empty_table()]
    )
    rows = rows.combine_chunks()
    if not len(rows):
        return rows
    code = pc.dictionary_encode(rows["object"]).combine_chunks().indices.to_numpy()
    order = np.lexsort(
        (
            rows["position"].to_numpy(),
            -rows["event_ts"].cast(pa.int64()).to_numpy(),
            code,
        )
    )
    code = code[order]
    return rows.take(pa.array(order[firsts(code)]))
