"""The states of a stream's shards on Spark, at one place of its log."""

from pyspark.sql import SparkSession

from st_common.capture.control import write_export
from st_common.capture.log import Log
from st_common.engine.archive import Archive
from st_common.engine.archiver import archiving
from st_common.engine.export import exported
from st_common.engine.owner import Owner, now_us
from st_common.home import Home
from st_common.operators.runtime.reshape import joined
from st_common.operators.state.state import State
from st_common.ops.standalone import check_master
from st_common.settings import StreamSettings
from st_common.spark.modes import mode_of
from st_common.spark.resident import MOST_STARTS, feed_of, on_spark
from st_common.spark.session import session
from st_common.spark.stream import Sink, follow
from st_common.spark_keys import RESIDENT


def of_spark(home: Home, stream: StreamSettings, owner: Owner) -> list[State]:
    """The states of all shards of a stream on Spark, after it has followed its log to a mark that is put at its end.

    Args:
        home: the home folder.
        stream: the settings, with the shards that it has.
        owner: of the stream.

    Returns:
        The states at one place of the log, in the order of the shards, or one that has all of them.

    Raises:
        StateError: the engine did not come that far, or a state cannot be used.
        FencedError: another process took the stream over.
    """
    check_master(stream.name, stream.spark)
    spark = session(
        f"fairway-{stream.name}",
        place=stream.spark,
        log_file=owner.folder / "spark.log",
        starts=MOST_STARTS,
    )
    try:
        return states(spark, home, stream, owner)
    finally:
        spark.stop()


def states(
    spark: SparkSession, home: Home, stream: StreamSettings, owner: Owner
) -> list[State]:
    """As `of_spark`, in a session that is there already."""
    segment = write_export(Log(home.log(stream.name)), arrival_us=now_us()).number
    if mode_of(home, stream) == RESIDENT:
        engine = on_spark(spark, home, feed_of(home, stream), owner, end=segment + 1)
        found = exported(home, stream.name, segment, stream.shards)
        era = engine.era
        return [joined(found, following=era.following, guests=era.by_reach)]
    sink = Sink(home=home, stream=stream, owner=owner)
    with archiving(Archive(home, stream)) as archive:
        follow(spark, sink, until_idle=True, end=segment + 1, check=archive.check)
    sink.beat("stopped", force=True)
    return exported(home, stream.name, segment, stream.shards)
