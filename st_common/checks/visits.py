"""What fences and incidents must have told, and who is in now: the reference's machines, fed with the past.

    fixes -> in? near? holds?  -> machines, object by object -> told, each at its row of the log

In each era of a query (its layer, its area stay the same) fixes are seen all at once; then the machines take them.
Where a distance on degrees is in doubt, so are the visits of that object there.

Around a region that goes with an object a machine takes a row at each tick at which something happened to its object or
to a focal one. All rows are found as columns, some objects at a time; machines take those that came near once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
from st_common.reference.fence import Machine, Seen, Side, seen
from st_common.reference.incident import Stretch
from st_common.reference.incident import Told as StretchTold
from st_common.reference.members import joined, qualified
from st_common.reference.metric import Bools, Floats, Ints, Objects, certain
from st_common.reference.moving_fence import Met, satisfying, seen_around, sides

Target = str | None
_END = 1 << 62  # after all rows, and all times
_MOST_ROWS = 1 << 20  # that are found together
_CAUSES = np.array([None, "gone", "expired"], object)  # by kind of event
_SIGNS = {"started": 1, "ongoing": 0}


class Told(NamedTuple):
    """One event of a visit or an incident.

    Attributes:
        row: the row of the log at which it is told.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
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


@dataclass(slots=True)
class Visits:
    """The machine of an object and a target, at which row it came in, and from which row on that is in doubt."""

    machine: Machine = field(default_factory=Machine)
    since_row: int = 0
    doubted_row: int | None = None


@dataclass(frozen=True, slots=True)
class Lived:
    """What must have been told, who is in (or which incidents are open), and from where to where that is in doubt."""

    told: list[Told]
    inside: set[tuple[str, Target]]
    doubtful: dict[tuple[str, Target], list[tuple[int, int]]]

    def is_doubtful(self, row: int, name: str, target: Target) -> bool:
        """Whether what is told at a row of the log is of visits that are in doubt."""
        spans = self.doubtful.get((name, target), [])
        return any(start <= row <= end for start, end in spans)


def lived(query: Registered, history: History) -> Lived:
    """Everything that a fence or incidents must have told since the query was registered, and who is in in the end."""
    if query.plan.incident is not None:
        return _lived_incidents(query, history)
    life = _MovingLife(query, history) if query.plan.by_ticks else _Life(query, history)
    for period in periods_of(query, history):
        life.live(period)
    return life.ended()


def periods_of(query: Registered, history: History) -> Iterator[Period]:
    """The eras of a query with what happened in them."""
    events = history.events
    for number, (era, end) in enumerate(query.spans()):
        before = np.flatnonzero(events.effect < era.position)
        came = (events.effect > era.position) & (events.effect < end)
        yield Period(
            number=number,
            era=era,
            before=events.alive(before),
            came=np.flatnonzero(came),
            end=end,
        )


def _fence_of(plan: Plan) -> Fence:
    assert plan.fence is not None  # noqa: S101 - for the type: only such plans are asked
    return plan.fence


class _Life:
    """The visits of all objects, and what was told of them."""

    _tick_us = 1

    def __init__(self, query: Registered, history: History) -> None:
        self._query, self._history = query, history
        self._events, self._clock = history.events, history.clock
        self._fence, self._era = _fence_of(query.eras[0].plan), 0
        self._rows = np.append(history.clock.position, LATER)
        self._visits: dict[str, dict[Target, Visits]] = {}
        self._known: dict[str, int] = {}
        self._lived = Lived([], set(), {})

    def live(self, period: Period) -> None:
        """The next era of the query."""
        rows = period.fixes(self._events)
        history, fixes = self._history, self._history.fixes
        before = self._events.before[rows]
        x, y = (
            np.where(before >= 0, column[before], np.nan)
            for column in (fixes.x, fixes.y)
        )
        features = features_in(period.era, history)
        sight = seen(period.plan, fixes.take(rows), (x, y), features)
        self._begin(period, sight)
        self._take(period, sight)

    def _begin(self, period: Period, sight: Seen) -> None:
        """At a registration, or another version of the layer: whose last fix is IN is in, who is OUT is not.

        A fence in the place of another goes on with the visits of that one, and tells who is in.
        """
        now = self._clock.time_at(period.start)
        here = Moment(row=period.start, event_us=now)
        if period.era.is_kept:
            self._take_over(period, here)
        else:
            self._fence, self._era = _fence_of(period.plan), period.number
            self._judge_anew(period, sight, here)

    def _take_over(self, period: Period, here: Moment) -> None:
        """Whoever is in leaves the query that is replaced, and is in the new one at once."""
        going_on = []
        for name, own in self._visits.items():
            for target, visits in own.items():
                self._dwell(name, target, visits, here)
                if visits.machine.since_us is not None:
                    going_on.append((name, target))
                    if self._fence.has_answer:
                        lasted_s = visits.machine.lasted_s(here.event_us)
                        self._tell(name, target, "exit", "replaced", here, lasted_s)
        self._fence, self._era = _fence_of(period.plan), period.number
        event: Event = "enter" if self._fence.has_answer else "inside"
        for name, target in going_on:
            self._tell(name, target, event, "registered", here)

    def _judge_anew(self, period: Period, sight: Seen, here: Moment) -> None:
        names = self._history.fixes.ids[period.before].tolist()
        for row, name in enumerate(names):
            own = self._visits.setdefault(name, {})
            for target in {*own, *sight.inside.get(row, {})}:
                is_sure = sight.is_sure(row, target)
                visits = self._visits_of(name, target, here, is_sure=is_sure)
                side = sight.side(row, target)
                is_in = visits.machine.since_us is not None
                if is_in and side == "out":
                    self._end(name, target, visits, period.era.cause, here)
                elif not is_in and side == "in":
                    visits.machine.begin(here.event_us)
                    visits.since_row = period.start
                    event: Event = "enter" if self._fence.has_answer else "inside"
                    self._tell(name, target, event, period.era.cause, here)

    def _take(self, period: Period, sight: Seen) -> None:
        """All that came then, object by object."""
        events, came = self._events, period.came
        gap_us = events.ts[came] - events.ts[events.before[came]]
        columns = (
            self._history.fixes.ids[came],
            events.kind[came],
            events.effect[came],
            events.event[came],
            gap_us,
            came,
        )
        row = len(period.before) - 1
        has_region = period.plan.join is None
        tells_outside = "outside" in self._fence.events
        lists = (column.tolist() for column in columns)
        for name, kind, effect, event, passed_us, at in zip(*lists, strict=True):
            if kind == FIX and not tells_outside:
                # Most fixes are far from a fence, of objects that are out: they change nothing.
                has_to_do = sight.has_to_do(row + 1)
                if not has_to_do and not self._is_under_way(name):
                    row += 1
                    continue
            here = Moment(row=effect, event_us=event, known=at)
            if kind != FIX:
                self._end_object(name, "gone" if kind == GONE else "expired", here)
                continue
            row += 1
            known = {*self._visits.setdefault(name, {}), *sight.targets(row)}
            for target in {*known, None} if has_region else known:
                is_passed = target in sight.passed.get(row, {})
                is_sure = sight.is_sure(row, target)
                visits = self._visits_of(name, target, here, is_sure=is_sure)
                side = sight.side(row, target)
                gap = passed_us if is_passed else None
                self._judge(name, target, visits, side, gap, here)
            self._known[name] = at

    def _is_under_way(self, name: str) -> bool:
        """Whether an object is in somewhere, or has fixes in a row that count for it."""
        own = self._visits.get(name)
        return own is not None and any(
            visits.machine.since_us is not None or visits.machine.row_us
            for visits in own.values()
        )

    def _judge(
        self,
        name: str,
        target: Target,
        visits: Visits,
        side: Side,
        gap_us: int | None,
        here: Moment,
    ) -> None:
        machine = visits.machine
        lasted_s = machine.lasted_s(here.event_us)
        for event in machine.take(self._fence, side, here.event_us, gap_us):
            if event == "enter":
                visits.since_row = here.row
            cause, value = ("leave", lasted_s) if event == "exit" else (event, None)
            self._tell(name, target, event, cause, here, value)

    def _visits_of(
        self, name: str, target: Target, here: Moment, *, is_sure: bool
    ) -> Visits:
        """The visits of an object, after what they were told to last by now; in doubt where a distance is."""
        visits = self._visits.setdefault(name, {}).setdefault(target, Visits())
        self._dwell(name, target, visits, here)
        if visits.doubted_row is None and not is_sure:
            visits.doubted_row = here.row
        return visits

    def _end_object(self, name: str, cause: str, here: Moment) -> None:
        for target, visits in self._visits.pop(name, {}).items():
            self._dwell(name, target, visits, here)
            if visits.machine.since_us is not None:
                self._end(name, target, visits, cause, here)
            self._doubt(name, target, visits, here.row)

    def _end(
        self,
        name: str,
        target: Target,
        visits: Visits,
        cause: str,
        here: Moment,
    ) -> None:
        """Where no fix or silence is the reason an end is told to who has an answer alone."""
        lasted_s = visits.machine.end(here.event_us)
        if self._fence.has_answer or cause in ("gone", "expired"):
            self._tell(name, target, "exit", cause, here, lasted_s)

    def _dwell(self, name: str, target: Target, visits: Visits, here: Moment) -> None:
        """A visit had lasted long enough before this moment; who leaves at that very one has not stayed."""
        at_us, since_us = visits.machine.dwells_us(self._fence), visits.machine.since_us
        if at_us is None or since_us is None:
            return
        at_us = -(-at_us // self._tick_us) * self._tick_us
        past = int(self._rows[np.searchsorted(self._clock.after, at_us, side="right")])
        told = Moment(
            row=max(past, visits.since_row),
            event_us=at_us,
            known=self._known.get(name, -1),
        )
        if (told.row, told.event_us) < (here.row, here.event_us):
            visits.machine.has_dwelled = True
            lasted_s = (at_us - since_us) / 1e6
            self._tell(name, target, "dwell", "dwell", told, lasted_s)

    def _tell(
        self,
        name: str,
        target: Target,
        event: Event,
        cause: str,
        here: Moment,
        value: float | None = None,
    ) -> None:
        if event not in self._fence.events:
            return
        sign = {"enter": 1, "exit": -1}.get(event, 0) if self._fence.has_answer else 0
        self._lived.told.append(
            Told(
                here.row,
                name,
                target,
                sign,
                cause,
                here.event_us,
                value,
                here.known,
                self._era,
            )
        )

    def _doubt(self, name: str, target: Target, visits: Visits, row: int) -> None:
        if visits.doubted_row is not None:
            spans = self._lived.doubtful.setdefault((name, target), [])
            spans.append((visits.doubted_row, row))

    def ended(self) -> Lived:
        """All of it, up to where the log was read, or where the query ended: then all visits do."""
        row, is_over = self._query.end, self._query.end != LATER
        end = Moment(row=_END, event_us=_END)
        if is_over:
            end = Moment(row=row, event_us=self._clock.time_at(row))
        for name, own in self._visits.items():
            for target, visits in own.items():
                self._dwell(name, target, visits, end)
                self._doubt(name, target, visits, _END)
                if visits.machine.since_us is None:
                    continue
                if is_over:
                    self._end(name, target, visits, self._query.end_cause, end)
                elif self._fence.has_answer:
                    self._lived.inside.add((name, target))
        return self._lived


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
    when = np.stack([events.due[rows], events.tick[rows]], axis=1)
    ticks, number = np.unique(when, axis=0, return_inverse=True)
    return _Ticked(
        rows=rows,
        number=number.reshape(-1),
        due=ticks[:, 0],
        tick=ticks[:, 1],
        name=history.fixes.ids[rows[is_another]],
        code=code,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What machines take, in their order: of which object, when, where it is, and whether that is beyond doubt.

    `known` is the last event of the object. `ended` is why the object or a focal one does not live, None where all do;
    then the side says nothing.
    """

    name: Sequence[str]
    row: Sequence[int]
    event_us: Sequence[int]
    side: Sequence[Side]
    sure: Sequence[bool]
    ended: Sequence[str | None]
    known: Sequence[int]


class _MovingLife(_Life):
    """The visits of all objects at ticks, at a region that goes with an object."""

    _first_tick_us = NEVER

    def __init__(self, query: Registered, history: History) -> None:
        super().__init__(query, history)
        self._tick_us = history.times.tick_us
        self._ticked = _ticked(history)

    def live(self, period: Period) -> None:
        """The next era: who is in at its beginning, then tick by tick."""
        before = self._clock.at(period.start)
        here = Moment(row=period.start, event_us=self._clock.time_at(period.start))
        if period.era.cause == "registered" or period.era.is_kept:
            self._first_tick_us = -(-before // self._tick_us) * self._tick_us
        fixes = self._history.fixes.take(period.before)
        if not period.era.is_kept:
            self._end_dead(set(fixes.ids), period.era.cause, here)
        self._begin(period, seen_around(period.plan, fixes))
        for rows in self._rows_in(period):
            self._take_ticks(rows)

    def _end_dead(self, alive: set[str], cause: str, here: Moment) -> None:
        """Ends the visits of objects whose end is known, and not yet judged at a tick."""
        for name in {*self._visits} - alive:
            for target, visits in self._visits[name].items():
                self._dwell(name, target, visits, here)
                if visits.machine.since_us is not None:
                    self._end(name, target, visits, cause, here)

    def _take_ticks(self, rows: _Rows) -> None:
        """What ticks say, object by object; those that never were in have no visit to tell of."""
        columns = (getattr(rows, name) for name in _Rows.__dataclass_fields__)
        for name, row, event_us, side, is_sure, ended, known in zip(
            *columns, strict=True
        ):
            if name not in self._visits and side != "in":
                continue
            here = Moment(row=row, event_us=event_us, known=known)
            if ended is not None:
                self._end_object(name, ended, here)
                continue
            visits = self._visits_of(name, None, here, is_sure=is_sure)
            self._judge(name, None, visits, side, None, here)
            self._known[name] = known

    def _tell(
        self,
        name: str,
        target: Target,
        event: Event,
        cause: str,
        here: Moment,
        value: float | None = None,
    ) -> None:
        """The tick in which a query was registered has fixes from before it: who stays in is not told there."""
        if cause != "inside" or here.event_us > self._first_tick_us:
            super()._tell(name, target, event, cause, here, value)

    def _rows_in(self, period: Period) -> Iterator[_Rows]:
        """What machines take at the ticks that are judged in an era, some objects at a time."""
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
            yield self._judged(plan, code, number, holds, focals)

    def _judged(
        self, plan: Plan, code: Ints, number: Ints, holds: Bools, focals: Sequence[int]
    ) -> _Rows:
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
        columns: dict[str, np.ndarray] = {
            "name": ticked.name[code],
            "row": ticked.due[number],
            "event_us": ticked.tick[number],
            "side": side,
            "sure": sure,
            "ended": _CAUSES[ended],
            "known": ticked.rows[own],
        }
        return _Rows(**{name: one[order].tolist() for name, one in columns.items()})

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
    pairs = np.concatenate(
        [
            np.stack([ticked.code[own], ticked.number[own]], axis=1),
            np.stack(
                [np.repeat(codes, len(of_focal)), np.tile(of_focal, len(codes))], axis=1
            ),
        ]
    )
    code, number = np.unique(pairs, axis=0).T
    return code, number


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """Of fixes by their rows: the targets that it holds for (and whether beyond doubt), what ends one, values."""

    holds: Mapping[int, Mapping[Target, bool]]
    ends: Bools
    value: Objects


@dataclass(slots=True)
class _Own:
    """The stretch of an object and a target: at which row its last fix counted, and from which row it is in doubt."""

    name: str
    target: Target
    stretch: Stretch = field(default_factory=Stretch)
    last_row: int = -1
    known: int = -1
    doubted_row: int | None = None


def _lived_incidents(query: Registered, history: History) -> Lived:
    life = _IncidentLife(query, history)
    for period in periods_of(query, history):
        sight = _holding(period, history)
        if period.number:
            life.judge_again(period, sight)
        life.take(period, sight)
    return life.ended()


def _incident_of(plan: Plan) -> Incident:
    assert plan.incident is not None  # noqa: S101 - for the type: only such plans are asked
    return plan.incident


def _holding(period: Period, history: History) -> _Holding:
    """What the condition, UNTIL and the worst value say of the fixes of an era."""
    plan, fixes = period.plan, history.fixes.take(period.fixes(history.events))
    until, worst = _incident_of(plan).until, _incident_of(plan).worst
    nothing, none = np.zeros(len(fixes), bool), np.full(len(fixes), None, object)
    features = features_in(period.era, history)
    pairs = joined(plan, fixes, qualified(plan, fixes), features)
    holds: dict[int, dict[Target, bool]] = {}
    parts = zip(pairs.row.tolist(), pairs.partner, pairs.sure.tolist(), strict=True)
    for row, partner, sure in parts:
        holds.setdefault(row, {})[partner] = sure
    return _Holding(
        holds=holds,
        ends=nothing if until is None else fixes.is_true(until),
        value=none if worst is None else fixes.of.values(worst.argument, fixes.rows),
    )


class _IncidentLife:
    """The stretches of all objects, and what was told of them."""

    def __init__(self, query: Registered, history: History) -> None:
        self._query, self._history = query, history
        self._clock, self._incident = history.clock, _incident_of(query.eras[0].plan)
        self._own: dict[str, dict[Target, _Own]] = {}
        self._lived = Lived([], set(), {})
        self._tells_on, self._era = False, 0

    def judge_again(self, period: Period, sight: _Holding) -> None:
        """Another version of the layer, or another area: without UNTIL the last fix says what goes on."""
        self._era = period.number
        row, now = period.start, self._clock.time_at(period.start)
        names = self._history.fixes.ids[period.before].tolist()
        last_row = {name: at for at, name in enumerate(names)}
        for own in self._all():
            self._break(own, row, LATER)
            holds = sight.holds.get(last_row.get(own.name, -1), {})
            goes_on = own.target in holds or self._incident.until is not None
            if own.stretch.is_open and not goes_on:
                self._end(own, period.era.cause, row, now, -1)
            elif own.doubted_row is None and not holds.get(own.target, True):
                own.doubted_row = row

    def take(self, period: Period, sight: _Holding) -> None:
        """All that came then, object by object."""
        self._tells_on = period.plan.emit == "every"
        events, came = self._history.events, period.came
        columns = (
            self._history.fixes.ids[came],
            events.kind[came],
            events.effect[came],
            events.event[came],
            came,
        )
        lists, fix = (column.tolist() for column in columns), len(period.before) - 1
        for name, kind, row, event_us, at in zip(*lists, strict=True):
            targets = self._own.setdefault(name, {})
            fix += kind == FIX
            holds = sight.holds.get(fix, {}) if kind == FIX else {}
            for target in {*targets, *holds}:
                own = targets.setdefault(target, _Own(name, target))
                self._break(own, row, event_us)
                if kind == FIX:
                    told = self._taken(own, sight, fix, event_us)
                    own.last_row, own.known = row, at
                    self._tell_of(own, told, row, event_us)
                    if own.doubted_row is None and not holds.get(target, True):
                        own.doubted_row = row
                else:
                    cause = "gone" if kind == GONE else "expired"
                    self._end(own, cause, row, event_us, at)
                    self._doubt(own, row)

    def _taken(
        self, own: _Own, sight: _Holding, fix: int, event_us: int
    ) -> StretchTold | None:
        value = sight.value[fix]
        return own.stretch.take(
            self._incident,
            event_us,
            holds=own.target in sight.holds.get(fix, {}),
            ends=bool(sight.ends[fix]),
            value=None if value is None else float(value),
        )

    def _tell_of(
        self, own: _Own, told: StretchTold | None, row: int, event_us: int
    ) -> None:
        """What a fix did, where it is told of."""
        if told == "ended":
            self._end(own, "ended", row, event_us, own.known)
        elif told == "started" or (told == "ongoing" and self._tells_on):
            self._tell(own, told, row, event_us, own.known)

    def _break(self, own: _Own, row: int, event_us: int) -> None:
        """Ends what the gap before this row ended: the next event is too far away, or comes after the clock did."""
        end = own.stretch.broken_us(self._incident)
        if end is None:
            return
        at = max(int(self._clock.first_past(np.array([end]))[0]), own.last_row)
        if at < LATER and (event_us > end or row > at) and at <= row:
            self._end(own, "gap", at, own.stretch.at_us[-1], own.known)

    def _end(self, own: _Own, cause: str, row: int, event_us: int, known: int) -> None:
        if own.stretch.is_open:
            self._tell(own, cause, row, event_us, known)
        own.stretch.forget()

    def _tell(self, own: _Own, cause: str, row: int, event_us: int, known: int) -> None:
        stretch = own.stretch
        self._lived.told.append(
            Told(
                row,
                own.name,
                own.target,
                _SIGNS.get(cause, -1),
                cause,
                event_us,
                stretch.lasted_s(event_us),
                known,
                self._era,
                stretch.at_us[0],
                stretch.worst(self._incident),
            )
        )

    def _doubt(self, own: _Own, row: int) -> None:
        if own.doubted_row is not None:
            pair = own.name, own.target
            spans = self._lived.doubtful.setdefault(pair, [])
            spans.append((own.doubted_row, row))
            own.doubted_row = None

    def _all(self) -> Iterator[_Own]:
        for targets in self._own.values():
            yield from targets.values()

    def ended(self) -> Lived:
        """All of it, up to where the log was read, or where the query ended: then all incidents do."""
        row, is_over = self._query.end, self._query.end != LATER
        for own in self._all():
            self._break(own, row, LATER)
            self._doubt(own, LATER)
            if own.stretch.is_open and is_over:
                now = self._clock.time_at(row)
                self._end(own, self._query.end_cause, row, now, -1)
            elif own.stretch.is_open:
                self._lived.inside.add((own.name, own.target))
        return self._lived
