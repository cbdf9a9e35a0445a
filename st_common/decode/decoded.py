"""What decoding gives: `Decoded`, and the columns of its tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from st_common.config.stream import AttributeType, StreamSettings
from st_common.formats.records import Reason

REASONS = pa.array([reason.name.lower() for reason in Reason], pa.string())
REJECTS_SCHEMA = pa.schema(
    [
        ("row", pa.int32()),
        ("reason", pa.string()),
        ("raw", pa.binary()),
        ("line", pa.int64()),
    ]
)
"""`line`: where it stood in the file that it was sorted out of; null of what stands where it stood."""


def rejects_table(
    rows: pa.Array, reasons: Any, raw: Any, lines: pa.Array | None = None
) -> pa.Table:
    """Rejects with the columns of REJECTS_SCHEMA; without lines these are null."""
    lines = pa.nulls(len(rows), pa.int64()) if lines is None else lines
    return pa.table([rows, reasons, raw, lines], schema=REJECTS_SCHEMA)


_ARROW_TYPES: dict[AttributeType, pa.DataType] = {
    "string": pa.string(),
    "double": pa.float64(),
    "long": pa.int64(),
    "bool": pa.bool_(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The fixes and rejects of one segment, each in the order of their rows; every record is in exactly one of them.

    `rows` counts the records. `fixes` has the columns of `fixes_schema`, `rejects` those of REJECTS_SCHEMA. `nulled`
    counts, by attribute, the fixes in which its text was of another type, so that it is null, `filtered_out`, by clause
    of the stream's `where`, the records that it stopped. `twice` counts the fixes
    whose local time clocks showed twice, `never` the rejects whose local time they never showed; a packet of a log says
    neither.
    """

    fixes: pa.Table
    rejects: pa.Table
    rows: int
    nulled: Mapping[str, int] = field(default_factory=dict)
    filtered_out: Mapping[str, int] = field(default_factory=dict)
    twice: int = 0
    never: int = 0


FIX_SCHEMA = pa.schema(
    [
        ("row", pa.int32()),
        ("object", pa.dictionary(pa.int32(), pa.string())),
        ("event_ts", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("gone", pa.bool_()),
    ]
)


def fixes_schema(stream: StreamSettings) -> pa.Schema:
    """The columns of a stream's fixes: row, object, event_ts (us UTC), x, y, gone, then its declared attributes."""
    return pa.schema(
        [
            *FIX_SCHEMA,
            *((name, _ARROW_TYPES[kind]) for name, kind in stream.attributes.items()),
        ]
    )
