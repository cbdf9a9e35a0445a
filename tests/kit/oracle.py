"""The right answer: `st_common.checks` walks the rows of a law's log, and `st_common.reference` says what is meant.

It shares nothing with the engines: no step, no kernel, no decoder. What happens when, and what answers follow, is what
`fairway verify` asks too. What SQL means, what a fix says of its object, what is told beside an answer is found here:

    oracle_rows     what is read, what is said, what follows from the fix before; SQL and what it means
    oracle_walks    the rows as a history; what fences, incidents and queries that are judged fix by fix tell
    oracle          what queries at ticks tell: their answers at one moment after the other; all queries of a log
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from st_common.checks.answers import (
    Counted,
    focal_of,
    judged_rows,
    moves_next,
    qualified_in,
    stays_until,
    values_of,
)
from st_common.checks.history import (
    EXPIRED,
    FIX,
    LATER,
    NEVER,
    Era,
    Moment,
    Registered,
    lives_of,
)
from st_common.checks.nested import (
    Lasting,
    Settling,
    answer_above,
    book_of,
    inner_of,
    rows_below,
    rows_of_groups,
    rows_of_members,
    selected,
)
from st_common.query.frame import Frame, Sliding
from st_common.query.plan import Aggregate, Outer, Plan, has_value
from st_common.reference import sliding
from st_common.reference.aggregate import Shown, group_names
from st_common.reference.metric import Ints
from st_common.reference.travelled import outlives
from tests.kit.oracle_rows import (
    Change,
    Control,
    Feature,
    Filter,
    Fix,
    Layers,
    Outcome,
    Pair,
    Row,
    Rules,
    distance_m,
)
from tests.kit.oracle_walks import (
    AT_FIX,
    AT_TICK,
    ENDS,
    NOTHING,
    EventWalk,
    FixWalk,
    Past,
    Walk,
    past_of,
)

__all__ = [
    "Change",
    "Control",
    "Feature",
    "Filter",
    "Fix",
    "Layers",
    "Outcome",
    "Row",
    "Rules",
    "agree",
    "answer",
    "changes",
    "distance_m",
    "fold",
    "judge",
]

Below = tuple[str, str | None, int]
"""What an aggregate counts: an object, its partner and the time of a fix; members are at no time (0)."""
Member = tuple[int, str | None]
"""A fix by its row among the events, and its partner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a + says of a member."""

    value: float | None = None
    fields: str | None = None


Rows = dict[Pair, tuple[Told, Mapping[str, Any]]]
"""The rows that an outer query asks about, as they are told and by the names of their columns."""


def time_of(stamp: str) -> int:
    """The time of a partner of a row, in microseconds."""
    return int(np.datetime64(stamp.removesuffix("Z"), "us").astype(np.int64))


def told_of(aggregate: Aggregate, groups: Mapping[str, Shown]) -> dict[Pair, Told]:
    """What is told of groups: their values, or of several what they show; one alone is their value as well."""
    told: dict[Pair, Told] = {}
    for name, shown in groups.items():
        if not isinstance(shown, Mapping):
            told[name, None] = Told(value=shown)
            continue
        values = [shown[value.name] for value in aggregate.values]
        is_one = has_value(aggregate) and values[0] is not None
        only = float(values[0]) if is_one else None
        told[name, None] = Told(value=only, fields=json.dumps(shown))
    return told


class TickWalk(Walk):
    """A query that is judged at ticks."""

    def __init__(self, query: Registered, past: Past) -> None:
        super().__init__(query, past)
        self._first_tick = past.history.tick_open_at(query.position)
        self._answer: dict[Pair, Told] = {}
        self._until: dict[Pair, float | None] = {}  # until when members stay
        self._below: dict[Below, Member] = {}  # what an aggregate counts
        # What WINDOW or FOR remembers of rows, and which of them are too old, or count, from now on.
        self._book = book_of(query.plan.outer or Outer(), past.history.times)
        self._turned: set[Pair] = set()
        self._left: dict[Pair, int] = {}  # the times of the fixes of rows that left
        self._settled: dict[Pair, tuple[Told, int]] = {}  # as rows were told last
        self._judged: tuple[Moment, int] | None = None
        self._rows: tuple[Moment, Rows] | None = None  # below at a moment
        self._found: tuple[Moment, Counted] | None = None  # counted at a moment
        self._at = self._row = NEVER  # the last tick, and the row of the log
        self._era, self._now = query.eras[0], query.until(query.position + 1)
        self._inner = inner_of(self._now)
        self._waits: set[int] = set()  # ticks at which windows of a frame move
        due = zip(self.events.due.tolist(), self.events.tick.tolist(), strict=True)
        self._due = sorted({one for one in due if query.position < one[0] < LATER})
        self._entries = NOTHING
        if query.plan.window is not None:
            came = np.flatnonzero(self.events.effect > query.position)
            came = came[self.events.kind[came] == FIX]
            self._entries = qualified_in(query, self.history, came).rows

    def go(self) -> None:
        """See `Walk.go`."""
        for era in self.query.eras:
            self._pass_ticks(era.position)
            self._era, self._now = era, self.query.until(era.position + 1)
            self._inner = inner_of(self._now)
            self._judge_at_once(era)
        self._pass_ticks(self.query.end)
        if self.query.end != LATER:
            self._end_all()

    def _pass_ticks(self, before: int) -> None:
        """Judges all ticks that are due before a row of the log."""
        while True:
            place = bisect_right(self._due, (self._row, self._at))
            due = [each for each in self._due[place : place + 1] if each[0] < before]
            due += self._own_ticks(before)
            if not due:
                return
            self._row, self._at = min(due)
            self._judge(self._row, self._at)

    def _own_ticks(self, before: int) -> Iterator[tuple[int, int]]:
        """The next ticks at which something ages or ripens though nothing happens."""
        own, window = set(self._waits), self.query.plan.window
        if window is not None and window.seconds is not None:
            last_us = self.events.ts[self._entries] + round(window.seconds * 1e6)
            ages = self.history.times.tick_after(last_us)
            own |= set(np.maximum(ages, self.events.tick[self._entries]).tolist())
        if self._book is not None:
            own |= self._book.due()
        later = sorted(tick for tick in own if tick > self._at)
        if later:
            row = max(self.history.clock.row_past(later[0]), self._row)
            if row < before:
                yield row, later[0]

    def _judge_at_once(self, era: Era) -> None:
        """Before anything was seen nothing can be said with a time; what is in a window stays there."""
        if self.history.clock.at(era.position) == NEVER:
            return
        if era.cause != "registered" and era.plan.window is not None:
            return
        moment = self.history.before(era.position, NEVER)
        if era.plan.frame is not None:
            moment = replace(moment, tick_us=max(self._at, 0), is_due=True)
        self._judge_anew(
            moment,
            self.now_at(era.position),
            position=era.position,
            known=self.last_of(moment.seen),
            plus=era.cause,
            minus=lambda _: era.cause,
            changed=era.cause,
            rank=AT_FIX,
        )

    def _judge(self, row: int, tick: int) -> None:
        """A tick that is judged at a row of the log."""
        moment, events = self.history.at_tick(row, tick), self.events
        happened = np.flatnonzero((events.due == row) & (events.tick == tick))
        was, before = self._below, self._answer
        self._turned = set() if self._book is None else self._book.turned(tick)
        moved = self._move(moment, happened)
        known = self.last_of(moment.judged)
        stayed = self._judge_anew(
            moment,
            tick,
            position=row,
            known=known,
            plus="enter",
            minus=partial(self._minus, moment, happened, known),
            changed="value",
            rank=AT_TICK,
        )
        if self.query.plan.outer is not None and self._answer == before:
            return
        again = self._told_again(stayed, happened, moved, was, tick)
        self._confirm(again, known, row, tick)

    # -- the answer ----------------------------------------------------------------------------------------------------

    def _answer_at(self, moment: Moment, at_us: int) -> dict[Pair, Told]:
        """The answer for what is known, with what a + would say of each member."""
        outer = self._now.plan.outer
        if outer is None:
            return self._answer_of(self._now, moment, at_us)
        rows = self._chosen_rows(outer, moment, at_us)
        if self._book is not None:
            rows = self._book.counting(rows, self._turned)
        if outer.aggregate is None:
            return {pair: told for pair, (told, _) in rows.items()}
        plain = [row for _, row in rows.values()]
        above = answer_above(replace(outer, where=None), plain, self.history.source)
        return told_of(outer.aggregate, above.values or {})

    def _answer_of(
        self, query: Registered, moment: Moment, at_us: int
    ) -> dict[Pair, Told]:
        """The same of a query that is about objects."""
        plan = query.plan
        found = self._counted_at(moment)
        if plan.aggregate is not None:
            return told_of(plan.aggregate, values_of(query, found, self.history))
        if plan.window is not None:
            known = self.last_of(moment.judged)
            pairs = dict.fromkeys(zip(self.ids[found.rows], found.partner, strict=True))
            return {
                pair: Told(fields=self.shown(plan, known[pair[0]])) for pair in pairs
            }
        fields = self._columns(query, found, moment)
        until = self._stays_until(query, found, moment, at_us)
        rows = zip(
            self.ids[found.rows].tolist(), found.partner, until, fields, strict=True
        )
        return {(name, p): Told(value=us, fields=shown) for name, p, us, shown in rows}

    def _counted_at(self, moment: Moment) -> Counted:
        """What the query, or the one whose rows it is about, tells of or counts; once for each moment."""
        if self._found is None or self._found[0] is not moment:
            self._found = moment, rows_below(self._inner, self.history, moment)
        return self._found[1]

    def _columns(
        self, query: Registered, found: Counted, moment: Moment
    ) -> list[str | None]:
        """The selected columns of members as JSON objects; of streams with the place; None without any."""
        is_stream = query.plan.emit in ("istream", "dstream", "rstream")
        texts = {
            **({"x": "x", "y": "y"} if is_stream else {}),
            **dict(query.plan.columns),
        }
        if not texts:
            return [None] * len(found.rows)
        values = [
            selected(text, query, found, self.history, moment)
            for text in texts.values()
        ]
        return [
            json.dumps(dict(zip(texts, row, strict=True)))
            for row in zip(*values, strict=True)
        ]

    def _stays_until(
        self, query: Registered, found: Counted, moment: Moment, at_us: int
    ) -> list[float | None]:
        """Until when members stay; None without a velocity, and where nobody asks."""
        plan, history = query.plan, self.history
        if not plan.valid_until:
            return [None] * len(found.rows)
        focal = focal_of(plan, history, judged_rows(query, history, moment))
        until = [
            stays_until(plan, history, row, focal, at_us)[0]
            for row in found.rows.tolist()
        ]
        return [None if np.isnan(one) else one for one in until]

    def _rows_below(self, moment: Moment, at_us: int) -> Rows:
        """The rows that the outer query asks about."""
        if self._rows is None or self._rows[0] is not moment:
            self._rows = moment, self._rows_anew(moment, at_us)
        return self._rows[1]

    def _rows_anew(self, moment: Moment, at_us: int) -> Rows:
        inner, found = self._inner, self._counted_at(moment)
        told = self._answer_of(inner, moment, at_us)
        if inner.plan.aggregate is None:
            rows = rows_of_members(inner, found, self.history, moment)
            pairs = zip(self.ids[found.rows].tolist(), found.partner, strict=True)
            return {
                pair: (told[pair], row) for pair, row in zip(pairs, rows, strict=True)
            }
        values = values_of(inner, found, self.history)
        rows = rows_of_groups(inner.plan, values)
        return {
            (name, None): (told[name, None], row)
            for name, row in zip(values, rows, strict=True)
        }

    def _chosen_rows(self, outer: Outer, moment: Moment, at_us: int) -> Rows:
        """Those of them that the outer query chooses now."""
        rows = self._rows_below(moment, at_us)
        plain = [row for _, row in rows.values()]
        above = answer_above(Outer(where=outer.where), plain, self.history.source)
        pairs = list(rows)
        return {pairs[place]: rows[pairs[place]] for place in above.chosen}

    def _below_at(self, moment: Moment) -> dict[Below, Member]:
        """What is below an aggregate, or would be: rows of a frame, entries of a window, or members.

        Nothing where nobody asks for it: rows that are told again, and fixes in windows that are no more.
        """
        plan = self._now.plan
        if plan.outer is not None or (plan.frame is None and plan.emit != "rstream"):
            return {}
        found = self._counted_at(moment)
        is_window = self.query.plan.window is not None
        rows = zip(found.rows.tolist(), found.partner, strict=True)
        return {
            (self.ids[row], p, int(self.events.ts[row]) if is_window else 0): (row, p)
            for row, p in rows
        }

    # -- what changes --------------------------------------------------------------------------------------------------

    def _judge_anew(
        self,
        moment: Moment,
        at_us: int,
        *,
        position: int,
        known: Mapping[str, int],
        plus: str,
        minus: Callable[[Pair], str],
        changed: str,
        rank: int,
    ) -> set[Pair]:
        """Brings the answer to what holds now, by - and +; gives back the pairs that stayed as they were.

        The value of an aggregate that changed is taken back and told anew, both with the cause `changed`. Other values
        do not change by themselves.
        """
        now, was = self._answer_at(moment, at_us), self._answer
        before, self._below = self._below, self._below_at(moment)
        self._judged, stayed = (moment, at_us), set()
        for pair in was.keys() | now.keys():
            fix_us = self._fix_us(pair, known, at_us, leaves=pair not in now)
            if pair in self._settled and pair in self._turned and pair in now:
                told_last, last_us = self._settled[pair]
                fix_us = last_us if told_last == now[pair] else fix_us
            both = pair in was and pair in now
            if both and (not self._tells_values or was[pair] == now[pair]):
                stayed.add(pair)
                continue
            tell = partial(
                self.tell, self._era, pair, position=position, event_us=at_us, rank=rank
            )
            if pair in was:
                cause = changed if both else minus(pair)
                fields = self._shown_last(pair, known, before)
                value = self._value_of(was[pair])
                tell(-1, cause, fix_us=fix_us, value=value, fields=fields)
                self._until.pop(pair, None)
            if pair in now:
                cause, told = changed if both else plus, now[pair]
                tell(1, cause, fix_us=fix_us, value=told.value, fields=told.fields)
                self._until[pair] = told.value
        self._answer = now
        self._remember(moment, known, at_us)
        return stayed

    @property
    def _tells_values(self) -> bool:
        """Whether what is told has values, so that one that changed is told: aggregates, and queries about rows."""
        return (
            self.query.plan.aggregate is not None or self.query.plan.outer is not None
        )

    def _value_of(self, told: Told) -> float | None:
        """The value beside a -, which takes back what was told; of others than these there is none to take back."""
        return told.value if self._tells_values else None

    @property
    def _is_group(self) -> bool:
        """Whether what is told of the rows of a query are values of groups."""
        outer = self.query.plan.outer
        return outer is not None and outer.aggregate is not None

    def _shown_last(
        self, pair: Pair, known: Mapping[str, int], was: Mapping[Below, Member]
    ) -> str | None:
        """The columns beside a -: of a frame's row its own, else of the last fix; of groups what was told."""
        if self._tells_values:
            return self._answer[pair].fields
        plan = self._era.plan
        row = known[pair[0]] if plan.frame is None else was[*pair, 0][0]
        is_pair = plan.pairs is not None and pair[1] is not None
        return self.shown(plan, row, known[pair[1]] if is_pair and pair[1] else None)

    def _fix_us(
        self, pair: Pair, known: Mapping[str, int], at_us: int, *, leaves: bool = True
    ) -> int:
        """The time of the fix that a change is about: of a row its own, of a value the tick, else the object's last."""
        if self._is_group:
            return at_us
        if leaves and pair in self._left:
            return self._left[pair]
        return self._own_fix_us(pair, known, at_us)

    def _own_fix_us(self, pair: Pair, known: Mapping[str, int], at_us: int) -> int:
        plan = self.query.plan
        if plan.aggregate is not None:
            return at_us
        if plan.frame is not None and pair[1]:
            return time_of(pair[1])
        return int(self.events.ts[known[pair[0]]])

    def _remember(self, moment: Moment, known: Mapping[str, int], at_us: int) -> None:
        """Takes on the rows that WINDOW or FOR above them has seen."""
        outer, book = self._now.plan.outer, self._book
        if outer is None or book is None:
            return
        chosen = self._chosen_rows(outer, moment, at_us)
        for pair in book.take(chosen, at_us, self._turned):
            self._left[pair] = self._fix_us(pair, known, at_us)
        for pair in {*chosen, *self._turned}:
            self._left.pop(pair, None)
        if isinstance(book, Settling) and not self._is_group:
            was, self._settled = self._settled, {}
            for pair, (told, _) in chosen.items():
                fix_us = self._own_fix_us(pair, known, at_us)
                same = pair in was and was[pair][0] == told
                self._settled[pair] = was[pair] if same else (told, fix_us)
        self._turned = set()

    def _end_all(self) -> None:
        end = self.query.end
        known = self.last_of(np.flatnonzero(self.events.effect < end))
        now = self.now_at(end)
        for pair, told in self._answer.items():
            self.tell(
                self._era,
                pair,
                -1,
                self.query.end_cause,
                position=end,
                event_us=now,
                fix_us=self._fix_us(pair, known, now),
                value=self._value_of(told),
                fields=self._shown_last(pair, known, self._below),
            )

    # -- why pairs leave -----------------------------------------------------------------------------------------------

    def _minus(
        self, moment: Moment, happened: Ints, known: Mapping[str, int], pair: Pair
    ) -> str:
        """Why a pair is no member any more: what ended the object, else its partner, else the first dead focal one."""
        plan = self._now.plan
        if plan.outer is None:
            return self._minus_of(plan, moment, happened, known, pair)
        if isinstance(self._book, Lasting):
            return "leave" if self._is_group else "aged"
        if self._is_group or pair in self._rows_below(moment, moment.tick_us):
            return "leave"
        return self._minus_of(self._inner.plan, moment, happened, known, pair)

    def _minus_of(
        self,
        plan: Plan,
        moment: Moment,
        happened: Ints,
        known: Mapping[str, int],
        pair: Pair,
    ) -> str:
        if plan.aggregate is not None:
            return "leave"
        if plan.window is not None:
            return "aged"
        if plan.frame is not None:
            return self._minus_of_row(plan.frame, moment, happened, pair)
        partner = [pair[1]] if plan.pairs is not None and pair[1] is not None else []
        for name in (pair[0], *partner, *plan.focals):
            kind = int(self.events.kind[known[name]])
            if kind != FIX:
                return ENDS[kind][0]
        return "leave"

    def _minus_of_row(
        self, frame: Frame, moment: Moment, happened: Ints, pair: Pair
    ) -> str:
        """Why a row is in no result any more: its stay ended with it, its object does not count, or it is too old."""
        kinds = self.events.kind[happened[self.ids[happened] == pair[0]]]
        ends = kinds[kinds != FIX]
        ended = ENDS[int(ends[0])][0] if len(ends) else None
        framed = self._counted_at(moment).framed
        if framed is not None and framed.counting is not None:
            rows = self.past.rows_of.get(pair[0], NOTHING)
            if not np.isin(self.events.code[rows[:1]], framed.counting).any():
                return ended or "leave"
        return "aged" if ended is None or outlives(frame) else ended

    # -- what is told again --------------------------------------------------------------------------------------------

    def _move(self, moment: Moment, happened: Ints) -> set[str]:
        """Whose windows moved at a tick; and notes at which ticks they move by time alone."""
        frame, tick = self._now.plan.frame, moment.tick_us
        framed = None if frame is None else self._counted_at(moment).framed
        if frame is None or framed is None:
            return set()
        ids, moved = framed.ways.ids, set[str]()
        for window in frame.sliding:
            stands = sliding.standing(window, frame, framed.ways, framed.ticks)
            moved |= set(ids[(stands.last >= 0) & (stands.tick == tick)])
        self._waits = moves_next(framed, frame, self.history.times, tick)
        if any(_follows(window) for window in frame.sliding):
            last = self.last_of(happened)
            ended = {name for name, row in last.items() if self.events.kind[row] != FIX}
            moved |= ended & set(ids)
        return moved

    def _told_again(
        self,
        stayed: set[Pair],
        happened: Ints,
        moved: set[str],
        was: Mapping[Below, Member],
        tick: int,
    ) -> set[Pair]:
        """The pairs that stayed in an answer and are told again: every further fix, or all that stays (RSTREAM)."""
        plan = self._now.plan
        if plan.outer is not None:
            # Its answer is another one, which is all that happens to rows.
            return stayed if plan.emit == "rstream" else set()
        if tick <= self._first_tick and plan.frame is None:
            happened = NOTHING  # some of it came before the query
        if plan.emit == "every" or plan.valid_until:
            return self._with_fixes(stayed, happened)
        if plan.emit != "rstream":
            return set()
        changed = was.keys() ^ self._below.keys()
        if plan.frame is not None:
            names = moved | {name for name, *_ in changed}
            return self._of_frame(stayed, names, was)
        if plan.window is not None and plan.aggregate is not None:
            came = (self.events.tick[self._entries] == tick).any()
            return stayed if changed or came else set()
        names = set(self.ids[happened])
        # One fix of several in a window that is too old is nothing that happened to a member.
        came_or_left = {row[:2] for row in was} != {row[:2] for row in self._below}
        is_told = came_or_left or any(name in names for name, *_ in self._below)
        return stayed if is_told else set()

    def _with_fixes(self, stayed: set[Pair], happened: Ints) -> set[Pair]:
        """Those whose object has a fix; also whose other object or focal one has one, where these are told about."""
        plan, events = self._now.plan, self.events
        names = set(self.ids[happened[events.kind[happened] != EXPIRED]])
        shows_near = any('"near.' in text for _, text in plan.columns)
        goes_with = plan.valid_until or shows_near
        anew = goes_with and bool({*plan.focals} & set(self.ids[happened]))
        of_other = any('"other.' in text for _, text in plan.columns)
        return {
            pair
            for pair in stayed
            if anew or pair[0] in names or (of_other and pair[1] in names)
        }

    def _of_frame(
        self, stayed: set[Pair], names: set[str], was: Mapping[Below, Member]
    ) -> set[Pair]:
        """The rows of those whose result is told anew, or the groups that these rows are in, or were."""
        aggregate = self._now.plan.aggregate
        if aggregate is None:
            return {pair for pair in stayed if pair[0] in names}
        rows = {**was, **self._below}
        own = [row for name, (row, _) in rows.items() if name[0] in names]
        fixes = self.history.fixes.take(np.array(own, np.int64))
        nobody = np.full(len(own), None, object)
        every = np.arange(len(own))
        groups = set(group_names(aggregate, fixes, every, nobody))
        return {pair for pair in stayed if pair[0] in groups}

    def _confirm(
        self,
        pairs: set[Pair],
        known: Mapping[str, int],
        row: int,
        tick: int,
    ) -> None:
        """Members that stay and are told again."""
        plan = self._now.plan
        for pair in pairs:
            fix_us, told = self._fix_us(pair, known, tick), self._answer[pair]
            is_known = plan.valid_until and plan.emit == "changes"
            if is_known and _is_same(self._until.get(pair, 0.0), told.value):
                continue
            self._until[pair] = told.value
            self.tell(
                self._era,
                pair,
                0,
                "inside",
                position=row,
                event_us=tick,
                fix_us=tick if plan.outer is not None else fix_us,
                rank=AT_TICK,
                value=told.value,
                fields=told.fields,
            )

    def held(self) -> dict[Pair, float | None]:
        """See `Walk.held`: found anew for what it was judged on last."""
        if self._judged is None:
            return {}
        now = self._answer_at(*self._judged)
        is_value = self.query.plan.aggregate is not None
        return {pair: told.value if is_value else None for pair, told in now.items()}


def _follows(window: Sliding) -> bool:
    """Whether a window goes along with whatever its object does, also with its end."""
    return window.slide is None and window.range.by != "time"


def _is_same(said: float | None, value: float | None) -> bool:
    """Whether a member stays as long as was said: to a millisecond."""
    if said is None or value is None:
        return said is value
    return said == value or abs(said - value) <= 0.001


# -- all queries of a log ----------------------------------------------------------------------------------------------

Answer = dict[tuple[str, str, str | None], float | None]
"""(query, object, partner) that hold; with the value of an aggregate's group, None for all others."""


def judge(
    rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None
) -> Outcome:
    """The changes of the rows, which are in log order, and the counts of late, double and used fixes.

    `seq` counts the changes of one position from 0, in the order of event time, kind (expiry, fix, tick), object, sign
    (all -, all +, all 0), registration of the query, partner; ids in the order of their text, no partner first. A
    query that is replaced counts as registered anew.

    Raises:
        KeyError: a query joins a layer and nobody named a version of it, or `layers` does not hold that version; an
            expression is not in `oracle_expressions`.
    """
    past = past_of(rows, layers or {}, rules or Rules())
    told = [placed for walk in _walks(past) for placed in walk.told]
    told.sort(key=lambda placed: (placed[1].position, placed[0]))
    seq: Counter[int] = Counter()
    numbered = []
    for _, change in told:
        numbered.append(replace(change, seq=seq[change.position]))
        seq[change.position] += 1
    return Outcome(
        changes=numbered,
        filtered=dict(past.filtered),
        late_rows=past.late_rows,
        double=past.double,
        used=past.used,
    )


def _walks(past: Past) -> list[Walk]:
    """All queries that ever were registered, walked to their ends."""
    walks = [_walk_of(query, past) for query in lives_of(past.controls, 1.0)]
    for walk in walks:
        walk.go()
    return walks


def _walk_of(query: Registered, past: Past) -> Walk:
    if query.plan.tells_events:
        return EventWalk(query, past)
    return TickWalk(query, past) if query.plan.by_ticks else FixWalk(query, past)


def changes(
    rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None
) -> list[Change]:
    """The changes alone of `judge`."""
    return judge(rows, layers=layers, rules=rules).changes


def answer(
    rows: Iterable[Row],
    *,
    upto: int | None = None,
    layers: Layers | None = None,
    rules: Rules | None = None,
) -> Answer:
    """What holds after the rows up to position `upto`, both included (None: after all rows).

    Found anew from the last fixes of all living objects, not by folding changes, so that the two check each other.
    A query at ticks holds what it held at the last one that was due, or when it was registered; nothing before that
    was judged, which is when the stream has a time.
    """
    known = (row for row in rows if upto is None or row.position <= upto)
    held: Answer = {}
    for walk in _walks(past_of(known, layers or {}, rules or Rules())):
        if walk.query.end == LATER:
            name = walk.query.name
            held |= {(name, *pair): value for pair, value in walk.held().items()}
    return held


def fold(rows: Iterable[Change]) -> Answer:
    """The answers that changes add up to, by (position, seq), each with the value of its last +.

    Raises:
        AssertionError: a + for a member, a - or 0 for what is none, or a - that takes back another value than was told:
            no order of changes may do that.
    """
    answer: Answer = {}
    rows = sorted(rows, key=lambda row: (row.position, row.seq))
    signed = {(row.query, row.query_version) for row in rows if row.sign}
    for change in rows:
        key = (change.query, change.object, change.partner)
        version = change.query, change.query_version
        if change.sign == 0 and (version not in signed or change.cause in _EVENTS):
            continue
        if (key in answer) != (change.sign <= 0):
            raise AssertionError(f"{change} does not follow from what is before it")
        if change.sign > 0:
            # How long an incident has lasted goes on: what ends it tells another value.
            answer[key] = None if change.cause == "started" else change.value
        elif change.sign < 0 and _differs(answer.pop(key), change.value):
            raise AssertionError(f"{change} takes back what was not told")
    return answer


def _differs(told: float | None, taken_back: float | None) -> bool:
    """Whether a value is taken back that was not told; of a visit the + has none."""
    return None not in (told, taken_back) and told != taken_back


_EVENTS = ("outside", "cross", "dwell")  # of fences: they say nothing of an answer


def agree(folded: Answer, held: Answer) -> bool:
    """Whether a fold says what an `answer` says; values count where they are those of aggregates."""
    return folded.keys() == held.keys() and all(
        folded[key] == value for key, value in held.items() if value is not None
    )
