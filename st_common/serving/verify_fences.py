"""What a fence must have told, and who is in now: the machines of the reference, fed with all that happened.

Between two versions of its layer fixes are seen all at once; then the machines take them, object by object, each event
at its row of the log. Where a distance on degrees is in doubt, so are the visits of that object there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from st_common.query.fence import Event, Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.reference.columns import Features
from st_common.reference.fence import Machine, Seen, Side, seen
from st_common.serving.verify_events import FIX, GONE, LATER
from st_common.serving.verify_history import History
from st_common.serving.verify_members import FeaturesOf, features_of, fixes_of
from st_common.serving.verify_registered import Registered

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
