"""Closed days on Spark: the tasks of a sharded fold as those of a job."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql import SparkSession

from st_common.engine.batch.backtest import Backtest, backtest
from st_common.engine.batch.borders import FOLDER
from st_common.engine.batch.days import Again
from st_common.engine.batch.folding import Fold
from st_common.engine.batch.reprocess import reprocess
from st_common.engine.batch.sharded import ShardedFold, Work
from st_common.engine.batch.trial import Trial
from st_common.engine.topology import topology_of
from st_common.errors import FairwayError
from st_common.home import Home
from st_common.ops.standalone import check_master
from st_common.query.plan import Plan
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

    Raises:
        ConfigError: Java or the jars are missing, too.
    """
    with _fold_of(home, stream) as fold:
        return reprocess(home, stream, since, until, trial, fold=fold)


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
    folding = _fold_of(home, stream)
    return backtest(home, stream, queries, days=days, against=against, folding=folding)


@contextmanager
def _fold_of(home: Home, stream: StreamSettings) -> Iterator[Fold]:
    """A fold by a job for each step of a day; there are as many shards as the stream has on Spark, else as cores."""
    topology = topology_of(home, stream.name)
    on_spark = topology is not None and topology.engine == "spark"
    shards = topology.shards if topology and on_spark else stream.spark.cores
    with _session_of(home, stream) as spark_of:
        yield ShardedFold(OnSpark(spark_of), shards)


@contextmanager
def _session_of(
    home: Home, stream: StreamSettings
) -> Iterator[Callable[[], SparkSession]]:
    """A function that gives a session, which begins when it is called first and ends with the block."""
    sessions: list[SparkSession] = []

    def begun() -> SparkSession:
        if not sessions:
            check_master(stream.name, stream.spark)
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
