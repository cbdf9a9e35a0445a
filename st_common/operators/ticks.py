"""Queries that are judged at ticks of event time: those that move, and those that count (DESIGN section 3)."""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from st_common.operators import frame_telling, relational, windows
from st_common.operators.agenda import Agenda, agenda_of
from st_common.operators.ahead import MOST_TICKS, NOTHING, Ahead, ahead_of
from st_common.operators.cache_counts import Caches, summed
from st_common.operators.course import Moment
from st_common.operators.entries import Entries
from st_common.operators.fixes import NEVER
from st_common.operators.frames import Closed, Frames, first_ends
from st_common.operators.groups import Groups
from st_common.operators.inner import Inner, Memo, inner_answer, with_ahead
from st_common.operators.keys import SHIFT, differences, merged, unique, without
from st_common.operators.present import Present
from st_common.operators.state import Pending, State
from st_common.operators.telling import (
    Lines,
    events_count,
    group_lines,
    joined_lines,
    pair_lines,
    tell_groups,
    tell_pairs,
)
from st_common.operators.turn import Turn
from st_common.operators.until_notes import told_anew


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
    frames: Closed | None = None
    cut: int = 0
    pending: Pending | None = None
    memo: Memo | None = None
    changes: tuple[pa.Table, ...] = ()
    ticks: int = 0
    touched: int = 0
    caches: Caches = field(default_factory=dict)


def run_ticks(state: State, turn: Turn) -> Ticked:
    """Judges every tick that is due in a run, one after the other; what is not due yet stays pending."""
    if not turn.known.ticking:
        return Ticked(pending=Pending() if state.pending.tick != NEVER else None)
    present = Present(state.fixes, turn)
    entries = windows.opened(state, turn, present)
    frames = Frames(state, turn, present) if len(turn.known.frames.numbers) else None
    pending = state.pending.tick if turn.final is None else min(state.pending.tick, turn.final.ts)
    aging = windows.aging(entries.all, turn)
    if frames is not None:
        aging = np.union1d(aging, frames.slides(int(turn.clock.value[-1])))
    agenda = agenda_of(turn.events, turn.clock, turn.settings.tick_us, pending=pending, final=turn.final, aging=aging)
    work = _Work(state=state, turn=turn, fixes=present, entries=entries, frames=frames, memo=state.memo or Memo())
    moments, changed = _moments(state, turn, agenda, pending)
    work.run(moments)
    later = np.flatnonzero(~np.isin(agenda.tick, agenda.due))
    return work.ticked(_left(state, agenda, turn, changed, later), later)


def _moments(state: State, turn: Turn, agenda: Agenda, pending: int) -> tuple[list[Moment], np.ndarray]:
    """The ticks of a run that are due, and the objects of the pending one if it is not among them."""
    order = np.argsort(agenda.tick, kind="stable")
    start, end = (np.searchsorted(agenda.tick[order], agenda.due, side=side).tolist() for side in ("left", "right"))
    changed, none, out = state.pending.objects, state.pending.objects[:0], list[Moment]()
    for at, (tick, position) in enumerate(zip(agenda.due.tolist(), agenda.position.tolist(), strict=True)):
        events = order[start[at] : end[at]]
        # What happened in the pending tick belongs to it, and it is never later than the first one that is due.
        also, changed = (changed, none) if tick >= pending else (none, changed)
        objects = turn.events.object[events]
        objects = unique(np.concatenate([also, objects]))
        out.append(Moment(tick=tick, position=position, events=events, also=also, objects=objects))
    return out, changed


def _left(state: State, agenda: Agenda, turn: Turn, changed: np.ndarray, later: np.ndarray) -> Pending:
    """What stays pending: events of the one tick that the clock has not passed."""
    if not len(changed) and not len(later):
        return Pending()
    ended = np.zeros(len(turn.objects), np.int8)
    if len(changed):
        ended[state.pending.objects] = state.pending.ended
    first_ends(ended, turn.events, later)
    objects = unique(np.concatenate([changed, turn.events.object[later]]))
    tick = int(agenda.tick[later[0]]) if len(later) else state.pending.tick
    return Pending(tick=tick, objects=objects, ended=ended[objects])


class _Work:
    """The state of things from tick to tick of one run."""

    def __init__(
        self, *, state: State, turn: Turn, fixes: Present, entries: windows.Open, frames: Frames | None, memo: Memo
    ) -> None:
        self._state, self._turn, self._fixes, self._entries, self._memo = state, turn, fixes, entries, memo
        self._frames = frames
        self._answer, self._groups = state.tick_answer, state.groups
        self._pairs: list[Lines | None] = []
        self._of_groups: list[Lines | None] = []
        self._of_frames: list[Lines | None] = []
        self._ticks = self._touched = 0
        self._caches: list[Caches] = []
        self._diffs: list[tuple[np.ndarray, np.ndarray]] = []

    def run(self, moments: list[Moment]) -> None:
        """Judges ticks one after the other, their spatial answers for as many at once as can be taken together."""
        left = [moment for moment in moments if len(moment.objects)]
        ahead, at = NOTHING, 0
        for moment in moments:
            if not len(moment.objects):
                self._tick(moment, NOTHING, 0)
                continue
            if at == ahead.ticks:
                ahead, at = ahead_of(self._turn, self._fixes, left[:MOST_TICKS], self._answer), 0
                left = left[ahead.ticks :]
            self._tick(moment, ahead, at)
            at += 1

    def _advance(self, events: np.ndarray, tick: int) -> None:
        """Takes the last fixes on to after some events, those of a tick."""
        self._fixes.advance(events)
        if self._frames is not None:
            self._frames.ended(events)
            self._frames.advance(events, tick)

    def _tick(self, moment: Moment, ahead: Ahead, at: int) -> None:
        """Judges one tick, of which some is known ahead."""
        self._advance(moment.events, moment.tick)
        turn, before, tick = self._turn, self._answer, moment.tick
        changed = np.zeros(len(turn.objects), bool)
        changed[moment.objects] = True
        inner = with_ahead(inner_answer(turn, self._fixes, before, self._memo, changed, ahead.sources), ahead, at)
        window = windows.judged(turn, self._entries, before, tick)
        minus, plus = _both(inner.minus, window.minus), _both(inner.plus, window.plus)
        self._answer = merged(without(before, minus), plus)
        at_tick = relational.At(tick=tick, position=moment.position)
        if len(moment.objects) or len(minus) or len(plus) or len(window.dirty):
            self._tell(before, minus, plus, changed, window, at_tick)
        if self._frames is not None:
            self._frame(self._frames, np.concatenate([minus, plus]), changed, at_tick)
        if not self._memo.zeros_told:
            self._tell_zeros(at_tick)
        self._count(inner, minus, plus)

    def _tell(
        self, before: np.ndarray, minus: np.ndarray, plus: np.ndarray, changed: np.ndarray, window: windows.Window,
        at: relational.At,
    ) -> None:  # fmt: skip
        """Tells who came and went, and what becomes of the groups above."""
        turn = self._turn
        lines = pair_lines(turn, self._fixes, before, minus, plus, changed, at)
        lines, self._groups = told_anew(turn, lines, self._groups)
        self._pairs.append(lines)
        dirty = relational.dirty_queries(turn, self._answer, minus, plus, changed)
        groups = relational.groups_of_members(turn, self._fixes, self._answer, dirty)
        retold = events_count(turn, at.tick) | turn.known.windowed
        retold[turn.numbering.targets.query[np.concatenate([minus, plus]) >> SHIFT]] = True
        self._regroup(np.union1d(dirty, window.dirty), relational.joined(groups, window.groups), at, retold)

    def _frame(self, frames: Frames, differs: np.ndarray, changed: np.ndarray, at: relational.At) -> None:
        judged = frames.judge(self._answer, differs, at.tick, changed)
        if judged is None:
            return
        self._of_frames.append(frame_telling.frame_lines(self._turn, frames, judged, at))
        groups, again = frame_telling.regroup(self._turn, frames, judged, self._groups)
        self._of_groups.append(group_lines(self._turn, self._groups, groups, at, again=again))
        self._groups = self._groups.changed(removed=groups.removed, added=groups.added)

    def _tell_zeros(self, at: relational.At) -> None:
        """At the first tick of all: counts that are 0 then, of which no member tells anything."""
        zeros = relational.untold(self._turn, self._groups)
        if len(zeros):
            changed = relational.Regrouped(removed=zeros.target[:0], added=zeros)
            self._of_groups.append(group_lines(self._turn, self._groups, changed, at))
            self._groups = self._groups.changed(removed=changed.removed, added=changed.added)

    def _regroup(self, dirty: np.ndarray, fresh: Groups, at: relational.At, retold: np.ndarray) -> None:
        """Tells what changes in the groups of `dirty` queries, of those in `retold` (bool[q]) on request all others."""
        if not len(dirty):
            return
        changed = relational.regrouped(self._turn, self._groups, dirty, fresh)
        again = relational.retold(self._turn, self._groups, dirty[retold[dirty]], changed)
        self._of_groups.append(group_lines(self._turn, self._groups, changed, at, again=again))
        self._groups = self._groups.changed(removed=changed.removed, added=changed.added)

    def _count(self, inner: Inner, minus: np.ndarray, plus: np.ndarray) -> None:
        self._memo = replace(inner.memo, zeros_told=True)
        self._ticks += 1
        self._touched += inner.touched
        self._caches.append(inner.caches)
        self._diffs.append((minus, plus))

    def ticked(self, pending: Pending, later: np.ndarray) -> Ticked:
        """What all ticks changed together; the events `later` belong to the one that stays pending."""
        minus, plus = self._diffs[0] if len(self._diffs) == 1 else self._difference()
        removed, added = self._entries.closed()
        old, new = self._state.groups, self._groups
        same = old is new
        return Ticked(
            minus=minus, plus=plus, answer=self._answer, pending=pending, memo=self._memo,
            entries_removed=removed, entries_added=added,
            groups_removed=old.target[:0] if same else old.target, groups_added=Groups.empty() if same else new,
            frames=self._frames.closed(later, pending.tick) if self._frames else None,
            cut=self._frames.cut if self._frames else 0,
            changes=self._told(), ticks=self._ticks, touched=self._touched, caches=summed(self._caches),
        )  # fmt: skip

    def _told(self) -> tuple[pa.Table, ...]:
        """The changes of all ticks as rows."""
        pairs, groups, rows = (
            joined_lines(known) if (known := [part for part in parts if part is not None]) else None
            for parts in (self._pairs, self._of_groups, self._of_frames)
        )
        told = [] if pairs is None else [tell_pairs(self._turn, self._fixes, pairs)]
        told += [] if groups is None else [tell_groups(self._turn, groups)]
        if self._frames is not None and rows is not None:
            told.append(frame_telling.tell_rows(self._turn, self._frames, rows))
        return tuple(told)

    def _difference(self) -> tuple[np.ndarray, np.ndarray]:
        before, after = self._state.tick_answer, self._answer
        if before is after:
            return before[:0], before[:0]
        return differences(before, after)


def _both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return merged(one, other) if len(one) and len(other) else one if len(one) else other
