"""Closed days on Spark: fixes read by Delta, packed in blocks of time, folded by shards, visits committed by Delta.

    positions  -- a day's files, pruned   -->  fixes                       columns, with the number of a block of time
    fixes      -- dealt to blocks         -->  sorted and packed           rows of `_PACKETS`, a task for each block
    packets    -- dealt to shards         -->  sorted and folded in turn   rows of `_FOLDED`, a task for each shard
    visits     -- of the driver, who joins what shards have told -->  one commit that replaces the day

No fix passes through the driver, and nothing but tables through the home folder: a task that dies is done again.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from functools import reduce as folded_by
from operator import add, itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema

from st_common import tables
from st_common.batch.backtest import Backtest, backtest
from st_common.batch.days import Again
from st_common.batch.folding import Folded, Interval, fold_here
from st_common.batch.ordered import Dealing, Ordered, Slice
from st_common.batch.processed import FOLDER
from st_common.batch.reprocess import reprocess
from st_common.batch.sharded import (
    changes_of_bytes,
    changes_to_bytes,
    fold_shard,
    following_in,
)
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.cross_shard import Shards
from st_common.engine.statements import time_of
from st_common.engine.states import from_bytes, to_bytes
from st_common.engine.topology import topology_of
from st_common.log.log import Log
from st_common.operations.standalone import check_master
from st_common.operators.runtime.failed import Failure
from st_common.operators.runtime.reshape import joined, split
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.query.plan import Plan
from st_common.spark.causes import cause_of
from st_common.spark.delta import ReplaceOnSpark, fixes_between
from st_common.spark.session import configured, late_session

Batches = Iterable[pa.RecordBatch]
Session = Callable[[], SparkSession]

BLOCK = "block of time"
"""The column that says in which slice of the interval a fix is; no attribute has a space in its name."""
_BEGIN = -1  # the block of a row that stands in front of a shard's packets, and says that there is this shard
_PACKETS = pa.schema(
    [
        ("shard", pa.int32()),
        ("block", pa.int32()),
        ("place", pa.int32()),  # among the packets of the block
        ("blob", pa.binary()),
    ]
)
_FOLDED = pa.schema(
    [("shard", pa.int32()), ("kind", pa.string()), ("blob", pa.binary())]
)
_STATE, _CHANGES, _FAILURES = "state", "changes", "failures"
_TRIES = 32  # numbers a partition, among which one is dealt to it
OWN = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""Of a session that begins here. What the JVM does of a day takes seconds, fewer than its best compiler does."""
_BATCH = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}
"""What a task is given at once: some packets, never all of a shard."""


def reprocess_on_spark(
    home: Home,
    stream: StreamSettings,
    since: date,
    until: date,
    trial: Trial | None = None,
) -> Again:
    """Processes closed days again on Spark; the rows are those of `reprocess`, whose arguments and errors it has.

    Raises:
        ConfigError: Java or the jars are missing, too.
    """
    with _session_of(home, stream) as spark_of:
        fold = SparkFold(spark_of, _shards_of(home, stream))
        put = ReplaceOnSpark(spark_of, "reprocess")
        return reprocess(home, stream, since, until, trial, fold=fold, put=put)


def backtest_on_spark(
    home: Home,
    stream: StreamSettings,
    queries: Mapping[str, Plan],
    *,
    days: int,
    against: Mapping[str, Plan] | None = None,
) -> Backtest:
    """What queries would have told on past days, folded on Spark; see `backtest`, whose arguments and errors it has.

    Raises:
        ConfigError: Java or the jars are missing, too.
    """
    folding = _folding(home, stream)
    return backtest(home, stream, queries, days=days, against=against, folding=folding)


@contextmanager
def _folding(home: Home, stream: StreamSettings) -> Iterator["SparkFold"]:
    with _session_of(home, stream) as spark_of:
        yield SparkFold(spark_of, _shards_of(home, stream))


def _shards_of(home: Home, stream: StreamSettings) -> int:
    """As many as the stream has on Spark, else as cores."""
    topology = topology_of(home, stream.name)
    on_spark = topology is not None and topology.engine == "spark"
    return topology.shards if topology and on_spark else stream.spark.cores


def _session_of(home: Home, stream: StreamSettings) -> AbstractContextManager[Session]:
    """A function that gives a session, which begins when it is called first and ends with the block."""
    return late_session(
        home,
        f"fairway-reprocess-{stream.name}",
        check=partial(check_master, stream.name, stream.spark),
        place=stream.spark,
        log_file=home.stream(stream.name) / FOLDER / "spark.log",
        **OWN,
    )


@dataclass(frozen=True)
class SparkFold:
    """Folds an interval by one job of Spark; see `batch.folding.Fold`.

    Args:
        spark_of: gives a session with Delta, whose workers reach the home folder.
        shards: how many there are; any number gives the same changes.
    """

    spark_of: Session
    shards: int

    def __call__(self, interval: Interval, state: State) -> Folded:
        """The state behind the interval, with the changes on the way.

        Raises:
            FairwayError: that of a task.
        """
        ordered = interval.ordered
        if not tables.exists(ordered.home.table("positions", ordered.stream.name)):
            return fold_here(interval, state)
        spark = self.spark_of()
        following = following_in(interval, state, self.shards)
        dealing = Dealing(self.shards, following)
        day = time_of(interval.since_us).date()
        told = (
            f"{ordered.stream.name} {day}: fixes packed, folded by {self.shards} shards"
        )
        spark.sparkContext.setJobDescription(told)
        states = split(state, shards=self.shards, following=following)
        before = [spark.sparkContext.broadcast(to_bytes(one)) for one in states]
        try:
            with configured(spark, _BATCH):
                packets = packets_of(spark, interval, dealing)
                rows = _folded(packets, ordered, before).collect()
        except PySparkException as error:
            raise cause_of(error) from error
        finally:
            for one in before:
                one.destroy()
        return _joined(rows, following)


def _joined(rows: Sequence[Row], following: Shards) -> Folded:
    """What all shards have come to together, of rows of `_FOLDED`."""
    rows = sorted(rows, key=itemgetter("shard"))
    of_kind = {
        kind: [bytes(row["blob"]) for row in rows if row["kind"] == kind]
        for kind in (_STATE, _CHANGES, _FAILURES)
    }
    behind = [from_bytes(data, "the state of a shard") for data in of_kind[_STATE]]
    failures = itertools.chain.from_iterable(map(json.loads, of_kind[_FAILURES]))
    return Folded(
        state=joined(behind, following=following),
        changes=tuple(map(changes_of_bytes, of_kind[_CHANGES])),
        failures=tuple(dict.fromkeys(Failure(**one) for one in failures)),
    )


# --- fixes by blocks of time ------------------------------------------------------------------------------------------


def packets_of(spark: SparkSession, interval: Interval, dealing: Dealing) -> DataFrame:
    """The packets of an interval, rows of `_PACKETS` in no order: of each block of time those of all shards.

    Args:
        spark: a session with Delta.
        interval: whose slices are the blocks.
        dealing: which shards there are.
    """
    slices = interval.slices()
    fixes = fixes_in_blocks(spark, interval, slices)
    home, stream, trial = _place(interval.ordered)

    def work(batches: Batches) -> Iterator[pa.RecordBatch]:
        ordered = Ordered(home, stream, Log(home.log(stream.name)), trial)
        rows = pa.Table.from_batches(batches)
        # Of each block there is a row without a fix, so that statements count of one in which nothing was seen.
        for block in rows[BLOCK].unique().to_pylist():
            of_block = rows.filter(pc.equal(rows[BLOCK], block))
            yield from _packed(ordered, block, slices[block], of_block, dealing)

    return _dealt(fixes, BLOCK, len(slices)).mapInArrow(
        work, from_arrow_schema(_PACKETS)
    )


def fixes_in_blocks(
    spark: SparkSession, interval: Interval, slices: Sequence[Slice]
) -> DataFrame:
    """The fixes of an interval with the number of the slice that they are in, and a row of nothing else for each slice.

    Args:
        spark: a session with Delta.
        interval: whose fixes are read.
        slices: of the interval, in their order.
    """
    ordered = interval.ordered
    fixes = fixes_between(
        spark,
        ordered.home,
        ordered.stream.name,
        ordered.columns(),
        since_us=interval.since_us,
        until_us=interval.until_us,
    )
    at_us = F.unix_micros("event_ts")
    begun = ((at_us >= one.since_us).cast("int") for one in slices[1:])
    block = folded_by(add, begun, F.lit(0))
    number = F.col("id").cast("int").alias(BLOCK)
    of_each = spark.range(0, len(slices), 1, 1).select(number)
    return fixes.withColumn(BLOCK, block).unionByName(of_each, allowMissingColumns=True)


def _packed(
    ordered: Ordered, block: int, part: Slice, rows: pa.Table, dealing: Dealing
) -> Iterator[pa.RecordBatch]:
    """The packets of a block, for each shard one: those that follow all objects have the same."""
    rows = rows.filter(rows["segment"].is_valid()).combine_chunks()
    position = position_of(
        rows["segment"].to_numpy(), rows["row"].to_numpy().astype(np.int64)
    )
    fixes = rows.append_column("position", pa.array(position))
    (packets,) = ordered.packed([part], fixes, 0, dealing)
    for place, by_shard in enumerate(packets):
        blobs = {id(packet): packet.to_blob() for packet in by_shard}
        for shard, packet in enumerate(by_shard):
            row = {
                "shard": shard,
                "block": block,
                "place": place,
                "blob": blobs[id(packet)],
            }
            yield pa.RecordBatch.from_pylist([row], _PACKETS)


# --- packets by shards ------------------------------------------------------------------------------------------------


def _folded(
    packets: DataFrame, ordered: Ordered, before: Sequence[Broadcast[bytes]]
) -> DataFrame:
    """What packets come to: rows of `_FOLDED`, of each shard its state, its changes and what failed."""
    (home, stream, _), shards = _place(ordered), len(before)

    def work(batches: Batches) -> Iterator[pa.RecordBatch]:
        for shard, blobs in itertools.groupby(_rows(batches), key=itemgetter(0)):
            # The first row has no packet: it says that there is this shard.
            done = fold_shard(
                map(itemgetter(1), itertools.islice(blobs, 1, None)),
                from_bytes(before[shard].value, "the state of a shard"),
                shard,
                shards,
                home=home,
                stream=stream,
            )
            yield from _told(shard, done)

    spark = packets.sparkSession
    begin = spark.range(0, shards, 1, 1).select(
        F.col("id").cast("int").alias("shard"),
        F.lit(_BEGIN).alias("block"),
        F.lit(0).alias("place"),
        F.lit(None).cast("binary").alias("blob"),
    )
    return (
        _dealt(packets.unionByName(begin), "shard", shards)
        .sortWithinPartitions("shard", "block", "place")
        .mapInArrow(work, from_arrow_schema(_FOLDED))
    )


def _rows(batches: Batches) -> Iterator[tuple[int, bytes]]:
    """Shard and packet of each row, one after the other: no more than a batch is held."""
    for batch in batches:
        shards, blobs = batch.column("shard"), batch.column("blob")
        yield from ((a.as_py(), b.as_py()) for a, b in zip(shards, blobs, strict=True))


def _told(shard: int, done: Folded) -> Iterator[pa.RecordBatch]:
    """What a shard has come to, as rows of `_FOLDED`."""
    failures = json.dumps([asdict(one) for one in done.failures])
    changes = ((_CHANGES, changes_to_bytes(one)) for one in done.changes if len(one))
    others = ((_STATE, to_bytes(done.state)), (_FAILURES, failures.encode()))
    for kind, blob in itertools.chain(others, changes):
        row = {"shard": shard, "kind": kind, "blob": blob}
        yield pa.RecordBatch.from_pylist([row], _FOLDED)


# --- tasks ------------------------------------------------------------------------------------------------------------


def _place(ordered: Ordered) -> tuple[Home, StreamSettings, Trial | None]:
    """What tasks must know of where fixes and layers lie: whole paths, and nothing that is open."""
    return Home(ordered.home.root.resolve()), ordered.stream, ordered.trial


def _dealt(frame: DataFrame, column: str, count: int) -> DataFrame:
    """The rows in a partition for each number of a column, from 0 to before `count`.

    Spark deals by hashes, by which 0 and 1 of two fall together: each number is stood for by one whose hash is right.
    """
    numbers = f"sequence(0, {_TRIES * count - 1})"
    hashed = f"SELECT transform({numbers}, n -> pmod(hash(n), {count})) AS partition"
    ((dealt,),) = frame.sparkSession.sql(hashed).collect()
    number_of = {
        partition: number for number, partition in reversed(list(enumerate(dealt)))
    }
    stands_for = F.array(*(F.lit(number_of[one]) for one in range(count)))
    return frame.repartition(count, F.get(stands_for, F.col(f"`{column}`")))
