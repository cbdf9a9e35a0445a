"""CQL-S's windows over a run: fixes become rows, windows move, results change (CQL-S section 3, SPEC W2-W5).

Every object has a way of its own in every query that looks at it; a slot is the pair of both. Only the slots
that something happened to, and those whose windows the clock moves, are looked at.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, is_in, packed, unique
from st_common.operators.arrays.turns import Turns
from st_common.operators.events.agenda import cut_short
from st_common.operators.events.timeline import LAST
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.memories import Changes
from st_common.operators.state.state import State
from st_common.operators.travelled import bounds as frame_bounds
from st_common.operators.travelled.clock import FrameClock
from st_common.operators.travelled.closing import Kept, closed, tracks_of
from st_common.operators.travelled.counting import Counting
from st_common.operators.travelled.due import Due, Looked
from st_common.operators.travelled.opening import opened, resumed, run_of
from st_common.operators.travelled.rows import FrameRows, Tracks
from st_common.operators.travelled.sessions import Sessions
from st_common.operators.travelled.specs import NONE, FrameSpecs
from st_common.operators.travelled.spells import (
    AskedRows,
    Held,
    Moved,
    Rules,
    held_of,
    lives_of,
)
from st_common.operators.travelled.touches import (
    Advances,
    Touches,
    advances_of,
    touches_of,
)
from st_common.operators.travelled.visits import Asked, Pairs, visits_of
from st_common.operators.travelled.ways import Ways, ways_of
from st_common.operators.turn.changes import CAUSE
from st_common.operators.turn.course import BEFORE, Moment
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn
from st_common.runs import is_last, ranges, shifted

_WAYS = tuple(Ways.__dataclass_fields__)


class Frames:
    """The frames of a shard in one run; its arrays change from tick to tick.

        frames = Frames(state, turn, present)
        held = frames.judge(moments, turns)        for as many ticks at once as there is room for
        changes = frames.closed(left, tick)        when all due ticks are judged

    Attributes:
        slots: pairs of a frame and an object.
        ways: how far the object of each slot has come; taken on by `judge`.
        bounds: where its windows are; likewise.
        rows: the rows of the state and those that the run's fixes make, sorted by query and object.
        held: bool[rows], which are in results now.
        cut: how many rows newer ones pushed out (`window_rows`).
    """

    def __init__(self, state: State, turn: Turn, present: Present) -> None:
        self.turn, self.specs = turn, turn.known.of(FrameSpecs)
        self._state = state
        self.cut = 0
        self._run = run_of(turn)
        self.slots, self._among = self._run.objects, self._run.among
        self.ways, self.bounds = resumed(state.memories[Tracks], self.slots, self.specs)
        self._after = ways_of(
            self.ways, self._run, self.specs.min_step, self.specs.outlives
        )
        rows, self._origin = state.memories[FrameRows].with_later(
            opened(turn, present, self._run, self.ways, self._after)
        )
        self.rows = replace(rows, tick=cut_short(rows.tick, turn.final))
        self._cut_short = self.rows.tick != rows.tick
        self.held = self.rows.held.astype(bool)
        self._live = np.ones(len(self.rows), bool)
        newest_us = np.concatenate([state.fixes.ts, turn.events.ts]).max(initial=NEVER)
        self.clock = FrameClock(turn, self.specs, self.rows, int(newest_us))
        self.sessions = Sessions(turn, self.specs, self.rows)
        self._free = ~self.specs.restricted[self.slots.frame]
        self._members = self._members_of(state.tick_answer)
        # Without a window that slides, a result follows every event.
        self._unbound = ~(self.specs.slide_by != NONE).any(axis=1)

    def ticks_by_themselves(self, until: int) -> np.ndarray:
        """The ticks before a time at which rows leave or windows move though no fix comes; int64, ascending.

        Args:
            until: an event time in microseconds.
        """
        ends = self.sessions.ends
        return np.union1d(self.clock.slides(until), ends[ends < until])

    def rows_of(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of some slots that are still remembered.

        Args:
            slots: int64, each once.

        Returns:
            Two int64 arrays: the place of each row, and the place of its slot among `slots`.
        """
        key = packed(
            self.specs.numbers[self.slots.frame[slots]], self.slots.number[slots]
        )
        first = np.searchsorted(self.rows.key, key)
        counts = np.searchsorted(self.rows.key, key, side="right") - first
        index, at = ranges(first, counts), np.repeat(np.arange(len(slots)), counts)
        live = self._live[index]
        return index[live], at[live]

    def _slots_of_rows(self, index: np.ndarray) -> np.ndarray:
        return self.slots.of(
            self.specs.place[self.rows.queries(index)], self.rows.objects(index)
        )

    def _members_of(self, answer: np.ndarray) -> np.ndarray:
        """How many members of the query below each slot's object is, by the answers of these."""
        slot = self._slots_of_keys(answer)
        return np.bincount(slot[slot >= 0], minlength=self.slots.total)

    def _slots_of_keys(self, keys: np.ndarray) -> np.ndarray:
        """The slots of members of the queries below frames, -1 for all others."""
        frame = self.specs.place[self.turn.numbering.targets.query[keys >> SHIFT]]
        slot, mine = np.full(len(keys), -1), np.flatnonzero(frame != NONE)
        slot[mine] = self.slots.of(frame[mine], keys[mine] & MASK)
        return slot

    def judge(self, moments: Sequence[Moment], turns: Turns) -> Held | None:
        """What results hold over some ticks.

        Args:
            moments: the ticks, ascending; each run's ticks are given once, in their order.
            turns: what comes and goes in the answers of the queries below frames, by place of these ticks.

        Returns:
            Rows from one tick to before another; None: nothing changes.
        """
        tick = np.array([moment.tick for moment in moments])
        counting = Counting(
            self._members, self._free, self._slots_of_keys(turns.key), turns
        )
        due = self._due(moments, tick, counting)
        looked = self._look(due, counting)
        # At which ticks strict frames are judged follows from when rows die, and that is what the first look says.
        if self.clock.strict.any():
            happened = np.array([len(moment.objects) > 0 for moment in moments])
            due = self._strict(due, looked, happened)
            looked = self._look(due, counting)
        self._take_ways(due.advances)
        self._take_bounds(looked.every)
        self.clock.forget(int(tick[-1]))
        self.sessions.forget(int(tick[-1]))
        if not len(looked.lives.index):
            return None
        return self._held(looked, counting, len(tick))

    def _due(
        self, moments: Sequence[Moment], tick: np.ndarray, counting: Counting
    ) -> Due:
        """What events, the clock and who counts make due; all windows may move at all ticks."""
        events, slots = self.turn.events, self.slots
        advances = advances_of(moments, events, slots, self._among)
        return Due(
            tick=tick,
            touches=touches_of(moments, events, slots, self._state.pending),
            advances=advances,
            others=[
                *self._by_the_clock(tick, advances),
                Pairs(slot=counting.slot, at=counting.at),
            ],
            asked=np.ones((len(self.specs.numbers), len(tick)), bool),
        )

    def _by_the_clock(self, tick: np.ndarray, advances: Advances) -> list[Pairs]:
        """The slots that the clock alone changes: windows slide, and rows get too old."""
        slot = self._living(self.clock.sliding, advances)
        place, at = np.nonzero(
            frame_bounds.by_the_clock(
                self.bounds, self.specs, self.slots.frame[slot], slot, tick
            )
        )
        aging, _, aging_at = self.clock.aging(tick)
        ending, ending_at = self.sessions.ending(tick)
        row, row_at = np.append(aging, ending), np.append(aging_at, ending_at)
        live = self._live[row]
        return [
            Pairs(slot=slot[place], at=at),
            Pairs(slot=self._slots_of_rows(row[live]), at=row_at[live]),
        ]

    def _living(self, frames: np.ndarray, advances: Advances) -> np.ndarray:
        """The slots of some frames (bool[f]) of objects that are there, or come at some ticks."""
        if not frames.any():
            return self.slots.frame[:0]
        is_here = self.ways.alive.copy()
        is_here[advances.slot] = True
        return np.flatnonzero(is_here & frames[self.slots.frame])

    def _strict(self, due: Due, looked: Looked, happened: np.ndarray) -> Due:
        """The same where it counts at which ticks windows move: frames are not judged at ticks of other queries alone.

        They are where something `happened` (bool[ticks]) in the stream, where a window slides by time, and where a row
        gets too old that was there until then.
        """
        strict, lives = self.clock.strict, looked.lives
        asked = (
            ~strict[:, None]
            | happened
            | frame_bounds.slid(self.specs, due.tick, self.turn.settings.tick_us)
        )
        aging, age, at = self.clock.aging(due.tick)
        died_at = np.full(len(self.rows), -1)
        dies = np.where(lives.dies < lives.end, lives.dies, -1)
        died_at[lives.index] = np.append(looked.look.visits.at, LAST)[dies]
        own = np.flatnonzero((due.tick[at] == age) & (died_at[aging] >= at))
        asked[self.specs.place[self.rows.queries(aging[own])], at[own]] = True
        slot = self._living(strict, due.advances)
        place, at = np.nonzero(asked[self.slots.frame[slot]])
        return replace(
            due, asked=asked, others=[*due.others, Pairs(slot=slot[place], at=at)]
        )

    def _moved(self, due: Due) -> Moved:
        """Where windows are at each visit, and whether they moved there."""
        advances, tick_us = due.advances, self.turn.settings.tick_us
        # Before a way goes on, windows by time catch up with the slides that the clock has passed.
        late = self.clock.sliding[self.slots.frame[advances.slot]]
        asked = Asked(
            touches=due.touches,
            advances=advances,
            others=due.others,
            late=Pairs(slot=advances.slot[late], at=advances.at[late]),
        )
        visits = visits_of(asked, due.tick, tick_us, self.ways, self._after)
        # Not a way that began in the tick that is open.
        is_late = np.where(
            visits.is_first,
            (self.bounds.high[visits.slot] != NEVER).any(axis=1),
            visits.tick > shifted(visits.tick, NEVER),
        )
        frame = self.slots.frame[visits.slot]
        may_move = np.where(visits.is_tick, due.asked[frame, visits.at], is_late)
        bounds, moved = frame_bounds.moves(
            self.bounds, self.specs, visits, frame, may_move
        )
        return Moved(visits=visits, frame=frame, bounds=bounds, moved=moved)

    def _look(self, due: Due, counting: Counting) -> Looked:
        """Where windows are at each visit, and when rows are in them."""
        every, most = self._moved(due), self.turn.settings.window_rows
        visits, pair = every.visits, packed(every.visits.slot, every.visits.at)
        # Where no window moved rows still leave when a stay ends, or when newer ones push them out.
        ended = (visits.end > 0) | (visits.n > most)
        is_looked = (
            every.moved
            | self._unbound[every.frame]
            | (visits.touched & ended)
            | is_in(pair, packed(counting.slot, counting.at))
        )
        look = every.take(np.flatnonzero(visits.is_tick & is_looked))
        slots = unique(look.visits.slot)
        index, at = self.rows_of(slots)
        asked = AskedRows(
            index=index,
            slot=slots[at],
            tick=due.tick,
            most=most,
            over=self.sessions.over[index] if len(self.sessions.over) else None,
        )
        return Looked(
            every=every, look=look, lives=lives_of(look, self.specs, self.rows, asked)
        )

    def _take_ways(self, advances: Advances) -> None:
        """Takes on ways to after the events that they go on over."""
        for name in _WAYS:
            getattr(self.ways, name)[advances.slot] = getattr(self._after, name)[
                advances.after
            ]

    def _take_bounds(self, every: Moved) -> None:
        """Takes on windows to after all visits."""
        slot = every.visits.slot
        last = np.flatnonzero(is_last(slot))
        self.bounds.put(slot[last], every.bounds.take(last))

    def _held(self, looked: Looked, counting: Counting, ticks: int) -> Held:
        """What results hold, and which rows are remembered and held after that."""
        visits, lives = looked.look.visits, looked.lives
        rules = Rules(
            counts=counting.counts(visits.slot, visits.at),
            outlives=self.specs.outlives,
            retelling=self.turn.known.retelling[self.specs.numbers],
            ticks=ticks,
        )
        held = held_of(looked.look, lives, self.held[lives.index], rules)
        # Of the rows that were looked at results have those that stay, and no others.
        self.held[lives.index] = False
        self.held[held.row[held.stays]] = True
        self._live[lives.index[lives.dies < lives.end]] = False
        self.cut += int(np.count_nonzero(lives.cut))
        return held

    def recount(self, answer: np.ndarray) -> Held:
        """What results hold when other objects count, between two ticks: no window moves, and no row is new."""
        before = self._free | (self._members > 0)
        self._members = self._members_of(answer)
        counts = self._free | (self._members > 0)
        slots = np.flatnonzero(before != counts)
        index, at = self.rows_of(slots)
        slot, was = slots[at], self.held[index]
        rows, is_new = self.rows, self.rows.tick[index] == self._state.pending.tick
        stays = self.ways.alive[slot] & (rows.ts[index] >= self.ways.since[slot])
        is_in_all = frame_bounds.inside(
            self.bounds, self.specs, rows, index, self.slots.frame[slot], slot
        )
        now = counts[slot] & ((is_in_all & stays & ~is_new) | was)
        self.held[index] = now
        changes = np.isin(np.arange(len(slots)), at[was != now])
        row, again = np.flatnonzero(was | now), index[was & now & changes[at]]
        return Held(
            row=index[row],
            start=np.where(was[row], BEFORE, 0),
            until=np.where(now[row], 1, 0),
            cause=np.where(now[row], -1, CAUSE["leave"]),
            again=again,
            again_at=np.zeros(len(again), np.int64),
            looked=index,
            ticks=1,
        )

    def closed(self, left: np.ndarray, tick: int) -> Changes:
        """What the run changes in the state; asked once, when all ticks that are due are judged.

        Args:
            left: int64, the places of events of a tick that is not judged yet: ways go on over them, no window moves.
            tick: the event time of that tick.
        """
        if len(left):
            self._go_on(left, tick)
        kept = Kept(
            rows=self.rows,
            origin=self._origin,
            held=self.held,
            live=self._live,
            cut_short=self._cut_short,
        )
        tracks = tracks_of(self.ways, self.bounds, self.slots, self.specs)
        return closed(self.turn, self._state.memories[Tracks], tracks, kept)

    def _go_on(self, left: np.ndarray, tick: int) -> None:
        """Takes the ways on to after events of a tick that is not judged yet."""
        nobody = left[:0]
        moments = [
            Moment(
                tick=tick, position=0, events=np.sort(left), also=nobody, objects=nobody
            )
        ]
        advances = advances_of(moments, self.turn.events, self.slots, self._among)
        begins = (
            self.ways.since[advances.slot] != self._after.since[advances.after]
        ) | (self.ways.alive[advances.slot] != self._after.alive[advances.after])
        # Of all others no window catches up, and none is of a stay before.
        late = self.clock.sliding[self.slots.frame[advances.slot]]
        self._catch_up(advances.take(np.flatnonzero(begins | late)), tick)
        self._take_ways(advances)

    def _catch_up(self, advances: Advances, tick: int) -> None:
        """Takes on windows to before ways go on in a tick that is not judged yet."""
        if not len(advances.slot):
            return
        nobody = advances.slot[:0]
        touches = Touches(slot=nobody, at=nobody, end=nobody.astype(np.int8))
        nowhere = np.zeros((len(self.specs.numbers), 1), bool)
        due = Due(
            tick=np.array([tick]),
            touches=touches,
            advances=advances,
            others=[],
            asked=nowhere,
        )
        self._take_bounds(self._moved(due))
