"""Runs a stream on Spark, in the mode that its settings say."""

from st_common.engine.summary import RunSummary
from st_common.home import Home
from st_common.settings import StreamSettings


def run(home: Home, stream: StreamSettings, *, until_idle: bool) -> RunSummary:
    """Follows a stream's log on Spark: by tasks that stay, or in micro-batches; see `resident.run` and `stream.run`."""
    if stream.spark.is_resident:
        from st_common.spark.resident import run as follow
    else:
        from st_common.spark.stream import run as follow
    return follow(home, stream, until_idle=until_idle)
