"""Queries that are judged at ticks of event time: those that move, and those that count (docs/how-it-works.md)."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate import relational
from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.lines import Lines, joined_lines
from st_common.operators.aggregate.regrouping import joined, parts_of_members, regroup
from st_common.operators.aggregate.stretch import Stretch
from st_common.operators.aggregate.telling import (
    group_lines,
    pair_lines,
    tell_groups,
    tell_pairs,
    wants_members,
)
from st_common.operators.aggregate.until_notes import told_anew
from st_common.operators.ahead.ahead import (
    MOST_CELLS,
    MOST_TICKS,
    Ahead,
    ahead_of,
    all_sources,
)
from st_common.operators.arrays.keys import MASK, merged, unique, without
from st_common.operators.arrays.turns import Turns
from st_common.operators.events.agenda import Agenda
from st_common.operators.fence.moving_phases import FencesAtTicks
from st_common.operators.fence.moving_specs import MovingFences
from st_common.operators.fence.visits import MovingVisits
from st_common.operators.pairs.choosing import shown
from st_common.operators.runtime.inner import Memo, inner_answer, with_ahead
from st_common.operators.runtime.pending import (
    agenda_in,
    left_for_others,
    left_in,
    pending_tick,
)
from st_common.operators.skeleton.cache_counts import Caches, summed
from st_common.operators.state.component import Change, Component
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.state import Pending, State
from st_common.operators.travelled import telling as frame_telling
from st_common.operators.travelled.frames import Frames
from st_common.operators.travelled.specs import FrameSpecs
from st_common.operators.turn.course import Course, Moment, Now
from st_common.operators.turn.part import Counters, Part
from st_common.operators.turn.present import Present
from st_common.operators.turn.spells import members_of
from st_common.operators.turn.swapping import At
from st_common.operators.turn.turn import Turn
from st_common.operators.window import windows
from st_common.operators.window.entries import Entries

CELLS_OF_A_SLOT = 4
"""How many cells a slot of frames counts for at a tick: more is kept of it than of a query and an object."""


def run_ticks(state: State, turn: Turn) -> Part:
    """Judges every tick that is due in a run, one after the other; what is not due yet stays pending."""
    if not turn.known.has_ticks:
        left = left_for_others(state, turn) if turn.settings.hosted else Pending()
        has_none = state.pending.tick == left.tick == NEVER
        return Part(delta={} if has_none else {"pending": left})
    present = Present(state.fixes, turn)
    entries = windows.opened(state, turn, present)
    has_frames = len(turn.known.of(FrameSpecs).numbers) > 0
    frames = Frames(state, turn, present) if has_frames else None
    pending = pending_tick(state, turn)
    aging = windows.aging(entries.all, turn)
    if frames is not None:
        slides = frames.ticks_by_themselves(int(turn.clock.value[-1]))
        aging = np.union1d(aging, slides)
    agenda = agenda_in(turn, pending, aging)
    held = windows.judged(turn, entries, agenda.due)
    work = _Work(
        state=state,
        turn=turn,
        fixes=present,
        held=held,
        frames=frames,
        fences=_fences(state, turn, present),
        memo=state.memo or Memo(),
    )
    moments, changed = _moments(state, turn, agenda, pending)
    work.run(moments)
    later = np.flatnonzero(~np.isin(agenda.tick, agenda.due))
    return work.ticked(left_in(state, agenda, turn, changed, later), later)


def _fences(state: State, turn: Turn, present: Present) -> FencesAtTicks | None:
    if not len(turn.known.of(MovingFences)):
        return None
    return FencesAtTicks(state.memories[MovingVisits], turn, present)


def _moments(
    state: State, turn: Turn, agenda: Agenda, pending: int
) -> tuple[list[Moment], np.ndarray]:
    """The ticks of a run that are due, and the objects of the pending one if it is not among them."""
    # Stable: the events of a tick stay sorted by object and effect.
    order = np.argsort(agenda.tick, kind="stable")
    start, end = (
        np.searchsorted(agenda.tick[order], agenda.due, side=side).tolist()
        for side in ("left", "right")
    )
    changed, none, out = (
        state.pending.objects,
        state.pending.objects[:0],
        list[Moment](),
    )
    for at, (tick, position) in enumerate(
        zip(agenda.due.tolist(), agenda.position.tolist(), strict=True)
    ):
        events = order[start[at] : end[at]]
        # What happened in the pending tick belongs to it, and it is never later than the first one that is due.
        also, changed = (changed, none) if tick >= pending else (none, changed)
        objects = turn.events.object[events]
        objects = unique(np.concatenate([also, objects]))
        out.append(
            Moment(
                tick=tick, position=position, events=events, also=also, objects=objects
            )
        )
    return out, changed


class _Work:
    """The state of things from tick to tick of one run."""

    def __init__(
        self,
        *,
        state: State,
        turn: Turn,
        fixes: Present,
        held: windows.Judged,
        frames: Frames | None,
        fences: FencesAtTicks | None,
        memo: Memo,
    ) -> None:
        self._state, self._turn, self._fixes, self._windows, self._memo = (
            state,
            turn,
            fixes,
            held,
            memo,
        )
        self._frames, self._fences = frames, fences
        self._answer, self._groups = state.tick_answer, state.memories[Groups]
        self._pairs: list[Lines | None] = []
        self._of_groups: list[Lines | None] = []
        self._of_frames: list[Lines | None] = []
        self._turns: list[Turns] = []
        self._ticks = self._touched = 0
        self._caches: list[Caches] = []
        self._first: tuple[int, int] | None = None

    def run(self, moments: list[Moment]) -> None:
        """Judges ticks one after the other, and as many at once as can be taken together."""
        at = 0
        while at < len(moments):
            chosen = moments[at : at + self._most()]
            ahead = ahead_of(self._turn, self._fixes, chosen, self._answer)
            self._judge(chosen[: ahead.ticks], ahead, at)
            at += ahead.ticks

    def _most(self) -> int:
        """How many ticks can be told of at once: few where there are many objects; the first of all alone."""
        slots = 0 if self._frames is None else self._frames.slots.total
        cells = max(len(self._fixes), CELLS_OF_A_SLOT * slots, 1)
        return (
            min(MOST_TICKS, max(MOST_CELLS // cells, 1)) if self._memo.zeros_told else 1
        )

    def _judge(self, moments: list[Moment], ahead: Ahead, first: int) -> None:
        """Judges some ticks, of which some is known ahead; `first` is the place of theirs."""
        turn, before = self._turn, self._answer
        course = None if len(moments) == 1 else self._course(moments)
        turns = self._turned(moments, ahead, first)
        self._turns.append(turns)
        self._ticks += len(moments)
        versions = Now(self._fixes, moments[0].objects) if course is None else course
        before, turns = shown(turn, before, turns)
        stretch = Stretch(
            turn=turn,
            fixes=self._fixes,
            course=versions,
            turns=turns,
            tick=np.array([moment.tick for moment in moments]),
            position=np.array([moment.position for moment in moments]),
            members=members_of(turn, versions, before, turns, wants_members(turn)),
        )
        self._tell(stretch, first)
        if self._fences is not None:
            self._fences.take(stretch, before)
        if self._frames is not None:
            self._tell_frames(self._frames, stretch, moments)
        if not self._memo.zeros_told:
            self._first = moments[0].tick, moments[0].position
            self._tell_zeros(At(tick=moments[0].tick, position=moments[0].position))
        self._memo = replace(self._memo, zeros_told=True)

    def _turned(self, moments: list[Moment], ahead: Ahead, first: int) -> Turns:
        """What goes and comes at some ticks, those of windows among them."""
        if all_sources(self._turn) == ahead.sources:
            return self._known(moments, ahead, first)
        ticks = enumerate(moments)
        return _turns([self._tick(one, ahead, first, at) for at, one in ticks])

    def _course(self, moments: list[Moment]) -> Course:
        """The last fixes over some ticks, of all objects that may be told of."""
        about = [
            self._answer & MASK,
            self._windows.entries.all.object,
            _focals(self._turn, self._fixes),
        ]
        return Course(self._turn, self._fixes, moments, np.concatenate(about))

    def _known(self, moments: list[Moment], ahead: Ahead, first: int) -> Turns:
        """Takes on ticks of which all is known ahead: what goes and comes."""
        windows = self._windows.turns.between(first, first + len(moments))
        turns = Turns.joined([ahead.turns.between(0, len(moments)), windows])
        self._answer = turns.after(self._answer)
        self._fixes.advance(_events(moments, self._turn))
        # What kinds kept is of the tick before these: the next tick must not build on it.
        self._memo = Memo(zeros_told=self._memo.zeros_told)
        self._touched += ahead.touched
        return turns

    def _tick(
        self, moment: Moment, ahead: Ahead, first: int, at: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Judges one tick, of which some is known ahead: the keys that go and come, those of windows among them."""
        self._fixes.advance(moment.events)
        changed = np.zeros(len(self._turn.objects), bool)
        changed[moment.objects] = True
        inner = inner_answer(
            self._turn, self._fixes, self._answer, self._memo, changed, ahead.sources
        )
        inner = with_ahead(inner, ahead, at)
        self._memo = replace(inner.memo, zeros_told=self._memo.zeros_told)
        self._touched += inner.touched
        self._caches.append(inner.caches)
        left, came = self._windows.turns.at(first + at)
        minus, plus = _both(inner.minus, left), _both(inner.plus, came)
        self._answer = merged(without(self._answer, minus), plus)
        return minus, plus

    def _tell(self, stretch: Stretch, first: int) -> None:
        """Tells who came and went at some ticks, and what becomes of the groups above members and windows."""
        turn = stretch.turn
        lines, self._groups = told_anew(turn, pair_lines(stretch), self._groups)
        self._pairs.append(lines)
        above = turn.known.grouped & ~turn.known.framed
        if above.any():
            parts = self._windows.parts(above, first, first + len(stretch.tick))
            lines, self._groups = regroup(
                stretch, joined(parts_of_members(stretch), parts), self._groups
            )
            self._of_groups.append(lines)

    def _tell_frames(
        self, frames: Frames, stretch: Stretch, moments: list[Moment]
    ) -> None:
        """Judges the results of frames at some ticks, and tells what changes in them and in the groups over them."""
        held = frames.judge(moments, stretch.turns)
        if held is None:
            return
        self._of_frames.append(
            frame_telling.frame_lines(
                stretch.turn, frames, held, stretch.tick, stretch.position
            )
        )
        parts = frame_telling.parts_of_frames(stretch, frames, held)
        if parts is not None:
            lines, self._groups = regroup(stretch, parts, self._groups)
            self._of_groups.append(lines)

    def _tell_zeros(self, at: At) -> None:
        """At the first tick of all: counts that are 0 then, of which no member tells anything."""
        zeros = relational.untold(self._turn, self._groups)
        if len(zeros):
            changed = Change(added=zeros)
            self._of_groups.append(group_lines(self._turn, self._groups, changed, at))
            self._groups = self._groups.changed(changed)

    def ticked(self, pending: Pending, later: np.ndarray) -> Part:
        """What all ticks changed together; the events `later` belong to the one that stays pending."""
        # Of what moved, and not of all answers before and after: they may be a hundred times as many.
        minus, plus = Turns.net_of(self._turns)
        caches = summed(self._caches)
        fenced = None if self._fences is None else self._fences.judged()
        if fenced is not None:
            self._pairs.append(fenced.lines)
        return Part(
            changes=self._told(),
            delta={
                "tick_minus": minus,
                "tick_plus": plus,
                "tick_answer": self._answer,
                "pending": pending,
            },
            memories=self._memories(later, pending.tick)
            | ({} if fenced is None else {MovingVisits: fenced.visits}),
            memo=self._memo,
            first_tick=self._first,
            caches=caches,
            counters=Counters(
                ticks=self._ticks,
                touched=self._touched,
                cut=self._frames.cut if self._frames else 0,
                refills=sum(one.refills for one in caches.values()),
                misses=sum(one.misses for one in caches.values()),
            ),
        )

    def _memories(
        self, later: np.ndarray, tick: int
    ) -> dict[type[Component], Change[Any]]:
        """What becomes of windows, groups and frames."""
        changes: dict[type[Component], Change[Any]] = {Entries: self._windows.closed()}
        before = self._state.memories[Groups]
        if self._groups is not before:
            changes[Groups] = before.change_to(self._groups)
        if self._frames is not None:
            changes |= self._frames.closed(later, tick)
        return changes

    def _told(self) -> tuple[pa.Table, ...]:
        """The changes of all ticks as rows."""
        pairs, groups, rows = (
            joined_lines(known)
            if (known := [part for part in parts if part is not None])
            else None
            for parts in (self._pairs, self._of_groups, self._of_frames)
        )
        told = [] if pairs is None else [tell_pairs(self._turn, self._fixes, pairs)]
        told += [] if groups is None else [tell_groups(self._turn, groups)]
        if self._frames is not None and rows is not None:
            told.append(frame_telling.tell_rows(self._turn, self._frames, rows))
        return tuple(told)


def _events(moments: list[Moment], turn: Turn) -> np.ndarray:
    """The events of some ticks by object, those of each in the order in which they count."""
    events = np.concatenate([moment.events for moment in moments])
    return events[np.argsort(turn.events.object[events], kind="stable")]


def _focals(turn: Turn, fixes: Present) -> np.ndarray:
    """The objects that queries of a kind go with, as far as they are known."""
    focals = np.concatenate(
        [np.empty(0, np.int64), *map(fixes.lookups.focals, turn.known.kinds.values())]
    )
    return focals[focals >= 0]


def _turns(differs: list[tuple[np.ndarray, np.ndarray]]) -> Turns:
    """The keys that go and come at some ticks."""
    keys = [key for pair in differs for key in pair]
    counts = [len(key) for key in keys]
    place = np.arange(len(keys))
    return Turns(
        tick=np.repeat(place // 2, counts),
        key=np.concatenate([np.empty(0, np.int64), *keys]),
        comes=np.repeat(place % 2 == 1, counts),
    )


def _both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return merged(one, other) if len(one) and len(other) else one if len(one) else other
