"""PLACE's windows: fixes that qualified count until they are old, or until enough newer ones came (SPEC P5)."""

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators import relational
from st_common.operators.agenda import cut_short, ticks_of, ticks_past
from st_common.operators.entries import Entries
from st_common.operators.groups import Groups
from st_common.operators.keys import SHIFT, packed, unique, without
from st_common.operators.match import match
from st_common.operators.points import points_of
from st_common.operators.present import Present
from st_common.operators.state import State
from st_common.operators.timeline import FIX
from st_common.operators.turn import Turn


@dataclass(slots=True, kw_only=True)
class Open:
    """All entries of a run, those of before first; `live` ones have not left their window yet.

    `changed` (bool per entry): an end mark has cut the tick short from which it counts. `busy` are the ticks at which
    entries begin to count or age: at others nothing happens.
    """

    all: Entries
    before: int
    live: np.ndarray
    changed: np.ndarray
    busy: frozenset[int]

    def closed(self) -> tuple[np.ndarray, Entries]:
        """The places of old entries that left, and the new ones that stay."""
        is_new = np.arange(len(self.all)) >= self.before
        return np.flatnonzero((~self.live | self.changed) & ~is_new), self.all.take(self.live & (is_new | self.changed))


def _open(whole: Entries, before: int, turn: Turn) -> Open:
    tick = cut_short(whole.tick, turn.final)
    entries = replace(whole, tick=tick)
    busy = frozenset(np.union1d(tick, aging(entries, turn)).tolist())
    return Open(all=entries, before=before, live=np.ones(len(whole), bool), changed=tick != whole.tick, busy=busy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What a tick does to windows: keys that left and came, and the groups of the queries in `dirty` that count."""

    minus: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    plus: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    dirty: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    groups: Groups = field(default_factory=Groups.empty)


def opened(state: State, turn: Turn, present: Present) -> Open:
    """The entries of before, and those that the fixes of a run make; each fix is judged at its own row."""
    queries, events = turn.known.windows, turn.events
    if queries.empty:
        return _open(state.entries, len(state.entries), turn)
    fixes = np.flatnonzero(events.kind == FIX)
    readings = turn.readings.take(fixes)
    points = points_of(queries, readings, turn.objects, geographic=turn.settings.geographic)
    hits = match(queries, points, layer_of=turn.layer_of, numbering=turn.numbering)
    event = fixes[hits.point]
    order = np.lexsort((events.object[event], events.position[event]))
    event, target, point = event[order], hits.target[order], hits.point[order]
    group, value = relational.contributions(turn, present.sample_of_events(fixes), point, target)
    before_row = turn.clock.before(events.position[event])
    added = Entries(
        target=target, object=events.object[event], ts=events.ts[event], position=events.position[event],
        tick=ticks_of(np.maximum(events.ts[event], before_row), turn.settings.tick_us), group=group, value=value,
    )  # fmt: skip
    whole = state.entries.changed(removed=event[:0], added=added)
    return _open(whole, len(state.entries), turn)


def aging(entries: Entries, turn: Turn) -> np.ndarray:
    """The ticks at which entries are too old."""
    seconds = turn.known.window_us[turn.numbering.targets.query[entries.target]] if len(entries) else entries.ts
    timed = seconds >= 0
    end = ticks_past(entries.ts[timed] + seconds[timed], turn.settings.tick_us)
    return np.unique(np.maximum(end, entries.tick[timed]))


def judged(turn: Turn, entries: Open, answer: np.ndarray, tick: int) -> Window:
    """Lets go of what is too old at a tick, and finds what the windows hold then."""
    held = entries.all
    if turn.final is None and tick not in entries.busy:  # an end mark's tick may be any time
        return Window()
    counts = entries.live & (held.tick <= tick) if len(held) else np.empty(0, bool)
    if not counts.any():
        return Window()
    query = turn.numbering.targets.query[held.target]
    seconds = turn.known.window_us[query]
    gone = counts & (seconds >= 0) & (held.ts < tick - seconds)
    gone |= _pushed_out(turn, held, query, counts)
    fresh = counts & (held.tick == tick)
    entries.live &= ~gone
    dirty = np.unique(query[gone | fresh])
    return _answers(turn, entries, answer, tick, query, dirty)


def _pushed_out(turn: Turn, held: Entries, query: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Entries that have as many newer ones in their query's window as it holds.

    Of those with one time that one row released, the id that comes last as text is the newest: objects are numbered as
    they came, and order of arrival must not matter within the lateness (SPEC X2).
    """
    out = np.zeros(len(held), bool)
    tuples = turn.known.window_tuples[query]
    places = np.flatnonzero(counts & (tuples > 0))
    if len(places):
        ids = turn.objects.ids.take(pa.array(held.object[places]))
        name = pc.rank(ids, tiebreaker="dense").to_numpy().astype(np.int64)
        places = places[np.lexsort((-name, -held.position[places], -held.ts[places], query[places]))]
        starts = np.flatnonzero(np.r_[True, query[places][1:] != query[places][:-1]])
        rank = np.arange(len(places)) - np.repeat(starts, np.diff(np.r_[starts, len(places)]))
        out[places[rank >= tuples[places]]] = True
    return out


def _answers(turn: Turn, entries: Open, answer: np.ndarray, tick: int, query: np.ndarray, dirty: np.ndarray) -> Window:
    held, is_dirty = entries.all, np.zeros(len(turn.queries), bool)
    is_dirty[dirty] = True
    now = np.flatnonzero(entries.live & (held.tick <= tick) & is_dirty[query])
    grouped = turn.known.grouped
    plain = now[~grouped[query[now]]]
    new = unique(packed(held.target[plain], held.object[plain]))
    of_key = turn.numbering.targets.query[answer >> SHIFT]
    old = answer[is_dirty[of_key] & ~grouped[of_key]]
    counting = now[grouped[query[now]]]
    groups = relational.reduced(turn, query[counting], held.group[counting], held.value[counting])
    return Window(minus=without(old, new), plus=without(new, old), dirty=dirty[grouped[dirty]], groups=groups)
