"""One shard on Spark: the stage that steps it in micro-batches, and what it gives in either mode."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
)

from st_common.engine.export import asked_exports, export_path, seed_path
from st_common.engine.local import layers_of
from st_common.engine.others import NOT_ASKING, Asking
from st_common.engine.states import load, save
from st_common.engine.timekeeper import heard
from st_common.errors import StateError
from st_common.home import Home
from st_common.operators.events.packet import Packet, filtered_out_of, nulled_in
from st_common.operators.runtime.failed import Failure
from st_common.operators.runtime.stages import Step, step
from st_common.operators.runtime.wanted import wanted_us
from st_common.operators.skeleton.cache_counts import to_json
from st_common.operators.state.codec import (
    from_blob,
    table_from_blob,
    table_to_blob,
    to_blob,
)
from st_common.operators.state.state import State
from st_common.spark.kept_state import KeptState
from st_common.spark.source import Feed
from st_common.spark.told import Untold

Ints = npt.NDArray[np.int64]

RESULT = "key int, blob binary"


class Notes(NamedTuple):
    """What the driver must know of a shard beside its changes.

    Attributes:
        wanted: the time that the shard waits for, us UTC (see `operators.wanted`); None: it waits for none.
        asking: the shards that judge live queries which ask where other objects are.
        undealt: how many queries could be dealt by place, of how many; see `undealt_in`.
    """

    wanted: int | None = None
    asking: Asking = NOT_ASKING
    undealt: tuple[int, int] = (0, 0)


def result_blob(
    done: Step,
    read: list[Packet],
    notes: Notes = Notes(),  # noqa: B008 - immutable
    *,
    untold: Untold | None = None,
    is_kept: bool = False,
) -> bytes:
    """What a shard gives for a batch, as one blob: changes, counters, and what the engine must know beside them.

    Args:
        done: what the step did.
        read: the packets that it read; what decoding counted in them, and what they say about time, goes along.
        notes: what the driver must know beside.
        untold: what others must know of the changes where shards may write them into files.
        is_kept: whether the shard keeps the changes, which then are not given.
    """
    told = done.changes.slice(0, 0) if is_kept else done.changes
    changes = table_to_blob(told.unify_dictionaries())
    foreign = np.empty(0, np.int64) if untold is None else untold.foreign()
    counters = {
        name: getattr(done.counters, name)
        for name in done.counters.__dataclass_fields__
    }
    meta: dict[str, Any] = {
        "next_segment": done.state.next_segment,
        "max_event": int(done.state.max_event),
    }
    meta |= {
        "rejects": sum(packet.rejects for packet in read),
        "nulled": nulled_in(read),
        "filtered_out": filtered_out_of(read),
    }
    meta["is_kept"] = is_kept
    meta |= {
        "heard": [dataclasses.asdict(one) for one in heard(read)],
        "wanted": notes.wanted,
        "asking": sorted(notes.asking.nearby),
        "needed": sorted(notes.asking.anywhere),
        "undealt": list(notes.undealt),
    }
    meta |= {
        "failures": [(one.query, one.version, one.why) for one in done.failures],
        "counters": counters,
        "caches": to_json(done.caches),
    }
    arrays = {"changes": pa.array([changes], pa.binary()), "foreign": foreign}
    return to_blob(arrays, meta)


def read_result(blob: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """The changes and the other values of a `result_blob`, those by their names."""
    arrays, meta = from_blob(blob)
    return table_from_blob(arrays["changes"][0].as_buffer()), meta


def foreign_in(blobs: Iterable[bytes]) -> Ints:
    """The positions that some shards tell something at which are no fixes of their own; int64, ascending, each once."""
    parts = [np.asarray(from_blob(blob)[0]["foreign"]) for blob in blobs]
    return np.unique(np.concatenate(parts))


def failures_in(metas: Iterable[dict[str, Any]]) -> list[Failure]:
    """The queries that failed by what shards say beside their changes, each version once."""
    failures = {
        (query, version): Failure(query=query, version=version, why=why)
        for meta in metas
        for query, version, why in meta["failures"]
    }
    return list(failures.values())


class ShardProcessor(StatefulProcessor):
    """Steps one shard per key in Spark's stateful stage; see `step` and `KeptState`.

    Args:
        feed: the `Feed` as JSON.
        checkpoint: the folder of Spark's checkpoint; it tells streams apart in a worker.
    """

    def __init__(self, feed: str, checkpoint: str) -> None:
        self._feed_text, self._checkpoint = feed, checkpoint

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state variable."""
        self._feed = Feed.from_json(self._feed_text)
        self._home = Home(Path(self._feed.home))
        self._layer_of = layers_of(self._home, self._feed.stream)
        seed = self._seed if self._feed.seed else None
        self._kept = KeptState(handle, self._checkpoint, seed)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Steps a shard over the packets of a batch, and stores its state.

        Args:
            key: a tuple of the shard's grouping key.
            rows: frames with a packet in each row, as `packet_rows` makes them.
            timerValues: not used: time is in the log.

        Yields:
            One frame with one row: the key and a `result_blob`.
        """
        shard_key = int(key[0])
        read = [Packet.from_blob(blob) for frame in rows for blob in frame["blob"]]
        settings = self._feed.settings(shard_key)
        done = step(self._kept.load(shard_key), read, settings, self._layer_of)
        state = self._kept.store(done, settings)
        for segment in asked_exports(read):
            name = self._feed.stream.name
            save(export_path(self._home, name, segment, settings.shard), state)
        notes = Notes(wanted=wanted_us(done.state, settings))
        blob = result_blob(done, read, notes)
        yield pd.DataFrame({"key": [shard_key], "blob": [blob]})

    def close(self) -> None:
        """Nothing is held open."""

    def _seed(self, key: int) -> State:
        """The state that a reshard made for the shard with a grouping key."""
        path = seed_path(Path(self._feed.seed or ""), self._feed.settings(key).shard)
        if not path.exists():
            raise StateError(
                f"there is no {path}", hint="a reshard wrote it; restore it"
            )
        return load(path)
