"""A shard's state in Spark's state store: a base and a journal of deltas, decoded once and kept in the worker."""

import json
import struct
import uuid
from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

from st_common.errors import StateError
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import Step
from st_common.operators.runtime.stored import delta_from_blob, state_from_blob
from st_common.operators.state.delta import apply
from st_common.operators.state.registered import Queries, SharedQueries
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State

Place = tuple[str, str, int]
"""What tells the shards of all streams of a worker apart: the stage, the name of its state, and the shard's key."""

FORMAT = 2
"""Of the entries; state of another format is refused."""
_CHUNK = 8 << 20
"""A base is stored in parts of this size: one value of a state store should not grow without end."""
_LEAST_JOURNAL = 2 << 20
_LENGTH = struct.Struct("<Q")
# As texts schemas would be sent to the JVM twice, to be parsed, in every batch.
_ENTRY = StructType().add("entry", StringType())
_BLOB = StructType().add("blob", BinaryType())


class _Head(NamedTuple):
    """Which base and journal make the present state; `bytes` are those of the journal.

    The journal has `version - base` entries, in as many slots from 0 on; there are `slots`, maybe with older entries.
    """

    format: int = FORMAT
    name: str = ""
    version: int = 0
    base: int = 0
    chunks: int = 0
    query_chunks: int = 0
    slots: int = 0
    base_bytes: int = 0
    bytes: int = 0


_decoded: dict[Place, tuple[int, State]] = {}
"""Of this worker: versions of states."""
_stored: dict[Place, Queries] = {}
"""Of this worker: the queries that the state store has."""
_shared = SharedQueries()
"""Of this worker: one for all shards that it has."""


class KeptState:
    """The states of the shards of one stateful stage, each in a map. What is stored per batch is as small as the batch.

        head                  version 7, base 4, ..     which base and journal make the present state
        base/0 ..             parts of the state of version 4
        journal/0, 1, 2       what changed from version 4 to 5, from 5 to 6, from 6 to 7
        queries/0 ..          apart from the base, for they change seldom

    A worker keeps the state that it decoded last, so as a rule it reads nothing of this but the head. All lies in one
    state variable, for what a batch asks of Spark takes most of its time where a variable is opened.

    Args:
        handle: of the stage; the variable is opened in it.
        stage: tells the stages of a worker apart.
    """

    def __init__(self, handle: StatefulProcessorHandle, stage: str) -> None:
        self._stage = stage
        self._entries = handle.getMapState("state", _ENTRY, _BLOB)
        self._head, self._place = _Head(), (stage, "", -1)

    def load(self, key: int) -> State:
        """The state of the shard whose rows Spark gives: of this worker's memory as far as it goes, then the journal.

        Args:
            key: the grouping key of the shard.

        Raises:
            StateError: a part of it is missing, or another version of Fairway wrote it.
        """
        head = self._head = self._stored_head()
        place = self._place = (self._stage, head.name, key)
        known, state = _decoded.get(place, (-1, State()))
        # What this worker remembers helps from the base on; a task that moved here begins with the base itself.
        if not head.base <= known <= head.version or known < 0:
            known, state = head.base, self._based()
        for slot in range(known - head.base, head.version - head.base):
            for delta in _parts(self._value("journal", slot)):
                state = apply(state, delta_from_blob(delta))
        return state

    def _stored_head(self) -> _Head:
        """The head of the shard; where there is none a new one, with a name that no other state has."""
        stored = self._entries.getValue(("head",))
        if stored is None:
            return _Head(name=uuid.uuid4().hex)
        values = json.loads(bytes(stored[0]))
        if values["format"] != FORMAT:
            raise StateError(
                f"the checkpoint holds state of format {values['format']}, which another version of Fairway wrote",
                hint="run it with that version, or begin a new checkpointLocation",
            )
        return _Head(**values)

    def _based(self) -> State:
        """The state of the base; an empty one where there is none yet."""
        head, place = self._head, self._place
        if not head.chunks:
            return State()
        blob = b"".join(self._value("base", chunk) for chunk in range(head.chunks))
        parts = [self._value("queries", number) for number in range(head.query_chunks)]
        queries = _shared.from_blob(b"".join(parts))
        _stored[place] = queries
        return state_from_blob(blob, queries)

    def store(self, done: Step, settings: Settings) -> State:
        """Stores what a step did with the state that was loaded last.

        Returns:
            The state as it is stored: a new base forgets what nothing names.
        """
        head, state = self._head, done.state
        blobs = [delta.to_blob() for delta in done.deltas]
        entry = b"".join(_LENGTH.pack(len(blob)) + blob for blob in blobs)
        limit = max(_LEAST_JOURNAL, head.base_bytes)
        if head.bytes + len(entry) > limit:
            state = retired(state, settings, least=LEAST)
            head = self._with_base(state)
        else:
            head = self._with_entry(entry)
        self._put("head", json.dumps(head._asdict()).encode())
        _decoded[self._place] = (head.version, state)
        return state

    def _with_entry(self, entry: bytes) -> _Head:
        """Stores an entry of the journal, in place of one that a base before has had there."""
        head = self._head
        used = head.version - head.base
        self._put(f"journal/{used}", entry)
        return head._replace(
            version=head.version + 1,
            slots=max(head.slots, used + 1),
            bytes=head.bytes + len(entry),
        )

    def _with_base(self, state: State) -> _Head:
        """Stores a state whole, in place of the base.

        Slots of the journal stay, to be overwritten; those that this journal did not come to are removed. So the
        store never holds more than two journals.
        """
        head, query_chunks = self._head, self._head.query_chunks
        if not query_chunks or _stored.get(self._place) is not state.queries:
            blob = _shared.to_blob(state.queries)
            query_chunks = self._put_parts("queries", blob, query_chunks)
            _stored[self._place] = state.queries
        blob, used = state.to_blob(queries=False), head.version - head.base
        chunks = self._put_parts("base", blob, head.chunks)
        self._remove("journal", used, head.slots)
        return head._replace(
            version=head.version + 1,
            base=head.version + 1,
            chunks=chunks,
            query_chunks=query_chunks,
            slots=used,
            base_bytes=len(blob),
            bytes=0,
        )

    def _put_parts(self, kind: str, blob: bytes, before: int) -> int:
        """Stores a blob in parts, in place of so many before; how many."""
        parts = [blob[at : at + _CHUNK] for at in range(0, len(blob), _CHUNK)]
        for number, part in enumerate(parts):
            self._put(f"{kind}/{number}", part)
        self._remove(kind, len(parts), before)
        return len(parts)

    def _put(self, entry: str, blob: bytes) -> None:
        self._entries.updateValue((entry,), (blob,))

    def _remove(self, kind: str, start: int, end: int) -> None:
        for number in range(start, end):
            self._entries.removeKey((f"{kind}/{number}",))

    def _value(self, kind: str, number: int) -> bytes:
        value = self._entries.getValue((f"{kind}/{number}",))
        if value is None:
            raise StateError(
                f"part {kind}/{number} of a state is missing",
                hint="the checkpoint is damaged",
            )
        return bytes(value[0])


def _parts(entry: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(entry):
        (length,) = _LENGTH.unpack_from(entry, at)
        yield entry[at + _LENGTH.size : at + _LENGTH.size + length]
        at += _LENGTH.size + length
