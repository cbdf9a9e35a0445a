"""What happened to every object, and which queries are registered over which versions of their layers.

    fixes and control rows -> clock, events -> History -> the moments at which queries are judged

Events are found from fixes and control rows by running maxima over whole columns, as docs/how-it-works.md says; nothing
here is shared with the engines. Whoever brings a history (`Source`) says what expressions mean and what layers hold.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from st_common.controls.rows import Clock as ClockRow
from st_common.controls.rows import (
    ControlRow,
    Drop,
    End,
    Fail,
    Follow,
    LayerVersion,
    Register,
    Registration,
)
from st_common.geometry.space import Space
from st_common.query.control import plan_of
from st_common.query.lengths import in_coordinates
from st_common.query.plan import Plan
from st_common.query.replaced_fence import keeps_visits
from st_common.reference.columns import Features, Fixes
from st_common.reference.metric import Bools, Floats, Ints, Objects

NEVER = int(np.iinfo(np.int64).min)
LATER = int(np.iinfo(np.int64).max)

FIX, GONE, EXPIRED = 0, 1, 2
Us = TypeVar("Us", int, Ints)
"""Microseconds: one time, or a column of them."""


Controls = list[tuple[int, ControlRow]]
"""Positions and control rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """A stream's settings in microseconds; metres are geodesic where `space` is the globe.

    `window_rows` is how many fixes of an object a query with windows keeps.
    """

    lateness_us: int
    silence_us: int | None
    tick_us: int
    space: Space
    window_rows: int = 10_000

    def tick_from(self, us: Us) -> Us:
        """The first tick that is not before a time."""
        return -(-us // self.tick_us) * self.tick_us

    def tick_after(self, us: Us) -> Us:
        """The first tick after a time: what lasts until then is over."""
        return (us // self.tick_us + 1) * self.tick_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The clock right after each row of the log that says something of time, and just before it."""

    position: Ints
    before: Ints
    after: Ints
    ends: Ints  # positions of end marks
    ended: Ints  # the newest time that the log says before each of them

    def first_past(self, ts: Ints) -> Ints:
        """The row after which the clock is past (strictly) each time; `LATER` where it is not yet."""
        return np.append(self.position, LATER)[
            np.searchsorted(self.after, ts, side="right")
        ]

    def just_before(self, position: Ints) -> Ints:
        """The clock just before rows of the log."""
        return np.append(self.before, self.now)[
            np.searchsorted(self.position, position)
        ]

    def row_past(self, us: int) -> int:
        """The same row for one time."""
        place = int(np.searchsorted(self.after, us, side="right"))
        return int(self.position[place]) if place < len(self.position) else LATER

    def at(self, position: int) -> int:
        """The clock just before one row of the log."""
        place = int(np.searchsorted(self.position, position))
        return int(self.before[place]) if place < len(self.before) else self.now

    def time_at(self, position: int) -> int:
        """The time of what is judged at a row of the log: the clock; before it had one the beginning of time."""
        clock_us = self.at(position)
        return 0 if clock_us == NEVER else clock_us

    @property
    def now(self) -> int:
        """The clock in the end."""
        return int(self.after[-1]) if len(self.after) else NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The fixes of a log in its order, as columns of one length; `code` numbers their objects.

    `filtered`: a position filter took the fix out.
    """

    position: Ints
    ts: Ints
    ids: Objects
    code: Ints
    x: Floats
    y: Floats
    gone: Bools
    filtered: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Everything that takes effect as columns of one length, those of an object together, in the order of effect.

    Attributes:
        source: the fix that each comes from: of the end of a silence the last one; places among the fixes.
        code: the number of the object.
        kind: FIX, GONE or EXPIRED.
        ts: the time of the fix in microseconds.
        event: the time of the event: that of the fix, or when the silence was over.
        effect: the row of the log at which it takes effect.
        before: the fix before in the same stay, by its place among the events; -1 without one.
        tick: the tick at which queries at ticks see it.
        due: the row of the log at which that is judged, `LATER` when it is not yet.
    """

    source: Ints
    code: Ints
    kind: Ints
    ts: Ints
    event: Ints
    effect: Ints
    before: Ints
    tick: Ints
    due: Ints

    def __len__(self) -> int:
        return len(self.source)

    def last(self, rows: Ints) -> Ints:
        """Of ascending rows the last one of each object."""
        code = self.code[rows]
        is_last = np.ones(len(rows), bool)
        is_last[:-1] = code[1:] != code[:-1]
        return np.asarray(rows[is_last])

    def alive(self, rows: Ints) -> Ints:
        """Of ascending rows the last one of each object, where it is a fix."""
        last = self.last(rows)
        return np.asarray(last[self.kind[last] == FIX])


def clock_of(position: Ints, ts: Ints, controls: Controls, times: Times) -> Clock:
    """The clock over fixes, by their positions and times, and control rows, each in log order."""
    marks = [(at, row) for at, row in controls if isinstance(row, ClockRow | End)]
    own_us = [row.ts_us if isinstance(row, ClockRow) else 0 for _, row in marks]
    ends = [False] * len(ts) + [isinstance(row, End) for _, row in marks]
    position = np.append(position, np.array([at for at, _ in marks], np.int64))
    ts, is_end = np.append(ts, np.array(own_us, np.int64)), np.array(ends, bool)
    order = np.argsort(position, kind="stable")
    position, ts, is_end = position[order], ts[order], is_end[order]
    newest = np.maximum.accumulate(np.where(is_end, NEVER, ts))
    if times.lateness_us:
        # An end mark takes the clock right behind the newest time, however often it was taken there before.
        behind_all = newest + times.lateness_us + 1
        raised = np.where(is_end & (newest > NEVER), behind_all, NEVER)
        seen = np.maximum(newest, np.maximum.accumulate(raised))
    else:
        seen = newest
    after = np.where(seen == NEVER, NEVER, seen - times.lateness_us)
    return Clock(
        position=position,
        before=np.r_[NEVER, after[:-1]][: len(after)],
        after=after,
        ends=position[is_end],
        ended=newest[is_end],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """What took effect, sorted by object and order of effect: see `Events`."""

    source: Ints
    code: Ints
    kind: Ints
    event: Ints
    effect: Ints

    def __len__(self) -> int:
        return len(self.source)

    def take(self, which: Ints) -> "Happened":
        """Some of it, by its places."""
        return Happened(
            source=self.source[which],
            code=self.code[which],
            kind=self.kind[which],
            event=self.event[which],
            effect=self.effect[which],
        )

    @property
    def stays(self) -> Ints:
        """The number of the stay that each event is of."""
        ends = np.append(True, self.kind[:-1] != FIX)[: len(self)]
        another = np.append(True, self.code[1:] != self.code[:-1])[: len(self)]
        return np.cumsum(ends | another)


def happened_to(fixes: Recorded, clock: Clock, times: Times) -> Happened:
    """What fixes do, before those that a position filter took out are left out, and who was silent for too long."""
    used, effect = (
        _on_time(fixes, clock)
        if times.lateness_us
        else _newest(fixes, clock, times.silence_us)
    )
    counts = effect != LATER
    used, effect = used[counts], effect[counts]
    order = np.lexsort((fixes.ts[used], fixes.code[used]))
    used = used[order]
    all_used = Happened(
        source=used,
        code=fixes.code[used],
        kind=np.where(fixes.gone[used], GONE, FIX),
        event=fixes.ts[used],
        effect=effect[order],
    )
    if times.silence_us is None:
        return all_used
    return _with_expiries(all_used, clock, times.silence_us)


def _newest(fixes: Recorded, clock: Clock, silence_us: int | None) -> tuple[Ints, Ints]:
    """Without lateness: each fix that is newer than all before it of its object, at its own row.

    One that comes when its object would be silent already does not count.
    """
    rows = np.arange(len(fixes.ts))
    if silence_us is not None:
        rows = rows[fixes.ts + silence_us >= clock.just_before(fixes.position)]
    rows = rows[np.argsort(fixes.code[rows], kind="stable")]
    code, ts = fixes.code[rows], fixes.ts[rows]
    rank = np.unique(ts, return_inverse=True)[1].reshape(-1)
    key = code * (len(rows) + 1) + rank  # the keys of the next object are larger
    before = np.append(-1, np.maximum.accumulate(key)[:-1])[: len(key)]
    newest = rows[key > before]
    return newest, fixes.position[newest]


def _on_time(fixes: Recorded, clock: Clock) -> tuple[Ints, Ints]:
    """With lateness: each fix not behind the clock, once per time, at the row after which the clock is past it."""
    rows = np.flatnonzero(fixes.ts >= clock.just_before(fixes.position))
    rows = rows[np.lexsort((fixes.ts[rows], fixes.code[rows]))]
    code, ts = fixes.code[rows], fixes.ts[rows]
    is_first = (code[1:] != code[:-1]) | (ts[1:] != ts[:-1])
    rows = rows[np.append(True, is_first)[: len(rows)]]
    return rows, clock.first_past(fixes.ts[rows])


def _with_expiries(used: Happened, clock: Clock, silence_us: int) -> Happened:
    """One event more where an object was silent for longer, before its next fix or before the log's end."""
    same = np.append(used.code[1:] == used.code[:-1], False)[: len(used)]
    following = np.where(same, np.append(used.event[1:], 0)[: len(used)], LATER)
    following_at = np.where(same, np.append(used.effect[1:], 0)[: len(used)], LATER)
    end = used.event + silence_us
    effect = np.maximum(clock.first_past(end), used.effect)
    is_silent = (
        (used.kind == FIX)
        & (effect != LATER)
        & ((following > end) | (following_at > effect))
    )
    silent = np.flatnonzero(is_silent)
    both = Happened(
        source=np.append(used.source, used.source[silent]),
        code=np.append(used.code, used.code[silent]),
        kind=np.append(used.kind, np.full(len(silent), EXPIRED)),
        event=np.append(used.event, end[silent]),
        effect=np.append(used.effect, effect[silent]),
    )
    return both.take(np.lexsort((both.event, both.effect, both.code)))


def events_of(fixes: Recorded, clock: Clock, times: Times) -> Events:
    """Everything that takes effect, with what was before it and the tick at which it is judged."""
    found = _accepted(happened_to(fixes, clock, times), fixes.filtered)
    same = (
        (found.code[1:] == found.code[:-1])
        & (found.kind[:-1] == FIX)
        & (found.kind[1:] == FIX)
    )
    before = np.where(
        np.append(False, same)[: len(found)], np.arange(len(found)) - 1, -1
    )
    tick, due = _ticks(found, clock, times)
    return Events(
        source=found.source,
        code=found.code,
        kind=found.kind,
        ts=fixes.ts[found.source],
        event=found.event,
        effect=found.effect,
        before=before,
        tick=tick,
        due=due,
    )


def _accepted(found: Happened, filtered: Bools) -> Happened:
    """Without the fixes that a position filter took out, as the history says (whether it is right is asked elsewhere).

    They kept their objects from being silent. Who is silent then was last where its last accepted fix was; without one
    in the same stay it was never there.
    """
    out = filtered[found.source]
    if not out.any():
        return found
    own, is_fix, stay = np.arange(len(found)), found.kind == FIX, found.stays
    accepted = is_fix & ~out
    last = np.maximum.accumulate(np.where(accepted, own, -1))
    has_begun = (last >= 0) & (stay[last] == stay)
    is_expiry = found.kind == EXPIRED
    place = np.where(is_expiry & has_begun, last, own)
    kept = accepted | (is_expiry & has_begun) | (found.kind == GONE)
    return replace(found, source=found.source[place]).take(np.flatnonzero(kept))


def _ticks(found: Happened, clock: Clock, times: Times) -> tuple[Ints, Ints]:
    """An end mark makes every tick due in which something happened before it; the open one ends at the last time."""
    counts = np.maximum(found.event, clock.just_before(found.effect))
    tick = times.tick_from(counts)
    due = clock.first_past(tick)
    if len(clock.ends):
        next_end = np.searchsorted(clock.ends, found.effect)
        end = np.append(clock.ends, LATER)[next_end]
        last_us = np.append(clock.ended, LATER)[next_end]
        tick = np.where((due >= end) & (end != LATER), np.minimum(tick, last_us), tick)
        due = np.minimum(due, end)
    return tick, due


class Source(Protocol):
    """Who brings a history: what expressions say of its fixes, and what its layers hold."""

    @property
    def unit_m(self) -> float:
        """How many metres a unit of the plane is."""
        ...

    def features(self, layer: str, version: int) -> Features:
        """The features of one version of a layer, each once."""
        ...

    def of_rows(
        self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Sequence[Any]]:
        """The values of expressions of each row of a query, by expression; None for null."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a query is judged, and what is known then: rows of events, ascending.

    Attributes:
        seen: what has taken effect; queries that are judged at once, or fix by fix, know it.
        judged: what queries at ticks know.
        tick_us: the last tick that was judged, or passed without an event.
        is_due: whether queries were judged at that tick for sure, or time may have passed it only.
    """

    seen: Ints
    judged: Ints
    tick_us: int
    is_due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that happened on a stream, and its clock; `fixes` are its events as the reference reads them."""

    events: Events
    fixes: Fixes
    clock: Clock
    times: Times
    source: Source

    def now(self) -> Moment:
        """The end of the history."""
        return self._moment(
            np.arange(len(self.events)),
            np.flatnonzero(self.events.due != LATER),
            self.clock.now,
        )

    def before(self, position: int, event_us: int) -> Moment:
        """What had happened before a row of the log, or before a time."""
        events = self.events
        is_seen = (events.effect < position) | (events.event < event_us)
        is_judged = (events.due < position) | (events.tick < event_us)
        is_judged &= is_seen & (events.due != LATER)
        clock = self.clock.after[self.clock.position < position]
        return self._moment(
            np.flatnonzero(is_seen),
            np.flatnonzero(is_judged),
            int(clock[-1]) if len(clock) else NEVER,
        )

    def at_tick(self, position: int, tick_us: int) -> Moment:
        """When a tick is judged at a row of the log."""
        events = self.events
        is_judged = (events.due < position) | (
            (events.due == position) & (events.tick <= tick_us)
        )
        return Moment(
            seen=np.flatnonzero(events.effect <= position),
            judged=np.flatnonzero(is_judged),
            tick_us=tick_us,
            is_due=True,
        )

    def tick_open_at(self, position: int) -> int:
        """The tick that is open at a row of the log; `NEVER` before the stream has a time."""
        clock_us = self.clock.at(position)
        return NEVER if clock_us == NEVER else self.times.tick_from(clock_us)

    def ticks_since(self, position: int) -> Ints:
        """The ticks that were judged after a row of the log, each once."""
        judged = (self.events.due != LATER) & (self.events.due > position)
        return np.unique(self.events.tick[judged])

    def _moment(self, seen: Ints, judged: Ints, clock_us: int) -> Moment:
        last = int(self.events.tick[judged].max()) if len(judged) else 0
        tick_us = self.times.tick_us
        past = (clock_us - 1) // tick_us * tick_us if clock_us != NEVER else NEVER
        return Moment(seen=seen, judged=judged, tick_us=max(last, past))


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """From a row of the log on: which plan a query has, over which version of its layer, and why that is so.

    Attributes:
        position: the row.
        plan: the plan from then on.
        layer_version: that of its layer; None without a join.
        cause: why the answer was judged anew: `registered`, `layer` or `area`.
        version: the query's version.
        number: counts registrations on the stream.
        is_kept: it takes the place of another fence, and visits go on as they are.
    """

    position: int
    plan: Plan
    layer_version: int | None = None
    cause: str = "registered"
    version: int = 1
    number: int = 0
    is_kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A query from its registration on, by its eras; the last of them says what it is now.

    `end` is the row at which it was dropped, replaced or failed (`end_cause`), LATER while it is registered.
    `is_seeded`: it began with what came before it (REGISTER .. FROM).
    """

    name: str
    eras: tuple[Era, ...]
    end: int = LATER
    end_cause: str = ""
    is_seeded: bool = False

    @property
    def plan(self) -> Plan:
        """Its newest plan."""
        return self.eras[-1].plan

    @property
    def version(self) -> int:
        """Its newest version."""
        return self.eras[-1].version

    @property
    def position(self) -> int:
        """The row at which it was registered."""
        return self.eras[0].position

    @property
    def judged_at(self) -> int:
        """The last row at which its answer was judged at once."""
        return self.eras[-1].position

    def spans(self) -> Iterator[tuple[Era, int]]:
        """Its eras, each with the row before which it is over."""
        ends = [*(era.position for era in self.eras[1:]), self.end]
        return zip(self.eras, ends, strict=True)

    def until(self, position: int) -> "Registered":
        """The same as it was just before a row of the log; of one that came later its first era."""
        eras = [era for era in self.eras if era.position < position]
        return replace(self, eras=tuple(eras) or self.eras[:1])

    def with_plans(self, plan_of_era: Callable[[Plan], Plan]) -> "Registered":
        """The same with other plans."""
        eras = (replace(era, plan=plan_of_era(era.plan)) for era in self.eras)
        return replace(self, eras=tuple(eras))

    def changed(self, position: int, **changes: Any) -> "Registered":
        """The same from a row on with what changes then; see `Era`."""
        era = replace(self.eras[-1], position=position, is_kept=False, **changes)
        return replace(self, eras=(*self.eras, era))

    def ended(self, position: int, cause: str) -> "Registered":
        """The same, and from a row on it is not registered."""
        return replace(self, end=position, end_cause=cause)


def registered_by(controls: Controls, unit_m: float) -> dict[str, Registered]:
    """The queries that are registered in the end, by name; `unit_m` is how many metres a unit of the plane is."""
    lives = lives_of(controls, unit_m)
    return {one.name: one for one in lives if one.end == LATER}


def lives_of(controls: Controls, unit_m: float) -> list[Registered]:
    """All queries that ever were registered, those that still are last; a fence that goes on is one."""
    registry = _Registry(unit_m)
    for at, row in controls:
        registry.take(at, row)
    return [*registry.ended, *registry.registered.values()]


class _Registry:
    """Which queries are registered after some control rows, over which versions of layers."""

    def __init__(self, unit_m: float) -> None:
        self.registered: dict[str, Registered] = {}
        self.ended: list[Registered] = []
        self._layers: dict[str, int] = {}
        self._unit_m, self._number = unit_m, 0

    def take(self, at: int, row: ControlRow) -> None:
        """The next control row, at its place in the log."""
        if isinstance(row, Follow):
            if self._is_meant(row):
                plan = self._plan(row, at)
                cause = "area" if row.layer is None else "layer"
                now = self.registered[row.query].changed(at, plan=plan, cause=cause)
                self.registered[row.query] = now
        elif isinstance(row, Registration):
            self._register(at, row)
        elif isinstance(row, Drop) and row.query in self.registered:
            self._end(at, row.query, "dropped")
        elif isinstance(row, Fail) and self._is_meant(row):
            self._end(at, row.query, "failed")
        elif isinstance(row, LayerVersion):
            self._reload(at, row)

    def _reload(self, at: int, row: LayerVersion) -> None:
        self._layers[row.layer] = row.version
        for name, query in self.registered.items():
            join = query.plan.join
            if join is not None and join.layer == row.layer:
                self.registered[name] = query.changed(
                    at, layer_version=row.version, cause="layer"
                )

    def _plan(self, row: Registration | Follow, at: int) -> Plan:
        return in_coordinates(plan_of(row, at), self._unit_m)

    def _register(self, at: int, row: Registration) -> None:
        """A fence at the same border goes on: it is the one before, with other options from the new one's row on."""
        plan, layer_version = self._plan(row, at), None
        self._number += 1
        if plan.join is not None:
            layer_version = self._layers.get(plan.join.layer, row.layer_version)
        era = Era(
            position=at,
            plan=plan,
            layer_version=layer_version,
            version=row.version,
            number=self._number,
        )
        before = self.registered.get(row.query)
        if before is not None and _goes_on(before.eras[-1], era):
            del self.registered[row.query]
            eras = (*before.eras, replace(era, is_kept=True))
            self.registered[row.query] = replace(before, eras=eras)
            return
        if before is not None:
            self._end(at, row.query, "replaced")
        is_seeded = isinstance(row, Register) and row.seed is not None
        self.registered[row.query] = Registered(
            name=row.query, eras=(era,), is_seeded=is_seeded
        )

    def _end(self, at: int, name: str, cause: str) -> None:
        self.ended.append(self.registered.pop(name).ended(at, cause))

    def _is_meant(self, row: Fail | Follow) -> bool:
        """Whether a row is about the version that is registered."""
        query = self.registered.get(row.query)
        return query is not None and query.version == row.version


def _goes_on(before: Era, now: Era) -> bool:
    return before.layer_version == now.layer_version and keeps_visits(
        before.plan, now.plan
    )
