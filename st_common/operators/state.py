"""What one shard remembers between batches, and how one step changes it."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.errors import StateError
from st_common.operators.codec import from_blob, to_blob
from st_common.operators.intern import Interner
from st_common.operators.targets import Targets
from st_common.query.plan import Plan

FORMAT = 1  # of the bytes of a state; a state of another format is refused
NEVER = np.iinfo(np.int64).min  # event time of an object or a clock that saw no fix
OBJECT_SHIFT = 32  # an answer key is object << 32 | target
TARGET_MASK = (1 << OBJECT_SHIFT) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A query as a shard knows it; its number is its place in `State.queries`, which keeps dropped ones as well."""

    name: str
    version: int
    plan: Plan
    layer_version: int | None = None
    live: bool = True

    def to_json(self) -> dict[str, Any]:
        """The query as JSON values."""
        return {**{name: getattr(self, name) for name in ("name", "version", "layer_version", "live")},
                "plan": self.plan.to_json()}  # fmt: skip

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Registered":
        """The query that `to_json` gave."""
        return Registered(**{**value, "plan": Plan.from_json(value["plan"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Fixes that wait until the clock has passed them (lateness > 0), in log order."""

    position: np.ndarray
    object: np.ndarray
    ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    gone: np.ndarray

    @staticmethod
    def empty() -> "Held":
        """No fixes."""
        ints = np.empty(0, np.int64)
        return Held(position=ints, object=ints, ts=ints, x=np.empty(0), y=np.empty(0), gone=np.empty(0, np.int8))

    def __len__(self) -> int:
        return len(self.position)


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that a shard remembers.

    `next_segment` is the segment that must come next. `max_event` is the largest event time seen in the log, `NEVER`
    at first. Per object (its number is its place): `last_ts`, `x`, `y` of its last used fix and `alive`, 0 after it
    vanished or expired. `layers` are the versions that layer rows named. `answer` holds every pair in every answer as
    sorted keys `object << 32 | target`.
    """

    next_segment: int = 0
    max_event: int = NEVER
    objects: Interner = field(default_factory=Interner.empty)
    last_ts: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    y: np.ndarray = field(default_factory=lambda: np.empty(0))
    alive: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    queries: tuple[Registered, ...] = ()
    layers: dict[str, int] = field(default_factory=dict)
    partners: Interner = field(default_factory=Interner.empty)
    targets: Targets = field(default_factory=Targets.empty)
    answer: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    held: Held = field(default_factory=Held.empty)

    def to_blob(self) -> bytes:
        """The whole state as bytes: the base that later deltas build on."""
        arrays = {name: getattr(self, name) for name in _PLAIN}
        for name in ("objects", "partners"):
            interner = getattr(self, name)
            arrays |= {f"{name}_ids": interner.ids, f"{name}_hashes": interner.hashes}
        arrays |= {f"held_{name}": getattr(self.held, name) for name in _HELD}
        arrays |= {"target_query": self.targets.query, "target_partner": self.targets.partner}
        meta = {"format": FORMAT, "next_segment": self.next_segment, "max_event": int(self.max_event)}
        return to_blob(arrays, {**meta, "queries": [query.to_json() for query in self.queries], "layers": self.layers})

    @staticmethod
    def from_blob(blob: bytes) -> "State":
        """The state that `to_blob` gave.

        Raises:
            StateError: the bytes are of another format.
        """
        arrays, meta = from_blob(blob)
        check_format(meta)
        return State(
            next_segment=meta["next_segment"], max_event=meta["max_event"],
            queries=tuple(Registered.from_json(q) for q in meta["queries"]), layers=meta["layers"],
            objects=Interner(arrays["objects_ids"], arrays["objects_hashes"]),
            partners=Interner(arrays["partners_ids"], arrays["partners_hashes"]),
            held=Held(**{name: arrays[f"held_{name}"] for name in _HELD}),
            targets=Targets(arrays["target_query"], arrays["target_partner"]),
            **{name: arrays[name] for name in _PLAIN},
        )  # fmt: skip


_PLAIN = ("last_ts", "x", "y", "alive", "answer")
_HELD = ("position", "object", "ts", "x", "y", "gone")


def check_format(meta: dict[str, Any]) -> None:
    """Refuses bytes of another format.

    Raises:
        StateError: the format is not the one that this version writes.
    """
    if meta.get("format") != FORMAT:
        raise StateError(
            f"the state is of format {meta.get('format')}, this version reads {FORMAT}",
            hint="run the stream with the version that wrote it, or start it anew from its log",
        )


@dataclass(frozen=True, kw_only=True)
class Delta:
    """What one run of log rows changes in a state; small where little moved, so it is what a batch writes.

    `touched` are the objects whose last fix or answer changed, with their new `ts`, `x`, `y`, `alive`; `answer` are
    all keys of the touched objects after the run. New objects, partners and targets are numbered on. `queries` is set
    when they changed, `replaced_answer` when the whole answer was made anew (a registration, a drop, a layer change).
    """

    next_segment: int
    max_event: int
    object_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    object_hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    partner_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    partner_hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    target_query: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    target_partner: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    touched: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    ts: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    y: np.ndarray = field(default_factory=lambda: np.empty(0))
    alive: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))
    answer: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    held: Held | None = None
    queries: tuple[Registered, ...] | None = None
    layers: dict[str, int] | None = None
    replaces_answer: bool = False

    def to_blob(self) -> bytes:
        """The delta as bytes, for the journal."""
        arrays = {name: getattr(self, name) for name in _DELTA}
        if self.held is not None:
            arrays |= {f"held_{name}": getattr(self.held, name) for name in _HELD}
        queries = None if self.queries is None else [query.to_json() for query in self.queries]
        meta = {"format": FORMAT, "next_segment": self.next_segment, "max_event": int(self.max_event)}
        return to_blob(arrays, {**meta, "queries": queries, "layers": self.layers, "held": self.held is not None,
                                "replaces_answer": self.replaces_answer})  # fmt: skip

    @staticmethod
    def from_blob(blob: bytes) -> "Delta":
        """The delta that `to_blob` gave.

        Raises:
            StateError: the bytes are of another format.
        """
        arrays, meta = from_blob(blob)
        check_format(meta)
        queries = meta["queries"]
        return Delta(
            next_segment=meta["next_segment"], max_event=meta["max_event"], replaces_answer=meta["replaces_answer"],
            queries=None if queries is None else tuple(Registered.from_json(q) for q in queries),
            layers=meta["layers"],
            held=Held(**{name: arrays[f"held_{name}"] for name in _HELD}) if meta["held"] else None,
            **{name: arrays[name] for name in _DELTA},
        )  # fmt: skip


_DELTA = ("object_ids", "object_hashes", "partner_ids", "partner_hashes", "target_query", "target_partner",
          "touched", "ts", "x", "y", "alive", "answer")  # fmt: skip


def apply(state: State, delta: Delta) -> State:
    """The state after a delta; the given state stays as it was, so that a failed batch can be tried again."""
    new = len(delta.object_hashes)
    columns = {
        "last_ts": _grown(state.last_ts, new, NEVER), "x": _grown(state.x, new, np.nan),
        "y": _grown(state.y, new, np.nan), "alive": _grown(state.alive, new, 0),
    }  # fmt: skip
    for name, values in zip(columns, (delta.ts, delta.x, delta.y, delta.alive), strict=True):
        columns[name][delta.touched] = values
    return replace(
        state, next_segment=delta.next_segment, max_event=delta.max_event, **columns,
        objects=state.objects.with_new(delta.object_hashes, delta.object_ids),
        partners=state.partners.with_new(delta.partner_hashes, delta.partner_ids),
        targets=state.targets.with_new(delta.target_query, delta.target_partner),
        answer=_answer_after(state, delta, len(state.objects) + new),
        held=state.held if delta.held is None else delta.held,
        queries=state.queries if delta.queries is None else delta.queries,
        layers=state.layers if delta.layers is None else delta.layers,
    )  # fmt: skip


def _grown(values: np.ndarray, more: int, filler: float) -> np.ndarray:
    return np.concatenate([values, np.full(more, filler, values.dtype)])


def _answer_after(state: State, delta: Delta, objects: int) -> np.ndarray:
    if delta.replaces_answer:
        return delta.answer
    if not len(delta.touched):
        return state.answer
    is_touched = np.zeros(objects, bool)
    is_touched[delta.touched] = True
    kept = state.answer[~is_touched[state.answer >> OBJECT_SHIFT]]
    if not len(kept):
        return delta.answer
    merged = np.concatenate([kept, delta.answer])
    merged.sort(kind="stable")  # two sorted runs: timsort merges them in one pass
    return merged
