"""What a query tells from its registration on: of events, or fix by fix (`oracle_ticks`: at ticks).

`st_common.checks` says what the answer is at a moment. Here is when a query is judged, and why a pair comes, leaves or
is told again; docs/how-it-works.md word by word, and where that leaves a choice, the docstrings make it.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from st_common.checks.answers import (
    members_at,
    qualified_in,
)
from st_common.checks.history import (
    EXPIRED,
    FIX,
    GONE,
    LATER,
    NEVER,
    Era,
    Registered,
)
from st_common.checks.visits import Told as ToldEvent
from st_common.checks.visits import lived
from st_common.query.plan import Plan
from st_common.reference.metric import Ints
from tests.kit.oracle_expressions import fields_of
from tests.kit.oracle_history import Past
from tests.kit.oracle_rows import Change, Pair

AT_EXPIRY, AT_FIX, AT_TICK = 0, 1, 2
"""In which order changes of one row and one event time come."""
_AT_ONCE = (
    *("registered", "replaced", "dropped", "failed"),
    *("layer", "area"),
)

Placed = tuple[tuple[Any, ...], Change]
"""A change with its order among those of its row of the log."""


class Walk:
    """A query from its registration to its end, and what it tells."""

    def __init__(self, query: Registered, past: Past) -> None:
        self.query, self.past, self.history = query, past, past.history
        self.events, self.ids = past.history.events, past.history.fixes.ids
        self.told: list[Placed] = []

    def go(self) -> None:
        """Walks all of it."""
        raise NotImplementedError

    def held(self) -> dict[Pair, float | None]:
        """What holds in the end, with the values of groups."""
        raise NotImplementedError

    def tell(
        self,
        era: Era,
        pair: Pair,
        sign: int,
        cause: str,
        *,
        position: int,
        event_us: int,
        fix_us: int,
        rank: int = AT_FIX,
        value: float | None = None,
        fields: str | None = None,
    ) -> None:
        """Tells a change; `seq` is given when all changes of its row are known."""
        signs = (-1, 1, 0).index(sign)
        order = event_us, rank, pair[0], signs, era.number, pair[1] or ""
        change = Change(
            position=position,
            seq=0,
            query=self.query.name,
            query_version=era.version,
            layer_version=era.layer_version,
            object=pair[0],
            partner=pair[1],
            sign=sign,
            cause=cause,
            event_us=event_us,
            fix_us=fix_us,
            value=value,
            fields=fields,
            **self._place(era.plan, pair[0], fix_us, position),
        )
        self.told.append((order, change))

    def _place(
        self, plan: Plan, name: str, fix_us: int, position: int
    ) -> dict[str, float]:
        """Where an object was by a time: at the last of its fixes by then that was used; groups are nowhere."""
        if plan.aggregate is not None or (plan.outer and plan.outer.aggregate):
            return {}
        events = self.events
        rows = self.past.rows_of.get(name, NOTHING)
        by_then = rows[
            (events.kind[rows] == FIX)
            & (events.ts[rows] <= fix_us)
            & (events.effect[rows] <= position)
        ]
        if not len(by_then):
            return {}
        last = self.past.readings[by_then[-1]].fix
        return {"x": last.x, "y": last.y}

    def last_of(self, rows: Ints) -> dict[str, int]:
        """By object its last event among ascending rows."""
        last = self.events.last(rows)
        return dict(zip(self.ids[last], last.tolist(), strict=True))

    def shown(self, plan: Plan, row: int, other: int | None = None) -> str | None:
        """The columns beside a fix by its row, and of pairs of the other one."""
        readings = self.past.readings
        beside = None if other is None else readings[other]
        return fields_of(plan, readings[row], beside)

    def now_at(self, position: int) -> int:
        """The time of what is judged at a row of the log."""
        return self.history.clock.time_at(position)


NOTHING = np.empty(0, np.int64)


class Events(Walk):
    """A fence, or incidents."""

    def go(self) -> None:
        """See `Walk.go`."""
        self._life = lived(self.query, self.history)
        for told in self._life.told:
            era = self.query.eras[told.era]
            known = told.known if told.known >= 0 else self._known_at(told)
            self.tell(
                era,
                (told.object, told.target),
                told.sign,
                told.cause,
                position=told.row,
                event_us=told.event_us,
                fix_us=int(self.events.ts[known]),
                rank=self._rank(told),
                value=told.value,
                fields=self._fields(era.plan, told, known),
            )

    def _known_at(self, told: ToldEvent) -> int:
        """The last event of the object before a row of the log, or there before a time."""
        rows, events = self.past.rows_of[told.object], self.events
        is_before = (events.effect[rows] < told.row) | (
            (events.effect[rows] == told.row) & (events.event[rows] < told.event_us)
        )
        return int(rows[is_before][-1])

    def _rank(self, told: ToldEvent) -> int:
        if told.cause in _AT_ONCE:
            return AT_FIX
        if self.query.plan.by_ticks or told.cause in ("dwell", "gap"):
            return AT_TICK
        return AT_EXPIRY if told.cause == "expired" else AT_FIX

    def _fields(self, plan: Plan, told: ToldEvent, known: int) -> str | None:
        fields, incident = self.shown(plan, known), plan.incident
        if incident is None:
            return fields
        shown = json.loads(fields or "{}")
        shown["started"] = _moment(told.started_us)
        if incident.worst is not None:
            shown[incident.worst.name] = told.worst
        return json.dumps(shown)

    def held(self) -> dict[Pair, float | None]:
        """See `Walk.held`."""
        return dict.fromkeys(self._life.inside)


def _moment(at_us: int) -> str:
    """A time as SQL prints it: `1970-01-01 00:00:01.5`."""
    seconds, rest = divmod(at_us, 1_000_000)
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{text}.{rest:06}".rstrip("0") if rest else text


class Fixes(Walk):
    """A query that is judged fix by fix."""

    _answer: dict[str, set[str | None]]

    def go(self) -> None:
        """See `Walk.go`."""
        self._answer = {}
        for era, stop in self.query.spans():
            self._judge_at_once(era)
            self._live(era, stop)
        if self.query.end != LATER:
            end = self.query.end
            self._end_all(self.query.eras[-1], end, self.query.end_cause)

    def _judge_at_once(self, era: Era) -> None:
        moment = self.history.before(era.position, NEVER)
        found = members_at(self.query.until(era.position + 1), self.history, moment)
        now: dict[str, set[str | None]] = {}
        for row, partner in zip(found.rows.tolist(), found.partner, strict=True):
            now.setdefault(self.ids[row], set()).add(partner)
        for name, row in self.last_of(moment.seen).items():
            us = self.now_at(era.position)
            was, here = self._answer.get(name, set()), now.get(name, set())
            tell = self._teller(era, name, row, era.position, us)
            for partner in was - here:
                tell(partner, -1, era.cause)
            for partner in here - was:
                tell(partner, 1, era.cause)
        self._answer = now

    def _teller(
        self, era: Era, name: str, row: int, position: int, event_us: int
    ) -> Callable[..., None]:
        def tell(
            partner: str | None, sign: int, cause: str, rank: int = AT_FIX
        ) -> None:
            self.tell(
                era,
                (name, partner),
                sign,
                cause,
                position=position,
                event_us=event_us,
                fix_us=int(self.events.ts[row]),
                rank=rank,
                fields=self.shown(era.plan, row),
            )

        return tell

    def _live(self, era: Era, stop: int) -> None:
        """The four cases for each fix: its pairs leave, come, or stay, which is told on request."""
        events = self.events
        came = np.flatnonzero((events.effect > era.position) & (events.effect < stop))
        own = replace(self.query, eras=(era,), end=stop)
        found = qualified_in(own, self.history, came[events.kind[came] == FIX])
        partners: dict[int, set[str | None]] = {}
        for row, partner in zip(found.rows.tolist(), found.partner, strict=True):
            partners.setdefault(row, set()).add(partner)
        for row in came.tolist():
            name, us = self.ids[row], int(events.event[row])
            was, now = self._answer.get(name, set()), partners.get(row, set())
            tell = self._teller(era, name, row, int(events.effect[row]), us)
            cause, rank = ENDS[int(events.kind[row])]
            for partner in was - now:
                tell(partner, -1, cause, rank)
            for partner in now - was:
                tell(partner, 1, "enter")
            if era.plan.emit == "every":
                for partner in now & was:
                    tell(partner, 0, "inside")
            self._answer[name] = now

    def _end_all(self, era: Era, end: int, cause: str) -> None:
        last = self.last_of(np.flatnonzero(self.events.effect < end))
        for name, partners in self._answer.items():
            tell = self._teller(era, name, last[name], end, self.now_at(end))
            for partner in partners:
                tell(partner, -1, cause)

    def held(self) -> dict[Pair, float | None]:
        """See `Walk.held`: found anew."""
        found = members_at(self.query, self.history, self.history.now())
        rows = zip(self.ids[found.rows], found.partner, strict=True)
        return dict.fromkeys(rows)


ENDS = {FIX: ("leave", AT_FIX), GONE: ("gone", AT_FIX), EXPIRED: ("expired", AT_EXPIRY)}
"""Why pairs leave, by kind of event."""
