"""A home's log as a source of Spark: `spark.readStream.format("fairway_log")`, and `spark.read` (docs/continuous.md).

An offset is the number of the next segment, with the mark of the one before it: a log that was put back to an older
copy, and has grown since, is another log.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of
from st_common.decode.decoded import fixes_schema
from st_common.engine.damage import tell_damage
from st_common.engine.log_identity import departure
from st_common.errors import ConfigError, LogError
from st_common.log.log import Log, Segment
from st_common.log.reader import Piece, pieces
from st_common.log.segment import runs_of
from st_common.query.created_streams import known_streams

NAME = "fairway_log"
_OPTIONS = ("home", "conf", "stream")
PART_BYTES = 16 << 20
"""About so much of a log is read by one task."""
_MOST_ROWS = 1 << 16  # of a record batch
_STAMP = pa.timestamp("us", tz="UTC")


def register_log_source(spark: SparkSession) -> None:
    """Lets a session read the logs of homes: `spark.readStream.format("fairway_log")`, and `spark.read` likewise.

    Options: `stream`, its name; `home`, the home folder, else FAIRWAY_HOME; `conf`, the folder of the settings, else
    FAIRWAY_CONF, else `conf` in the home. Drivers and executors must see the same home under the same name.

    A row is a fix: segment (long) and row (int), its place in the log; object (string), event_ts (timestamp), x and y
    (double), gone (boolean), then the attributes of the stream. They are what an engine reads, in the same order;
    records that are no fixes are not among them, nor is what `position_filter` keeps out filtered here.

    Example:
        register_log_source(spark)
        fixes = spark.readStream.format("fairway_log").option("stream", "taxis").load()
        changes = continuous(
            fixes, queries, object="object", ts="event_ts", x="x", y="y", gone="gone", name="taxis"
        )

    Args:
        spark: the session.
    """
    spark.dataSource.register(LogSource)


class LogSource(DataSource):
    """The fixes of a stream of a home; see `register_log_source`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return NAME

    def schema(self) -> StructType:
        """The columns: the place in the log, the parts of a fix, the stream's attributes."""
        return from_arrow_schema(_schema(self._place().stream))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch: all of the log that is there when it begins."""
        return _Batch(self._place())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of a stream."""
        return _Stream(self._place())

    def _place(self) -> "_Place":
        """The home and the stream that the options name.

        Raises:
            ConfigError: an option is unknown or missing, or the settings are wrong.
        """
        given = {name: value for name, value in self.options.items() if value}
        for name in given:
            if name.lower() not in _OPTIONS:
                raise ConfigError(
                    f"{NAME}: unknown option {name!r}",
                    hint=f"options: {', '.join(_OPTIONS)}",
                )
        if "stream" not in given:
            raise ConfigError(
                f"{NAME}: no stream is given", hint='.option("stream", "taxis")'
            )
        home = Home(home_dir(given.get("home")).absolute())
        streams = known_streams(home, conf_dir(home.root, given.get("conf")))
        # Nobody reads a log by the sources that fill it.
        stream = replace(stream_of(streams, given["stream"]), sources={})
        return _Place(root=str(home.root), stream=stream)


@lru_cache(maxsize=16)
def _log(folder: Path) -> Log:
    """A log, which knows in this process how far it has come."""
    return Log(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A stream of a home, as it travels to tasks."""

    root: str
    stream: StreamSettings

    @property
    def log(self) -> Log:
        return _log(Home(Path(self.root)).log(self.stream.name))

    def first(self) -> int:
        """The first segment whose records are there: retention may have removed those before it."""
        return max(self.log.first(), self.log.purged_before())

    def parts(self, start: int, end: int) -> list["_Part"]:
        """The segments of a batch, cut so that each task reads about `PART_BYTES`."""
        segments = self.log.segments(start, end=end)
        self.log.sync(
            segments
        )  # what is told of them may follow from durable rows alone
        runs = runs_of(segments, PART_BYTES)
        return [_Part(start=first, end=end) for first, end in runs]

    def read(self, part: "_Part") -> Iterator[pa.RecordBatch]:
        """The fixes of a part."""
        notice = partial(tell_damage, Home(Path(self.root)), self.stream.name)
        segments = self.log.segments(part.start, end=part.end)
        for piece in pieces(self.log, segments, self.stream):
            if piece.damage is not None:
                notice(piece.damage)
            if piece.part is not None:
                rows = _rows(piece, self.stream)
                yield from rows.to_batches(max_chunksize=_MOST_ROWS)


@dataclass(frozen=True, slots=True)
class _Part(InputPartition):
    """Adjacent segments, read by one task."""

    start: int
    end: int


class _Batch(DataSourceReader):
    def __init__(self, place: _Place) -> None:
        self._place = place

    def partitions(self) -> list[_Part]:
        """All that the log has."""
        place = self._place
        return place.parts(place.first(), place.log.end())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The fixes of a part."""
        assert isinstance(partition, _Part)  # noqa: S101 - the type that Spark's interface does not carry
        return self._place.read(partition)


class _Stream(DataSourceStreamReader):
    def __init__(self, place: _Place) -> None:
        self._place = place

    def initialOffset(self) -> dict[str, int]:
        """The first segment whose records are there."""
        return self._offset(self._place.first())

    def latestOffset(self) -> dict[str, int]:
        """The log's end."""
        return self._offset(self._place.log.end())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[_Part]:
        """The segments of a batch.

        Raises:
            LogError: the log is not the one that was read before, or what comes next has been removed.
        """
        self._check(start)
        return self._place.parts(start["segment"], end["segment"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The fixes of a part of a batch."""
        assert isinstance(partition, _Part)  # noqa: S101 - the type that Spark's interface does not carry
        return self._place.read(partition)

    def _offset(self, segment: int) -> dict[str, int]:
        mark = self._place.log.mark(segment - 1) if segment else 0
        return {"segment": segment, "mark": mark}

    def _check(self, start: dict[str, int]) -> None:
        """Makes sure that the log goes on where it was read to."""
        log, segment = self._place.log, start["segment"]
        departs = departure(log, segment, start["mark"])
        where = f"the log of stream {log.stream!r}"
        hint = "restore the log that it had, or begin a new checkpointLocation"
        if departs == "older":
            raise LogError(
                f"{where} ends at segment {log.end()}, and was read to {segment}: it is older than the checkpoint",
                hint=hint,
            )
        if departs == "another":
            raise LogError(
                f"segment {segment - 1} of {where} is not the one that was read: it was put back to an older copy",
                hint=hint,
            )


def _schema(stream: StreamSettings) -> pa.Schema:
    """The columns of a stream's rows."""
    fixes = fixes_schema(stream)
    types = {"object": pa.string(), "event_ts": _STAMP}
    return pa.schema(
        [
            ("segment", pa.int64()),
            *(field.with_type(types.get(field.name, field.type)) for field in fixes),
        ]
    )


def _rows(piece: Piece, stream: StreamSettings) -> pa.Table:
    """The fixes of a piece with the columns of `_schema`; null where its reading has no such attribute.

    Raises:
        LogError: an attribute had another type then, and some value of it is none of the present one.
    """
    assert piece.part is not None  # noqa: S101 - the caller has looked
    fixes, schema = piece.part.decoded.fixes, _schema(stream)
    numbers = piece.segments[0].number + piece.part.fix_at.astype(np.int64)
    columns: dict[str, Any] = {"segment": pa.array(numbers)}
    for field in schema:
        if field.name not in columns:
            columns[field.name] = _column(fixes, field, piece.segments[0])
    return pa.table(columns, schema=schema)


def _column(fixes: pa.Table, field: pa.Field, segment: Segment) -> Any:
    if field.name not in fixes.column_names:
        return pa.nulls(len(fixes), field.type)
    try:
        return fixes[field.name].cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise LogError(
            f"segment {segment.number}: attribute {field.name!r} was read as {fixes[field.name].type},"
            f" and is {field.type} now: {error}",
            hint="`fairway streams reset` decodes the log anew, as far as its raw bytes are there",
        ) from None
