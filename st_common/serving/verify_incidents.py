"""What a query must have told of incidents, and which are open now: the stretches of the reference, fed with the past.

    positions -> holds? ends? value?  -> stretches, object by object -> told, each at its row of the log

Between two versions of its layer, or regions of its area, fixes are seen all at once; then the stretches take them.
Where a distance on degrees is in doubt, so is all that is told of that object there.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from st_common.query.incident import Incident
from st_common.query.plan import Plan
from st_common.reference.columns import Features, Fixes
from st_common.reference.incident import Stretch, Told
from st_common.reference.members import joined, qualified
from st_common.serving.verify_events import FIX, GONE, LATER
from st_common.serving.verify_fences import Lived, Target, rounded
from st_common.serving.verify_history import History
from st_common.serving.verify_members import features_of, fixes_of
from st_common.serving.verify_registered import Registered

_TOLD = ("position", "object", "partner", "sign", "cause", "value")
_SIGNS = {"started": 1, "ongoing": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Of fixes by their rows: the targets that it holds for (and whether beyond doubt), what ends one, values."""

    holds: Mapping[int, Mapping[Target, bool]]
    ends: np.ndarray
    value: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Period:
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
    life = _Life(incident, history)
    for number, period in enumerate(_periods(query, history)):
        came = period.events[period.events["kind"] == FIX]
        sight = _seen(period, pd.concat([period.before, came]), history)
        if number:
            life.judge_again(period, sight)
        life.take(period, sight)
    return life.ended()


def told_incidents(mine: pd.DataFrame, incident: Incident) -> Counter[tuple[Any, ...]]:
    """Rows of `changes` in the form of `Lived.told`."""
    columns = (mine[name].tolist() for name in _TOLD)
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


def _periods(query: Registered, history: History) -> Iterator[_Period]:
    events = history.events.reset_index(drop=True)
    effect = events["effect"].to_numpy()
    versions = query.layers or ((query.position, 0),)
    ends = [*(at for at, _ in versions[1:]), LATER]
    for era, ((start, version), end) in enumerate(zip(versions, ends, strict=True)):
        last = events[effect < start].groupby("object", sort=False).tail(1)
        yield _Period(
            start=start,
            plan=query.plan_in(era),
            cause=query.cause_of(era),
            before=last[last["kind"] == FIX],
            events=events[(effect > start) & (effect < end)],
            layer_version=version,
        )


def _seen(period: _Period, frame: pd.DataFrame, history: History) -> _Seen:
    fixes, incident = fixes_of(frame, history.of), period.plan.incident
    assert incident is not None  # noqa: S101 - for the type: only such plans are asked
    nothing, none = np.zeros(len(fixes), bool), np.full(len(fixes), None, object)
    until, worst = incident.until, incident.worst
    return _Seen(
        holds=_holds(period, fixes, history),
        ends=nothing if until is None else fixes.is_true(until),
        value=none if worst is None else fixes.of.values(worst.argument, fixes.rows),
    )


def _holds(
    period: _Period, fixes: Fixes, history: History
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


class _Life:
    """The stretches of all objects, and what was told of them."""

    def __init__(self, incident: Incident, history: History) -> None:
        self._incident, self._clock = incident, history.clock
        self._own: dict[str, dict[Target, _Own]] = {}
        self._lived = Lived([], set(), {})
        self._tells_on = False

    def judge_again(self, period: _Period, sight: _Seen) -> None:
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

    def take(self, period: _Period, sight: _Seen) -> None:
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

    def _taken(self, own: _Own, sight: _Seen, fix: int, event_us: int) -> Told | None:
        value = sight.value[fix]
        return own.stretch.take(
            self._incident,
            event_us,
            holds=own.target in sight.holds.get(fix, {}),
            ends=bool(sight.ends[fix]),
            value=None if value is None else float(value),
        )

    def _tell_of(self, own: _Own, told: Told | None, row: int, event_us: int) -> None:
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
