"""Rows of a DataFrame as packets of a log: sorted, judged, and stepped.

rows of a batch, in any order           sorted by (time, object, all else)         position (batch, rank)
b 12:00:02   a 12:00:01   a 12:00:02    a 12:00:01   a 12:00:02   b 12:00:02       (7, 0)  (7, 1)  (7, 2)
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from st_common.decode.columns import judge_columns
from st_common.decode.decoded import Decoded
from st_common.engine.packets import limits_of
from st_common.errors import QueryError
from st_common.operators.events.packet import Packet, pack
from st_common.operators.runtime.stages import Step, step
from st_common.operators.state.codec import table_from_blob
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.position import position_of
from st_common.spark.continuous.prepared import Prepared

ACCOUNT = "account"
"""The cause of rows that say what a batch was made of."""
SEGMENT_ROWS = 1 << 20
_INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("event_ts", _INSTANT),
        ("fix_ts", _INSTANT),
        ("sign", pa.int8()),
        ("query", pa.string()),
        ("query_version", pa.int32()),
        ("layer_version", pa.int64()),
        ("object", pa.string()),
        ("partner", pa.string()),
        ("cause", pa.string()),
        ("value", pa.float64()),
        ("fields", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
    ]
)
"""The columns of the answer."""


def from_blobs(blobs: Sequence[bytes]) -> pa.Table:
    """The rows in some blobs, in the one order that rows of a batch have.

    By time, object, and then all other columns: so it does not matter in which order Spark brought them.
    """
    rows = pa.concat_tables(table_from_blob(blob) for blob in blobs)
    others = [n for n in rows.column_names if n not in ("event_ts", "object")]
    keys = ["event_ts", "object", *others]
    return rows.sort_by([(name, "ascending") for name in keys])


def stepped(
    prepared: Prepared, state: State, shard: int, rows: pa.Table
) -> tuple[Step, pa.Table]:
    """Steps a shard over the rows of a batch.

    Args:
        prepared: the queries, the settings, the layers.
        state: of the shard.
        shard: its number.
        rows: of the batch, in order.

    Returns:
        The step, and what it tells: the changes, then the account of the batch; columns of `SCHEMA`.

    Raises:
        QueryError: a query cannot be judged on these rows.
    """
    stream, first = prepared.stream, state.next_segment
    begun = [] if first else prepared.control_packets()
    slices = [
        judge_columns(rows.slice(start, SEGMENT_ROWS), stream)
        for start in range(0, len(rows), SEGMENT_ROWS)
    ]
    made = _packets(prepared, slices, shard, max(first, len(begun)))
    done = step(state, [*begun, *made], prepared.settings(shard), prepared.layer_of)
    for failure in done.failures:
        raise QueryError(f"query {failure.query!r} cannot be judged: {failure.why}")
    return done, pa.concat_tables([_told(done), _account(done, slices, shard)])


def _packets(
    prepared: Prepared, slices: Sequence[Decoded], shard: int, first: int
) -> Iterator[Packet]:
    """The packets of a batch: one, or as many as it takes for a segment not to grow without end."""
    for number, decoded in enumerate(slices, first):
        packets = pack(
            number,
            decoded.fixes,
            rows=decoded.rows,
            rejects=len(decoded.rejects),
            shards=prepared.shards,
            following=prepared.following,
            id_key=prepared.stream.id_key,
            limits=limits_of(prepared.stream),
        )
        yield packets[shard]


def _told(done: Step) -> pa.Table:
    changes = settled([done.changes])
    return changes.select(SCHEMA.names).cast(SCHEMA)


def _account(done: Step, slices: Sequence[Decoded], shard: int) -> pa.Table:
    """What a batch was made of: rows and rejects are said by shard 0, all else by each of its own objects."""
    account: dict[str, Any] = {"shard": shard}
    if shard == 0:
        account["rows"] = sum(decoded.rows for decoded in slices)
        reasons = [decoded.rejects["reason"].to_pylist() for decoded in slices]
        account["rejects"] = dict(Counter(chain.from_iterable(reasons)))
    account |= {"fixes": done.counters.fixes}
    counted = ("late", "double", "cut")
    account |= {name: getattr(done.counters, name) for name in counted}
    account["filtered"] = done.counters.filtered
    row = {
        "position": position_of(done.state.next_segment, 0) - 1,
        "sign": 0,
        "cause": ACCOUNT,
        "fields": json.dumps(account),
    }
    return pa.Table.from_pylist([row], schema=SCHEMA)
