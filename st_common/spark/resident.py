"""A stream on Spark in tasks that stay: one job that does not end, whose tasks step the shards (docs/adr/0081).

0 s     the driver begins, and steps all shards itself
5 s     Spark has started, in a thread beside it
7 s     the tasks of the job have come: states are stored, and the shards are theirs
"""

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from pyspark.sql import SparkSession

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import Archive
from st_common.engine.archive_queue import ArchiveQueue
from st_common.engine.archiver import archiving
from st_common.engine.export import exported
from st_common.engine.lease_watch import LeaseWatch
from st_common.engine.owner import Owner, now_us, owned, pulsing
from st_common.engine.recovery import prepare
from st_common.engine.run import attend, beat, summary
from st_common.engine.summary import RunSummary
from st_common.engine.topology import begin
from st_common.log.control import write_export
from st_common.log.log import Log
from st_common.operations.standalone import check_master
from st_common.operators.runtime.reshape import joined
from st_common.operators.state.state import State
from st_common.spark.causes import cause_of
from st_common.spark.exchange.crew import Crew
from st_common.spark.resident_engine import ResidentEngine
from st_common.spark.resident_task import serve, serve_partition
from st_common.spark.session import session
from st_common.spark.task_settings import TaskSettings, refuse_micro_batches

TURNS = 64
"""How many tasks a job has for each slot, one after the other: when one ends, Spark starts the next."""
MOST_STARTS = 10_000
"""How often Spark may start a task again: a job stays for months, and a killed worker is no reason to end it."""
_LOOPBACK = "127.0.0.1"
_REUSE = "spark.python.worker.reuse"
"""Not for tasks that stay: the next one begins with an empty memory."""
_LAST_S = 60.0
"""How long the end of a job is waited for, whose session may not even have started."""


def run(home: Home, stream: StreamSettings, *, until_idle: bool) -> RunSummary:
    """Follows the stream's log by tasks that stay until it is asked to stop; with `until_idle` until the log's end.

    Raises:
        FencedError: another process owns the stream, or takes it over.
        StateError: the stream was begun with other settings, or in micro-batches by a version before.
        UnreachableError: the cluster that it shall run on does not answer; nothing was begun.
        ConfigError: Java or the jars are missing.
    """
    check_master(stream.name, stream.spark)
    refuse_micro_batches(home, stream.name)
    started_s = time.monotonic()
    with owned(home, stream.name, engine="spark") as owner, pulsing(owner):
        prepare(home, stream.name)
        stream = begin(home, stream, engine="spark", shards=stream.shards)
        feed, sink = TaskSettings.of(home, stream), ArchiveQueue()
        archive = Archive(home, feed.stream, sink)
        with (
            _started(feed, owner) as (start, host),
            _engine(start, home, feed, owner, host=host, sink=sink) as engine,
            archiving(archive),
        ):
            attend(
                engine,
                owner,
                archive,
                LeaseWatch(home, feed.stream.name),
                until_idle=until_idle,
            )
            engine.close()
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


@contextmanager
def _started(
    feed: TaskSettings, owner: Owner
) -> Iterator[tuple[Callable[[], SparkSession], str | None]]:
    """What starts the session of a stream, which has stopped when this is left, and the address that tasks reach.

    Spark alone knows that address where tasks are on other machines: there it is started first, and None is given.
    """
    place, made = feed.stream.spark, list[SparkSession]()

    def start() -> SparkSession:
        if not made:
            name, log_file = f"fairway-{feed.stream.name}", owner.folder / "spark.log"
            kept = {"log_file": log_file, "extended": False, "starts": MOST_STARTS}
            kept[_REUSE] = "false"
            made.append(session(name, place=place, **kept))  # type: ignore[arg-type]
        return made[0]

    try:
        yield start, _LOOPBACK if place.is_local or place.is_on_loopback else None
    finally:
        for spark in made:
            spark.stop()


def on_spark(
    spark: SparkSession,
    home: Home,
    feed: TaskSettings,
    owner: Owner,
    *,
    until_idle: bool = True,
    end: int | None = None,
) -> ResidentEngine:
    """Follows a log in a session that is there already, as `run`; the closed engine.

    The log ends before segment `end` if that is given.
    """
    sink = ArchiveQueue()
    archive = Archive(home, feed.stream, sink)
    with (
        engine_on(spark, home, feed, owner, end=end, sink=sink) as engine,
        archiving(archive),
    ):
        attend(
            engine,
            owner,
            archive,
            LeaseWatch(home, feed.stream.name),
            until_idle=until_idle,
        )
        engine.close()
    return engine


@contextmanager
def engine_on(
    spark: SparkSession,
    home: Home,
    feed: TaskSettings,
    owner: Owner,
    *,
    end: int | None = None,
    sink: ArchiveQueue | None = None,
) -> Iterator[ResidentEngine]:
    """An engine with a job of its own in a session; both have ended when this is left."""
    with _engine(lambda: spark, home, feed, owner, end=end, sink=sink) as engine:
        yield engine


@contextmanager
def _engine(
    start: Callable[[], SparkSession],
    home: Home,
    feed: TaskSettings,
    owner: Owner,
    *,
    host: str | None = None,
    end: int | None = None,
    sink: ArchiveQueue | None = None,
) -> Iterator[ResidentEngine]:
    """An engine whose tasks come once a session has started; until then this process steps the shards.

    Args:
        start: starts the session, or gives it.
        home: the home folder.
        feed: the stream.
        owner: of its lease.
        host: the address that tasks reach; None: the session says it, and is waited for.
        end: the log ends before this segment; None: where it ends.
        sink: of the archive beside it.
    """
    crew = Crew(feed.stream.shards, host or _host_of(start()))
    work = partial(serve_partition, crew.address, crew.keys, feed)
    if host is not None:
        threading.Thread(target=_stand_in, args=(crew, feed), daemon=True).start()
    tasks = min(feed.stream.shards, feed.stream.spark.cores)
    job = Job(start, tasks, work)
    engine = ResidentEngine(
        home, feed, crew, owner, check=job.check, end=end, sink=sink
    )
    try:
        yield engine
    finally:
        engine.abandon()
        job.wait()


def _host_of(spark: SparkSession) -> str:
    # Not of the session's own settings, which would start its SQL for a second.
    return spark.sparkContext.getConf().get("spark.driver.host") or _LOOPBACK


def _stand_in(crew: Crew, feed: TaskSettings) -> None:
    """Steps all shards in this process, until tasks have come."""
    # Whatever it ends by was told to the engine, unless the engine is gone.
    with contextlib.suppress(Exception):
        serve(crew.address, crew.keys, feed, stands_in=True)


class Job:
    """A job of Spark that does not end: a task in each slot, and another one when it ends or breaks off.

    Args:
        start: starts the session, or gives it.
        tasks: how many slots.
        work: what each task does with a partition that has nothing in it.
    """

    def __init__(
        self,
        start: Callable[[], SparkSession],
        tasks: int,
        work: Callable[[Iterable[int]], None],
    ) -> None:
        self._start, self._tasks, self._work = start, tasks, work
        self._name = f"fairway-{secrets.token_hex(8)}"
        self._spark: SparkSession | None = None
        self._failure: Exception | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="job")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._spark = self._start()
            context = self._spark.sparkContext
            context.setJobGroup(self._name, "shards of a stream")
            count = self._tasks * TURNS
            while not self._is_over:
                context.parallelize(range(count), count).foreachPartition(self._work)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that runs the stream
            if not self._is_over:
                self._failure = cause_of(error)

    def check(self) -> None:
        """Raises what ended the job."""
        if self._failure is not None:
            raise self._failure

    def wait(self) -> None:
        """Ends it, and waits for that for some time."""
        self._is_over = True
        if self._spark is not None:
            # Whoever listened for tasks has gone: those that have not begun need not find out one by one.
            self._spark.sparkContext.cancelJobGroup(self._name)
        self._thread.join(timeout=_LAST_S)


def states_of_shards(home: Home, stream: StreamSettings, owner: Owner) -> list[State]:
    """The states of all shards of a stream on Spark, after it has followed its log to a mark that is put at its end.

    Args:
        home: the home folder.
        stream: the settings, with the shards that it has.
        owner: of the stream.

    Returns:
        One state at one place of the log, which has all shards.

    Raises:
        StateError: the engine did not come that far, or a state cannot be used.
        FencedError: another process took the stream over.
    """
    check_master(stream.name, stream.spark)
    refuse_micro_batches(home, stream.name)
    spark = session(
        f"fairway-{stream.name}",
        place=stream.spark,
        log_file=owner.folder / "spark.log",
        starts=MOST_STARTS,
    )
    try:
        return states_on(spark, home, stream, owner)
    finally:
        spark.stop()


def states_on(
    spark: SparkSession, home: Home, stream: StreamSettings, owner: Owner
) -> list[State]:
    """As `states_of_shards`, in a session that is there already."""
    segment = write_export(Log(home.log(stream.name)), arrival_us=now_us()).number
    engine = on_spark(
        spark, home, TaskSettings.of(home, stream), owner, end=segment + 1
    )
    found = exported(home, stream.name, segment, stream.shards)
    era = engine.era
    return [joined(found, following=era.following, guests=era.by_reach)]
