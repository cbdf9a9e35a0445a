"""The same step over a closed part of a log as a Spark batch: sorted packets per shard, folded where they lie."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from st_common.engine.local import layers_of
from st_common.home import Home
from st_common.operators.events.packet import Packet
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.spark.shard import RESULT, read_result, result_blob
from st_common.spark.source import PACKETS, Feed, packet_rows

_RESULT = pa.schema([("key", pa.int32()), ("blob", pa.binary())])


def replay(spark: SparkSession, feed: Feed, *, end: int | None = None) -> pa.Table:
    """The changes of a log up to some place, found by a Spark batch: the same rows as the streaming engine gives.

    Args:
        spark: a session.
        feed: the stream and the keys of its shards.
        end: the segment to stop before; None: the log's end.

    Returns:
        Rows with the columns of the contract `changes` but `event_date`, in the order of (position, seq).

    Raises:
        LogError: a segment is missing or damaged.
    """
    numbers = [segment.number for segment in feed.log().segments(0, end=end)]
    shards, text = len(feed.keys), feed.to_json()
    spark.conf.set(
        "spark.sql.execution.arrow.maxRecordsPerBatch", 4
    )  # a record is a packet of megabytes

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = Feed.from_json(text)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from packet_rows(
                    source, source.log().segments(number, end=number + 1)
                )

    def fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _folded(Feed.from_json(text), batches)

    listed = spark.createDataFrame(
        [(number,) for number in numbers], "segment long"
    ).repartition(shards)
    # Each shard's packets in one partition and in log order: the step is a fold.
    packets = (
        listed.mapInArrow(decode, PACKETS)
        .repartition(shards, "key")
        .sortWithinPartitions("key", "segment")
    )
    results = packets.mapInArrow(fold, RESULT).collect()
    return settled([read_result(bytes(row["blob"]))[0] for row in results])


def _folded(feed: Feed, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One result per Arrow batch and shard; only the state is carried from one to the next."""
    layer_of = layers_of(Home(Path(feed.home)), feed.stream)
    states: dict[int, State] = {}
    for batch in batches:
        by_key: dict[int, list[Packet]] = {}
        for key, blob in zip(
            batch.column("key").to_pylist(),
            batch.column("blob").to_pylist(),
            strict=True,
        ):
            by_key.setdefault(key, []).append(Packet.from_blob(blob))
        for key, read in by_key.items():
            done = step(states.get(key, State()), read, feed.settings(key), layer_of)
            states[key] = done.state
            yield pa.record_batch([[key], [result_blob(done, read)]], schema=_RESULT)
