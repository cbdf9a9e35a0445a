"""The log as a Spark source: offsets are segment numbers, rows are packets, so no fix crosses the JVM by itself."""

import dataclasses
import json
import time
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from st_common.capture.log import Log, Segment
from st_common.engine.damage import tell_damage
from st_common.engine.export import seed_folder
from st_common.engine.feed import packets_of, step_settings
from st_common.engine.topology import generation_folder, topology_of
from st_common.home import Home
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.ops.status import MOST_SEGMENTS
from st_common.position_filter import PositionFilter
from st_common.settings import StreamSettings
from st_common.spark.checkpoint import last_planned
from st_common.spark_keys import SparkSettings
from st_common.stream_columns import columns_of_json

NAME = "fairway_log"
LINGER_S = 0.1  # from the first segment after a pause to the batch that it is in
PACKETS = "key int, segment long, blob binary"
_SCHEMA = pa.schema(
    [("key", pa.int32()), ("segment", pa.int64()), ("blob", pa.binary())]
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What source, processor and workers must know of a stream; frozen when its checkpoint is made.

    Attributes:
        home: the path of the home folder.
        stream: the settings.
        keys: the grouping key of each shard, chosen so that each falls into a partition of its own.
        start: the segment from which the log is read; above 0 after a reshard.
        seed: the folder with the states from which the shards begin after a reshard; None: they begin empty.
    """

    home: str
    stream: StreamSettings
    keys: tuple[int, ...]
    start: int = 0
    seed: str | None = None

    @staticmethod
    def of(home: Home, stream: StreamSettings, keys: tuple[int, ...]) -> "Feed":
        """The feed of the generation in force: after a reshard with its place and its states to begin with."""
        topology, place = topology_of(home, stream.name), str(home.root.resolve())
        if topology is None or not topology.generation:
            return Feed(home=place, stream=stream, keys=keys)
        seed = seed_folder(generation_folder(home, stream.name).resolve())
        start = topology.start
        return Feed(home=place, stream=stream, keys=keys, start=start, seed=str(seed))

    def to_json(self) -> str:
        """The feed as text, for the options of the source."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @staticmethod
    @lru_cache(maxsize=16)
    def from_json(text: str) -> "Feed":
        """The feed that `to_json` gave."""
        value = json.loads(text)
        stream = value["stream"]
        judged_by = stream.get("position_filter")
        settings = StreamSettings(
            **{
                **stream,
                "columns": columns_of_json(stream["columns"]),
                "nulls": tuple(stream["nulls"]),
                "position_filter": PositionFilter(**judged_by) if judged_by else None,
                "spark": SparkSettings(**stream.get("spark", {})),
                "sources": {},  # nobody steps by them
            }
        )
        return Feed(
            home=value["home"],
            stream=settings,
            keys=tuple(value["keys"]),
            start=value.get("start", 0),
            seed=value.get("seed"),
        )

    def settings(self, key: int) -> Settings:
        """What decides the answers of one shard.

        Args:
            key: the shard's grouping key.
        """
        return step_settings(
            self.stream, shard=self.keys.index(key), shards=len(self.keys)
        )

    def place_of(self, state: State) -> int:
        """The segment that must come next for a state."""
        return max(state.next_segment, self.start)

    def log(self) -> Log:
        """The stream's log."""
        return Log(Home(Path(self.home)).log(self.stream.name))


def packet_rows(feed: Feed, segments: list[Segment]) -> Iterator[pa.RecordBatch]:
    """The packets of some segments as rows for Spark.

    Args:
        feed: the stream and its shards.
        segments: adjacent, in order.

    Yields:
        Record batches with a row per shard, for a segment or for many small ones: the shard's key (int32), the first
        segment (int64), the packet (binary).
    """
    notice = partial(tell_damage, Home(Path(feed.home)), feed.stream.name)
    for made in packets_of(
        feed.log(), segments, feed.stream, shards=len(feed.keys), notice=notice
    ):
        blobs = (
            [made[0].to_blob()] * len(made)
            if made[0] is made[-1]
            else [packet.to_blob() for packet in made]
        )
        yield pa.record_batch(
            [list(feed.keys), [made[0].segment] * len(made), blobs], schema=_SCHEMA
        )


class LogSource(DataSource):
    """The log as a streaming source: `spark.readStream.format("fairway_log")` (docs/adr/0082).

    Its options: `feed` as JSON; `checkpoint`, the folder of the checkpoint; `hold`, a file that stops it from planning
    batches while it is there; `max_bytes` of a batch; `tasks` that read one; and `end`, the segment before which it
    stops.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return NAME

    def schema(self) -> str:
        """The columns: key, segment, blob."""
        return PACKETS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of a stream."""
        return _Reader(self.options)


@dataclasses.dataclass(frozen=True)
class _Part(InputPartition):
    """Some adjacent segments, read by one task."""

    start: int
    end: int


class _Reader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._feed = Feed.from_json(options["feed"])
        self._hold, self._checkpoint = (
            Path(options["hold"]),
            Path(options["checkpoint"]),
        )
        self._max_bytes, self._tasks = int(options["max_bytes"]), int(options["tasks"])
        self._end = int(options["end"]) if "end" in options else None
        self._at: int | None = None
        self._idle = False

    def initialOffset(self) -> dict[str, int]:
        return {"segment": self._feed.start}

    def latestOffset(self) -> dict[str, int]:
        """As many segments more as a batch may have; none while the engine is asked to stop."""
        # Spark does not tell a reader where it stopped
        at = (
            last_planned(self._checkpoint, self._feed.start)
            if self._at is None
            else self._at
        )
        if not self._hold.exists():
            segments = self._new(at)
            if (
                segments and self._idle
            ):  # what comes together belongs into one batch: a second one costs a second
                time.sleep(LINGER_S)
                segments = self._new(at)
            self._idle = not segments
            at = segments[-1].number + 1 if segments else at
        self._at = at
        return {"segment": at}

    def _new(self, at: int) -> list[Segment]:
        most = MOST_SEGMENTS * self._tasks
        return self._feed.log().segments(
            at, max_bytes=self._max_bytes, max_segments=most, end=self._end
        )

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[_Part]:
        """About equally many segments per task."""
        first, last = start["segment"], end["segment"]
        self._at = max(self._at or 0, last)
        tasks = min(self._tasks, last - first)
        cuts = (
            [first + (last - first) * part // tasks for part in range(tasks + 1)]
            if tasks
            else []
        )
        return [_Part(a, b) for a, b in pairwise(cuts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The packets of a part of a batch."""
        assert isinstance(partition, _Part)  # noqa: S101 - the type that Spark's interface does not carry
        yield from packet_rows(
            self._feed, self._feed.log().segments(partition.start, end=partition.end)
        )
