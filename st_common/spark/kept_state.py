"""A shard's state in Spark's state store: a base and a journal of deltas, decoded once and kept in the worker."""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from st_common.errors import StateError
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import Step
from st_common.operators.runtime.stored import delta_from_blob, state_from_blob
from st_common.operators.state.delta import apply
from st_common.operators.state.registered import Queries, SharedQueries
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State

Place = tuple[str, int]
"""What tells the shards of all streams of a worker apart: the stream, or its checkpoint, and the shard's key."""

_CHUNK = 8 << 20
"""A base is stored in parts of this size: one value of a state store should not grow without end."""
_LEAST_JOURNAL = 2 << 20
_LENGTH = struct.Struct("<Q")


def columns(**types: DataType) -> StructType:
    """The schema of a state variable: as a text it would be sent to the JVM twice, to be parsed, in every batch."""
    return StructType([StructField(name, kind) for name, kind in types.items()])


_LONG, _INT = LongType(), IntegerType()
_BLOB, _CHUNK_KEY = columns(blob=BinaryType()), columns(chunk=_INT)
_HEAD = columns(
    version=_LONG,
    base=_LONG,
    chunks=_INT,
    query_chunks=_INT,
    base_bytes=_LONG,
    bytes=_LONG,
)


class _Head(NamedTuple):
    """Which base and deltas make the present state; `bytes` are those of the journal."""

    version: int = 0
    base: int = 0
    chunks: int = 0
    query_chunks: int = 0
    base_bytes: int = 0
    bytes: int = 0


_decoded: dict[Place, tuple[int, State]] = {}
"""Of this worker: versions of states."""
_stored: dict[Place, Queries] = {}
"""Of this worker: the queries that the state store has."""
_shared = SharedQueries()
"""Of this worker: one for all shards that it has."""


class KeptState:
    """The states of the shards of one stateful stage. What is stored per batch is as small as the batch.

        head      version 7, base 4, ..      which base and deltas make the present state
        base      parts of the state of version 4
        journal   4, 5, 6                    what changed from each of these versions to the next
        queries   apart from the base, for they change seldom

    A worker keeps the state that it decoded last, so as a rule it reads nothing of this but the head.

    Args:
        handle: of the stage; four state variables are opened in it.
        seed: gives the state that the shard of a key begins with; None: all begin empty.
    """

    def __init__(
        self,
        handle: StatefulProcessorHandle,
        seed: Callable[[int], State] | None = None,
    ) -> None:
        self._seed = seed
        self._loaded = _Head()
        self._head = handle.getValueState("head", _HEAD)
        self._base = handle.getMapState("base", _CHUNK_KEY, _BLOB)
        self._queries = handle.getMapState("queries", _CHUNK_KEY, _BLOB)
        self._journal = handle.getMapState("journal", columns(version=_LONG), _BLOB)

    def load(self, place: Place) -> State:
        """The state of the shard whose rows Spark gives: of this worker's memory as far as it goes, then the journal.

        Raises:
            StateError: a part of it is missing.
        """
        head = self._loaded = _Head(*(self._head.get() or ()))
        known, state = _decoded.get(place, (-1, State()))
        # What this worker remembers helps from the base on; a task that moved here begins with the base itself.
        if not head.base <= known <= head.version or known < 0:
            known, state = head.base, self._based(place, head)
        for at in range(known, head.version):
            for delta in _parts(_value(self._journal, at)):
                state = apply(state, delta_from_blob(delta))
        return state

    def _based(self, place: Place, head: _Head) -> State:
        """The state of the base; what the shard begins with where there is none."""
        if not head.chunks:
            return State() if self._seed is None else self._seed(place[1])
        blob = b"".join(_value(self._base, chunk) for chunk in range(head.chunks))
        parts = [_value(self._queries, number) for number in range(head.query_chunks)]
        queries = _shared.from_blob(b"".join(parts))
        _stored[place] = queries
        return state_from_blob(blob, queries)

    def store(self, place: Place, done: Step, settings: Settings) -> State:
        """Stores what a step did with the state that was loaded last.

        Returns:
            The state as it is stored: a new base forgets what nothing names.
        """
        head, state = self._loaded, done.state
        version = head.version + 1
        blobs = [delta.to_blob() for delta in done.deltas]
        entry = b"".join(_LENGTH.pack(len(blob)) + blob for blob in blobs)
        journal_bytes = head.bytes + len(entry)
        # From the first batch on the state store has all, and needs no seed.
        is_seeded = head.version == 0 and self._seed is not None
        if is_seeded or journal_bytes > max(_LEAST_JOURNAL, head.base_bytes):
            state = retired(state, settings, least=LEAST)
            head = self._put_base(place, state, head)._replace(base=version)
        else:
            self._journal.updateValue((head.version,), (entry,))
            head = head._replace(bytes=journal_bytes)
        self._head.update(tuple(head._replace(version=version)))
        _decoded[place] = (version, state)
        return state

    def _put_base(self, place: Place, state: State, head: _Head) -> _Head:
        """Stores a state whole, in place of the base and the journal."""
        blob, query_chunks = state.to_blob(queries=False), head.query_chunks
        if not query_chunks or _stored.get(place) is not state.queries:
            query_chunks = _put(self._queries, _shared.to_blob(state.queries))
            _stored[place] = state.queries
        chunks = _put(self._base, blob)
        self._journal.clear()
        return head._replace(
            chunks=chunks, query_chunks=query_chunks, base_bytes=len(blob), bytes=0
        )


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
