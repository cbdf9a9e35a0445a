"""Queries that are judged at ticks of event time: those that move, and those that count (DESIGN section 3)."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from st_common.operators import relational, windows
from st_common.operators.agenda import Agenda, agenda_of
from st_common.operators.entries import Entries
from st_common.operators.fixes import NEVER, LastFixes
from st_common.operators.groups import Groups
from st_common.operators.inner import Inner, Memo, inner_answer
from st_common.operators.keys import differences, merged, unique, without
from st_common.operators.state import Pending, State
from st_common.operators.telling import tell_groups, tell_pairs
from st_common.operators.touched import rows_after
from st_common.operators.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """What the ticks of a run change: keys, entries and groups as in `Delta`, the changes, how many there were."""

    minus: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    plus: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    answer: np.ndarray | None = None
    entries_removed: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    entries_added: Entries = field(default_factory=Entries.empty)
    groups_removed: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    groups_added: Groups = field(default_factory=Groups.empty)
    pending: Pending | None = None
    memo: Memo | None = None
    changes: tuple[pa.Table, ...] = ()
    ticks: int = 0
    touched: int = 0
    refills: int = 0


def run_ticks(state: State, turn: Turn) -> Ticked:
    """Judges every tick that is due in a run, one after the other; what is not due yet stays pending."""
    if not turn.known.ticking:
        return Ticked(pending=Pending() if state.pending.tick != NEVER else None)
    entries = windows.opened(state, turn)
    pending = state.pending
    agenda = agenda_of(
        turn.events, turn.clock, turn.settings.tick_us, pending=pending.tick, final=turn.final,
        aging=windows.aging(entries.all, turn),
    )  # fmt: skip
    work = _Work(state=state, turn=turn, fixes=state.fixes, entries=entries, memo=state.memo or Memo())
    changed = pending.objects
    for tick, position in zip(agenda.due.tolist(), agenda.position.tolist(), strict=True):
        # What happened in the pending tick belongs to it, and it is never later than the first one that is due.
        here = np.flatnonzero(agenda.tick == tick)
        work.advance(here)
        work.tick(tick, position, unique(np.concatenate([changed if tick >= pending.tick else changed[:0],
                                                         turn.events.object[here]])))  # fmt: skip
        changed = changed[:0] if tick >= pending.tick else changed
    return work.ticked(_left(pending, agenda, turn, changed))


def _left(pending: Pending, agenda: Agenda, turn: Turn, changed: np.ndarray) -> Pending:
    """What stays pending: events of the one tick that the clock has not passed."""
    later = ~np.isin(agenda.tick, agenda.due)
    objects = unique(np.concatenate([changed, turn.events.object[later]]))
    if later.any():
        return Pending(tick=int(agenda.tick[later][0]), objects=objects)
    return Pending(tick=pending.tick, objects=objects) if len(changed) else Pending()


class _Work:
    """The state of things from tick to tick of one run."""

    def __init__(self, *, state: State, turn: Turn, fixes: LastFixes, entries: windows.Open, memo: Memo) -> None:
        self._state, self._turn, self._fixes, self._entries, self._memo = state, turn, fixes, entries, memo
        self._answer, self._groups = state.tick_answer, state.groups
        self._changes: list[pa.Table] = []
        self._ticks = self._touched = self._refills = 0
        self._diffs: list[tuple[np.ndarray, np.ndarray]] = []

    def advance(self, events: np.ndarray) -> None:
        """Takes the last fixes on to after some events."""
        objects, rows = rows_after(self._turn.events, self._turn.readings, events)
        self._fixes = self._fixes.with_rows(objects, rows, total=len(self._turn.objects))

    def tick(self, tick: int, position: int, objects: np.ndarray) -> None:
        """Judges one tick, given the objects that something happened to since the one before."""
        turn, before = self._turn, self._answer
        changed = np.zeros(len(turn.objects), bool)
        changed[objects] = True
        inner = inner_answer(turn, self._fixes, before, self._memo, changed)
        window = windows.judged(turn, self._entries, before, tick)
        minus, plus = _both(inner.minus, window.minus), _both(inner.plus, window.plus)
        self._answer = merged(without(before, minus), plus)
        at = relational.At(tick=tick, position=position)
        told = tell_pairs(turn, self._fixes, before, minus, plus, changed, at)
        dirty = relational.dirty_queries(turn, self._answer, minus, plus, changed)
        groups = relational.groups_of_members(turn, self._fixes, self._answer, dirty)
        self._regroup(np.union1d(dirty, window.dirty), relational.joined(groups, window.groups), at)
        self._changes += [table for table in told if len(table)]
        self._count(inner, minus, plus)

    def _regroup(self, dirty: np.ndarray, fresh: Groups, at: relational.At) -> None:
        if not len(dirty):
            return
        changed = relational.regrouped(self._turn, self._groups, dirty, fresh)
        self._changes.append(tell_groups(self._turn, self._groups, changed, at))
        self._groups = self._groups.changed(removed=changed.removed, added=changed.added)

    def _count(self, inner: Inner, minus: np.ndarray, plus: np.ndarray) -> None:
        self._memo = inner.memo
        self._ticks += 1
        self._touched += inner.touched
        self._refills += inner.refills
        self._diffs.append((minus, plus))

    def ticked(self, pending: Pending) -> Ticked:
        """What all ticks changed together."""
        minus, plus = self._diffs[0] if len(self._diffs) == 1 else self._difference()
        removed, added = self._entries.closed()
        old, new = self._state.groups, self._groups
        same = old is new
        return Ticked(
            minus=minus, plus=plus, answer=self._answer, pending=pending, memo=self._memo,
            entries_removed=removed, entries_added=added,
            groups_removed=old.target[:0] if same else old.target, groups_added=Groups.empty() if same else new,
            changes=tuple(self._changes), ticks=self._ticks, touched=self._touched, refills=self._refills,
        )  # fmt: skip

    def _difference(self) -> tuple[np.ndarray, np.ndarray]:
        before, after = self._state.tick_answer, self._answer
        if before is after:
            return before[:0], before[:0]
        return differences(before, after)


def _both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return merged(one, other) if len(one) and len(other) else one if len(one) else other
