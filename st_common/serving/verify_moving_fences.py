"""What a fence on a region that goes with an object must have told: the machines of the reference, fed at ticks.

A machine takes a row at each tick at which something happened to its object or to a focal one. All rows are found as
columns, some objects at a time; machines take those of objects that came near once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from st_common.query.fence import Event, Fence
from st_common.query.plan import Plan
from st_common.reference.fence import Side
from st_common.reference.metric import certain
from st_common.reference.moving_fence import Met, satisfying, seen_around, sides
from st_common.serving.verify_events import FIX, LATER, NEVER
from st_common.serving.verify_fences import (
    Life,
    Lived,
    Moment,
    Period,
    Target,
    periods_of,
)
from st_common.serving.verify_history import History
from st_common.serving.verify_members import fixes_of
from st_common.serving.verify_registered import Registered

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
        yield _judged(plan, ticked, code, number, holds, focals, history)


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


def _judged(  # noqa: PLR0917 - what one search for pairs gives, taken apart once
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
    side[live], sure[live] = _seen(
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


def _seen(
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
