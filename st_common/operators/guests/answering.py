"""What a shard says of its own objects to those that judge queries around others: by name, and by place."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import is_in, unique
from st_common.operators.guests.cells import Bools, Cells, Ints, numbers_of
from st_common.operators.guests.part_fixes import PartFixes
from st_common.operators.guests.part_fixes import joined as joined_fixes_of_part
from st_common.operators.runtime.reshape_objects import (
    joined_fixes,
    joined_held,
    with_own_objects,
)
from st_common.operators.state.codec import from_blob, to_blob
from st_common.operators.state.intern import Interner, shards_of
from st_common.operators.state.memories import Memories
from st_common.operators.state.registered import Queries
from st_common.operators.state.state import Held, Pending, State, fixes_from_arrays
from st_common.runs import is_first, ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a shard says of some of its objects.

    Attributes:
        state: of those that are not known to whoever asks, what is known before the part: last fixes, fixes that wait
            for the clock, and whether something happened in the tick that is open. It has nothing else.
        fixes: those of the part.
    """

    state: State
    fixes: PartFixes

    def to_blob(self) -> bytes:
        """As bytes."""
        arrays = self.fixes.to_arrays() if len(self.fixes) else {}
        if not len(self.state.objects):
            return to_blob(arrays, {})
        known = _to_arrays(self.state)
        return to_blob(arrays | known, {"tick": int(self.state.pending.tick)})

    @staticmethod
    def from_blob(blob: bytes | pa.Buffer) -> "Told":
        """What `to_blob` gave."""
        arrays, meta = from_blob(blob)
        state = _from_arrays(arrays, meta["tick"]) if "ids" in arrays else State()
        return Told(state=state, fixes=PartFixes.from_arrays(arrays))


def _to_arrays(state: State) -> dict[str, Any]:
    arrays = {"ids": state.objects.ids, "hashes": state.objects.hashes}
    arrays |= state.fixes.to_arrays()
    arrays |= state.held.to_arrays() if len(state.held) else {}
    pending = state.pending
    arrays |= {"pending": pending.objects, "ended": pending.ended}
    return arrays


def _from_arrays(arrays: dict[str, Any], tick: int) -> State:
    return State(
        objects=Interner(arrays["ids"], arrays["hashes"]),
        fixes=fixes_from_arrays(arrays),
        held=Held.from_arrays(arrays) if "held/position" in arrays else Held.empty(),
        pending=Pending(tick=tick, objects=arrays["pending"], ended=arrays["ended"]),
    )


def joined(told: Sequence[Told]) -> Told:
    """What several shards say as one."""
    if len(told) == 1:
        return told[0]
    state = with_objects(State(), [one.state for one in told])
    return Told(state=state, fixes=joined_fixes_of_part([one.fixes for one in told]))


def with_objects(state: State, others: Sequence[State]) -> State:
    """A state that knows the objects of others as well, numbered on; what it could not know of them is forgotten.

    Args:
        state: a state that knows none of these objects.
        others: with objects, last fixes, fixes that wait and the open tick alone.
    """
    more = [one for one in others if len(one.objects)]
    if not more:
        return state
    objects, held, pending = state.objects, [state.held], [state.pending]
    for one in more:
        start = len(objects)
        held.append(replace(one.held, object=one.held.object + start))
        pending.append(replace(one.pending, objects=one.pending.objects + start))
        objects = objects.with_new(one.objects.hashes, one.objects.ids)
    return replace(
        state,
        objects=objects,
        fixes=joined_fixes([state.fixes, *(one.fixes for one in more)]),
        held=joined_held(held),
        pending=_joined_pending(pending),
        memo=None,
    )


def _joined_pending(parts: Sequence[Pending]) -> Pending:
    """What happened in the open tick, of objects that are numbered on from part to part."""
    return Pending(
        tick=max(part.tick for part in parts),
        objects=np.concatenate([part.objects for part in parts]),
        ended=np.concatenate([part.ended for part in parts]),
    )


def bare(state: State) -> State:
    """A state with its objects, its clock and the open tick alone: no queries, and nothing that follows from them."""
    none = np.empty(0, np.int64)
    return replace(
        state,
        queries=Queries(),
        layers={},
        partners=State().partners,
        targets=State().targets,
        answer=none,
        tick_answer=none,
        memories=Memories(),
        memo=None,
    )


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Rows by a number each: `order` has the rows of the distinct numbers, ascending, one behind the other."""

    numbers: np.ndarray
    start: Ints
    order: Ints

    @staticmethod
    def of(numbers: np.ndarray) -> "_Sorted":
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        start = np.flatnonzero(is_first(ascending))
        return _Sorted(ascending[start], np.append(start, len(order)), order)

    def rows(self, chosen: Bools) -> Ints:
        """The rows of the distinct numbers that are chosen; ascending by number."""
        start = self.start[:-1][chosen]
        rows: Ints = self.order[ranges(start, self.start[1:][chosen] - start)]
        return rows

    def rows_of(self, some: np.ndarray) -> Ints:
        """The rows with some numbers (ascending, each once)."""
        at = np.searchsorted(self.numbers, some)
        known = at < len(self.numbers)
        known[known] = self.numbers[at[known]] == some[known]
        start = self.start[at[known]]
        rows: Ints = self.order[ranges(start, self.start[at[known] + 1] - start)]
        return rows


@dataclass(frozen=True)
class Own:
    """What a shard knows of its own objects: before a part of the log, and their fixes in it.

    Many ask: what all ask for is sorted once.

    Args:
        state: before the part; it may know objects of others.
        fixes: of the part, also of others.
        shard: the number of the shard.
        shards: how many there are.
    """

    state: State
    fixes: PartFixes
    shard: int
    shards: int
    _cells: dict[float, tuple[_Sorted, np.ndarray]] = field(
        default_factory=dict, repr=False
    )

    def named(self, hashes: np.ndarray, new: np.ndarray) -> Told:
        """What is asked for by name.

        Args:
            hashes: uint64, ascending: objects whose fixes are asked for, also of other shards.
            new: uint64, ascending: those of which nothing is known to whoever asks.
        """
        return self._told(hashes[self._are_own(hashes)], new[self._are_own(new)])

    def nearby(self, cells: Cells, known: np.ndarray) -> Told:
        """Those that are, or come, into some cells.

        Args:
            cells: which ones.
            known: uint64, ascending: objects that are not meant.
        """
        in_cells, hashes = self._in_cells(cells.side)
        rows = in_cells.rows(is_in(in_cells.numbers, cells.numbers))
        near = unique(hashes[rows])
        new = near[~is_in(near, known)]
        return self._told(new, new)

    def _told(self, hashes: np.ndarray, new: np.ndarray) -> Told:
        """The fixes of own objects, and of new ones what is known before the part."""
        fixes = self._own_fixes.at(self._fixes_by_hash.rows_of(hashes))
        numbers = self._objects_by_hash.rows_of(new)
        return Told(state=self._known(np.sort(self._own[numbers])), fixes=fixes)

    def _are_own(self, hashes: np.ndarray) -> Bools:
        return np.asarray(shards_of(hashes, self.shards) == self.shard)

    @cached_property
    def _own(self) -> Ints:
        """The numbers of own objects."""
        return np.flatnonzero(self._are_own(self.state.objects.hashes))

    @cached_property
    def _objects_by_hash(self) -> _Sorted:
        return _Sorted.of(self.state.objects.hashes[self._own])

    @cached_property
    def _own_fixes(self) -> PartFixes:
        """The fixes of own objects."""
        is_own = self._are_own(self.fixes.hashes)
        if is_own.all():
            return self.fixes
        return self.fixes.at(np.flatnonzero(is_own[self.fixes.code]))

    @cached_property
    def _fixes_by_hash(self) -> _Sorted:
        return _Sorted.of(self._own_fixes.hash_of_each)

    def _in_cells(self, side: float) -> tuple[_Sorted, np.ndarray]:
        """The places of own objects by cell, before the part and in it, and whose each is; kept for each side."""
        if side not in self._cells:
            state, fixes, own = self.state, self._own_fixes, self._own
            held = np.flatnonzero(
                self._are_own(state.objects.hashes[state.held.object])
            )
            x = np.concatenate([state.fixes.x[own], state.held.x[held], fixes.x])
            y = np.concatenate([state.fixes.y[own], state.held.y[held], fixes.y])
            hashes = [
                state.objects.hashes[own],
                state.objects.hashes[state.held.object[held]],
                fixes.hash_of_each,
            ]
            places = _Sorted.of(numbers_of(x, y, side))
            self._cells[side] = places, np.concatenate(hashes)
        return self._cells[side]

    def _known(self, numbers: Ints) -> State:
        """What is known of some objects before the part, and nothing else."""
        if not len(numbers):
            return State()
        chosen = np.zeros(len(self.state.objects), bool)
        chosen[numbers] = True
        number = np.where(chosen, np.cumsum(chosen) - 1, -1)
        return with_own_objects(bare(self.state), chosen, number)
