"""What one shard remembers between batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.errors import StateError
from st_common.operators.arrays.keys import MASK as TARGET_MASK
from st_common.operators.arrays.keys import SHIFT as OBJECT_SHIFT
from st_common.operators.state.codec import (
    attributes_of,
    flat_attributes,
    from_blob,
    to_blob,
)
from st_common.operators.state.fixes import FILLERS, NEVER, Attributes, LastFixes
from st_common.operators.state.intern import Interner
from st_common.operators.state.limits import LimitSpans, spans_from_json, spans_to_json
from st_common.operators.state.memories import (
    Kind,
    Memories,
    kinds_named,
    memories_from_arrays,
    memories_to_arrays,
    names_of,
)
from st_common.operators.state.registered import (
    Queries,
    Registered,
    queries_from_arrays,
    queries_to_arrays,
)
from st_common.operators.state.targets import Targets

__all__ = [
    "NEVER",
    "OBJECT_SHIFT",
    "TARGET_MASK",
    "Held",
    "Pending",
    "Registered",
    "State",
    "check_format",
]

FORMAT = 6  # of the bytes of a state; a state of another format is refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Fixes that wait until the clock has passed them (lateness > 0), in log order; n of them.

    Attributes:
        position: int64[n], places in the log, ascending.
        object: int64[n], numbers of objects.
        ts: int64[n], event time in microseconds.
        x: float64[n]; `y` likewise.
        gone: int8[n], 1 where the object has left.
        attributes: other columns, n values each.
    """

    position: np.ndarray
    object: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    gone: np.ndarray
    attributes: Attributes = field(default_factory=dict)

    @staticmethod
    def empty() -> "Held":
        """No fixes."""
        ints = np.empty(0, np.int64)
        return Held(
            position=ints,
            object=ints,
            ts=ints,
            x=np.empty(0),
            y=np.empty(0),
            gone=np.empty(0, np.int8),
        )

    def __len__(self) -> int:
        return len(self.position)

    def to_arrays(self) -> dict[str, np.ndarray | pa.Array]:
        """As arrays for a blob."""
        attributes = {
            f"held/{name}": values for name, values in self.attributes.items()
        }
        return {
            f"held/{name}": getattr(self, name) for name in _HELD
        } | flat_attributes(attributes)

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray | pa.Array]) -> "Held":
        """What `to_arrays` gave."""
        attributes = attributes_of(arrays)
        mine = {
            n.removeprefix("held/"): values
            for n, values in attributes.items()
            if n.startswith("held/")
        }
        return Held(**{name: arrays[f"held/{name}"] for name in _HELD}, attributes=mine)


_HELD = ("position", "object", "ts", "x", "y", "gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The tick that is open: something happened in it, and the clock is not past it.

    Attributes:
        tick: its event time, `NEVER` when nothing happened since the last one that was judged.
        objects: int64, whom it is about, ascending.
        ended: int8, for each of these by which kind of event its last stay ended in the tick, 0 when none did.
    """

    tick: int = NEVER
    objects: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    ended: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that a shard remembers.

    Attributes:
        next_segment: the segment of the log that must come next.
        max_event: the largest event time seen in the log, in microseconds, `NEVER` at first. An end mark raises it, so
            that the clock, which is behind it by the lateness, has passed every fix.
        raised_us: how far `max_event` is above all event times.
        objects: the ids of objects, by number.
        fixes: the last readings of all objects, by number.
        queries: all queries, dropped ones too, by number.
        layers: by layer the version that the newest row of it named.
        partners: the ids of partners (features, groups, other objects), by number.
        targets: pairs of a query and a partner, by number.
        answer: int64, ascending, keys `object << 32 | target`: every pair in every answer that is judged fix by fix.
        tick_answer: int64, ascending, keys `target << 32 | object`: those that are judged at ticks. A query's members
            lie together there, an object's in `answer`.
        pending: the tick that is open.
        memories: what operators remember beside answers.
        held: fixes that wait for the clock.
        limits: by which limits fixes are filtered (SPEC X11).
        memo: what can be found anew from all this; it is not stored.
    """

    next_segment: int = 0
    max_event: int = NEVER
    raised_us: int = 0
    objects: Interner = field(default_factory=Interner.empty)
    fixes: LastFixes = field(default_factory=LastFixes)
    queries: Queries = field(default_factory=Queries)
    layers: dict[str, int] = field(default_factory=dict)
    partners: Interner = field(default_factory=Interner.empty)
    targets: Targets = field(default_factory=Targets.empty)
    answer: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    tick_answer: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    pending: Pending = field(default_factory=Pending)
    memories: Memories = field(default_factory=Memories)
    held: Held = field(default_factory=Held.empty)
    limits: LimitSpans = ()
    memo: Any = field(default=None, compare=False, repr=False)

    @property
    def newest_event(self) -> int:
        """The largest event time of a fix or a clock row in the log, in microseconds; `NEVER` when there is none."""
        return int(self.max_event) - self.raised_us

    def of_key(self, key: str) -> "State":
        """The state, whose ids are said to be hashed by that key."""
        return replace(
            self, objects=self.objects.under(key), partners=self.partners.under(key)
        )

    def to_blob(self, *, queries: bool = True) -> bytes:
        """The whole state as bytes: the base that later deltas build on (docs/adr/0003).

        Args:
            queries: whether the queries are among them; without they are stored by themselves, see `SharedQueries`.
        """
        arrays: dict[str, np.ndarray | pa.Array] = {
            "answer": self.answer,
            "tick_answer": self.tick_answer,
        }
        for name in ("objects", "partners"):
            interner = getattr(self, name)
            arrays |= {f"{name}_ids": interner.ids, f"{name}_hashes": interner.hashes}
        arrays |= self.fixes.to_arrays()
        arrays |= self.held.to_arrays() | memories_to_arrays(self.memories)
        arrays |= {
            "target_query": self.targets.query,
            "target_partner": self.targets.partner,
            "pending_objects": self.pending.objects,
            "pending_ended": self.pending.ended,
        }
        arrays |= queries_to_arrays(self.queries) if queries else {}
        return to_blob(arrays, self._meta())

    def _meta(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            # Which kinds of component the bytes hold: those that have rows.
            "memories": names_of(self.memories),
            "next_segment": self.next_segment,
            "max_event": int(self.max_event),
            "raised_us": int(self.raised_us),
            "limits": spans_to_json(self.limits),
            "pending_tick": int(self.pending.tick),
            "layers": self.layers,
        }

    @staticmethod
    def from_blob(
        blob: bytes, kinds: Sequence[Kind], queries: Queries | None = None
    ) -> "State":
        """The state that `to_blob` gave; its arrays are views of the bytes and must not be written.

        Args:
            blob: the bytes.
            kinds: all kinds of component that there are.
            queries: the queries, if they were stored by themselves.

        Raises:
            StateError: the bytes are of another format, or hold a component that is of none of these kinds.
        """
        arrays, meta = from_blob(blob)
        check_format(meta)
        return State(
            next_segment=meta["next_segment"],
            max_event=meta["max_event"],
            layers=meta["layers"],
            raised_us=meta.get("raised_us", 0),
            limits=spans_from_json(meta["limits"]),
            queries=queries_from_arrays(arrays) if queries is None else queries,
            answer=arrays["answer"],
            tick_answer=arrays["tick_answer"],
            objects=Interner(arrays["objects_ids"], arrays["objects_hashes"]),
            partners=Interner(arrays["partners_ids"], arrays["partners_hashes"]),
            targets=Targets(arrays["target_query"], arrays["target_partner"]),
            fixes=fixes_from_arrays(arrays),
            pending=Pending(
                tick=meta["pending_tick"],
                objects=arrays["pending_objects"],
                ended=arrays["pending_ended"],
            ),
            held=Held.from_arrays(arrays),
            memories=memories_from_arrays(kinds_named(meta["memories"], kinds), arrays),
        )


def fixes_from_arrays(arrays: Mapping[str, np.ndarray | pa.Array]) -> LastFixes:
    """The last fixes among the arrays of a blob: those named `fixes/..`, attributes too."""
    attributes = {
        name.removeprefix("fixes/"): values
        for name, values in attributes_of(arrays).items()
        if name.startswith("fixes/")
    }
    columns = {name: arrays.get(f"fixes/{name}") for name in FILLERS}
    stored = {name: values for name, values in columns.items() if values is not None}
    # Bytes of before there were such have no readings before the one before.
    lacking = {
        name: np.full(len(stored["before_ts"]), FILLERS[name], stored[like].dtype)
        for name, like in _LATER.items()
        if name not in stored
    }
    return LastFixes(**stored, **lacking, attributes=attributes)


_LATER = {"earlier_ts": "before_ts", "earlier_x": "before_x", "earlier_y": "before_y"}
"""Columns that were not always stored, each with one of the same type."""


def check_format(meta: dict[str, Any], wanted: int = FORMAT) -> None:
    """Refuses bytes of another format; every reader of a blob asks here first.

    Args:
        meta: that of the blob.
        wanted: the format that this version writes.

    Raises:
        StateError: the format is another one.
    """
    if meta.get("format") != wanted:
        raise StateError(
            f"the state is of format {meta.get('format')}, this version reads {wanted}",
            hint="run the stream with the version that wrote it, or start it anew from its log",
        )
