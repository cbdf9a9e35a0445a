"""What one run of log rows changes in a state; small where little moved, so it is what a batch writes (docs/adr/0003).

base (a whole state)  +  delta  +  delta  +  delta  =  the state now        `apply`, live and at recovery
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import merged, without
from st_common.operators.state.changed_queries import ChangedQueries
from st_common.operators.state.codec import from_blob, to_blob
from st_common.operators.state.fixes import LastFixes
from st_common.operators.state.limits import LimitSpans, spans_from_json, spans_to_json
from st_common.operators.state.memories import (
    Changes,
    Kind,
    changes_from_arrays,
    changes_to_arrays,
    kinds_named,
    names_of,
)
from st_common.operators.state.registered import Queries
from st_common.operators.state.state import (
    OBJECT_SHIFT,
    Held,
    Pending,
    State,
    check_format,
    fixes_from_arrays,
)

FORMAT = 8  # of the bytes of a delta; one of another format is refused


def _ints() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class Delta:
    """The change of a state. What is None stays as it was.

    Attributes:
        next_segment: the segment that must come next, afterwards.
        max_event: the largest event time in the log afterwards.
        object_ids: ids of new objects, numbered on from those of the state; `partner_ids` likewise.
        object_hashes: uint64, the hashes of these ids; `partner_hashes` likewise.
        target_query: int64, the queries of new targets, numbered on; `target_partner` are their partners.
        touched: int64, ascending, each once: objects whose last fix or answer changed.
        fixes: the last fix of each touched object afterwards.
        seen: int64, objects that are not touched, for all their fixes were filtered.
        seen_ts: int64, the time of the newest fix of each of these.
        answer: int64, ascending: all keys `object << 32 | target` of the touched objects afterwards.
        answer_minus: keys that leave the answer beside those, of any object; set when queries changed.
        answer_plus: keys that come, likewise.
        tick_minus: int64, ascending, keys `target << 32 | object` that leave the answers at ticks.
        tick_plus: keys that come there.
        memories: what becomes of components; those that are not named stay.
        changed_queries: set when queries changed.
        limits: set when they changed.
        follows: every touched object had one fix, so that the reading before it is what the state has as the last one;
            bytes leave it out.
        queries: those afterwards, where they are known already; bytes leave them out. So do they `tick_answer`.
    """

    next_segment: int
    max_event: int
    object_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    object_hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    partner_ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    partner_hashes: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    target_query: np.ndarray = field(default_factory=_ints)
    target_partner: np.ndarray = field(default_factory=_ints)
    touched: np.ndarray = field(default_factory=_ints)
    fixes: LastFixes = field(default_factory=LastFixes)
    seen: np.ndarray = field(default_factory=_ints)
    seen_ts: np.ndarray = field(default_factory=_ints)
    answer: np.ndarray = field(default_factory=_ints)
    answer_minus: np.ndarray = field(default_factory=_ints)
    answer_plus: np.ndarray = field(default_factory=_ints)
    tick_minus: np.ndarray = field(default_factory=_ints)
    tick_plus: np.ndarray = field(default_factory=_ints)
    memories: Changes = field(default_factory=dict)
    pending: Pending | None = None
    held: Held | None = None
    changed_queries: ChangedQueries | None = None
    layers: dict[str, int] | None = None
    limits: LimitSpans | None = None
    follows: bool = False
    raised_us: int | None = None
    queries: Queries | None = field(default=None, compare=False, repr=False)
    tick_answer: np.ndarray | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.queries is not None and self.changed_queries is None:
            raise ValueError(
                "queries are known after a delta that does not say how they changed"
            )

    def to_blob(self) -> bytes:
        """The delta as bytes for the journal, compressed, without what is known from the state."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= self._fixes_to_arrays()
        arrays |= changes_to_arrays(self.memories)
        if self.held is not None:
            arrays |= self.held.to_arrays()
        if self.changed_queries is not None:
            arrays |= self.changed_queries.to_arrays()
        if self.pending is not None:
            arrays["pending_objects"] = self.pending.objects
            arrays["pending_ended"] = self.pending.ended
        return to_blob(arrays, self._meta(), compressed=True)

    def _fixes_to_arrays(self) -> dict[str, Any]:
        """The last fixes without what those who read them know already."""
        fixes = self.fixes
        if self.follows:
            fixes = replace(fixes, **LastFixes.nothing_before())
        if np.array_equal(fixes.seen_ts, fixes.ts):  # as a rule: nothing was filtered
            fixes = replace(fixes, seen_ts=_ints())
        return fixes.to_arrays()

    def _meta(self) -> dict[str, Any]:
        pending, limits = self.pending, self.limits
        return {
            "format": FORMAT,
            "memories": names_of(self.memories),
            "next_segment": self.next_segment,
            "max_event": int(self.max_event),
            "layers": self.layers,
            "held": self.held is not None,
            "changed_queries": self.changed_queries is not None,
            "raised_us": self.raised_us,
            "pending_tick": None if pending is None else int(pending.tick),
            "follows": self.follows,
            "limits": None if limits is None else spans_to_json(limits),
        }

    @staticmethod
    def from_blob(blob: bytes, kinds: Sequence[Kind]) -> "Delta":
        """The delta that `to_blob` gave.

        Raises:
            StateError: the bytes are of another format, or hold a component that is of none of these kinds.
        """
        arrays, meta = from_blob(blob)
        check_format(meta, FORMAT)
        spans = meta["limits"]
        return Delta(
            next_segment=meta["next_segment"],
            max_event=meta["max_event"],
            follows=meta["follows"],
            changed_queries=ChangedQueries.from_arrays(arrays)
            if meta["changed_queries"]
            else None,
            layers=meta["layers"],
            raised_us=meta["raised_us"],
            held=Held.from_arrays(arrays) if meta["held"] else None,
            fixes=_fixes(arrays),
            limits=None if spans is None else spans_from_json(spans),
            pending=_pending(meta["pending_tick"], arrays),
            memories=changes_from_arrays(kinds_named(meta["memories"], kinds), arrays),
            queries=None,
            tick_answer=None,
            **{name: arrays[name] for name in _ARRAYS},
        )


def _fixes(arrays: Mapping[str, Any]) -> LastFixes:
    """The last fixes of touched objects; a time that bytes leave out is that of the fix."""
    fixes = fixes_from_arrays(arrays)
    return (
        replace(fixes, seen_ts=fixes.ts) if len(fixes.seen_ts) < len(fixes) else fixes
    )


_ARRAYS = (
    "object_ids",
    "object_hashes",
    "partner_ids",
    "partner_hashes",
    "target_query",
    "target_partner",
    "touched",
    "seen",
    "seen_ts",
    "answer",
    "answer_minus",
    "answer_plus",
    "tick_minus",
    "tick_plus",
)


def _pending(tick: int | None, arrays: Mapping[str, Any]) -> Pending | None:
    if tick is None:
        return None
    return Pending(
        tick=tick, objects=arrays["pending_objects"], ended=arrays["pending_ended"]
    )


def apply(state: State, delta: Delta) -> State:
    """The state after a delta: the only way in which a state changes, live and at recovery (docs/adr/0003).

    The given state stays as it was, so that a failed batch can be tried again.

    Args:
        state: the one that the delta was made for; deltas are applied in the order in which they were made.
        delta: of the same shard.
    """
    total = len(state.objects) + len(delta.object_hashes)
    fixes = delta.fixes
    if delta.follows and len(fixes.before_ts) < len(fixes):
        # Bytes leave out the reading before: it is the last one that the state has.
        fixes = replace(fixes, **state.fixes.before(delta.touched))
    return replace(
        state,
        next_segment=delta.next_segment,
        max_event=delta.max_event,
        # A memo is of the state before: the step sets the one that its last run left.
        memo=None,
        raised_us=state.raised_us if delta.raised_us is None else delta.raised_us,
        fixes=state.fixes.with_rows(delta.touched, fixes, total=total).with_seen(
            delta.seen, delta.seen_ts
        ),
        objects=state.objects.with_new(delta.object_hashes, delta.object_ids),
        partners=state.partners.with_new(delta.partner_hashes, delta.partner_ids),
        targets=state.targets.with_new(delta.target_query, delta.target_partner),
        answer=_answer_after(state, delta, total),
        tick_answer=_tick_answer_after(state, delta),
        memories=state.memories.changed(delta.memories),
        pending=state.pending if delta.pending is None else delta.pending,
        held=state.held if delta.held is None else delta.held,
        queries=_queries_after(state, delta),
        layers=state.layers if delta.layers is None else delta.layers,
        limits=state.limits if delta.limits is None else delta.limits,
    )


def _queries_after(state: State, delta: Delta) -> Queries:
    if delta.queries is not None:
        return delta.queries
    return (
        state.queries
        if delta.changed_queries is None
        else delta.changed_queries.after(state.queries)
    )


def _tick_answer_after(state: State, delta: Delta) -> np.ndarray:
    if delta.tick_answer is not None:
        return delta.tick_answer
    return merged(without(state.tick_answer, delta.tick_minus), delta.tick_plus)


def _answer_after(state: State, delta: Delta, objects: int) -> np.ndarray:
    answer = merged(without(state.answer, delta.answer_minus), delta.answer_plus)
    if not len(delta.touched):
        return answer
    is_touched = np.zeros(objects, bool)
    is_touched[delta.touched] = True
    # Of a touched object the delta has the whole answer.
    kept = answer[~is_touched[answer >> OBJECT_SHIFT]]
    return merged(kept, delta.answer) if len(kept) else delta.answer
