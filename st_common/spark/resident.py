"""A stream on Spark in tasks that stay: one job that does not end, whose tasks step the shards (docs/adr/0081)."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from st_common.capture.control import control_rows
from st_common.capture.log import Segment
from st_common.engine.archive import Archive
from st_common.engine.archiver import archiving
from st_common.engine.committing import APP, Committing
from st_common.engine.feed import step_settings
from st_common.engine.local import BASE_S
from st_common.engine.owner import Owner, owned, pulsing
from st_common.engine.pace import Pace
from st_common.engine.recovery import recover_tables
from st_common.engine.run import attend, beat, summary
from st_common.engine.summary import RunSummary
from st_common.engine.suspension import tell_failures
from st_common.engine.timekeeper import Heard, Timekeeper
from st_common.engine.topology import begin
from st_common.home import Home
from st_common.operators.skeleton.cache_counts import from_json, summed
from st_common.operators.state.fixes import NEVER
from st_common.operators.turn.part import Counters
from st_common.position import position_of, segment_of
from st_common.settings import StreamSettings
from st_common.spark.causes import cause_of
from st_common.spark.crew import Crew, Plan
from st_common.spark.eras import asks_for_others, begin_era, era_of
from st_common.spark.modes import check_mode, folder_of
from st_common.spark.resident_task import serve_partition
from st_common.spark.session import session
from st_common.spark.shard import failures_in, read_result
from st_common.spark.source import Feed
from st_common.spark_keys import RESIDENT
from st_common.storage import make_folder

BATCH_BYTES = 16 << 20
MOST_STARTS = 10_000
"""How often Spark may start a task again: a job stays for months, and a killed worker is no reason to end it."""


def run(home: Home, stream: StreamSettings, *, until_idle: bool) -> RunSummary:
    """Follows the stream's log by tasks that stay until it is asked to stop; with `until_idle` until the log's end.

    Raises:
        FencedError: another process owns the stream, or takes it over.
        StateError: the stream was begun with other settings, or runs in micro-batches.
        ConfigError: Java or the jars are missing.
    """
    started_s = time.monotonic()
    with owned(home, stream.name, engine="spark") as owner, pulsing(owner):
        stream = begin(home, stream, engine="spark", shards=stream.shards)
        feed = feed_of(home, stream)
        recover_tables(home, stream.name)
        spark = session(
            f"fairway-{stream.name}",
            place=stream.spark,
            log_file=owner.folder / "spark.log",
            extended=False,
            starts=MOST_STARTS,
        )
        try:
            engine = on_spark(spark, home, feed, owner, until_idle=until_idle)
        finally:
            spark.stop()
        beat(engine, owner, "idle" if until_idle else "stopped", force=True)
    counters = engine.totals.counters
    return summary(
        owner,
        stream.name,
        segments=engine.totals.segments,
        position=engine.committed + 1,
        seconds=time.monotonic() - started_s,
        counters={name: getattr(counters, name) for name in counters.__slots__},
    )


def on_spark(
    spark: SparkSession,
    home: Home,
    feed: Feed,
    owner: Owner,
    *,
    until_idle: bool = True,
    end: int | None = None,
) -> "ResidentEngine":
    """Follows a log in a session that is there already, as `run`; the closed engine.

    The log ends before segment `end` if that is given.
    """
    with (
        engine_on(spark, home, feed, owner, end=end) as engine,
        archiving(Archive(home, feed.stream)) as archive,
    ):
        attend(engine, owner, archive, until_idle=until_idle)
        engine.close()
    return engine


@contextmanager
def engine_on(
    spark: SparkSession,
    home: Home,
    feed: Feed,
    owner: Owner,
    *,
    end: int | None = None,
) -> Iterator["ResidentEngine"]:
    """An engine with a job of its own in a session; both have ended when this is left."""
    stream = feed.stream
    # Not of the session's own settings, which would start its SQL for a second.
    host = spark.sparkContext.getConf().get("spark.driver.host") or "127.0.0.1"
    crew = Crew(stream.shards, host)
    tasks = min(stream.shards, stream.spark.cores)
    job = Job(spark, tasks, partial(serve_partition, crew.address, crew.token, feed))
    engine = ResidentEngine(home, feed, crew, owner, check=job.check, end=end)
    try:
        yield engine
    finally:
        engine.abandon()
        job.wait()


class Job:
    """A job of Spark that does not end: a task for each slot, which is started again when it breaks off.

    Args:
        spark: the session.
        tasks: how many slots.
        work: what each task does with a partition that has nothing in it.
    """

    def __init__(
        self, spark: SparkSession, tasks: int, work: Callable[[Iterable[int]], None]
    ) -> None:
        self._failure: Exception | None = None
        self._thread = threading.Thread(
            target=self._run, args=(spark, tasks, work), daemon=True, name="job"
        )
        self._thread.start()

    def _run(
        self, spark: SparkSession, tasks: int, work: Callable[[Iterable[int]], None]
    ) -> None:
        slots = spark.sparkContext.parallelize(range(tasks), tasks)
        try:
            slots.foreachPartition(work)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that runs the stream
            self._failure = cause_of(error)

    def check(self) -> None:
        """Raises what ended the job."""
        if self._failure is not None:
            raise self._failure

    def wait(self) -> None:
        """Waits until it has ended, for some seconds."""
        self._thread.join(timeout=BASE_S)


def feed_of(home: Home, stream: StreamSettings) -> Feed:
    """What tasks must know of a stream.

    Raises:
        StateError: the generation in force runs in micro-batches.
    """
    check_mode(home, stream.name, RESIDENT)
    return Feed.of(home, stream, tuple(range(stream.shards)))


class ResidentEngine(Committing):
    """Plans parts of the log, has tasks step them, and tells what they answer; see `Committing`.

    Args:
        home: the home folder.
        feed: the stream, and its shards.
        crew: the tasks, or who listens for them.
        owner: of the stream's lease; without one (in tests) no commit is fenced.
        check: raises when no more tasks will come.
        end: the log ends before this segment; None: where it ends.
    """

    def __init__(
        self,
        home: Home,
        feed: Feed,
        crew: Crew,
        owner: Owner | None = None,
        *,
        check: Callable[[], None] = lambda: None,
        end: int | None = None,
    ) -> None:
        super().__init__(home, feed.stream, owner)
        self.settings = step_settings(feed.stream)
        self.next_segment = max(segment_of(self.committed + 1), feed.start)
        self.committed_event = self._max_event = NEVER
        self._wanted_us: int | None = None
        self._timekeeper = Timekeeper(self.log, feed.stream, start=self.next_segment)
        self._pace, self._plans = Pace(), 0
        self._based_s = time.monotonic()
        self._is_storing = False
        self._crew, self._check_tasks, self._end = crew, check, end
        make_folder(folder_of(home, feed.stream.name))
        self._feed = feed
        self.era = era_of(home, feed, committed=self.committed)
        self.open()

    def _check_all(self) -> None:
        """Raises when another process owns the stream by now, or no more tasks will come."""
        self._check()
        self._check_tasks()

    def take_at_most(self, segments: int) -> None:
        """Lets a batch take no more than so many segments, until its pace says otherwise."""
        self._pace = Pace(segments=segments)

    @property
    def end(self) -> int:
        """The last position that all shards have stepped."""
        return position_of(self.next_segment, 0) - 1

    def batch(self) -> bool:
        """Has the next part of the log stepped, and tells its changes by the journal; False when there is nothing new.

        Raises:
            FairwayError: the log or a state cannot be used.
        """
        begun_s, start = time.monotonic(), self.next_segment
        segments = self.log.segments(
            start,
            max_bytes=BATCH_BYTES,
            max_segments=self._pace.segments,
            end=self._end,
        )
        if not segments:
            self._crew.listen()
            return False
        self.log.sync(segments)  # what is told follows from rows that are durable
        segments = self._in_one_era(segments)
        end = segments[-1].number + 1
        results = [read_result(blob) for blob in self._step(start, end)]
        metas = [meta for _, meta in results]
        if failures := failures_in(metas):
            tell_failures(self._home, failures)
        self.next_segment = end
        self._timekeeper.saw(segments, [Heard(**one) for one in metas[0]["heard"]])
        self.tell([table for table, _ in results])
        if self.end > self.committed:
            self._count(metas, segments=end - start)
        self._leave_others(metas)
        self._pace = self._pace.after(end - start, time.monotonic() - begun_s)
        return True

    def _step(self, start: int, end: int) -> list[bytes]:
        """What all shards tell of some segments."""
        self._plans += 1
        plan = Plan(
            number=self._plans,
            start=start,
            end=end,
            committed=self.committed,
            era=self.era.to_json(),
        )
        return self._crew.step(plan, self._check_all)

    def _in_one_era(self, segments: list[Segment]) -> list[Segment]:
        """The segments before the first one that asks where others are; where that is the first, an era begins."""
        if self.era.moving or not self._feed.stream.moving or len(self._feed.keys) == 1:
            return segments
        for at, segment in enumerate(segments):
            if segment.statement and asks_for_others(control_rows(self.log, segment)):
                if at:
                    return segments[:at]
                self._begin_era(moving=True)
                break
        return segments

    def _leave_others(self, metas: list[dict[str, Any]]) -> None:
        """Begins an era where shards follow their own objects alone, once no query asks where others are.

        Not on the way to an export, whose states are of the era that it ends in.
        """
        asked = any(meta["needs_others"] for meta in metas)
        if self.era.moving and not asked and self._end is None:
            self._begin_era(moving=False)

    def _begin_era(self, *, moving: bool) -> None:
        """Has shards follow all objects from here on, or their own alone."""
        if self.next_segment > self._feed.start:
            self._store_here()
        self.era = begin_era(
            self._home, self._feed, self.era, start=self.next_segment, moving=moving
        )

    def _store_here(self) -> None:
        """Commits, and has all shards store their states at this very place, whoever breaks off meanwhile."""
        place, stored = self.next_segment, None
        while stored != place:
            self._step(place, place)  # nothing: but each shard is with a task, here
            self.store()
            until_s = time.monotonic() + BASE_S
            while stored != place and time.monotonic() < until_s:
                self._check_all()
                stored = self._crew.stored()
                time.sleep(0.002)
        self._is_storing = False

    def _count(self, metas: list[dict[str, Any]], *, segments: int) -> None:
        """Adds what a batch did to the totals."""
        totals = self.totals
        for meta in metas:
            totals.counters += Counters(**meta["counters"])
            totals.caches = summed((totals.caches, from_json(meta["caches"])))
        totals.segments += segments
        totals.rejects += metas[0]["rejects"]
        totals.nulled.update(Counter(metas[0]["nulled"]))
        self._max_event = max(meta["max_event"] for meta in metas)
        waits = [meta["wanted"] for meta in metas if meta["wanted"] is not None]
        self._wanted_us = min(waits, default=None)

    def keep_time(self) -> bool:
        """See `LocalEngine.keep_time`. What shards wait for is not known after a start: so something is taken to."""
        if self._end is not None:
            return False
        is_known = self._max_event != NEVER
        highest = self._timekeeper.feed.delays.highest_us
        return self._timekeeper.write_if_due(
            lambda: self._wanted_us if is_known else NEVER,
            self._check,
            max_event=self._max_event if is_known else highest,
        )

    def _has_committed(self) -> None:
        self.committed_event = self._max_event

    def commit_if_due(self) -> None:
        """Commits once a second, and has states stored every ten."""
        self._check_all()
        if self.is_due:
            self.commit()
        self._let_go()
        if time.monotonic() - self._based_s >= BASE_S and not self._is_storing:
            self.store()

    def store(self) -> None:
        """Commits, and has the tasks store their states, which then have seen nothing that the table does not hold."""
        self.commit()
        self._crew.store()
        self._based_s, self._is_storing = time.monotonic(), True

    def _let_go(self) -> None:
        """Lets go of the log up to where all states are stored."""
        stored = self._crew.stored() if self._is_storing else None
        if stored is not None:
            self.log.publish(APP, stored)
            self._is_storing = False
        elif time.monotonic() - self._based_s >= 6 * BASE_S:
            self._is_storing = False  # a task broke off on the way: once more

    def close(self) -> None:
        """Commits, and waits for states that are stored: the next start reads less of the log."""
        self.store()
        until_s = time.monotonic() + BASE_S
        while self._is_storing and self._crew.is_whole and time.monotonic() < until_s:
            self._let_go()
            time.sleep(0.01)

    def abandon(self) -> None:
        """Lets the tasks end without a commit."""
        self._crew.close()
        self._journal.close()
