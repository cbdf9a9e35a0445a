"""What changed between two states of one engine, as one delta: as large as what moved, not as how often it did."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from st_common.operators.arrays.keys import differences, unique
from st_common.operators.state.changed_queries import changed_queries
from st_common.operators.state.delta import Delta
from st_common.operators.state.limits import LimitSpans
from st_common.operators.state.memories import Memories
from st_common.operators.state.registered import Queries
from st_common.operators.state.state import OBJECT_SHIFT, State

_MOST = 1 << 20  # numbers of touched objects that wait to be made one set


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """Of the state before: how much it knew, and the parts that are compared; no last fixes and no ids."""

    objects: int
    partners: int
    targets: int
    answer: np.ndarray
    tick_answer: np.ndarray
    memories: Memories
    queries: Queries
    layers: Mapping[str, int]
    limits: LimitSpans


@dataclass(slots=True)
class Changed:
    """Gathers the deltas that follow each other since a state, to store one delta in their place.

    Ten thousand deltas that move one object make one row:

        changed = Changed.since(state)
        changed.add(deltas)                 what they touched; the deltas themselves are not kept
        delta = changed.until(state_now)    apply(state, delta) is state_now
    """

    before: _Before
    touched: list[np.ndarray] = field(default_factory=list)
    waiting: int = 0

    @staticmethod
    def since(state: State) -> "Changed":
        """A collector that begins at a state; nothing changed yet."""
        return Changed(
            _Before(
                objects=len(state.objects),
                partners=len(state.partners),
                targets=len(state.targets),
                **{name: getattr(state, name) for name in _COMPARED},
            )
        )

    def add(self, deltas: Iterable[Delta]) -> None:
        """Takes note of which objects deltas touched; every delta since the state must be added."""
        for delta in deltas:
            self.touched.append(
                delta.touched.copy()
            )  # it may be a part of something large
            self.touched.append(delta.seen.copy())
            self.waiting += len(delta.touched) + len(delta.seen)
        if self.waiting > _MOST:
            # One set now and then, so that objects which always move do not fill the memory.
            self.touched = [self._objects()]
            self.waiting = len(self.touched[0])

    def until(self, state: State) -> Delta | None:
        """The delta from the state before to a later one; None where only the whole state says it: queries are gone.

        Args:
            state: the state after all deltas that were added.
        """
        before, changed, touched = self.before, None, self._objects()
        if state.queries is not before.queries:
            changed = changed_queries(before.queries, state.queries)
            if changed is None:
                return None
        if changed is not None or state.layers != before.layers:
            # It changed answers of objects that did not report.
            keys = np.concatenate(differences(before.answer, state.answer))
            touched = unique(np.concatenate([touched, keys >> OBJECT_SHIFT]))
        is_touched = np.zeros(len(state.objects), bool)
        is_touched[touched] = True
        minus, plus = differences(before.tick_answer, state.tick_answer)
        return Delta(
            next_segment=state.next_segment,
            max_event=state.max_event,
            raised_us=state.raised_us,
            **_new_names(before, state),
            touched=touched,
            fixes=state.fixes.take(touched),
            answer=state.answer[is_touched[state.answer >> OBJECT_SHIFT]],
            tick_minus=minus,
            tick_plus=plus,
            pending=state.pending,
            held=state.held,
            changed_queries=changed,
            layers=None if state.layers == before.layers else state.layers,
            limits=None if state.limits == before.limits else state.limits,
            memories=before.memories.change_to(state.memories),
        )

    def _objects(self) -> np.ndarray:
        """Which objects were touched; int64, ascending."""
        numbers = np.concatenate([np.empty(0, np.int64), *self.touched])
        # Numbers of objects count from 0, so marking them costs a tenth of sorting or hashing them.
        is_touched = np.zeros(numbers.max(initial=-1) + 1, bool)
        is_touched[numbers] = True
        return np.flatnonzero(is_touched)


_COMPARED = ("answer", "tick_answer", "memories", "queries", "layers", "limits")


def _new_names(before: _Before, state: State) -> dict[str, Any]:
    """The objects, partners and targets that a state knows and the one before did not."""
    objects, partners, targets = state.objects, state.partners, state.targets
    return {
        "object_ids": objects.ids.slice(before.objects),
        "object_hashes": objects.hashes[before.objects :],
        "partner_ids": partners.ids.slice(before.partners),
        "partner_hashes": partners.hashes[before.partners :],
        "target_query": targets.query[before.targets :],
        "target_partner": targets.partner[before.targets :],
    }
