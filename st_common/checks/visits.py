"""What fences and incidents must have told, and who is in now: the reference's machines, fed with the past.

    positions -> in? near? holds?  -> machines, object by object -> told, each at its row of the log

Between two versions of its layer, or regions of its area, fixes are seen all at once; then the machines take them.
Where a distance on degrees is in doubt, so are the visits of that object there.

Around a region that goes with an object a machine takes a row at each tick at which something happened to its object or
to a focal one. All rows are found as columns, some objects at a time; machines take those that came near once.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from st_common.checks.archived import History
from st_common.checks.expressions import FeaturesOf, features_of, fixes_of
from st_common.checks.history import FIX, GONE, LATER, NEVER, Registered
from st_common.query.fence import Event, Fence
from st_common.query.incident import Incident
from st_common.query.plan import LayerJoin, Plan
from st_common.reference.columns import Features, Fixes
from st_common.reference.fence import Machine, Seen, Side, seen
from st_common.reference.incident import Stretch
from st_common.reference.incident import Told as StretchTold
from st_common.reference.members import joined, qualified
from st_common.reference.metric import certain
from st_common.reference.moving_fence import Met, satisfying, seen_around, sides

Target = str | None
Told = tuple[Any, ...]
"""Position, object, target, sign, cause, event time in microseconds, value; of incidents the worst value, too."""
_END = 1 << 62  # after all rows, and all times
_EPOCH = 0  # the time before the stream had any


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A row of the log, and the event time of what takes effect there."""

    row: int
    event_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Rows of the log over which plan and features stay the same: what was there at its beginning, and what came then.

    `cause` is what began it: that the query was registered, or that its layer or its area changed. Where visits are
    kept it took the place of another fence.
    """

    start: int
    plan: Plan
    cause: str
    is_kept: bool
    before: pd.DataFrame
    events: pd.DataFrame
    features: FeaturesOf


@dataclass(slots=True)
class Visits:
    """The machine of an object and a target, at which row it came in, and from which row on that is in doubt."""

    machine: Machine = field(default_factory=Machine)
    since_row: int = 0
    doubted_row: int | None = None


@dataclass(frozen=True, slots=True)
class Lived:
    """What a fence must have told, who is in it now, and from which row of the log to which visits are in doubt."""

    told: list[Told]
    inside: set[tuple[str, Target]]
    doubtful: dict[tuple[str, Target], list[tuple[int, int]]]

    def is_doubtful(self, told: Told) -> bool:
        """Whether what was told is of visits that are in doubt."""
        row, name, target = told[:3]
        spans = self.doubtful.get((name, target), [])
        return any(start <= row <= end for start, end in spans)


def lived(query: Registered, fence: Fence, history: History) -> Lived:
    """Everything that a fence must have told since it was registered, and who is in it in the end."""
    life = Life(fence, history)
    for period in periods_of(query, history):
        came = period.events[period.events["kind"] == FIX]
        frame = pd.concat([period.before, came])
        before = frame["before_x"].to_numpy(float), frame["before_y"].to_numpy(float)
        sight = seen(period.plan, fixes_of(frame, history.of), before, period.features)
        life.begin(period, sight)
        life.take(period, sight, has_region=query.plan.join is None)
    return life.ended()


def periods_of(query: Registered, history: History) -> Iterator[Period]:
    """The rows of the log over which the plan of a fence and its features stay the same, from its registration on."""
    events = history.events.reset_index(drop=True)
    effect = events["effect"].to_numpy()
    versions = query.layers or ((query.position, 0),)
    ends = [*(at for at, _ in versions[1:]), LATER]
    spans = zip(versions, ends, strict=True)
    for era, ((start, version), end) in enumerate(spans):
        last = events[effect < start].groupby("object", sort=False).tail(1)
        yield Period(
            start=start,
            plan=query.plan_in(era),
            cause=query.cause_of(era),
            is_kept=start in query.kept,
            before=last[last["kind"] == FIX],
            events=events[(effect > start) & (effect < end)],
            features=_features(query.plan.join, history, version),
        )


def _features(join: LayerJoin | None, history: History, version: int) -> FeaturesOf:
    """The features of a version of the layer; of whom nobody asks without a join."""

    def features() -> Features:
        assert join is not None  # noqa: S101 - for the type: else none asks
        return features_of(history.home, join, version)

    return features


class Life:
    """The visits of all objects, and what was told of them; DWELL for the first tick, where there are ticks."""

    def __init__(self, fence: Fence, history: History, *, tick_us: int = 1) -> None:
        self._fence, self._clock, self._tick_us = fence, history.clock, tick_us
        self._rows = np.append(history.clock.position, LATER)
        self._visits: dict[str, dict[Target, Visits]] = {}
        self._lived = Lived([], set(), {})

    def begin(self, period: Period, sight: Seen) -> None:
        """At a registration, or another version of the layer: whose last fix is IN is in, who is OUT is not.

        A fence in the place of another goes on with the visits of that one, and tells who is in.
        """
        now = max(int(self._clock.just_before(np.array([period.start]))[0]), _EPOCH)
        here = Moment(row=period.start, event_us=now)
        self._fence = period.plan.fence or self._fence
        if period.is_kept:
            self._take_over(here)
        else:
            self._judge_anew(period, sight, here)

    def _take_over(self, here: Moment) -> None:
        event: Event = "enter" if self._fence.has_answer else "inside"
        for name, own in self._visits.items():
            for target, visits in own.items():
                self._dwell(name, target, visits, here)
                if visits.machine.since_us is not None:
                    self._tell(name, target, event, "registered", here)

    def _judge_anew(self, period: Period, sight: Seen, here: Moment) -> None:
        for row, name in enumerate(period.before["object"].tolist()):
            own = self._visits.setdefault(name, {})
            for target in {*own, *sight.inside.get(row, {})}:
                is_sure = sight.is_sure(row, target)
                visits = self._visits_of(name, target, here, is_sure=is_sure)
                side, is_in = (
                    sight.side(row, target),
                    visits.machine.since_us is not None,
                )
                if is_in and side == "out":
                    self._end(name, target, visits, period.cause, here)
                elif not is_in and side == "in":
                    visits.machine.begin(here.event_us)
                    visits.since_row = period.start
                    event: Event = "enter" if self._fence.has_answer else "inside"
                    self._tell(name, target, event, period.cause, here)

    def take(self, period: Period, sight: Seen, *, has_region: bool) -> None:
        """All that came then, object by object."""
        names = ("object", "kind", "effect", "event", "elapsed_s")
        columns = (period.events[name].tolist() for name in names)
        row = len(period.before) - 1
        tells_outside = "outside" in self._fence.events
        for name, kind, effect, event, elapsed_s in zip(*columns, strict=True):
            if kind == FIX and not tells_outside:
                # Most fixes are far from a fence, of objects that are out: they change nothing.
                has_to_do = sight.has_to_do(row + 1)
                if not has_to_do and not self._is_under_way(name):
                    row += 1
                    continue
            here = Moment(row=effect, event_us=event)
            if kind != FIX:
                self._end_object(name, "gone" if kind == GONE else "expired", here)
                continue
            row += 1
            known = {*self._visits.setdefault(name, {}), *sight.targets(row)}
            for target in {*known, None} if has_region else known:
                gap_us = None
                if target in sight.passed.get(row, {}):
                    gap_us = round(elapsed_s * 1e6)
                is_sure = sight.is_sure(row, target)
                visits = self._visits_of(name, target, here, is_sure=is_sure)
                self._judge(name, target, visits, sight.side(row, target), gap_us, here)

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
        told = Moment(row=max(past, visits.since_row), event_us=at_us)
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
        row = (here.row, name, target, sign, cause, here.event_us, rounded(value))
        self._lived.told.append(row)

    def _doubt(self, name: str, target: Target, visits: Visits, row: int) -> None:
        if visits.doubted_row is not None:
            spans = self._lived.doubtful.setdefault((name, target), [])
            spans.append((visits.doubted_row, row))

    def ended(self) -> Lived:
        """All of it, up to where the log was read."""
        end = Moment(row=_END, event_us=_END)
        for name, own in self._visits.items():
            for target, visits in own.items():
                self._dwell(name, target, visits, end)
                self._doubt(name, target, visits, _END)
                if visits.machine.since_us is not None:
                    self._lived.inside.add((name, target))
        return self._lived


def rounded(value: float | None) -> float | None:
    """Seconds to the microsecond; NaN is none."""
    return None if value is None or np.isnan(value) else round(value, 6)


_MOST_ROWS = 1 << 20  # that are found together
_CAUSES = np.array([None, "gone", "expired"], object)  # by kind of event


def lived_at_ticks(query: Registered, fence: Fence, history: History) -> Lived:
    """Everything that a fence must have told since it was registered, and who is in it in the end."""
    life = _MovingLife(fence, history, tick_us=history.times.tick_us)
    ticked = _ticked(history)
    periods = list(periods_of(query, history))
    ends = [*(period.start for period in periods[1:]), LATER]
    for period, end in zip(periods, ends, strict=True):
        life.begin_at(period, history)
        for rows in _rows(period.plan, ticked, period.start, end, history):
            life.take_ticks(rows)
    return life.ended()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ticked:
    """What was judged at ticks: events by object, in their order, and of each the number of its tick.

    `due` and `tick` say when each tick was judged, and its event time; `name` and `code` number objects.
    """

    events: pd.DataFrame
    number: np.ndarray
    due: np.ndarray
    tick: np.ndarray
    name: np.ndarray
    code: np.ndarray

    def at(self, code: np.ndarray, number: np.ndarray) -> np.ndarray:
        """The last event of objects at ticks, by place; -1 where none was yet."""
        width = len(self.due) + 1
        have = self.code * width + self.number
        last = np.searchsorted(have, code * width + number, side="right") - 1
        is_own = (last >= 0) & (self.code[last] == code)
        return np.where(is_own, last, -1)


def _ticked(history: History) -> _Ticked:
    events = history.events[history.events["due"] != LATER].reset_index(drop=True)
    name, code = np.unique(events["object"].to_numpy(object), return_inverse=True)
    order = np.argsort(code, kind="stable")
    events, code = events.iloc[order].reset_index(drop=True), code[order]
    when = events[["due", "tick"]].to_numpy(np.int64)
    ticks, number = np.unique(when, axis=0, return_inverse=True)
    return _Ticked(
        events=events,
        number=number.reshape(-1),
        due=ticks[:, 0],
        tick=ticks[:, 1],
        name=name,
        code=code,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What machines take, in their order: of which object, when, where it is, and whether that is beyond doubt.

    `ended` is why the object or a focal one does not live, None where all do; then the side says nothing.
    """

    name: Sequence[str]
    row: Sequence[int]
    event_us: Sequence[int]
    side: Sequence[Side]
    sure: Sequence[bool]
    ended: Sequence[str | None]


def _rows(
    plan: Plan, ticked: _Ticked, start: int, end: int, history: History
) -> Iterator[_Rows]:
    """What machines take at the ticks that are judged between two rows of the log, some objects at a time."""
    numbers = np.flatnonzero((ticked.due > start) & (ticked.due < end))
    code_of = {name: code for code, name in enumerate(ticked.name.tolist())}
    if not code_of.keys() >= {*plan.focals} or not len(numbers):
        return
    focals = [code_of[name] for name in plan.focals]
    holds = satisfying(plan, fixes_of(ticked.events, history.of))
    of_focal = np.intersect1d(ticked.number[np.isin(ticked.code, focals)], numbers)
    others = np.setdiff1d(np.arange(len(ticked.name)), focals)
    parts = max(1, len(others) * (len(of_focal) + 1) // _MOST_ROWS)
    for codes in np.array_split(others, parts):
        code, number = _touched(ticked, codes, numbers, of_focal)
        yield _judged_rows(plan, ticked, code, number, holds, focals, history)


def _touched(
    ticked: _Ticked, codes: np.ndarray, numbers: np.ndarray, of_focal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
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


def _judged_rows(  # noqa: PLR0917 - what one search for pairs gives, taken apart once
    plan: Plan,
    ticked: _Ticked,
    code: np.ndarray,
    number: np.ndarray,
    holds: np.ndarray,
    focals: Sequence[int],
    history: History,
) -> _Rows:
    """Where objects are at ticks; `holds` says which events satisfy the condition."""
    own = ticked.at(code, number)
    others = np.array(
        [ticked.at(np.full(len(code), focal), number) for focal in focals]
    )
    known = (own >= 0) & (others >= 0).all(axis=0)
    code, number, own, others = code[known], number[known], own[known], others[:, known]
    kind = ticked.events["kind"].to_numpy()
    ended = kind[own]
    for other in others:
        ended = np.where(ended != FIX, ended, kind[other])
    side, sure = np.full(len(code), "out", object), np.ones(len(code), bool)
    live = np.flatnonzero(ended == FIX)
    side[live], sure[live] = _seen_from(
        plan, ticked, own[live], others[:, live], holds, history
    )
    order = np.lexsort((number, code))
    columns = {
        "name": ticked.name[code],
        "row": ticked.due[number],
        "event_us": ticked.tick[number],
        "side": side,
        "sure": sure,
        "ended": _CAUSES[ended],
    }
    return _Rows(**{name: one[order].tolist() for name, one in columns.items()})


def _seen_from(
    plan: Plan,
    ticked: _Ticked,
    own: np.ndarray,
    others: np.ndarray,
    holds: np.ndarray,
    history: History,
) -> tuple[np.ndarray, np.ndarray]:
    """Where fixes (by place) are as seen from others, a row for each focal object; and whether that is beyond doubt."""
    x, y = (ticked.events[name].to_numpy(float) for name in ("x", "y"))
    fixes = fixes_of(ticked.events, history.of).take(own)
    at = zip(plan.focals, others, strict=True)
    met = Met(fixes=fixes, places={name: (x[row], y[row]) for name, row in at})
    seen = sides(plan, met)
    inside, near = (one & certain(holds[own]) for one in seen)
    side = np.select([inside.maybe, near.maybe], ["in", "near"], "out").astype(object)
    sure = (inside.sure == inside.maybe) & (near.sure == near.maybe)
    return side, sure


class _MovingLife(Life):
    """The visits of all objects at ticks."""

    _first_tick_us = NEVER

    def begin_at(self, period: Period, history: History) -> None:
        """At a registration, or of another region: whose last fix is IN is in, who is OUT or lives no more is not."""
        before = int(history.clock.just_before(np.array([period.start]))[0])
        here = Moment(row=period.start, event_us=max(before, 0))
        if period.cause == "registered" or period.is_kept:
            self._first_tick_us = -(-before // self._tick_us) * self._tick_us
        if not period.is_kept:
            self._end_dead(set(period.before["object"]), period.cause, here)
        self.begin(
            period, seen_around(period.plan, fixes_of(period.before, history.of))
        )

    def _end_dead(self, alive: set[str], cause: str, here: Moment) -> None:
        """Ends the visits of objects whose end is known, and not yet judged at a tick."""
        for name in {*self._visits} - alive:
            for target, visits in self._visits[name].items():
                self._dwell(name, target, visits, here)
                if visits.machine.since_us is not None:
                    self._end(name, target, visits, cause, here)

    def take_ticks(self, rows: _Rows) -> None:
        """What ticks say, object by object; those that never were in have no visit to tell of."""
        columns = (getattr(rows, name) for name in _Rows.__dataclass_fields__)
        for name, row, event_us, side, is_sure, ended in zip(*columns, strict=True):
            if name not in self._visits and side != "in":
                continue
            here = Moment(row=row, event_us=event_us)
            if ended is not None:
                self._end_object(name, ended, here)
                continue
            visits = self._visits_of(name, None, here, is_sure=is_sure)
            self._judge(name, None, visits, side, None, here)

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


_TOLD_OF_INCIDENTS = ("position", "object", "partner", "sign", "cause", "value")
_SIGNS = {"started": 1, "ongoing": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """Of fixes by their rows: the targets that it holds for (and whether beyond doubt), what ends one, values."""

    holds: Mapping[int, Mapping[Target, bool]]
    ends: np.ndarray
    value: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class _IncidentPeriod:
    """Rows of the log over which the plan and the layer stay the same: last fixes before it, and what came then."""

    start: int
    plan: Plan
    cause: str
    before: pd.DataFrame
    events: pd.DataFrame
    layer_version: int


@dataclass(slots=True)
class _Own:
    """The stretch of an object and a target: at which row its last fix counted, and from which row it is in doubt."""

    name: str
    target: Target
    stretch: Stretch = field(default_factory=Stretch)
    last_row: int = -1
    doubted_row: int | None = None


def lived_incidents(query: Registered, incident: Incident, history: History) -> Lived:
    """Everything that must have been told of incidents since the query was registered, and those that are open."""
    life = _IncidentLife(incident, history)
    for number, period in enumerate(_incident_periods(query, history)):
        came = period.events[period.events["kind"] == FIX]
        sight = _seen_holds(period, pd.concat([period.before, came]), history)
        if number:
            life.judge_again(period, sight)
        life.take(period, sight)
    return life.ended()


def told_incidents(mine: pd.DataFrame, incident: Incident) -> Counter[tuple[Any, ...]]:
    """Rows of `changes` in the form of `Lived.told`."""
    columns = (mine[name].tolist() for name in _TOLD_OF_INCIDENTS)
    event_us = mine["event_ts"].dt.as_unit("us").astype(np.int64).tolist()
    rows = zip(*columns, event_us, mine["fields"].tolist(), strict=True)
    return Counter(
        (at, name, target, sign, cause, us, rounded(value), _said(fields, incident))
        for at, name, target, sign, cause, value, us, fields in rows
    )


def _said(fields: str, incident: Incident) -> float | None:
    """The worst value that was told."""
    if incident.worst is None:
        return None
    return _digits(json.loads(fields)[incident.worst.name])


def _digits(value: float | None) -> float | None:
    """To 9 digits: `speed_mps` is measured in two ways."""
    return None if value is None else float(f"{value:.9g}")


def _incident_periods(query: Registered, history: History) -> Iterator[_IncidentPeriod]:
    events = history.events.reset_index(drop=True)
    effect = events["effect"].to_numpy()
    versions = query.layers or ((query.position, 0),)
    ends = [*(at for at, _ in versions[1:]), LATER]
    for era, ((start, version), end) in enumerate(zip(versions, ends, strict=True)):
        last = events[effect < start].groupby("object", sort=False).tail(1)
        yield _IncidentPeriod(
            start=start,
            plan=query.plan_in(era),
            cause=query.cause_of(era),
            before=last[last["kind"] == FIX],
            events=events[(effect > start) & (effect < end)],
            layer_version=version,
        )


def _seen_holds(
    period: _IncidentPeriod, frame: pd.DataFrame, history: History
) -> _Holding:
    fixes, incident = fixes_of(frame, history.of), period.plan.incident
    assert incident is not None  # noqa: S101 - for the type: only such plans are asked
    nothing, none = np.zeros(len(fixes), bool), np.full(len(fixes), None, object)
    until, worst = incident.until, incident.worst
    return _Holding(
        holds=_holds(period, fixes, history),
        ends=nothing if until is None else fixes.is_true(until),
        value=none if worst is None else fixes.of.values(worst.argument, fixes.rows),
    )


def _holds(
    period: _IncidentPeriod, fixes: Fixes, history: History
) -> dict[int, dict[Target, bool]]:
    """By the row of a fix the targets for which the condition holds, and whether that is beyond doubt."""
    plan = period.plan

    def features() -> Features:
        assert plan.join is not None  # noqa: S101 - for the type: else none asks
        return features_of(history.home, plan.join, period.layer_version)

    pairs = joined(plan, fixes, qualified(plan, fixes), features)
    by_row: dict[int, dict[Target, bool]] = {}
    parts = zip(pairs.row.tolist(), pairs.partner, pairs.sure.tolist(), strict=True)
    for row, partner, sure in parts:
        by_row.setdefault(row, {})[partner] = sure
    return by_row


class _IncidentLife:
    """The stretches of all objects, and what was told of them."""

    def __init__(self, incident: Incident, history: History) -> None:
        self._incident, self._clock = incident, history.clock
        self._own: dict[str, dict[Target, _Own]] = {}
        self._lived = Lived([], set(), {})
        self._tells_on = False

    def judge_again(self, period: _IncidentPeriod, sight: _Holding) -> None:
        """Another version of the layer, or another area: without UNTIL the last fix says what goes on."""
        row, now = period.start, self._clock.just_before(np.array([period.start]))
        names = period.before["object"].tolist()
        last_row = {name: at for at, name in enumerate(names)}
        for own in self._all():
            self._break(own, row, LATER)
            holds = sight.holds.get(last_row.get(own.name, -1), {})
            goes_on = own.target in holds or self._incident.until is not None
            if own.stretch.is_open and not goes_on:
                self._end(own, period.cause, row, int(now[0]))
            elif own.doubted_row is None and not holds.get(own.target, True):
                own.doubted_row = row

    def take(self, period: _IncidentPeriod, sight: _Holding) -> None:
        """All that came then, object by object."""
        self._tells_on = period.plan.emit == "every"
        columns = (
            period.events[name].tolist()
            for name in ("object", "kind", "effect", "event")
        )
        fix = len(period.before) - 1
        for name, kind, row, event_us in zip(*columns, strict=True):
            targets = self._own.setdefault(name, {})
            fix += kind == FIX
            holds = sight.holds.get(fix, {}) if kind == FIX else {}
            for target in {*targets, *holds}:
                own = targets.setdefault(target, _Own(name, target))
                self._break(own, row, event_us)
                if kind == FIX:
                    told = self._taken(own, sight, fix, event_us)
                    own.last_row = row
                    self._tell_of(own, told, row, event_us)
                    if own.doubted_row is None and not holds.get(target, True):
                        own.doubted_row = row
                else:
                    cause = "gone" if kind == GONE else "expired"
                    self._end(own, cause, row, event_us)
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
            self._end(own, "ended", row, event_us)
        elif told == "started" or (told == "ongoing" and self._tells_on):
            self._tell(own, told, row, event_us)

    def _break(self, own: _Own, row: int, event_us: int) -> None:
        """Ends what the gap before this row ended: the next event is too far away, or comes after the clock did."""
        end = own.stretch.broken_us(self._incident)
        if end is None:
            return
        at = max(int(self._clock.first_past(np.array([end]))[0]), own.last_row)
        if at < LATER and (event_us > end or row > at) and at <= row:
            self._end(own, "gap", at, own.stretch.at_us[-1])

    def _end(self, own: _Own, cause: str, row: int, event_us: int) -> None:
        if own.stretch.is_open:
            self._tell(own, cause, row, event_us)
        own.stretch.forget()

    def _tell(self, own: _Own, cause: str, row: int, event_us: int) -> None:
        lasted_s = rounded(own.stretch.lasted_s(event_us))
        worst = _digits(own.stretch.worst(self._incident))
        sign = _SIGNS.get(cause, -1)
        own_part = row, own.name, own.target, sign, cause, event_us
        self._lived.told.append((*own_part, lasted_s, worst))

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
        """All of it, up to where the log was read."""
        for own in self._all():
            self._break(own, LATER, LATER)
            self._doubt(own, LATER)
            if own.stretch.is_open:
                self._lived.inside.add((own.name, own.target))
        return self._lived
