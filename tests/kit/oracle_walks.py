"""The rows of a law's log as a history of `st_common.checks`, and what a query tells from its registration on.

What a fix does to its object, and what SQL means, is found in Python, row by row; when things take effect and which
queries there are, the history says. Here is when a query is judged, and why a pair comes, leaves or is told again:
of events, or fix by fix (`oracle`: at ticks); docs/how-it-works.md word by word, and where that leaves a choice, the
docstrings make it.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Clock,
    Controls,
    Era,
    Events,
    Happened,
    History,
    Recorded,
    Registered,
    Times,
    clock_of,
    events_of,
    happened_to,
)
from st_common.checks.visits import Emitted, lived
from st_common.controls.reading import rows_of
from st_common.geometry.space import GLOBE, PLANE
from st_common.query.plan import Plan
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.metric import Bools, Ints, Metric, Objects
from st_common.reference.motion import motion_of
from st_common.reference.position_filter import Limits, Moved, judged
from tests.kit import user_filters
from tests.kit.oracle_rows import (
    Change,
    Feature,
    Filter,
    Fix,
    Layers,
    Pair,
    Reading,
    Row,
    Rules,
    fields_of,
    metres,
    text_of,
    value_beside,
    value_of,
    value_of_pair,
    value_of_row,
)

Said = tuple[str, float]
"""Why a fix is filtered, and what was too much or too little."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """What expressions say of readings, by `oracle_expressions`; see `Expressions`."""

    readings: Sequence[Reading]

    def values(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.values`."""
        others = [None] * len(rows) if partners is None else partners.tolist()
        pairs = zip(rows.tolist(), others, strict=True)
        return objects([value_of(text, self.readings[r], p) for r, p in pairs])

    def texts(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.texts`."""
        values = self.values(text, rows, partners)
        return objects([None if one is None else text_of(one) for one in values])

    def of_pairs(self, text: str, rows: Ints, others: Ints) -> Objects:
        """See `Expressions.of_pairs`."""
        pairs = zip(rows.tolist(), others.tolist(), strict=True)
        known = self.readings
        return objects(
            [
                value_of_pair(text, known[a], known[b] if b >= 0 else None)
                for a, b in pairs
            ]
        )

    def of_features(
        self, text: str, rows: Ints, columns: Mapping[str, Objects]
    ) -> Objects:
        """See `Expressions.of_features`."""
        return objects(
            [
                value_beside(
                    text,
                    self.readings[row],
                    {name: values[at] for name, values in columns.items()},
                )
                for at, row in enumerate(rows.tolist())
            ]
        )

    def of_groups(self, text: str, shown: Sequence[Mapping[str, object]]) -> Objects:
        """See `Expressions.of_groups`."""
        return objects([value_of_row(text, row) for row in shown])

    def attributes(self, name: str, rows: Ints) -> Objects:
        """See `Expressions.attributes`."""
        own = (self.readings[row].fix.attributes.get(name) for row in rows)
        return objects([None if one is None else text_of(one) for one in own])

    def let_through(
        self,
        name: str,
        value: str | None,
        rows: Ints,
        features: tuple[str, Features] | None = None,
    ) -> Bools:
        """See `Expressions.let_through`."""
        fixes = [self.readings[row].fix for row in rows.tolist()]
        others = [
            None if features is None else user_filters.beside(features[1], at)
            for at in range(len(fixes))
        ]
        pairs = zip(fixes, others, strict=True)
        return np.array(
            [user_filters.passes(name, value or "", fix, one) for fix, one in pairs],
            np.bool_,
        )


@dataclass(frozen=True, slots=True)
class Written:
    """Who brings the history of a law: see `Source`."""

    layers: Layers
    unit_m: float = 1.0

    def features(self, layer: str, version: int) -> Features:
        """See `Source.features`."""
        features: Sequence[Feature] = self.layers[layer, version]
        return Features(
            fids=objects([one.fid for one in features]),
            kinds=objects([one.kind for one in features]),
            tags=[one.tags for one in features],
            shapes=objects([one.geometry for one in features]),
        )

    def of_rows(
        self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Sequence[Any]]:
        """See `Source.of_rows`."""
        return {text: [value_of_row(text, row) for row in rows] for text in texts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A history of rows, with the reading of each event, its control rows, and how many fixes do not count.

    `rows_of` are the events of each object, by their rows. `filtered` are the rows of the log of the fixes that were
    filtered, each with the reason and what was too much.
    """

    history: History
    readings: Sequence[Reading]
    controls: Controls
    filtered: Mapping[int, Said]
    late_rows: frozenset[int]
    double: int
    used: int
    rows_of: Mapping[str, Ints]


def past_of(rows: Iterable[Row], layers: Layers, rules: Rules) -> Past:
    """What the rows of a log, in its order, bring about."""
    rows = list(rows)
    fixes = [row for row in rows if isinstance(row, Fix)]
    controls = [
        (row.position, _typed(row.row)) for row in rows if not isinstance(row, Fix)
    ]
    times = _times_of(rules)
    recorded = _recorded(fixes)
    clock = clock_of(recorded.position, recorded.ts, controls, times)
    found = happened_to(recorded, clock, times)
    filtered = _filtered(found, fixes, rules)
    is_out = np.array([fix.position in filtered for fix in fixes], bool)
    events = events_of(replace(recorded, filtered=is_out), clock, times)
    readings = _readings(events, fixes, rules)
    late_rows, double = _unused(fixes, clock, rules)
    return Past(
        history=History(
            events=events,
            fixes=fixes_of(readings, rules),
            clock=clock,
            times=times,
            source=Written(layers),
        ),
        readings=readings,
        controls=controls,
        filtered=filtered,
        late_rows=late_rows,
        double=double,
        used=int((events.kind != EXPIRED).sum()),
        rows_of=_rows_of(readings),
    )


def fixes_of(readings: Sequence[Reading], rules: Rules) -> Fixes:
    """Readings as the reference reads them; the oracle has no doubts about distances."""
    return Fixes(
        ids=objects([one.fix.object for one in readings]),
        x=np.array([one.fix.x for one in readings], float),
        y=np.array([one.fix.y for one in readings], float),
        metric=Metric(is_flat=not rules.geographic),
        of=Meanings(readings),
        rows=np.arange(len(readings)),
    )


def _typed(row: Mapping[str, Any]) -> Any:
    (typed,) = rows_of(json.dumps(dict(row)).encode(), stream="", segment=0)
    return typed


def _times_of(rules: Rules) -> Times:
    return Times(
        lateness_us=rules.lateness_us,
        silence_us=rules.silence_us,
        tick_us=rules.tick_us,
        space=GLOBE if rules.geographic else PLANE,
        window_rows=rules.window_rows,
    )


def _recorded(fixes: Sequence[Fix]) -> Recorded:
    number = {name: n for n, name in enumerate(dict.fromkeys(f.object for f in fixes))}
    return Recorded(
        position=np.array([fix.position for fix in fixes], np.int64),
        ts=np.array([fix.event_us for fix in fixes], np.int64),
        ids=objects([fix.object for fix in fixes]),
        code=np.array([number[fix.object] for fix in fixes], np.int64),
        x=np.array([fix.x for fix in fixes], float),
        y=np.array([fix.y for fix in fixes], float),
        gone=np.array([fix.gone for fix in fixes], bool),
        filtered=np.zeros(len(fixes), bool),
    )


def _filtered(found: Happened, fixes: Sequence[Fix], rules: Rules) -> dict[int, Said]:
    """The fixes that are not believed, or say nothing new, beside the last one before in the same stay."""
    out: dict[int, Said] = {}
    if not rules.filters:
        return out
    last: dict[str, Fix] = {}
    for source, kind in zip(found.source.tolist(), found.kind.tolist(), strict=True):
        fix = fixes[source]
        said = filtered(fix, last.get(fix.object), rules) if kind == FIX else None
        if said is not None:
            out[fix.position] = said
        elif kind == FIX:
            last[fix.object] = fix
        else:
            last.pop(fix.object, None)
    return out


def filtered(fix: Fix, last: Fix | None, rules: Rules) -> Said | None:
    """Why a fix is filtered beside the last accepted one of its stay (SPEC X11); None when it is accepted."""
    begun = [one for start, one in rules.filters if start <= fix.position]
    by = begun[-1] if begun else Filter()
    metric = Metric(is_flat=not rules.geographic)
    said = judged(_limits(by), _moved(fix, last, by, rules), metric)
    return (said.reason[0], float(said.value[0])) if said.reason[0] else None


def _limits(by: Filter) -> Limits:
    """Of one fix; what is off is inf, or 0."""
    after_us = by.accept_after_us
    return Limits(
        max_accuracy_m=_one(by.max_accuracy_m, math.inf),
        max_speed_mps=_one(by.max_speed_mps, math.inf),
        min_distance_m=_one(by.min_distance_m, 0.0),
        accept_after_s=_one(None if after_us is None else after_us / 1e6, math.inf),
        beyond_accuracy=np.array([by.beyond_accuracy]),
    )


def _moved(fix: Fix, last: Fix | None, by: Filter, rules: Rules) -> Moved:
    before = fix if last is None else last
    ends = (before.x, before.y), (fix.x, fix.y)
    return Moved(
        own_m=_one(_accuracy_m(fix, by), 0.0),
        has_before=np.array([last is not None]),
        metres=_one(metres(*ends, geographic=rules.geographic), 0.0),
        seconds=_one((fix.event_us - before.event_us) / 1e6, 0.0),
        before_m=_one(_accuracy_m(before, by), 0.0),
    )


def _one(value: float | None, off: float) -> np.ndarray:
    return np.array([off if value is None else value])


def _accuracy_m(fix: Fix, by: Filter) -> float:
    """How good a fix is; 0 where it does not say so, or says nonsense."""
    value = None if by.accuracy is None else fix.attributes.get(by.accuracy)
    return value if value is not None and value >= 0 else 0.0


def _readings(events: Events, fixes: Sequence[Fix], rules: Rules) -> list[Reading]:
    """The reading of each event: of one that ended an object its last place, at its last time, without speed."""
    readings: list[Reading] = []
    last: dict[str, Fix] = {}
    own = [fixes[source] for source in events.source.tolist()]
    x, y = (np.array([getattr(fix, name) for fix in own], float) for name in "xy")
    by = Metric(is_flat=not rules.geographic)
    motion = motion_of(x, y, events.ts, events.before, by)
    columns = (
        (None if np.isnan(one) else one for one in column.tolist())
        for column in (
            motion.elapsed_s,
            motion.speed_mps,
            motion.heading_deg,
            motion.acceleration_mps2,
        )
    )
    for fix, kind, *said in zip(own, events.kind.tolist(), *columns, strict=True):
        if kind == FIX:
            last[fix.object] = fix
            readings.append(Reading(fix, *said))
        else:
            place = last.get(fix.object, fix)
            readings.append(Reading(replace(place, event_us=fix.event_us)))
    return readings


def _rows_of(readings: Sequence[Reading]) -> dict[str, Ints]:
    rows: dict[str, list[int]] = {}
    for row, reading in enumerate(readings):
        rows.setdefault(reading.fix.object, []).append(row)
    return {name: np.array(own, np.int64) for name, own in rows.items()}


def _unused(
    fixes: Sequence[Fix], clock: Clock, rules: Rules
) -> tuple[frozenset[int], int]:
    """Which rows of the log are late fixes, and how many are double."""
    before = clock.just_before(np.array([fix.position for fix in fixes], np.int64))
    late, double = set(), 0
    seen: dict[str, set[int]] = {}
    for fix, clock_us in zip(fixes, before.tolist(), strict=True):
        times = seen.setdefault(fix.object, set())
        kept_us = rules.silence_us or 0
        if rules.lateness_us:
            is_late = fix.event_us < clock_us
        else:
            is_silent = rules.silence_us is not None and (
                fix.event_us + kept_us < clock_us
            )
            is_late = is_silent or fix.event_us < max(times, default=fix.event_us)
        if is_late:
            late.add(fix.position)
        elif fix.event_us in times:
            double += 1
        else:
            times.add(fix.event_us)
    return frozenset(late), double


# -- what a query tells ------------------------------------------------------------------------------------------------

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


class EventWalk(Walk):
    """A fence, or incidents."""

    def go(self) -> None:
        """See `Walk.go`."""
        self._life = lived(self.query, self.history)
        for told in self._life.events:
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

    def _known_at(self, told: Emitted) -> int:
        """The last event of the object before a row of the log, or there before a time."""
        rows, events = self.past.rows_of[told.object], self.events
        is_before = (events.effect[rows] < told.row) | (
            (events.effect[rows] == told.row) & (events.event[rows] < told.event_us)
        )
        return int(rows[is_before][-1])

    def _rank(self, told: Emitted) -> int:
        if told.cause in _AT_ONCE:
            return AT_FIX
        if self.query.plan.by_ticks or told.cause in ("dwell", "gap"):
            return AT_TICK
        return AT_EXPIRY if told.cause == "expired" else AT_FIX

    def _fields(self, plan: Plan, told: Emitted, known: int) -> str | None:
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


class FixWalk(Walk):
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
