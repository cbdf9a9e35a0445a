"""The stages of a call on Spark: rows are packed, shards step, what they tell is unpacked.

rows -- pack --> (shard's key, blob)  -- step, by key -->  blob  -- unpack --> changes
"""

import uuid
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import Broadcast, cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
)

from st_common.operators.state.codec import table_from_blob, table_to_blob
from st_common.operators.state.state import State
from st_common.spark.continuous.kept_state import KeptState
from st_common.spark.continuous.prepared import Prepared
from st_common.spark.continuous.rows import (
    SCHEMA,
    from_blobs,
    stepped,
)

_PACKED = "key int, blob binary"
_PACKED_SCHEMA = pa.schema([("key", pa.int32()), ("blob", pa.binary())])
_TOLD = "blob binary"
_TOLD_SCHEMA = pa.schema([("blob", pa.binary())])


def changes_of(
    rows: DataFrame, prepared: Broadcast[Prepared], keys: tuple[int, ...]
) -> DataFrame:
    """What the queries tell of rows, batch by batch where they stream, else once.

    Args:
        rows: the columns that `judge_columns` takes.
        prepared: the queries.
        keys: the grouping key of each shard.
    """

    def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                blob = table_to_blob(pa.table(_in_micros(batch)))
                columns = [list(keys), [blob] * len(keys)]
                yield pa.record_batch(columns, schema=_PACKED_SCHEMA)

    by_key = rows.mapInArrow(packed, _PACKED).groupBy("key")
    if rows.isStreaming:
        blobs = by_key.transformWithStateInPandas(
            Shard(prepared, keys),
            outputStructType=_TOLD,
            outputMode="append",
            timeMode="none",
        )
    else:

        def once(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
            rows = from_blobs(table["blob"].to_pylist())
            shard = keys.index(key[0].as_py())
            _, said = stepped(prepared.value, State(), shard, rows)
            return pa.table([[table_to_blob(said)]], schema=_TOLD_SCHEMA)

        blobs = by_key.applyInArrow(once, _TOLD)
    return blobs.mapInArrow(_unpacked, from_arrow_schema(SCHEMA))


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that shards told, out of their blobs."""
    for batch in batches:
        for blob in batch.column("blob").to_pylist():
            yield from table_from_blob(blob).to_batches()


def _in_micros(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with event times as int64; of timestamps without a time zone Arrow's numbers are those of UTC."""
    at = batch.schema.get_field_index("event_ts")
    event_us = batch.column(at).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return batch.set_column(at, "event_ts", event_us)


class _Shipped:
    """A broadcast value that is looked up when it is used, not where the processor is unpacked.

    Spark unpacks a stateful processor once beside the driver too, where there are no broadcast values.
    """

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @cached_property
    def value(self) -> Prepared:
        """What was sent."""
        shipped: Broadcast[Prepared] = cloudpickle.loads(self._packed)
        return shipped.value


class Shard(StatefulProcessor):
    """Steps the shard of a key over the rows of each batch.

    Args:
        prepared: the queries.
        keys: the grouping key of each shard.
    """

    def __init__(self, prepared: Broadcast[Prepared], keys: tuple[int, ...]) -> None:
        self._prepared: Broadcast[Prepared] | _Shipped = prepared
        self._keys, self._stage = keys, uuid.uuid4().hex

    def __getstate__(self) -> dict[str, Any]:
        """What goes to workers; packing a broadcast value is what has it sent."""
        packed = cloudpickle.dumps(self._prepared)  # type: ignore[no-untyped-call]
        return {**self.__dict__, "_prepared": _Shipped(packed)}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state variable."""
        self._kept = KeptState(handle, self._stage)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Steps the shard, and stores its state.

        Args:
            key: a tuple of the grouping key.
            rows: frames with a blob of rows in each row.
            timerValues: not used: time is what the rows say.

        Yields:
            One frame with one row: what the shard tells.
        """
        prepared, grouping_key = self._prepared.value, int(key[0])
        read = from_blobs([blob for frame in rows for blob in frame["blob"]])
        shard = self._keys.index(grouping_key)
        done, said = stepped(prepared, self._kept.load(grouping_key), shard, read)
        self._kept.store(done, prepared.settings(shard))
        yield pd.DataFrame({"blob": [table_to_blob(said)]})

    def close(self) -> None:
        """Nothing is held open."""
