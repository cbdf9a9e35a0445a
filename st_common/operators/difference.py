"""What changed between two states of one engine, as one delta: as large as what moved, not as how often it did."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from st_common.operators.changed_queries import changed_queries
from st_common.operators.delta import Delta
from st_common.operators.entries import Entries
from st_common.operators.frame_rows import FrameRows, Tracks
from st_common.operators.groups import Groups
from st_common.operators.keys import differences
from st_common.operators.registered import Queries
from st_common.operators.state import OBJECT_SHIFT, State

_MOST = 1 << 20  # numbers of touched objects that wait to be made one set


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """Of the state before: how much it knew, and the parts that are compared; no last fixes and no ids."""

    objects: int
    partners: int
    targets: int
    answer: np.ndarray
    tick_answer: np.ndarray
    entries: Entries
    groups: Groups
    frame_rows: FrameRows
    tracks: Tracks
    queries: Queries
    layers: Mapping[str, int]


@dataclass(slots=True)
class Changed:
    """Gathers the deltas that follow each other since a state."""

    before: _Before
    touched: list[np.ndarray] = field(default_factory=list)
    waiting: int = 0

    @staticmethod
    def since(state: State) -> "Changed":
        """Nothing changed yet."""
        return Changed(
            _Before(
                objects=len(state.objects),
                partners=len(state.partners),
                targets=len(state.targets),
                **{name: getattr(state, name) for name in _COMPARED},
            )
        )

    def add(self, deltas: Iterable[Delta]) -> None:
        """Takes note of what deltas touched."""
        for delta in deltas:
            self.touched.append(
                delta.touched.copy()
            )  # it may be a part of something large
            self.waiting += len(delta.touched)
        if self.waiting > _MOST:
            self.touched = [self._objects()]
            self.waiting = len(self.touched[0])

    def until(self, state: State) -> Delta | None:
        """The delta from the state before to this one; None where only the whole state says it: queries are gone."""
        before, changed, touched = self.before, None, self._objects()
        if state.queries is not before.queries:
            changed = changed_queries(before.queries, state.queries)
            if changed is None:
                return None
        if (
            changed is not None or state.layers != before.layers
        ):  # it changed answers of objects that did not report
            keys = np.concatenate(differences(before.answer, state.answer))
            touched = np.union1d(touched, keys >> OBJECT_SHIFT)
        is_touched = np.zeros(len(state.objects), bool)
        is_touched[touched] = True
        minus, plus = differences(before.tick_answer, state.tick_answer)
        return Delta(
            next_segment=state.next_segment,
            max_event=state.max_event,
            raised_us=state.raised_us,
            object_ids=state.objects.ids.slice(before.objects),
            object_hashes=state.objects.hashes[before.objects :],
            partner_ids=state.partners.ids.slice(before.partners),
            partner_hashes=state.partners.hashes[before.partners :],
            target_query=state.targets.query[before.targets :],
            target_partner=state.targets.partner[before.targets :],
            touched=touched,
            fixes=state.fixes.take(touched),
            answer=state.answer[is_touched[state.answer >> OBJECT_SHIFT]],
            tick_minus=minus,
            tick_plus=plus,
            pending=state.pending,
            held=state.held,
            changed_queries=changed,
            layers=None if state.layers == before.layers else state.layers,
            **_entries(before.entries, state.entries),
            **_groups(before.groups, state.groups),
            **_frames(before, state),
        )

    def _objects(self) -> np.ndarray:
        return np.unique(np.concatenate([np.empty(0, np.int64), *self.touched]))


_COMPARED = (
    "answer",
    "tick_answer",
    "entries",
    "groups",
    "frame_rows",
    "tracks",
    "queries",
    "layers",
)


def _entries(before: Entries, after: Entries) -> dict[str, Any]:
    """Entries go from anywhere and come at the end, so what stayed is told by target and row of the log."""
    if after is before:
        return {}
    stayed = np.isin(_marks(before), _marks(after))
    kept, count = before.take(stayed), int(np.count_nonzero(stayed))
    begins = after.take(np.arange(min(count, len(after))))
    if not _are_same(kept, begins):
        return {"entries_removed": np.arange(len(before)), "entries_added": after}
    return {
        "entries_removed": np.flatnonzero(~stayed),
        "entries_added": after.take(np.arange(count, len(after))),
    }


def _marks(entries: Entries) -> np.ndarray:
    """A number for each entry; that two have the same hurts nothing, for what stays is compared."""
    marks: np.ndarray = entries.position.astype(np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    ) + entries.target.astype(np.uint64)
    return marks


def _are_same(one: Entries, other: Entries) -> bool:
    names = Entries.__dataclass_fields__
    return all(
        np.array_equal(_bits(getattr(one, name)), _bits(getattr(other, name)))
        for name in names
    )


def _bits(values: np.ndarray) -> np.ndarray:
    """Numbers that are equal where the values are, not-a-numbers as well."""
    return np.ascontiguousarray(values).view(np.int64)


def _groups(before: Groups, after: Groups) -> dict[str, Any]:
    if after is before:
        return {}
    was = np.isin(after.target, before.target)
    at = np.searchsorted(before.target, after.target[was])
    same = np.zeros(len(after), bool)
    same[was] = _bits(before.value)[at] == _bits(after.value)[was]
    kept = after.target[same]
    return {
        "groups_removed": before.target[~np.isin(before.target, kept)],
        "groups_added": Groups(target=after.target[~same], value=after.value[~same]),
    }


def _frames(before: _Before, after: State) -> dict[str, Any]:
    """Rows and ways of frames, whole where they changed."""
    changed: dict[str, Any] = {}
    if after.frame_rows is not before.frame_rows:
        changed |= {
            "frame_rows_removed": np.arange(len(before.frame_rows)),
            "frame_rows_added": after.frame_rows,
        }
    if after.tracks is not before.tracks:
        changed |= {"tracks_removed": before.tracks.key, "tracks_added": after.tracks}
    return changed
