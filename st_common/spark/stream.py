"""A stream on Spark: log source, one stateful stage, and a commit without rows in the JVM."""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from st_common import tables
from st_common.capture.log import Log
from st_common.contracts import load_contract
from st_common.engine.archive import Archive
from st_common.engine.archiver import archiving
from st_common.engine.committing import APP
from st_common.engine.feed import step_settings
from st_common.engine.log_identity import log_note
from st_common.engine.owner import Owner, owned, pulsing
from st_common.engine.recovery import prepare
from st_common.engine.run import summary
from st_common.engine.summary import RunSummary
from st_common.engine.suspension import tell_failures
from st_common.engine.tidy import tidy
from st_common.engine.timekeeper import Heard, Timekeeper
from st_common.engine.topology import begin, generation_folder
from st_common.errors import StateError
from st_common.home import Home
from st_common.operators.skeleton.cache_counts import from_json, summed
from st_common.operators.state.fixes import NEVER
from st_common.operators.turn.changes import settled
from st_common.operators.turn.part import filtered_of
from st_common.ops.alerts import tell
from st_common.ops.records import read_value
from st_common.ops.status import Phase
from st_common.position import position_of, segment_of
from st_common.settings import StreamSettings
from st_common.spark.causes import cause_of
from st_common.spark.checkpoint import discard_unusable
from st_common.spark.modes import check_mode
from st_common.spark.session import session
from st_common.spark.shard import RESULT, ShardProcessor, failures_in, read_result
from st_common.spark.shard_keys import shard_keys
from st_common.spark.source import NAME, Feed, LogSource
from st_common.spark_keys import MICRO_BATCH
from st_common.storage import LocalStorage

SHARD_BYTES = (
    64 << 20
)  # of the log per shard and batch: a larger packet for one shard has died in the JVM
POLL_S = 0.02


def run(home: Home, stream: StreamSettings, *, until_idle: bool) -> RunSummary:
    """Follows the stream's log on Spark until it is asked to stop; with `until_idle` until the log's end is reached.

    Raises:
        FencedError: another process owns the stream, or takes it over.
        StateError: the stream was begun with other settings.
        ConfigError: Java or the jars are missing.
    """
    started_s = time.monotonic()
    with owned(home, stream.name, engine="spark") as owner, pulsing(owner):
        prepare(home, stream.name)
        stream = begin(home, stream, engine="spark", shards=stream.shards)
        spark = session(
            f"fairway-{stream.name}",
            place=stream.spark,
            log_file=owner.folder / "spark.log",
            extended=False,
        )
        sink = Sink(home=home, stream=stream, owner=owner)
        try:
            with archiving(Archive(home, stream)) as archive:
                follow(spark, sink, until_idle=until_idle, check=archive.check)
        finally:
            spark.stop()
        sink.beat("idle" if until_idle else "stopped", force=True)
    return summary(
        owner,
        stream.name,
        segments=sink.segments,
        position=sink.committed + 1,
        seconds=time.monotonic() - started_s,
        counters=sink.counters,
    )


def feed_of(home: Home, stream: StreamSettings) -> Feed:
    """The feed of a stream with the shard keys of its checkpoint; made and stored at the first start."""
    check_mode(home, stream.name, MICRO_BATCH)
    folder = generation_folder(home, stream.name)
    return Feed.of(home, stream, _shard_keys_of(stream, folder / "spark"))


def _shard_keys_of(stream: StreamSettings, folder: Path) -> tuple[int, ...]:
    """The keys that stand beside the checkpoint; made when they are not, or were torn, for they are always the same."""
    stored = read_value(folder / "keys.json")
    if isinstance(stored, list) and len(stored) == stream.shards:
        return tuple(stored)
    keys = shard_keys(stream.shards)
    LocalStorage(folder).put("keys.json", json.dumps(keys).encode())
    return keys


@dataclass
class Sink:
    """Commits each batch to `changes`, once; `committed` is the last position that the table has, -1 for none."""

    home: Home
    stream: StreamSettings
    owner: Owner
    segments: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    max_event: int = NEVER
    wanted_us: int | None = None
    committed: int = field(init=False)
    _commits: int = 0

    def __post_init__(self) -> None:
        self.table, self.contract = (
            self.home.table("changes", self.stream.name),
            load_contract("changes"),
        )
        self.log = Log(self.home.log(self.stream.name))
        committed = tables.committed(self.table, APP)
        self.committed = -1 if committed is None else committed
        self._timekeeper = Timekeeper(
            self.log, self.stream, start=segment_of(self.committed + 1)
        )

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Commits one batch. It begins only after Spark has noted the one before, whose segments it lets go."""
        self.owner.check()
        self._let_go()
        results = [read_result(bytes(row["blob"])) for row in batch.collect()]
        if not results:
            return
        metas = [meta for _, meta in results]
        if failures := failures_in(metas):
            tell_failures(self.home, failures)
        end = position_of(_agreed(metas), 0) - 1
        changes = settled([table for table, _ in results])
        if end > self.committed:  # else it was done before a crash
            changes = changes.filter(pc.greater(changes["position"], self.committed))
            tables.append(
                self.table,
                changes,
                self.contract,
                app=APP,
                version=end,
                after=self.committed,
                notes=log_note(self.log, APP, segment_of(end)),
                check=self.owner.check,
            )
        self._hear(metas)
        self._count(metas, len(changes), end)
        self._commits += 1
        tidy(self.table, self.contract, self._commits)
        self.beat("running")

    def _count(self, metas: list[dict[str, Any]], changes: int, end: int) -> None:
        if end <= self.committed:
            return  # done before a crash, and counted then
        self.segments += segment_of(end + 1) - segment_of(self.committed + 1)
        self.committed = end
        self.max_event = max(meta["max_event"] for meta in metas)
        counts = self.owner.counts
        for meta in metas:
            self.counters.update(meta["counters"])
            self.owner.caches = summed((self.owner.caches, from_json(meta["caches"])))
        for name in ("fixes", "late", "double", "cut"):
            counts[name] += sum(meta["counters"][name] for meta in metas)
        counts["rejects"] += metas[0]["rejects"]
        self.owner.nulled = dict(
            Counter(self.owner.nulled) + Counter(metas[0]["nulled"])
        )
        self.owner.filtered_out = dict(
            Counter(self.owner.filtered_out) + Counter(metas[0]["filtered_out"])
        )
        counts["changes"] += changes
        self.owner.filtered = filtered_of(self.counters)

    def _hear(self, metas: list[dict[str, Any]]) -> None:
        """Takes note of the time that the shards wait for, and of what the segments of a batch tell of time."""
        start, end = segment_of(self.committed + 1), metas[0]["next_segment"]
        if start < end:
            told = [Heard(**one) for one in metas[0]["heard"]]
            self._timekeeper.saw(self.log.segments(start, end=end), told)
        self.wanted_us = min(
            (meta["wanted"] for meta in metas if meta["wanted"] is not None),
            default=None,
        )

    def keep_time(self) -> bool:
        """Writes a clock row when the feed is live and quiet and a shard waits for a time that has come.

        Only the owner of the stream may ask, once all of the log is committed. True: there is a row to read.
        What shards wait for is not known after a start, so something is taken to: the batch with the row tells.
        """
        if self.max_event == NEVER:
            highest = self._timekeeper.feed.delays.highest_us
            return self._timekeeper.write_if_due(
                lambda: NEVER, self.owner.check, max_event=highest
            )
        return self._timekeeper.write_if_due(
            lambda: self.wanted_us, self.owner.check, max_event=self.max_event
        )

    def _let_go(self) -> None:
        self.log.publish(APP, segment_of(self.committed + 1))

    def beat(self, state: str, *, force: bool = False) -> None:
        """Says how the stream goes."""
        now_ts = (
            None
            if self.max_event == NEVER
            else self.max_event - step_settings(self.stream).lateness_us
        )
        end_position = position_of(self.log.end(), 0)
        self.owner.beat(
            state,
            position=self.committed + 1,
            end_position=end_position,
            now_ts=now_ts,
            force=force,
        )


def _agreed(metas: list[dict[str, Any]]) -> int:
    ends = {meta["next_segment"] for meta in metas}
    if len(ends) != 1:
        raise StateError(
            f"shards of one batch end at segments {sorted(ends)}",
            hint="the checkpoint is damaged",
        )
    return int(ends.pop())


def start(
    spark: SparkSession,
    feed: Feed,
    sink: Any,
    *,
    checkpoint: Path,
    hold: Path,
    end: int | None = None,
) -> StreamingQuery:
    """Starts the streaming query that feeds `sink` with one result per shard and batch, of segments before `end`."""
    spark.dataSource.register(LogSource)
    shards = len(feed.keys)
    options = {
        "feed": feed.to_json(),
        "checkpoint": str(checkpoint),
        "hold": str(hold),
        "tasks": str(shards),
        "max_bytes": str(SHARD_BYTES * shards),
    }
    options |= {} if end is None else {"end": str(end)}
    spark.conf.set("spark.sql.shuffle.partitions", shards)
    packets = spark.readStream.format(NAME).options(**options).load()
    results = packets.groupBy("key").transformWithStateInPandas(
        ShardProcessor(feed.to_json(), str(checkpoint)),
        outputStructType=RESULT,
        outputMode="append",
        timeMode="none",
    )
    writer = results.writeStream.foreachBatch(sink).outputMode("append")
    return (
        writer.option("checkpointLocation", str(checkpoint))
        .queryName(feed.stream.name)
        .start()
    )


def follow(
    spark: SparkSession,
    sink: Sink,
    *,
    until_idle: bool,
    end: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Feeds the sink from the stream's log until somebody asks to stop, or until the log's end is reached.

    The log ends before segment `end` if that is given. `check` is called again and again meanwhile; what it raises ends
    the stream.
    """
    folder = generation_folder(sink.home, sink.stream.name) / "spark"
    feed, hold = feed_of(sink.home, sink.stream), folder / "hold"
    hold.unlink(missing_ok=True)
    notice = discard_unusable(
        folder / "checkpoint", start=feed.start, committed=sink.committed
    )
    if notice:
        tell(sink.home, sink.stream.name, notice)
    query = start(
        spark, feed, sink, checkpoint=folder / "checkpoint", hold=hold, end=end
    )
    try:
        _attend(query, sink, until_idle=until_idle, end=end, check=check)
        _stop(query, hold)
    except StreamingQueryException as error:
        raise cause_of(error) from error
    if (failure := query.exception()) is not None:
        raise cause_of(failure)


def _attend(
    query: StreamingQuery,
    sink: Sink,
    *,
    until_idle: bool,
    end: int | None,
    check: Callable[[], None],
) -> None:
    """Beats, and keeps the time, until somebody asks to stop or the end is reached."""
    while query.isActive and not sink.owner.stop_wanted():
        check()
        log_end = sink.log.end() if end is None else end
        is_done = sink.committed + 1 >= position_of(log_end, 0)
        if is_done and end is None and sink.keep_time():
            continue
        if is_done and until_idle:
            break
        is_active = bool(query.status["isTriggerActive"])
        if sink.segments or is_done:  # else it is still in its start-up
            sink.owner.phase = Phase.BATCH if is_active else Phase.WAITING
        sink.beat("running" if is_active else "idle")
        time.sleep(POLL_S)


def _stop(query: StreamingQuery, hold: Path) -> None:
    """Stops between two batches: a stop into a running commit has broken Spark."""
    hold.touch()
    try:
        quiet = 0
        while query.isActive and quiet < 5:
            status = query.status
            quiet = (
                0
                if status["isTriggerActive"] and status["isDataAvailable"]
                else quiet + 1
            )
            time.sleep(POLL_S)
        query.stop()
    finally:
        hold.unlink(missing_ok=True)
