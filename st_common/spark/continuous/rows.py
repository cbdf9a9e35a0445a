"""Rows of a DataFrame as packets of a log: sorted, judged, and stepped.

rows of a batch, in any order           sorted by (time, object, all else)         position (batch, rank)
b 12:00:02   a 12:00:01   a 12:00:02    a 12:00:01   a 12:00:02   b 12:00:02       (7, 0)  (7, 1)  (7, 2)
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.decode.columns import judge_columns
from st_common.engine.feed import limits_of
from st_common.errors import QueryError
from st_common.operators.events.packet import Packet, pack
from st_common.operators.runtime.stages import Step, step
from st_common.operators.state.codec import PACKED
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.position import position_of
from st_common.spark.continuous.prepared import Prepared

ACCOUNT = "account"
"""The cause of rows that say what a batch was made of."""
SEGMENT_ROWS = 1 << 20
CHANGES = (
    "position long, event_ts timestamp, fix_ts timestamp, sign byte, query string, query_version int,"
    " layer_version long, object string, partner string, cause string, value double, fields string"
)
"""The columns of the answer."""
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
    ]
)


def to_blob(batch: pa.RecordBatch) -> bytes:
    """Rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=PACKED) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def from_blobs(blobs: Sequence[bytes]) -> pa.Table:
    """The rows in some blobs, in the one order that rows of a batch have.

    By time, object, and then all other columns: so it does not matter in which order Spark brought them.
    """
    parts = [pa.ipc.open_stream(blob).read_all() for blob in blobs]
    rows = pa.concat_tables(parts)
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
    first = state.next_segment
    begun = [] if first else prepared.control_packets()
    made = [*begun, *_packets(prepared, rows, shard, max(first, len(begun)))]
    done = step(state, made, prepared.settings(shard), prepared.layer_of)
    for failure in done.failures:
        raise QueryError(f"query {failure.query!r} cannot be judged: {failure.why}")
    return done, pa.concat_tables([_told(done), _account(done, made, shard)])


def _packets(
    prepared: Prepared, rows: pa.Table, shard: int, first: int
) -> Iterator[Packet]:
    """The packets of a batch: one, or as many as it takes for a segment not to grow without end."""
    stream = prepared.stream
    for number, start in enumerate(range(0, len(rows), SEGMENT_ROWS)):
        decoded = judge_columns(rows.slice(start, SEGMENT_ROWS), stream)
        reasons = Counter(decoded.rejects["reason"].to_pylist())
        packets = pack(
            first + number,
            decoded.fixes,
            rows=decoded.rows,
            rejects=len(decoded.rejects),
            nulled=reasons,
            shards=prepared.shards,
            moving=prepared.by_ticks,
            id_key=stream.id_key,
            limits=limits_of(stream),
        )
        yield packets[shard]


def _told(done: Step) -> pa.Table:
    changes = settled([done.changes])
    return changes.select(SCHEMA.names).cast(SCHEMA)


def _account(done: Step, packets: Sequence[Packet], shard: int) -> pa.Table:
    """What a batch was made of: rows and rejects are said by shard 0, all else by each of its own objects."""
    account: dict[str, Any] = {"shard": shard}
    if shard == 0:
        data = [packet for packet in packets if not packet.controls]
        account["rows"] = sum(packet.rows for packet in data)
        rejects: Counter[str] = Counter()
        for packet in data:
            rejects.update(packet.nulled)
        account["rejects"] = dict(rejects)
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


def unpacked(blobs: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    """The rows that shards told, out of their blobs."""
    for blob in blobs:
        yield from pa.ipc.open_stream(blob).read_all().to_batches()


def told_blob(told: pa.Table) -> bytes:
    """What a shard tells, as bytes."""
    batches = told.combine_chunks().to_batches()
    return to_blob(batches[0] if batches else _nothing())


def _nothing() -> pa.RecordBatch:
    arrays = [pa.array(np.empty(0), one.type) for one in SCHEMA]
    return pa.record_batch(arrays, schema=SCHEMA)
