"""What a query at ticks tells: its answers at one moment after the other, and what changes between them.

`st_common.checks` says what the answer is at a moment. Here is when a query is judged, and why a pair comes, leaves or
is told again; docs/how-it-works.md word by word, and where that leaves a choice, the docstrings make it.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
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
from tests.kit.oracle_history import Past
from tests.kit.oracle_rows import Pair
from tests.kit.oracle_walks import AT_FIX, AT_TICK, ENDS, NOTHING, Walk

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = "%Y-%m-%dT%H:%M:%S.%fZ"

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


@cache
def time_of(stamp: str) -> int:
    """The time of a partner of a row, in microseconds."""
    at = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(microseconds=1)


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


class Ticks(Walk):
    """A query that is judged at ticks."""

    def __init__(self, query: Registered, past: Past) -> None:
        super().__init__(query, past)
        self._first_tick = past.history.tick_open_at(query.position)
        self._answer: dict[Pair, float | None] = {}
        self._shown: dict[Pair, str | None] = {}  # the columns, as they were told
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
        was = dict(self._below)
        before = {
            pair: (value, self._shown.get(pair)) for pair, value in self._answer.items()
        }
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
        now = {
            pair: (value, self._shown.get(pair)) for pair, value in self._answer.items()
        }
        if self.query.plan.outer is not None and now == before:
            return
        again = self._told_again(stayed, happened, moved, was, tick)
        self._confirm(again, moment, known, row, tick)

    # -- the answer ----------------------------------------------------------------------------------------------------

    def _answer_at(self, moment: Moment, at_us: int) -> dict[Pair, Told]:
        """The answer for what is known, with what a + would say of each member."""
        outer = self._now.plan.outer
        if outer is None:
            return self._answer_of(self._now, moment, at_us)
        rows = self._counting_rows(outer, moment, at_us)
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
            below = rows_below(self._inner, self.history, moment)
            self._found = moment, below
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
        inner = self._inner
        told = self._answer_of(inner, moment, at_us)
        found = self._counted_at(moment)
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

    def _counting_rows(self, outer: Outer, moment: Moment, at_us: int) -> Rows:
        """The rows that are chosen now, and those that count on."""
        chosen = self._chosen_rows(outer, moment, at_us)
        book = self._book
        return chosen if book is None else book.counting(chosen, self._turned)

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
            if both and self._stays(pair, now[pair]):
                stayed.add(pair)
                continue
            tell = partial(
                self.tell, self._era, pair, position=position, event_us=at_us, rank=rank
            )
            if pair in was:
                cause = changed if both else minus(pair)
                fields = self._shown_last(pair, known, before)
                tell(-1, cause, fix_us=fix_us, value=was[pair], fields=fields)
                self._until.pop(pair, None)
            if pair in now:
                cause, told = changed if both else plus, now[pair]
                tell(1, cause, fix_us=fix_us, value=told.value, fields=told.fields)
                self._until[pair] = told.value
        self._answer = {
            pair: told.value if self._tells_values else None
            for pair, told in now.items()
        }
        self._shown = {pair: told.fields for pair, told in now.items()}
        self._remember(moment, known, at_us)
        return stayed

    @property
    def _tells_values(self) -> bool:
        """Whether what is told has values, so that one that changed is told: aggregates, and queries about rows."""
        return (
            self.query.plan.aggregate is not None or self.query.plan.outer is not None
        )

    @property
    def _is_group(self) -> bool:
        """Whether what is told of the rows of a query are values of groups."""
        outer = self.query.plan.outer
        return outer is not None and outer.aggregate is not None

    def _stays(self, pair: Pair, told: Told) -> bool:
        """Whether a pair that is in the answer before and after says the same."""
        if not self._tells_values:
            return True
        same_fields = self._shown[pair] == told.fields
        return self._answer[pair] == told.value and same_fields

    def _shown_last(
        self, pair: Pair, known: Mapping[str, int], was: Mapping[Below, Member]
    ) -> str | None:
        """The columns beside a -: of a frame's row its own, else of the last fix; of groups what was told."""
        if self._tells_values:
            return self._shown[pair]
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
        for pair, value in self._answer.items():
            self.tell(
                self._era,
                pair,
                -1,
                self.query.end_cause,
                position=end,
                event_us=now,
                fix_us=self._fix_us(pair, known, now),
                value=value,
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
        moment: Moment,
        known: Mapping[str, int],
        row: int,
        tick: int,
    ) -> None:
        """Members that stay and are told again."""
        now, plan = self._answer_at(moment, tick) if pairs else {}, self._now.plan
        for pair in pairs:
            fix_us = self._fix_us(pair, known, tick)
            told = now[pair]
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
