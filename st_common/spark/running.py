"""Runs a stream on Spark, in the mode that it has."""

from st_common.engine.summary import RunSummary
from st_common.home import Home
from st_common.ops.standalone import check_master
from st_common.settings import StreamSettings
from st_common.spark.modes import check_mode, mode_of
from st_common.spark_keys import RESIDENT


def run(home: Home, stream: StreamSettings, *, until_idle: bool) -> RunSummary:
    """Follows a stream's log on Spark: by tasks that stay, or in micro-batches; see `resident.run` and `stream.run`.

    Raises:
        StateError: the stream has begun in another mode than its settings say.
        UnreachableError: the cluster that it shall run on does not answer; nothing was begun.
    """
    check_master(stream.name, stream.spark)
    check_mode(home, stream.name, stream.spark.mode)
    if mode_of(home, stream) == RESIDENT:
        from st_common.spark.resident import run as follow
    else:
        from st_common.spark.stream import run as follow
    return follow(home, stream, until_idle=until_idle)
