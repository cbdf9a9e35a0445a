"""CQL-S's windows over a run: fixes become rows, windows move, results change (CQL-S section 3, SPEC W2-W5).

Every object has a way of its own in every query that looks at it; a slot is the pair of both. Only the slots
that something happened to, and those whose windows the clock moves, are looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.geometry.grid import ranges
from st_common.operators import frame_bounds, relational
from st_common.operators.agenda import cut_short, ticks_of, ticks_past
from st_common.operators.course import Moment
from st_common.operators.fields import fields_of
from st_common.operators.fixes import NEVER
from st_common.operators.frame_bounds import Bounds
from st_common.operators.frame_rows import FrameRows, Tracks
from st_common.operators.frame_slots import slots_of_events, slots_of_objects
from st_common.operators.frame_specs import NONE, TIME
from st_common.operators.frame_touches import first_ends, slots_of_last, slots_touched
from st_common.operators.frame_ways import Run, Ways, begins, ways_of
from st_common.operators.keys import MASK, SHIFT, is_in, packed, unique
from st_common.operators.match import match, region_mask
from st_common.operators.points import points_of
from st_common.operators.present import Present
from st_common.operators.readings import Readings
from st_common.operators.state import State
from st_common.operators.timeline import FIX, LAST, Events
from st_common.operators.turn import Turn

_WAYS = tuple(Ways.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a tick does to results: places of rows that left, came and stay, and why the first left.

    `ended` int8 per row that left: the kind of event that ended its stay, 0 for none; `uncounted`: its object no longer
    counts. `moved` per row that stays: its result was told anew.
    """

    minus: np.ndarray
    plus: np.ndarray
    stays: np.ndarray
    ended: np.ndarray
    uncounted: np.ndarray
    moved: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """What a run changes in the rows and tracks of a state, as in `Delta`; and all rows after it."""

    rows_removed: np.ndarray
    rows_flipped: np.ndarray
    rows_added: FrameRows
    rows: FrameRows
    tracks_removed: np.ndarray
    tracks_added: Tracks


class Frames:
    """The frames of a shard in one run; its arrays change from tick to tick."""

    def __init__(self, state: State, turn: Turn, present: Present) -> None:
        self.turn, self.specs = turn, turn.known.frames
        self._objects, self._state = len(turn.objects), state
        self.cut = 0
        about = np.append(_known(turn.objects.places_of(self.specs.ids)), -1)[self.specs.about]
        self.slots, self._among = slots_of_objects(about, self._objects), slots_of_events(about, turn.events.object)
        self._run = Run(events=turn.events, objects=self.slots, among=self._among, geographic=turn.settings.geographic)
        self.ways, self.bounds = Ways.empty(self.slots.total), Bounds.unmoved(self.slots.total, self.specs.width)
        self._put(state.tracks)
        self._after = ways_of(self.ways, self._run, self.specs.min_step, self.specs.outlives)
        rows, self._origin = state.frame_rows.joined(self._opened(turn.events, present))
        self.rows = replace(rows, tick=cut_short(rows.tick, turn.final))
        self._cut_short = self.rows.tick != rows.tick
        self.held, self._live = self.rows.held.astype(bool), np.ones(len(self.rows), bool)
        self._newest = int(max(state.fixes.ts.max(initial=NEVER), turn.events.ts.max(initial=NEVER)))
        self._ends = np.zeros(self._objects, np.int8)
        self._ends[state.pending.objects] = state.pending.ended
        self._counted = self.counting(state.tick_answer)
        self._is_timed = (self.specs.slide_by == TIME).any(axis=1)
        self._timed = np.flatnonzero(self._is_timed[self.slots.frame])
        # Without a window that slides, a result follows every event.
        self._unbound = ~(self.specs.slide_by != NONE).any(axis=1)

    def _put(self, tracks: Tracks) -> None:
        frame = self.specs.place[tracks.key >> SHIFT]
        tracks, frame = tracks.take(frame != NONE), frame[frame != NONE]
        slot = self.slots.of(frame, tracks.key & MASK)
        tracks, slot = tracks.take(slot >= 0), slot[slot >= 0]
        self.ways.alive[slot] = True
        for name in ("since", "n", "way", "x", "y"):
            getattr(self.ways, name)[slot] = getattr(tracks, name)
        width = min(self.specs.width, tracks.high.shape[1])
        for name in Bounds.__dataclass_fields__:
            getattr(self.bounds, name)[slot, :width] = getattr(tracks, name)[:, :width]

    def _opened(self, events: Events, present: Present) -> FrameRows:
        """The rows that the fixes of a run make, sorted; each fix is judged at itself."""
        turn, specs = self.turn, self.specs
        fixes = np.flatnonzero(events.kind == FIX)
        if specs.rows.empty or not len(fixes):
            return FrameRows()
        readings = turn.readings.take(fixes)
        points = points_of(specs.rows, readings, turn.objects, geographic=turn.settings.geographic)
        hits = match(specs.rows, points, layer_of=turn.layer_of, numbering=turn.numbering)
        query = turn.numbering.targets.query[hits.target]
        inside = self._in_all_regions(query, readings.x[hits.point], readings.y[hits.point])
        point, query, target = hits.point[inside], query[inside], hits.target[inside]
        event = fixes[point]
        order = np.lexsort((event, query))
        point, query, target, event = point[order], query[order], target[order], event[order]
        group, value = relational.contributions(turn, present.sample_of_events(fixes), point, target)
        frame, ts = specs.place[query], events.ts[event]
        before, slot = turn.clock.before(events.position[event]), self._among.of(frame, event)
        return FrameRows(
            key=packed(query, events.object[event]), ts=ts, n=self._after.n[slot],
            tick=ticks_of(np.maximum(ts, before), turn.settings.tick_us), way=self._after.way[slot],
            group=group, value=value, held=np.zeros(len(event), np.int8),
            begins=begins(self.ways, self._after, self._run, frame, event).astype(np.int8),
            fields=self._fields(query, point, readings),
        )  # fmt: skip

    def _fields(self, query: np.ndarray, point: np.ndarray, readings: Readings) -> pa.Array:
        wanted = self.turn.known.selecting[query]
        if not wanted.any():
            return pa.nulls(len(query), pa.string())
        return fields_of(self.turn.queries, self.turn.objects, query=query, reading=point, wanted=wanted,
                         readings=readings, geographic=self.turn.settings.geographic)  # fmt: skip

    def _in_all_regions(self, query: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        inside = np.ones(len(query), bool)
        for frame, regions in enumerate(self.specs.regions):
            mine = np.flatnonzero(query == self.specs.numbers[frame]) if regions else query[:0]
            for region in regions:
                inside[mine] &= region_mask(region, x[mine], y[mine], geographic=self.turn.settings.geographic)
        return inside

    def rows_of(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places of the rows of some slots that are still remembered, and the place of each one's slot."""
        key = packed(self.specs.numbers[self.slots.frame[slots]], self.slots.number[slots])
        first = np.searchsorted(self.rows.key, key)
        counts = np.searchsorted(self.rows.key, key, side="right") - first
        index, at = ranges(first, counts), np.repeat(np.arange(len(slots)), counts)
        live = self._live[index]
        return index[live], at[live]

    def slots_of(self, index: np.ndarray) -> np.ndarray:
        """The slots of some rows, each once."""
        return np.unique(self.slots.of(self.specs.place[self.rows.queries(index)], self.rows.objects(index)))

    def held_of(self, frames: np.ndarray) -> np.ndarray:
        """The places of the rows in the results of whole queries, given their places among the frames."""
        if not len(frames):
            return frames
        wanted = np.append(np.isin(np.arange(len(self.specs.numbers)), frames), False)  # the last is for NONE
        index = np.flatnonzero(self.held & self._live)
        found: np.ndarray = index[wanted[self.specs.place[self.rows.queries(index)]]]
        return found

    def counting(self, answer: np.ndarray) -> np.ndarray:
        """bool[slots]: which objects count in each frame, by the answer of the queries below."""
        out: np.ndarray = ~self.specs.restricted[self.slots.frame]
        if self.specs.restricted.any():
            slot = self._slots_of_keys(answer)
            out[slot[slot >= 0]] = True
        return out

    def _slots_of_keys(self, keys: np.ndarray) -> np.ndarray:
        """The slots of members of the queries below frames, -1 for all others."""
        frame = self.specs.place[self.turn.numbering.targets.query[keys >> SHIFT]]
        return np.where(frame == NONE, -1, self.slots.of(frame, keys & MASK))

    def slides(self, until: int) -> np.ndarray:
        """The ticks up to a time at which the clock moves windows, of those that were not judged yet."""
        first = int(self.turn.clock.value[0])
        parts = [np.empty(0, np.int64)]
        for frame, window in np.argwhere(self.specs.slide_by == TIME).tolist():
            rows = self._of_frame(frame)
            if len(rows):
                parts.append(self._slides(frame, window, rows, first, until))
        ticks = np.unique(np.concatenate(parts))
        return ticks[(ticks >= first) & (ticks < until)]

    def _of_frame(self, frame: int) -> np.ndarray:
        """The places of all rows of a frame's query."""
        number = int(self.specs.numbers[frame])
        first, end = np.searchsorted(self.rows.key, [number << SHIFT, (number + 1) << SHIFT])
        return np.arange(first, end)

    def _slides(self, frame: int, window: int, rows: np.ndarray, first: int, until: int) -> np.ndarray:
        specs, tick_us, ts = self.specs, self.turn.settings.tick_us, self.rows.ts[rows]
        slide, size, origin = int(specs.slide[frame, window]), int(specs.range[frame, window]), int(specs.origin[frame])
        timed = specs.range_by[frame, window] == TIME
        if not slide:
            return self._ages(frame, window, rows)
        query = self.turn.queries[specs.numbers[frame]]
        if timed or query.plan.emit != "rstream":  # nothing changes after that
            until = min(until, self._newest + slide + (size if timed else 0) + tick_us)
        start = max(first, int(ts.min())) - origin
        found: np.ndarray = np.arange(start - start % slide - slide, until - origin + slide, slide) + origin
        return ticks_of(found, tick_us)

    def _asked(self, tick: int) -> np.ndarray:
        """bool[f]: which frames are judged at a tick without an event: other queries' ticks make no result of theirs.

        It can be seen only where windows of time move with every tick, and everything is told again at each result or
        nothing is told before the windows are full.
        """
        specs = self.specs
        loose = ((specs.slide_by == TIME) & (specs.slide == 0)).any(axis=1)
        loose &= self.turn.known.retelling[specs.numbers] | specs.full
        asked: np.ndarray = ~loose
        for frame in np.flatnonzero(loose).tolist():
            rows = self._of_frame(frame)
            rows = rows[self._live[rows] & (self.rows.tick[rows] <= tick)]
            asked[frame] = bool(len(rows)) and self._asks(frame, rows, tick)
        return asked

    def _asks(self, frame: int, rows: np.ndarray, tick: int) -> bool:
        specs, tick_us = self.specs, self.turn.settings.tick_us
        for window in np.flatnonzero(specs.slide_by[frame] == TIME).tolist():
            slide, since = int(specs.slide[frame, window]), tick - int(specs.origin[frame])
            if slide and since // slide > (since - tick_us) // slide:
                return True
            if not slide and (self._ages(frame, window, rows) == tick).any():
                return True
        return False

    def _ages(self, frame: int, window: int, rows: np.ndarray) -> np.ndarray:
        """The ticks at which rows are too old for a window of time that moves with every tick."""
        end = ticks_past(self.rows.ts[rows] + self.specs.range[frame, window], self.turn.settings.tick_us)
        ages: np.ndarray = np.maximum(end, self.rows.tick[rows])
        return ages

    def prepare(self, moments: Sequence[Moment]) -> None:
        """Finds the slots that some ticks are about, for all of them at once; their places are asked for after that."""
        self._advances = slots_of_last(moments, self.turn.events, self.slots, self._among)
        self._touched = slots_touched(moments, self.slots)

    def advance(self, place: int, tick: int) -> None:
        """Takes the ways on to after the events of a tick, the one at this place among those that were prepared."""
        slot, after = self._advances.at(place)
        if not len(slot):
            return
        self._catch_up(slot, tick - self.turn.settings.tick_us)
        begins = self.ways.alive[slot] != self._after.alive[after]
        begins |= self.ways.since[slot] != self._after.since[after]
        for name in _WAYS:
            getattr(self.ways, name)[slot] = getattr(self._after, name)[after]
        if begins.any():
            self.bounds.forget(slot[begins])

    def _catch_up(self, slot: np.ndarray, tick: int) -> None:
        """Slides of time that passed while nothing changed were not judged: they are of the ways as they were then."""
        slot = slot[self._is_timed[self.slots.frame[slot]]]
        behind = self._by_the_clock(slot, tick) if len(slot) else slot
        if not len(behind):
            return
        # Not a way that began in the tick that is open.
        behind = behind[(self.bounds.high[behind] != NEVER).any(axis=1)]
        self._move(behind, tick)

    def _by_the_clock(self, slot: np.ndarray, tick: int) -> np.ndarray:
        frame = self.slots.frame[slot]
        return frame_bounds.by_the_clock(self.bounds, self.specs, self.ways, frame, slot, tick)

    def _move(self, slot: np.ndarray, tick: int) -> np.ndarray:
        return frame_bounds.move(self.bounds, self.specs, self.ways, self.slots.frame[slot], slot, tick)

    def ended(self, events: np.ndarray) -> None:
        """Remembers how these events ended the stays of objects, until their tick is judged."""
        first_ends(self._ends, self.turn.events, events)

    def judge(self, answer: np.ndarray, differs: np.ndarray, place: int, moment: Moment) -> Judged | None:
        """The results at a tick, at which these are the answers below frames.

        `place` is that of the tick among those that were prepared, `differs` are the keys of the answers that came or
        left. None: no window moved, and nobody began or ceased to count.
        """
        (mine, who), tick = self._touched.at(place), moment.tick
        clock = self._by_the_clock(self._timed, tick)
        if not len(moment.objects) and len(clock):
            clock = clock[self._asked(tick)[self.slots.frame[clock]]]
        moving = unique(np.concatenate([clock, mine])) if len(clock) else mine
        moved = moving[self._move(moving, tick)]
        other = (self._ends[who] > 0) | self._unbound[self.slots.frame[mine]]
        other |= self.ways.n[mine] > self.turn.settings.window_rows
        slots = unique(np.concatenate([moved, mine[other], self._recounted(answer, differs)]))
        judged = self._judged(slots, tick, mine, is_in(slots, moved)) if len(slots) else None
        self._ends[moment.objects] = 0
        return judged

    def _recounted(self, answer: np.ndarray, differs: np.ndarray) -> np.ndarray:
        """The slots of objects that began or ceased to count when some keys of the answer came or left."""
        if not len(differs) or not (self._slots_of_keys(differs) >= 0).any():
            return differs[:0]
        before, self._counted = self._counted, self.counting(answer)
        return np.flatnonzero(before != self._counted)

    def recount(self, answer: np.ndarray) -> Judged:
        """The results when other objects count, between two ticks: no window moves, and none holds later rows."""
        before, self._counted = self._counted, self.counting(answer)
        slots = np.flatnonzero(before != self._counted)
        return self._judged(slots, LAST, slots[:0], None)

    def _judged(self, slots: np.ndarray, tick: int, changed: np.ndarray, moved: np.ndarray | None) -> Judged:
        """The results of some slots; `changed` are those of objects to which something happened (ascending).

        `moved` says whose windows moved, None: at a row of the log between ticks.
        """
        moves = moved is not None
        index, at = self.rows_of(slots)
        known = self.rows.tick[index] <= tick
        index, at = index[known], at[known]
        slot, before = slots[at], self.held[index]
        frame, who = self.slots.frame[slot], self.slots.number[slot]
        stays = self.ways.alive[slot] & (self.rows.ts[index] >= self.ways.since[slot])
        inside, passed = frame_bounds.inside(self.bounds, self.specs, self.rows, index, frame, slot)
        counts = self._counted[slot]
        kept = stays & ~passed if moves else np.ones(len(index), bool)
        kept &= ~self._too_many(kept, at, is_in(slots, changed)[at])
        now = kept & counts & ((inside & stays) | (before & (not moves)))
        self._live[index[~kept]] = False
        self.held[index] = now
        touched = np.zeros(len(slots), bool) if moved is None else moved.copy()
        touched[at[before != now]] = True
        left, same = before & ~now, before & now
        outlived = self.specs.outlives[frame[left]] & ~counts[left]
        ended = np.where(outlived, self._ends[who[left]], 0)
        return Judged(
            minus=index[left], plus=index[now & ~before], stays=index[same],
            ended=np.where(stays[left], ended, np.maximum(self._ends[who[left]], 1)).astype(np.int8),
            uncounted=~counts[left], moved=touched[at[same]],
        )  # fmt: skip

    def _too_many(self, kept: np.ndarray, at: np.ndarray, changed: np.ndarray) -> np.ndarray:
        """Which rows are more than a slot may keep: all but the newest."""
        most = self.turn.settings.window_rows
        out = np.zeros(len(kept), bool)
        which = np.flatnonzero(kept & changed)
        if not len(which) or np.bincount(at[which]).max() <= most:
            return out
        ends = np.flatnonzero(np.r_[at[which][1:] != at[which][:-1], True])
        lengths = np.diff(np.r_[-1, ends])
        from_end = np.repeat(ends, lengths) - np.arange(len(which))
        out[which[from_end >= most]] = True
        self.cut += int(out.sum())
        return out

    def closed(self, left: np.ndarray, tick: int) -> "Closed":
        """What the run changes in the state; the events `left` belong to a tick that is not judged yet."""
        self.ended(left)
        if len(left):
            nobody = self.turn.events.object[:0]
            self.prepare([Moment(tick=tick, position=0, events=np.sort(left), also=nobody, objects=nobody)])
            self.advance(0, tick)
        old, held = self._origin >= 0, self.held.astype(np.int8)
        old &= ~self._cut_short  # those of a tick that an end mark cut short are stored anew
        flipped = old & self._live & (held != self.rows.held)
        rows = replace(self.rows, held=held)
        tracks, known = self._tracks(), self._state.tracks.key
        mine = known[self.specs.place[known >> SHIFT] != NONE]
        touched = np.isin(tracks.key & MASK, self.turn.events.object) | self._moved(tracks)
        return Closed(
            rows_removed=self._origin[(self._origin >= 0) & ~(old & self._live)], rows_flipped=self._origin[flipped],
            rows_added=rows.take(np.flatnonzero(~old & self._live)),
            rows=rows if self._live.all() else rows.take(np.flatnonzero(self._live)),
            tracks_removed=mine[~np.isin(mine, tracks.key)], tracks_added=tracks.take(touched),
        )  # fmt: skip

    def _tracks(self) -> Tracks:
        slot = np.flatnonzero(self.ways.alive)
        key = packed(self.specs.numbers[self.slots.frame[slot]], self.slots.number[slot])
        ways = {name: getattr(self.ways, name)[slot] for name in ("since", "n", "way", "x", "y")}
        bounds = {name: getattr(self.bounds, name)[slot] for name in Bounds.__dataclass_fields__}
        return Tracks(key=key, **ways, **bounds)

    def _moved(self, tracks: Tracks) -> np.ndarray:
        """Which tracks have other bounds than before the run."""
        old = self._state.tracks
        if not len(old) or tracks.high.shape[1] != old.high.shape[1]:
            return np.ones(len(tracks), bool)
        at = np.minimum(np.searchsorted(old.key, tracks.key), len(old) - 1)
        same = (old.key[at] == tracks.key)[:, None] & (old.high[at] == tracks.high) & (old.last[at] == tracks.last)
        moved: np.ndarray = ~same.all(axis=1)
        return moved


def _known(found: np.ndarray) -> np.ndarray:
    """Numbers of objects, -2 for those that never reported: -1 means any."""
    return np.where(found < 0, -2, found)
