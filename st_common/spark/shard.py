"""One shard's state in Spark: a base and a journal of deltas, decoded once and kept in the worker."""

import dataclasses
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
)

from st_common.engine.export import asked_exports, export_path, seed_path
from st_common.engine.local import layers_of
from st_common.engine.states import load, save
from st_common.engine.timekeeper import heard
from st_common.errors import StateError
from st_common.home import Home
from st_common.operators.events.packet import Packet, nulled_in
from st_common.operators.runtime.failed import Failure
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import Step, step
from st_common.operators.runtime.stored import delta_from_blob, state_from_blob
from st_common.operators.runtime.wanted import wanted_us
from st_common.operators.skeleton.cache_counts import to_json
from st_common.operators.state.codec import PACKED, from_blob, to_blob
from st_common.operators.state.delta import apply
from st_common.operators.state.registered import (
    Queries,
    SharedQueries,
)
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.spark.source import Feed

RESULT = "key int, blob binary"
_CHUNK = (
    8 << 20
)  # a base is stored in parts of this size: one value of a state store should not grow without end
_LEAST_JOURNAL = 2 << 20
_LENGTH = struct.Struct("<Q")
_HEAD = (
    "version long, base long, chunks int, query_chunks int, base_bytes long, bytes long"
)
_NO_HEAD = (0, 0, 0, 0, 0, 0)

_decoded: dict[
    tuple[str, int], tuple[int, State]
] = {}  # of this worker: (checkpoint, key) -> (version, state)
_stored: dict[
    tuple[str, int], Queries
] = {}  # of this worker: the queries that the state store has
_shared = SharedQueries()  # of this worker: one for all shards that it has


def result_blob(done: Step, read: list[Packet], *, wanted: int | None = None) -> bytes:
    """What a shard gives for a batch, as one blob: changes, counters, and what the engine must know beside them.

    Args:
        done: what the step did.
        read: the packets that it read; what decoding counted in them, and what they say about time, goes along.
        wanted: the time that the shard waits for, us UTC (see `operators.wanted`); None: it waits for none.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, done.changes.schema, options=PACKED) as writer:
        writer.write_table(done.changes.unify_dictionaries().combine_chunks())
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
    }
    meta |= {
        "heard": [dataclasses.asdict(one) for one in heard(read)],
        "wanted": wanted,
    }
    meta |= {
        "failures": [(one.query, one.version, one.why) for one in done.failures],
        "counters": counters,
        "caches": to_json(done.caches),
    }
    return to_blob(
        {"changes": pa.array([sink.getvalue().to_pybytes()], pa.binary())}, meta
    )


def read_result(blob: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """The changes and the other values of a `result_blob`, those by their names."""
    arrays, meta = from_blob(blob)
    return pa.ipc.open_stream(arrays["changes"][0].as_buffer()).read_all(), meta


def failures_in(metas: Iterable[dict[str, Any]]) -> list[Failure]:
    """The queries that failed by what shards say beside their changes, each version once."""
    failures = {
        (query, version): Failure(query=query, version=version, why=why)
        for meta in metas
        for query, version, why in meta["failures"]
    }
    return list(failures.values())


class ShardProcessor(StatefulProcessor):
    """Steps one shard per key in Spark's stateful stage; see `step`. What it stores per batch is as small as the batch.

        head      version 7, base 4, ..      which base and deltas make the present state
        base      parts of the state of version 4
        journal   4, 5, 6                    what changed from each of these versions to the next
        queries   apart from the base, for they change seldom

    A worker keeps the state that it decoded last, so as a rule it reads nothing of this but the head.

    Args:
        feed: the `Feed` as JSON.
        checkpoint: the folder of Spark's checkpoint; it tells streams apart in a worker.
    """

    def __init__(self, feed: str, checkpoint: str) -> None:
        self._feed_text, self._checkpoint = feed, checkpoint

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state variables: where the state is, its base, its queries, the deltas since."""
        self._feed = Feed.from_json(self._feed_text)
        self._home = Home(Path(self._feed.home))
        self._layer_of = layers_of(self._home, self._feed.stream)
        self._head = handle.getValueState("head", _HEAD)
        self._base = handle.getMapState("base", "chunk int", "blob binary")
        self._queries = handle.getMapState("queries", "chunk int", "blob binary")
        self._journal = handle.getMapState("journal", "version long", "blob binary")

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
        head = tuple(self._head.get() or _NO_HEAD) if self._head.exists() else _NO_HEAD
        settings = self._feed.settings(shard_key)
        done = step(self._state(shard_key, *head[:4]), read, settings, self._layer_of)
        state = self._write(shard_key, head, done, settings)
        for segment in asked_exports(read):
            save(
                export_path(
                    self._home, self._feed.stream.name, segment, settings.shard
                ),
                state,
            )
        _decoded[self._checkpoint, shard_key] = (head[0] + 1, state)
        blob = result_blob(done, read, wanted=wanted_us(done.state, settings))
        yield pd.DataFrame({"key": [shard_key], "blob": [blob]})

    def close(self) -> None:
        """Nothing is held open."""

    def _state(
        self, key: int, version: int, base: int, chunks: int, query_chunks: int
    ) -> State:
        """The state of a version: from this worker's memory, as far as it goes, then from the journal."""
        known, state = _decoded.get((self._checkpoint, key), (-1, State()))
        # What this worker remembers helps from the base on; a task that moved here begins with the base itself.
        if not base <= known <= version or known < 0:
            blob = b"".join(_value(self._base, chunk) for chunk in range(chunks))
            known, state = (
                base,
                State() if chunks or self._feed.seed is None else self._seed(key),
            )
            if chunks:
                queries = _shared.from_blob(
                    b"".join(_value(self._queries, n) for n in range(query_chunks))
                )
                state, _stored[self._checkpoint, key] = (
                    state_from_blob(blob, queries),
                    queries,
                )
        for at in range(known, version):
            for delta in _parts(_value(self._journal, at)):
                state = apply(state, delta_from_blob(delta))
        return state

    def _seed(self, key: int) -> State:
        """The state that a reshard made for the shard with a grouping key."""
        path = seed_path(Path(self._feed.seed or ""), self._feed.settings(key).shard)
        if not path.exists():
            raise StateError(
                f"there is no {path}", hint="a reshard wrote it; restore it"
            )
        return load(path)

    def _write(
        self, key: int, head: tuple[int, ...], done: Step, settings: Settings
    ) -> State:
        """Stores what a step did, and gives the state as it is stored: a new base forgets what nothing names."""
        state = done.state
        version, base, chunks, query_chunks, base_bytes, journal_bytes = head
        entry = b"".join(
            _LENGTH.pack(len(blob)) + blob
            for blob in (delta.to_blob() for delta in done.deltas)
        )
        journal_bytes += len(entry)
        seeded = (
            version == 0 and self._feed.seed is not None
        )  # from now on the state store has all, and needs no seed
        if seeded or journal_bytes > max(_LEAST_JOURNAL, base_bytes):
            state = retired(state, settings, least=LEAST)
            base_blob = state.to_blob(queries=False)
            chunks = _put(self._base, base_blob)
            if (
                not query_chunks
                or _stored.get((self._checkpoint, key)) is not state.queries
            ):
                query_chunks = _put(self._queries, _shared.to_blob(state.queries))
                _stored[self._checkpoint, key] = state.queries
            self._journal.clear()
            base, base_bytes, journal_bytes = version + 1, len(base_blob), 0
        else:
            self._journal.updateValue((version,), (entry,))
        self._head.update(
            (version + 1, base, chunks, query_chunks, base_bytes, journal_bytes)
        )
        return state


def _put(stored: MapState, blob: bytes) -> int:
    """Stores a blob in parts, in place of what was there; how many."""
    parts = [blob[at : at + _CHUNK] for at in range(0, len(blob), _CHUNK)]
    stored.clear()  # there may have been more
    for number, part in enumerate(parts):
        stored.updateValue((number,), (part,))
    return len(parts)


def _value(stored: MapState, key: int) -> bytes:
    value = stored.getValue((key,))
    if value is None:
        raise StateError(
            f"part {key} of a state is missing", hint="the checkpoint is damaged"
        )
    return bytes(value[0])


def _parts(entry: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(entry):
        (length,) = _LENGTH.unpack_from(entry, at)
        yield entry[at + _LENGTH.size : at + _LENGTH.size + length]
        at += _LENGTH.size + length
