"""What fences and incidents must have emitted, and who is in now: the reference's machines, fed with the past.

    fixes -> in? near? holds?  -> machines, object by object -> events, each at its row of the log

In each era of a query (its layer, its area stay the same) fixes are seen all at once; then the machines take them.
Where a distance on degrees is in doubt, so are the visits of that object there.

Around a region that goes with an object a machine takes a row at each tick at which something happened to its object or
to a focal one. All rows are found as columns, some objects at a time; machines take those that came near once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from st_common.checks.answers import features_in
from st_common.checks.history import (
    FIX,
    GONE,
    LATER,
    NEVER,
    Era,
    Events,
    History,
    Registered,
)
from st_common.query.fence import Event, Fence
from st_common.query.incident import Incident
from st_common.query.plan import Plan
from st_common.reference.fence import Machine, Partners, Seen, Side, by_row, seen
from st_common.reference.incident import Stretch
from st_common.reference.members import joined, qualified
from st_common.reference.metric import Bools, Floats, Ints, Objects, certain
from st_common.reference.moving_fence import Met, satisfying, seen_around, sides

Target = str | None
_END = 1 << 62  # after all rows, and all times
_MOST_ROWS = 1 << 20  # that are found together
_CAUSES = np.array([None, "gone", "expired"], object)  # by kind of event
_SIGNS = {"started": 1, "ongoing": 0}


class Emitted(NamedTuple):
    """One event of a visit or an incident.

    Attributes:
        row: the row of the log at which it is emitted.
        object: whose it is.
        target: the feature, or None for the region.
        sign: what it does to the answer.
        cause: why.
        event_us: its time.
        value: how many seconds the visit or the incident has lasted; None where nobody asks.
        known: the last event of the object that had been taken then, by its row; -1: what was known at the row.
        era: the number of the era of the query.
        started_us: when the incident began.
        worst: its worst value so far.
    """

    row: int
    object: str
    target: Target
    sign: int
    cause: str
    event_us: int
    value: float | None
    known: int
    era: int
    started_us: int = 0
    worst: float | None = None


class Here(NamedTuple):
    """A row of the log, and the event time of what takes effect there; `known` is the event that does, by its row."""

    row: int
    event_us: int
    known: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """An era of a query: the last fixes of those that lived at its beginning, and what came then, by rows of events."""

    number: int
    era: Era
    before: Ints
    came: Ints
    end: int

    @property
    def plan(self) -> Plan:
        """The plan in this era."""
        return self.era.plan

    @property
    def start(self) -> int:
        """The row of the log at which it begins."""
        return self.era.position

    def fixes(self, events: Events) -> Ints:
        """All fixes that are seen in it: first those from before, then those that came."""
        return np.append(self.before, self.came[events.kind[self.came] == FIX])


@dataclass(frozen=True, slots=True)
class Lived:
    """What must have been emitted, who is in (or which incidents are open), from where to where that is in doubt."""

    events: list[Emitted]
    inside: set[tuple[str, Target]]
    doubtful: dict[tuple[str, Target], list[tuple[int, int]]]

    def is_doubtful(self, row: int, name: str, target: Target) -> bool:
        """Whether what is emitted at a row of the log is of visits that are in doubt."""
        spans = self.doubtful.get((name, target), [])
        return any(start <= row <= end for start, end in spans)


def lived(query: Registered, history: History) -> Lived:
    """All that a fence or incidents must have emitted since the query was registered, and who is in in the end."""
    life: _Life[Any]
    if query.plan.incident is not None:
        life = _Incidents(query, history)
    else:
        of = _MovingVisits if query.plan.by_ticks else _Visits
        life = of(query, history)
    events = history.events
    for number, (era, end) in enumerate(query.spans()):
        before = events.alive(np.flatnonzero(events.effect < era.position))
        came = (events.effect > era.position) & (events.effect < end)
        life.live(
            Period(
                number=number,
                era=era,
                before=before,
                came=np.flatnonzero(came),
                end=end,
            )
        )
    life.end()
    return life.lived


Of = TypeVar("Of", Machine, Stretch)


@dataclass(slots=True)
class _Own(Generic[Of]):
    """What is known of an object and a target.

    Attributes:
        name: the object.
        target: the feature, or None for the region.
        of: the machine of its visits, or the stretch of fixes of an incident.
        row: the row of the log at which it came in; of incidents that of its last fix.
        known: the last fix of a stretch, by its row among the events.
        doubted_row: from which row of the log on it is in doubt; None: it is not.
    """

    name: str
    target: Target
    of: Of
    row: int = 0
    known: int = -1
    doubted_row: int | None = None


class _Life(Generic[Of]):
    """What fences and incidents share: all objects with their targets, and what was emitted of them."""

    def __init__(self, query: Registered, history: History) -> None:
        self._query, self._history = query, history
        self._events, self._clock = history.events, history.clock
        self._era = 0
        self._own: dict[str, dict[Target, _Own[Of]]] = {}
        self.lived = Lived([], set(), {})

    def live(self, period: Period) -> None:
        """The next era of the query."""
        raise NotImplementedError

    def end(self) -> None:
        """The end of the log, or of the query: then all visits and incidents are over."""
        raise NotImplementedError

    def _came(self, period: Period) -> Iterator[tuple[str, int, int, Here]]:
        """What came in an era, object by object: whose, of what kind, the number of the fix, and where it is."""
        events, came = self._events, period.came
        columns = events.kind[came], events.effect[came], events.event[came], came
        names, number = self._history.fixes.ids[came].tolist(), len(period.before) - 1
        lists = (column.tolist() for column in columns)
        for name, kind, row, event_us, at in zip(names, *lists, strict=True):
            number += kind == FIX
            yield name, kind, number, Here(row, event_us, at)

    def _all(self) -> list[_Own[Of]]:
        return [own for targets in self._own.values() for own in targets.values()]

    def _doubt(self, own: _Own[Of], row: int) -> None:
        """What is in doubt of it is so up to a row of the log."""
        if own.doubted_row is not None:
            spans = self.lived.doubtful.setdefault((own.name, own.target), [])
            spans.append((own.doubted_row, row))
            own.doubted_row = None


def _fence_of(plan: Plan) -> Fence:
    assert plan.fence is not None  # noqa: S101 - for the type: only such plans are asked
    return plan.fence


class _Visits(_Life[Machine]):
    """The visits of all objects."""

    _tick_us = 1

    def __init__(self, query: Registered, history: History) -> None:
        super().__init__(query, history)
        self._fence = _fence_of(query.eras[0].plan)
        self._known: dict[str, int] = {}

    def live(self, period: Period) -> None:
        """See `_Life.live`."""
        rows, fixes = period.fixes(self._events), self._history.fixes
        before = self._events.before[rows]
        x, y = (
            np.where(before >= 0, column[before], np.nan)
            for column in (fixes.x, fixes.y)
        )
        features = features_in(period.era, self._history)
        sight = seen(period.plan, fixes.take(rows), (x, y), features)
        self._begin(period, sight)
        self._take(period, sight)

    def _begin(self, period: Period, sight: Seen) -> None:
        """At a registration, or another version of the layer: whose last fix is IN is in, who is OUT is not.

        A fence in the place of another goes on with the visits of that one, and emits who is in.
        """
        here = Here(period.start, self._clock.time_at(period.start))
        if period.era.is_kept:
            self._take_over(period, here)
        else:
            for own in self._all():  # what had lasted long enough by then is of before
                self._dwell(own, here)
            self._fence, self._era = _fence_of(period.plan), period.number
            self._judge_anew(period, sight, here)

    def _take_over(self, period: Period, here: Here) -> None:
        """Whoever is in leaves the query that is replaced, and is in the new one at once."""
        going_on = []
        for own in self._all():
            self._dwell(own, here)
            if own.of.since_us is not None:
                going_on.append(own)
                if self._fence.has_answer:
                    lasted_s = own.of.lasted_s(here.event_us)
                    self._emit(own, "exit", "replaced", here, lasted_s)
        self._fence, self._era = _fence_of(period.plan), period.number
        for own in going_on:
            self._emit(own, self._present, "registered", here)

    @property
    def _present(self) -> Event:
        """The event by which a query emits who is in at its beginning."""
        return "enter" if self._fence.has_answer else "inside"

    def _judge_anew(self, period: Period, sight: Seen, here: Here) -> None:
        names = self._history.fixes.ids[period.before].tolist()
        for row, name in enumerate(names):
            targets = self._own.setdefault(name, {})
            for target in {*targets, *sight.inside.get(row, {})}:
                is_sure = sight.is_sure(row, target)
                own = self._own_of(name, target, here, is_sure=is_sure)
                side, is_in = sight.side(row, target), own.of.since_us is not None
                if is_in and side == "out":
                    self._exit(own, period.era.cause, here)
                elif not is_in and side == "in":
                    own.of.begin(here.event_us)
                    own.row = period.start
                    self._emit(own, self._present, period.era.cause, here)

    def _take(self, period: Period, sight: Seen) -> None:
        """All that came then, object by object."""
        region: set[Target] = {None} if period.plan.join is None else set()
        tells_outside, ts = "outside" in self._fence.events, self._events.ts
        for name, kind, row, here in self._came(period):
            if kind != FIX:
                self._end_object(name, "gone" if kind == GONE else "expired", here)
                continue
            is_far = not tells_outside and not sight.has_to_do(row)
            if is_far and not self._is_under_way(name):
                continue  # most fixes are far from a fence, of objects that are out: they change nothing
            targets = self._own.setdefault(name, {})
            for target in {*targets, *sight.targets(row), *region}:
                is_sure = sight.is_sure(row, target)
                own = self._own_of(name, target, here, is_sure=is_sure)
                gap_us = None
                if target in sight.passed.get(row, {}):
                    gap_us = int(ts[here.known] - ts[self._events.before[here.known]])
                self._judge(own, sight.side(row, target), gap_us, here)
            self._known[name] = here.known

    def _is_under_way(self, name: str) -> bool:
        """Whether an object is in somewhere, or has fixes in a row that count for it."""
        targets = self._own.get(name)
        return targets is not None and any(
            own.of.since_us is not None or own.of.row_us for own in targets.values()
        )

    def _judge(
        self, own: _Own[Machine], side: Side, gap_us: int | None, here: Here
    ) -> None:
        lasted_s = own.of.lasted_s(here.event_us)
        for event in own.of.take(self._fence, side, here.event_us, gap_us):
            if event == "enter":
                own.row = here.row
            cause, value = ("leave", lasted_s) if event == "exit" else (event, None)
            self._emit(own, event, cause, here, value)

    def _own_of(
        self, name: str, target: Target, here: Here, *, is_sure: bool
    ) -> _Own[Machine]:
        """The visits of an object, after what they had lasted by now; in doubt where a distance is."""
        targets = self._own.setdefault(name, {})
        own = targets.get(target)
        if own is None:
            own = targets[target] = _Own(name, target, Machine())
        self._dwell(own, here)
        if own.doubted_row is None and not is_sure:
            own.doubted_row = here.row
        return own

    def _end_object(self, name: str, cause: str, here: Here) -> None:
        for own in self._own.pop(name, {}).values():
            self._dwell(own, here)
            self._exit(own, cause, here)
            self._doubt(own, here.row)

    def _exit(self, own: _Own[Machine], cause: str, here: Here) -> None:
        """Where no fix or silence is the reason an end is emitted to who has an answer alone."""
        if own.of.since_us is None:
            return
        lasted_s = own.of.end(here.event_us)
        if self._fence.has_answer or cause in ("gone", "expired"):
            self._emit(own, "exit", cause, here, lasted_s)

    def _dwell(self, own: _Own[Machine], here: Here) -> None:
        """A visit had lasted long enough before this moment; who leaves at that very one has not stayed."""
        at_us, since_us = own.of.dwells_us(self._fence), own.of.since_us
        if at_us is None or since_us is None:
            return
        at_us = -(-at_us // self._tick_us) * self._tick_us
        row = max(self._clock.row_past(at_us), own.row)
        if (row, at_us) < (here.row, here.event_us):
            own.of.has_dwelled = True
            then = Here(row, at_us, self._known.get(own.name, -1))
            self._emit(own, "dwell", "dwell", then, (at_us - since_us) / 1e6)

    def _emit(
        self,
        own: _Own[Machine],
        event: Event,
        cause: str,
        here: Here,
        value: float | None = None,
    ) -> None:
        if event not in self._fence.events:
            return
        sign = {"enter": 1, "exit": -1}.get(event, 0) if self._fence.has_answer else 0
        row, event_us, known = here
        what = row, own.name, own.target, sign, cause, event_us, value, known
        self.lived.events.append(Emitted(*what, self._era))

    def end(self) -> None:
        """See `_Life.end`."""
        row, is_over = self._query.end, self._query.end != LATER
        here = Here(row, self._clock.time_at(row)) if is_over else Here(_END, _END)
        for own in self._all():
            self._dwell(own, here)
            self._doubt(own, _END)
            if is_over:
                self._exit(own, self._query.end_cause, here)
            elif own.of.since_us is not None and self._fence.has_answer:
                self.lived.inside.add((own.name, own.target))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ticked:
    """What was judged at ticks: events by object, in their order, and of each the number of its tick.

    `due` and `tick` say when each tick was judged, and its event time; `name` and `code` number objects.
    """

    rows: Ints
    number: Ints
    due: Ints
    tick: Ints
    name: Objects
    code: Ints

    def at(self, code: Ints, number: Ints) -> Ints:
        """The last event of objects at ticks, by place; -1 where none was yet."""
        width = len(self.due) + 1
        have = self.code * width + self.number
        last = np.searchsorted(have, code * width + number, side="right") - 1
        is_own = (last >= 0) & (self.code[last] == code)
        return np.where(is_own, last, -1)


def _ticked(history: History) -> _Ticked:
    events = history.events
    rows = np.flatnonzero(events.due != LATER)
    # Events of an object lie together: their objects are numbered in that order.
    is_another = np.append(True, np.diff(events.code[rows]) != 0)[: len(rows)]
    code = np.cumsum(is_another) - 1
    due, tick = events.due[rows], events.tick[rows]
    order = np.lexsort((tick, due))
    is_next = (np.diff(due[order]) != 0) | (np.diff(tick[order]) != 0)
    is_first = np.append(True, is_next)[: len(rows)]
    number = np.empty(len(rows), np.int64)
    number[order] = np.cumsum(is_first) - 1
    return _Ticked(
        rows=rows,
        number=number,
        due=due[order[is_first]],
        tick=tick[order[is_first]],
        name=history.fixes.ids[rows[is_another]],
        code=code,
    )


class _MovingVisits(_Visits):
    """The visits of all objects at ticks, at a region that goes with an object."""

    _first_tick_us = NEVER

    def __init__(self, query: Registered, history: History) -> None:
        super().__init__(query, history)
        self._tick_us = history.times.tick_us
        self._ticked = _ticked(history)

    def live(self, period: Period) -> None:
        """The next era: who is in at its beginning, then tick by tick; who never was in has no visit to end."""
        if period.era.cause == "registered" or period.era.is_kept:
            self._first_tick_us = self._history.tick_open_at(period.start)
        fixes = self._history.fixes.take(period.before)
        if not period.era.is_kept:
            self._end_dead(set(fixes.ids), period.era.cause, period.start)
        self._begin(period, seen_around(period.plan, fixes))
        for name, side, is_sure, ended, here in self._rows_in(period):
            if name not in self._own and side != "in":
                continue
            if ended is not None:
                self._end_object(name, ended, here)
                continue
            own = self._own_of(name, None, here, is_sure=is_sure)
            self._judge(own, side, None, here)
            self._known[name] = here.known

    def _end_dead(self, alive: set[str], cause: str, row: int) -> None:
        """Ends the visits of objects whose end is known, and not yet judged at a tick."""
        here = Here(row, self._clock.time_at(row))
        for own in self._all():
            if own.name not in alive:
                self._dwell(own, here)
                self._exit(own, cause, here)

    def _emit(
        self,
        own: _Own[Machine],
        event: Event,
        cause: str,
        here: Here,
        value: float | None = None,
    ) -> None:
        """The tick in which a query was registered has fixes from before it: who stays in is not emitted there."""
        if cause != "inside" or here.event_us > self._first_tick_us:
            super()._emit(own, event, cause, here, value)

    def _rows_in(
        self, period: Period
    ) -> Iterator[tuple[str, Side, bool, str | None, Here]]:
        """What machines take at the ticks that are judged in an era, in their order, some objects at a time.

        Whose, where it is, whether that is beyond doubt, why the object or a focal one does not live (None: all do;
        else the side says nothing), and when.
        """
        ticked, plan = self._ticked, period.plan
        numbers = np.flatnonzero(
            (ticked.due > period.start) & (ticked.due < period.end)
        )
        code_of = {name: code for code, name in enumerate(ticked.name.tolist())}
        if not code_of.keys() >= {*plan.focals} or not len(numbers):
            return
        focals = [code_of[name] for name in plan.focals]
        holds = satisfying(plan, self._history.fixes.take(ticked.rows))
        of_focal = np.intersect1d(ticked.number[np.isin(ticked.code, focals)], numbers)
        others = np.setdiff1d(np.arange(len(ticked.name)), focals)
        parts = max(1, len(others) * (len(of_focal) + 1) // _MOST_ROWS)
        for codes in np.array_split(others, parts):
            code, number = _touched(ticked, codes, numbers, of_focal)
            yield from self._judged(plan, code, number, holds, focals)

    def _judged(
        self, plan: Plan, code: Ints, number: Ints, holds: Bools, focals: Sequence[int]
    ) -> Iterator[tuple[str, Side, bool, str | None, Here]]:
        """Where objects are at ticks; `holds` says which events satisfy the condition."""
        ticked = self._ticked
        own = ticked.at(code, number)
        others = np.array(
            [ticked.at(np.full(len(code), focal), number) for focal in focals]
        )
        known = (own >= 0) & (others >= 0).all(axis=0)
        code, number, own = code[known], number[known], own[known]
        others = others[:, known]
        kind = self._events.kind[ticked.rows]
        ended = kind[own]
        for other in others:
            ended = np.where(ended != FIX, ended, kind[other])
        side, sure = np.full(len(code), "out", object), np.ones(len(code), bool)
        live = np.flatnonzero(ended == FIX)
        side[live], sure[live] = self._seen(plan, own[live], others[:, live], holds)
        order = np.lexsort((number, code))
        when = ticked.due[number], ticked.tick[number], ticked.rows[own]
        here = map(Here, *(one[order].tolist() for one in when))
        columns = ticked.name[code], side, sure, _CAUSES[ended]
        yield from zip(*(one[order].tolist() for one in columns), here, strict=True)

    def _seen(
        self, plan: Plan, own: Ints, others: np.ndarray, holds: Bools
    ) -> tuple[Objects, Bools]:
        """Where fixes (by place) are as seen from others, a row for each focal object; whether that is beyond doubt."""
        fixes = self._history.fixes.take(self._ticked.rows)
        places: dict[str, tuple[Floats, Floats]] = {
            name: (fixes.x[row], fixes.y[row])
            for name, row in zip(plan.focals, others, strict=True)
        }
        met = Met(fixes=fixes.take(own), places=places)
        inside, near = (one & certain(holds[own]) for one in sides(plan, met))
        side = np.select([inside.maybe, near.maybe], ["in", "near"], "out")
        sure = (inside.sure == inside.maybe) & (near.sure == near.maybe)
        return side.astype(object), sure


def _touched(
    ticked: _Ticked, codes: Ints, numbers: Ints, of_focal: Ints
) -> tuple[Ints, Ints]:
    """Objects and ticks at which something happened to them, or to a focal object; sorted, each pair once."""
    own = np.isin(ticked.code, codes) & np.isin(ticked.number, numbers)
    width = len(ticked.due) + 1
    at_focal = (codes[:, None] * width + of_focal).ravel()
    keys = np.append(ticked.code[own] * width + ticked.number[own], at_focal)
    code, number = np.divmod(np.unique(keys), width)
    return code, number


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """Of fixes by their rows: the targets that it holds for (and whether beyond doubt), what ends one, values."""

    holds: Partners
    ends: Bools
    value: Objects


def _incident_of(plan: Plan) -> Incident:
    assert plan.incident is not None  # noqa: S101 - for the type: only such plans are asked
    return plan.incident


def _holding(period: Period, history: History) -> _Holding:
    """What the condition, UNTIL and the worst value say of the fixes of an era."""
    plan, fixes = period.plan, history.fixes.take(period.fixes(history.events))
    until, worst = _incident_of(plan).until, _incident_of(plan).worst
    nothing, none = np.zeros(len(fixes), bool), np.full(len(fixes), None, object)
    features = features_in(period.era, history)
    return _Holding(
        holds=by_row(joined(plan, fixes, qualified(plan, fixes), features)),
        ends=nothing if until is None else fixes.is_true(until),
        value=none if worst is None else fixes.of.values(worst.argument, fixes.rows),
    )


class _Incidents(_Life[Stretch]):
    """The stretches of all objects."""

    def __init__(self, query: Registered, history: History) -> None:
        super().__init__(query, history)
        self._incident = _incident_of(query.eras[0].plan)

    def live(self, period: Period) -> None:
        """See `_Life.live`."""
        sight = _holding(period, self._history)
        if period.number:
            self._judge_again(period, sight)
        tells_on = period.plan.emit == "every"
        for name, kind, fix, here in self._came(period):
            targets = self._own.setdefault(name, {})
            holds = sight.holds.get(fix, {}) if kind == FIX else {}
            for target in {*targets, *holds}:
                own = targets.get(target)
                if own is None:
                    own = targets[target] = _Own(name, target, Stretch(), row=-1)
                self._break(own, here)
                if kind == FIX:
                    self._take(own, sight, fix, here, tells_on=tells_on)
                else:
                    self._end(own, "gone" if kind == GONE else "expired", here)
                    self._doubt(own, here.row)

    def _judge_again(self, period: Period, sight: _Holding) -> None:
        """Another version of the layer, or another area: without UNTIL the last fix says what goes on."""
        self._era = period.number
        here = Here(period.start, self._clock.time_at(period.start))
        names = self._history.fixes.ids[period.before].tolist()
        last_row = {name: at for at, name in enumerate(names)}
        for own in self._all():
            self._break(own, Here(period.start, LATER))
            holds = sight.holds.get(last_row.get(own.name, -1), {})
            goes_on = own.target in holds or self._incident.until is not None
            if own.of.is_open and not goes_on:
                self._end(own, period.era.cause, here)
            elif own.doubted_row is None and not holds.get(own.target, True):
                own.doubted_row = here.row

    def _take(
        self,
        own: _Own[Stretch],
        sight: _Holding,
        fix: int,
        here: Here,
        *,
        tells_on: bool,
    ) -> None:
        """What a fix does to an incident."""
        holds, value = sight.holds.get(fix, {}), sight.value[fix]
        told = own.of.take(
            self._incident,
            here.event_us,
            holds=own.target in holds,
            ends=bool(sight.ends[fix]),
            value=None if value is None else float(value),
        )
        own.row, own.known = here.row, here.known
        if told == "ended":
            self._end(own, "ended", here)
        elif told == "started" or (told == "ongoing" and tells_on):
            self._emit(own, told, here)
        if own.doubted_row is None and not holds.get(own.target, True):
            own.doubted_row = here.row

    def _break(self, own: _Own[Stretch], here: Here) -> None:
        """Ends what the gap before this row ended: the next event is too far away, or comes after the clock did."""
        end = own.of.broken_us(self._incident)
        if end is None:
            return
        at = max(self._clock.row_past(end), own.row)
        if at < LATER and (here.event_us > end or here.row > at) and at <= here.row:
            self._end(own, "gap", Here(at, own.of.at_us[-1], own.known))

    def _end(self, own: _Own[Stretch], cause: str, here: Here) -> None:
        if own.of.is_open:
            self._emit(own, cause, here)
        own.of.forget()

    def _emit(self, own: _Own[Stretch], cause: str, here: Here) -> None:
        row, event_us, known = here
        sign, lasted_s = _SIGNS.get(cause, -1), own.of.lasted_s(event_us)
        what = row, own.name, own.target, sign, cause, event_us, lasted_s, known
        worst = own.of.worst(self._incident)
        self.lived.events.append(Emitted(*what, self._era, own.of.at_us[0], worst))

    def end(self) -> None:
        """See `_Life.end`."""
        row, is_over = self._query.end, self._query.end != LATER
        for own in self._all():
            self._break(own, Here(row, LATER))
            self._doubt(own, LATER)
            if own.of.is_open and is_over:
                here = Here(row, self._clock.time_at(row))
                self._end(own, self._query.end_cause, here)
            elif own.of.is_open:
                self.lived.inside.add((own.name, own.target))
