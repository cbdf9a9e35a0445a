"""PLACE's windows: fixes that qualified count until they are old, or until enough newer ones came (SPEC P5)."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate import relational
from st_common.operators.aggregate.regrouping import Parts
from st_common.operators.arrays.keys import packed, unique
from st_common.operators.arrays.ranked import ranks_of_texts
from st_common.operators.arrays.turns import ByTick, of_entries
from st_common.operators.events.agenda import cut_short, ticks_of, ticks_past
from st_common.operators.events.timeline import FIX
from st_common.operators.state.component import Change
from st_common.operators.state.state import State
from st_common.operators.turn.course import BEFORE
from st_common.operators.turn.points import look_up
from st_common.operators.turn.present import Present
from st_common.operators.turn.spells import Spells
from st_common.operators.turn.turn import Turn
from st_common.operators.window.entries import Entries
from st_common.runs import is_first, ranks_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """All entries of a run, those from before it first.

    Attributes:
        before: how many those from before are.
        changed: bool[entries], an end mark has cut the tick short from which an entry counts.
    """

    all: Entries
    before: int
    changed: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What windows hold at the ticks of a run that are due, entry by entry; n of them.

    Attributes:
        entries: the entries.
        query: int64[n], the number of each one's query.
        amounts: float64[n, w], what each adds to aggregates.
        start: int64[n], the place of the tick from which on it counts: BEFORE them, or `ticks` for after them all.
        until: int64[n], the place of the tick from which on it does not any more, `ticks` for none of them.
        ticks: how many are due.
        turns: the keys `target << 32 | object` that come and go in answers, of queries without an aggregate.
    """

    entries: Open
    query: np.ndarray
    amounts: np.ndarray
    start: np.ndarray
    until: np.ndarray
    ticks: int
    turns: ByTick

    def closed(self) -> Change[Entries]:
        """What becomes of the entries: those that left go, new ones that stay come."""
        entries = self.entries
        is_new, live = (
            np.arange(len(entries.all)) >= entries.before,
            self.until == self.ticks,
        )
        added = entries.all.take(live & (is_new | entries.changed))
        return Change(
            removed=np.flatnonzero((~live | entries.changed) & ~is_new), added=added
        )

    def parts(self, grouped: np.ndarray, first: int, end: int) -> Parts:
        """What counts above windows at some of the ticks.

        Args:
            grouped: bool[queries], those with an aggregate above.
            first: the place of the first of these ticks.
            end: the place behind the last one.

        Returns:
            Spells of entries by query, with ticks counted from `first`.
        """
        mine = np.flatnonzero(
            grouped[self.query] & (self.start < end) & (self.until >= first)
        )
        start = np.where(self.start[mine] < first, BEFORE, self.start[mine] - first)
        until, query = np.minimum(self.until[mine], end) - first, self.query[mine]
        order = np.lexsort((start, query))
        mine = mine[order]
        spells = Spells(query[order], start[order], until[order], end - first)
        return Parts(
            spells=spells,
            group=self.entries.all.group[mine],
            amounts=self.amounts[mine],
        )


def _open(whole: Entries, before: int, turn: Turn) -> Open:
    tick = cut_short(whole.tick, turn.final)
    return Open(
        all=replace(whole, tick=tick), before=before, changed=tick != whole.tick
    )


def opened(state: State, turn: Turn, present: Present) -> Open:
    """What windows hold in a run, before it is known which ticks are due.

    Args:
        state: the state before the run.
        turn: the run; each of its fixes is judged at its own row.
        present: the last fixes before it.

    Returns:
        The entries of before together with those that the fixes make.
    """
    queries, events, before = turn.known.windows, turn.events, state.memories[Entries]
    if queries.empty:
        return _open(before, len(before), turn)
    fixes = np.flatnonzero(events.kind == FIX)
    readings = turn.readings.take(fixes)
    hits = look_up(turn, queries, readings)
    event = fixes[hits.point]
    # As they lie in states: by place in the log, then by object.
    order = np.lexsort((events.object[event], events.position[event]))
    event, target, point = event[order], hits.target[order], hits.point[order]
    adds = relational.contributions(
        turn, present.sample_of_events(fixes), point, target, remembered=True
    )
    before_row = turn.clock.before(events.position[event])
    added = Entries(
        target=target,
        object=events.object[event],
        ts=events.ts[event],
        position=events.position[event],
        tick=ticks_of(np.maximum(events.ts[event], before_row), turn.settings.tick_us),
        group=adds.group,
        text=adds.text,
        value=adds.value,
    )
    return _open(before.followed_by(added), len(before), turn)


def aging(entries: Entries, turn: Turn) -> np.ndarray:
    """The ticks at which entries are too old; int64, ascending, each once, in microseconds.

    A fix at 1 s in a window of 10 s is in it at 11 s and out at the first tick after that. Windows of count have none.

    Args:
        entries: those of a run.
        turn: the run.
    """
    seconds = (
        turn.known.window_us[turn.numbering.targets.query[entries.target]]
        if len(entries)
        else entries.ts
    )
    timed = seconds >= 0
    end = ticks_past(entries.ts[timed] + seconds[timed], turn.settings.tick_us)
    return unique(np.maximum(end, entries.tick[timed]))


def judged(turn: Turn, entries: Open, due: np.ndarray) -> Judged:
    """What windows hold at the ticks that are due in a run.

    Args:
        turn: the run.
        entries: all entries of it.
        due: int64[ticks], ascending, event times in microseconds.
    """
    held = entries.all
    if not len(held):
        return _nothing(turn, entries, len(due))
    query = turn.numbering.targets.query[held.target]
    start = np.searchsorted(due, held.tick)
    start = np.where(held.tick < due[0], BEFORE, start) if len(due) else start
    seconds = turn.known.window_us[query]
    # + 1: a fix that is exactly as old as the window is long still counts.
    old = np.searchsorted(due, np.maximum(held.ts + seconds + 1, held.tick))
    until = _pushed_out(
        turn, held, query, start, np.where(seconds >= 0, old, len(due)), len(due)
    )
    plain = np.flatnonzero(~turn.known.grouped[query])
    key = packed(held.target[plain], held.object[plain])
    turns = of_entries(key, start[plain], until[plain], len(due))
    return Judged(
        entries=entries,
        query=query,
        amounts=relational.amounts_of(turn, query, held.object, held),
        start=start,
        until=until,
        ticks=len(due),
        turns=ByTick(turns, len(due)),
    )


def _nothing(turn: Turn, entries: Open, ticks: int) -> Judged:
    """What windows without an entry hold, as those of most streams are."""
    none = np.empty(0, np.int64)
    return Judged(
        entries=entries,
        query=none,
        amounts=relational.amounts_of(turn, none, none, entries.all),
        start=none,
        until=none,
        ticks=ticks,
        turns=ByTick(of_entries(none, none, none, ticks), ticks),
    )


def _pushed_out(
    turn: Turn,
    held: Entries,
    query: np.ndarray,
    start: np.ndarray,
    until: np.ndarray,
    ticks: int,
) -> np.ndarray:
    """Until when entries are held, given when they are too old: until as many newer ones came as their window holds.

    Of those with one time that one row released, the id that comes last as text is the newest: objects are numbered as
    they came, and order of arrival must not matter within the lateness (SPEC X2).
    """
    places = np.flatnonzero((turn.known.window_tuples[query] > 0) & (start < ticks))
    if not len(places):
        return until
    ids = turn.objects.ids.take(pa.array(held.object[places]))
    name = ranks_of_texts(ids)
    places = places[
        np.lexsort((-name, -held.position[places], -held.ts[places], query[places]))
    ]
    most, since, of, end = (
        turn.known.window_tuples[query[places]],
        start[places],
        query[places],
        until[places],
    )
    # Only where entries begin to count are others pushed out: one pass over those that count there.
    for tick in np.unique(np.maximum(since, 0)).tolist():
        here = np.flatnonzero((since <= tick) & (end > tick))
        rank = ranks_of(is_first(of[here]))
        end[here[rank >= most[here]]] = tick
    out = until.copy()
    out[places] = end
    return out
