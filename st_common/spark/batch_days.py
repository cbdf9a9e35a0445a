"""Closed days on Spark: the tasks of a sharded fold as those of a job."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql import SparkSession

from st_common.engine.batch.borders import FOLDER
from st_common.engine.batch.days import Again
from st_common.engine.batch.reprocess import reprocess
from st_common.engine.batch.sharded import ShardedFold, Work
from st_common.engine.batch.trial import Trial
from st_common.engine.topology import topology_of
from st_common.errors import FairwayError
from st_common.home import Home
from st_common.settings import StreamSettings
from st_common.spark.session import session


def reprocess_on_spark(
    home: Home,
    stream: StreamSettings,
    since: date,
    until: date,
    trial: Trial | None = None,
) -> Again:
    """Processes closed days again on Spark; the rows are those of `reprocess`, whose arguments and errors it has.

    There are as many shards as the stream has on Spark, else as cores.

    Raises:
        ConfigError: Java or the jars are missing, too.
    """
    topology = topology_of(home, stream.name)
    on_spark = topology is not None and topology.engine == "spark"
    shards = topology.shards if topology and on_spark else stream.spark.cores
    with _session_of(home, stream) as spark_of:
        fold = ShardedFold(OnSpark(spark_of), shards)
        return reprocess(home, stream, since, until, trial, fold=fold)


@contextmanager
def _session_of(
    home: Home, stream: StreamSettings
) -> Iterator[Callable[[], SparkSession]]:
    """A function that gives a session, which begins when it is called first and ends with the block."""
    sessions: list[SparkSession] = []

    def begun() -> SparkSession:
        if not sessions:
            log = home.stream(stream.name) / FOLDER / "spark.log"
            name = f"fairway-reprocess-{stream.name}"
            made = session(name, place=stream.spark, log_file=log, extended=False)
            sessions.append(made)
        return sessions[0]

    try:
        yield begun
    finally:
        for one in sessions:
            one.stop()


@dataclass(frozen=True)
class OnSpark:
    """Runs tasks as those of a Spark job; see `engine.batch.sharded.RunTasks`.

    Args:
        spark_of: gives the session.
    """

    spark_of: Callable[[], SparkSession]

    def __call__(self, tasks: Sequence[tuple[Any, ...]], work: Work) -> list[Any]:
        """What a function gives for each task, in their order."""
        context = self.spark_of().sparkContext
        told = context.parallelize(tasks, len(tasks)).map(_telling(work)).collect()
        for done in told:
            if isinstance(done, FairwayError):
                raise done
        return list(told)


def _telling(work: Callable[..., Any]) -> Callable[[tuple[Any, ...]], Any]:
    """The function with its errors for people as values: raised in a worker they would be a stack of Java's."""

    def done(task: tuple[Any, ...]) -> Any:
        try:
            return work(*task)
        except FairwayError as error:
            return error

    return done
