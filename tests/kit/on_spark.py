"""A stream on Spark in a session that tests share."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.owner import owned
from st_common.engine.topology import frozen
from st_common.log.seeds import seeds_folder
from st_common.spark.resident import on_spark
from st_common.spark.task_settings import TaskSettings


def follow_on(
    spark: Any, home: Home, stream: StreamSettings, *, shards: int | None = None
) -> None:
    """Follows a stream to its log's end, and until nothing is due by the wall clock.

    Args:
        spark: the session.
        home: the home folder.
        stream: the settings of the stream.
        shards: how many it has in its present generation; None: as its settings say.
    """
    shards = shards or stream.shards
    keyed = frozen(home, stream, engine="spark", shards=shards)
    keyed = replace(keyed, shards=shards)
    with owned(home, stream.name, engine="spark") as owner:
        on_spark(spark, home, TaskSettings.of(home, keyed), owner)


def replayed_on(
    spark: Any, home: Home, stream: StreamSettings, folder: Path, *, shards: int
) -> pa.Table:
    """What a stream's log gives on Spark from its beginning, in another home, whatever engine has followed it.

    Args:
        spark: the session.
        home: the home with the log, and the layers that its queries ask.
        stream: the settings of the stream.
        folder: a new folder for the other home.
        shards: how many the stream has there.

    Returns:
        Its changes, in their order.
    """
    other, name = Home(folder), stream.name
    skipped = shutil.ignore_patterns("readers", ".*")
    shutil.copytree(home.log(name), other.log(name), ignore=skipped)
    if (seeds := seeds_folder(home.log(name))).exists():
        shutil.copytree(seeds, seeds_folder(other.log(name)))
    # What queries knew goes by ids that are hashed with the key of the home.
    if (key := home.root / "id.key").exists():
        shutil.copy(key, other.root / "id.key")
    if (layers := home.root / "tables" / "layers").exists():
        shutil.copytree(layers, other.root / "tables" / "layers")
    follow_on(spark, other, stream, shards=shards)
    changes = tables.read(other.table("changes", name))
    return changes.sort_by([("position", "ascending"), ("seq", "ascending")])
