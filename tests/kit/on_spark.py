"""A stream on Spark in a session that tests share, in either of its modes."""

from dataclasses import replace
from typing import Any

from st_common.engine.owner import owned
from st_common.engine.topology import frozen
from st_common.home import Home
from st_common.settings import StreamSettings
from st_common.spark import resident
from st_common.spark import stream as streaming
from st_common.spark_keys import MICRO_BATCH, RESIDENT

MODES = (RESIDENT, MICRO_BATCH)


def follow_on(
    spark: Any,
    home: Home,
    stream: StreamSettings,
    mode: str = RESIDENT,
    *,
    shards: int | None = None,
) -> None:
    """Follows a stream to its log's end, and until nothing is due by the wall clock.

    Args:
        spark: the session.
        home: the home folder.
        stream: the settings of the stream.
        mode: one of `MODES`.
        shards: how many it has in its present generation; None: as its settings say.
    """
    shards = shards or stream.shards
    keyed = frozen(home, stream, engine="spark", shards=shards)
    keyed = replace(keyed, shards=shards)
    with owned(home, stream.name, engine="spark") as owner:
        if mode == RESIDENT:
            resident.on_spark(spark, home, resident.feed_of(home, keyed), owner)
        else:
            sink = streaming.Sink(home=home, stream=keyed, owner=owner)
            streaming.follow(spark, sink, until_idle=True)
