"""One Spark session per process, the same for streams, batches and tests."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from st_common.config.environment import jars_dir
from st_common.config.home import Home
from st_common.config.spark import SparkSettings
from st_common.errors import ConfigError
from st_common.extras import java_line
from st_common.operations.doctor import jars_problem, java_problem
from st_common.operations.log_files import rotate
from st_common.operations.standalone import UnreachableError

_CLASSES = ("delta-", "sedona-")
_EXTENDED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,org.apache.sedona.sql.SedonaSqlExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A sum for each version of a table; who commits without Spark writes none, so that it holds nothing together.
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    # Tables have some thousand files at most: 50 tasks, as by default, take seconds to list them, two do not.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.sedona.core.serde.SedonaKryoRegistrator",
}
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The one state store in which a stateful processor can keep variables."""
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # of the JVM that spark-submit has begun
PARTITIONS = "spark.sql.shuffle.partitions"
_FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # it may not change the partitions that state lies in
    STATE_STORE: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Spark's default starts `readlink` and `chmod` as processes, ten times a batch, where Hadoop has no native library.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    ),
    "spark.python.daemon.module": "st_common.spark.worker_daemon",
    "spark.shuffle.compress": "false",  # packets are packed already, and the disk is near
    "spark.shuffle.spill.compress": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.python.authenticate.socketTimeout": "240s",  # on a busy machine a worker takes minutes to start
}
_PACKED = {
    f"spark.{what}.compress": "true" for what in ("shuffle", "shuffle.spill", "rdd")
}
"""What a job puts on the disks of workers are rows, not packets: a layer takes a third of the space."""
_LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""Nobody else can reach the driver; executors on other machines must, at the address that Spark chooses."""


def session(
    app: str,
    *,
    place: SparkSettings = SparkSettings(),  # noqa: B008 - a frozen value
    log_file: Path | None = None,
    extended: bool = True,
    starts: int = 4,
    **conf: str | int,
) -> SparkSession:
    """A Spark session, started or found.

    A failed task is tried four times (`local[2]` alone retries nothing: one killed worker would end a stream).

    Args:
        app: its name, for people.
        place: where it runs, and how much of a machine it takes.
        log_file: takes what the JVM and its workers print; None: they print where this process does.
        starts: how often a task is started before its job fails.
        extended: with Delta and Sedona. Streams need neither, and their rules cost time in every batch.
        **conf: further settings of Spark, by name.

    Raises:
        ConfigError: there is no Java 17 or 21, or the jars are not there.
        UnreachableError: what listens at the address of a cluster gives no session.
    """
    for problem in (java_problem(), jars_problem(jars_dir())):
        if problem:
            raise ConfigError(
                f"Spark cannot start: {problem}",
                hint="`fairway doctor` looks at everything",
            )
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    jars = [
        str(jar)
        for jar in sorted(jars_dir().glob("*.jar"))
        if jar.name.startswith(_CLASSES)
    ]
    master = f"local[{place.cores},{starts}]" if place.is_local else place.master
    builder = SparkSession.builder.appName(app).master(master)
    settings = {
        **_FIXED,
        **({**_EXTENDED, "spark.jars": ",".join(jars)} if extended else {}),
        **_settings_of(place),
        "spark.task.maxFailures": starts,
        **conf,
    }
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    with _printing_to(log_file), _refused_in_a_line(app, place, log_file):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.setJobDescription(app)  # until somebody says more
    return spark


@contextlib.contextmanager
def job_session(
    home: Home,
    app: str,
    *,
    place: SparkSettings | None = None,
    log_file: Path | None = None,
    **conf: str | int,
) -> Iterator[SparkSession]:
    """The session that a job works in, for as long as the block runs.

        spark-submit jobs/load_layer.py ..   ->   as spark-submit was told: master, memory, ..; it ends with the program
        in a notebook that has a session     ->   that one, which goes on
        python -m jobs.load_layer ..         ->   one in this process, on all its cores, with 2 GB, or at a place

    Args:
        home: the home folder; what a session of this process prints goes to a file there.
        app: the name, for people.
        place: where a session that begins here runs; None: in this process.
        log_file: takes what it prints; None: `logs/jobs.log` of the home.
        **conf: further settings of Spark for it, by name.

    Raises:
        ConfigError: there is no Java or no jars, or a session that exists lacks Delta or Sedona.
    """
    if found := SparkSession.getActiveSession():
        yield _extended(found)
        return
    if _SUBMITTED in os.environ:
        spark = SparkSession.builder.appName(app).getOrCreate()
        yield _extended(spark)
        return
    own = SparkSettings(cores=os.cpu_count() or 1, memory="2g")
    log = log_file or home.root / "logs" / "jobs.log"
    more: dict[str, Any] = (
        conf if place else {PARTITIONS: 4 * own.cores, **_PACKED, **conf}
    )
    spark = session(app, place=place or own, log_file=log, **more)
    try:
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def late_session(
    home: Home, app: str, *, check: Callable[[], None] = lambda: None, **how: Any
) -> Iterator[Callable[[], SparkSession]]:
    """Gives `job_session` when it is asked for first, the same from then on: there may be nothing to do for it.

    Args:
        home: the home folder.
        app: the name, for people.
        check: called before a session begins; one that exists is taken as it is.
        **how: as `job_session` takes it.
    """
    is_there = SparkSession.getActiveSession() is not None
    with contextlib.ExitStack() as stack:

        @cache
        def begun() -> SparkSession:
            if not is_there:
                check()
            return stack.enter_context(job_session(home, app, **how))

        if is_there:  # known to this thread alone, and another may ask
            begun()
        yield begun


@contextlib.contextmanager
def configured(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session that count inside of a block, and not behind it: the session may be somebody else's."""
    before: dict[str, str | None] = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _extended(spark: SparkSession) -> SparkSession:
    """The session, which somebody else has begun, if it can read and write Delta.

    Raises:
        ConfigError: it cannot.
    """
    given = spark.conf.get("spark.sql.extensions", "") or ""
    for name in _EXTENDED["spark.sql.extensions"].split(","):
        if name not in given:
            raise ConfigError(
                f"this Spark session lacks {name}",
                hint="docs/spark.md says with which packages and settings to submit",
            )
    return spark


@contextlib.contextmanager
def _refused_in_a_line(
    app: str, place: SparkSettings, log_file: Path | None
) -> Iterator[None]:
    """Says in a line what a cluster answered; of a local session Java's own words are wanted."""
    try:
        yield
    except Py4JJavaError as error:
        if place.is_local:
            raise
        raise UnreachableError(
            f"{app}: master = {place.master!r} gives no session: {java_line(error)}",
            hint=f"is it a Spark master, and of this version? see {log_file or 'above'}",
        ) from None


def _settings_of(place: SparkSettings) -> dict[str, str | int]:
    """What Spark is told of the place where it runs."""
    settings: dict[str, str | int] = {
        "spark.driver.memory": place.memory,
        "spark.sql.shuffle.partitions": place.cores,
        "spark.default.parallelism": place.cores,
    }
    if not place.is_local:
        settings["spark.cores.max"] = place.cores
        settings["spark.executor.memory"] = place.executor_memory
    if place.is_local or place.is_on_loopback:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        settings |= _LOOPBACK
    return settings


@contextlib.contextmanager
def _printing_to(log_file: Path | None) -> Iterator[None]:
    """Lets processes that are started meanwhile print to a file: they inherit the descriptors as they are then."""
    if log_file is None:
        yield
        return
    log_file.parent.mkdir(parents=True, exist_ok=True)
    rotate(log_file)
    sys.stdout.flush()
    sys.stderr.flush()
    before = [os.dup(fd) for fd in (1, 2)]
    with log_file.open("ab") as target:
        try:
            for fd in (1, 2):
                os.dup2(target.fileno(), fd)
            yield
        finally:
            for fd, old in zip((1, 2), before, strict=True):
                os.dup2(old, fd)
                os.close(old)
