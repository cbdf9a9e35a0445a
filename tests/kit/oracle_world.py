"""What the oracle's world is after some rows of the log: its clock, its objects, its queries and their answers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from st_common.query.plan import Plan
from st_common.reference.fence import Machine
from st_common.reference.incident import Stretch
from tests.kit.oracle_frames import Frames
from tests.kit.oracle_lasting import Lately
from tests.kit.oracle_readings import Known, Reading
from tests.kit.oracle_rows import (
    NEVER,
    Change,
    Feature,
    Fix,
    Layers,
    Pair,
    Rules,
)
from tests.kit.oracle_settling import Settling
from tests.kit.oracle_values import Counted

EXPIRY, FIX, TICK = 0, 1, 2
DWELL = TICK
"""In which order changes of one row and one event time come."""

Below = tuple[str, str | None, int]
"""What an aggregate counts: an object, its partner and the time of a fix; members are at no time (0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to an object: a fix was used, or it ended. It counts from `tick` on."""

    tick: int
    name: str
    reading: Reading | None
    cause: str | None = None  # what ended it, where no fix did


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A fix that qualified for a window when it was used, with one of its partners."""

    tick: int
    position: int
    reading: Reading
    partner: str | None


@dataclass(slots=True)
class Query:
    """A registered query; `answer` has the value of every aggregate's group, None for other members."""

    number: int  # counts registrations
    name: str
    version: int
    plan: Plan
    layer_version: int | None
    first_tick: int  # the one that was pending when it was registered
    answer: dict[Pair, float | None] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    frames: Frames = field(default_factory=Frames)
    machines: dict[Pair, Machine] = field(default_factory=dict)  # of a fence
    stretches: dict[Pair, Stretch] = field(default_factory=dict)  # of incidents
    shown: dict[Pair, str | None] = field(
        default_factory=dict
    )  # the columns of those in the answer, as they were told
    until: dict[Pair, float | None] = field(
        default_factory=dict
    )  # until when members were said to stay
    below: dict[Below, Counted] = field(
        default_factory=dict
    )  # what it was judged on last, below an aggregate
    lately: dict[Pair, Lately] = field(default_factory=dict)  # of a window above rows
    aged: set[Pair] = field(default_factory=set)  # those of them that are too old now
    settling: dict[Pair, Settling] = field(default_factory=dict)  # of FOR above rows
    ripe: set[Pair] = field(default_factory=set)  # those of them that count from now on
    judged: tuple[Known, int] | None = (
        None  # what it was judged on last, as a whole, and for when
    )


@dataclass(slots=True)
class World:
    """What is known after some rows of the log; `ticked` is what queries at ticks know: events up to the last tick."""

    rules: Rules
    layers: Layers
    position: int = 0  # of the row that is looked at
    before: int = NEVER  # the clock just before it
    clock: int = NEVER
    seen: int = NEVER  # the largest event time so far
    known: Known = field(default_factory=Known)
    ticked: Known = field(default_factory=Known)
    pending: list[Event] = field(default_factory=list)
    held: list[Fix] = field(default_factory=list)
    queries: dict[str, Query] = field(default_factory=dict)
    layer_rows: dict[str, int] = field(default_factory=dict)
    registered: int = 0
    changes: list[Change] = field(default_factory=list)
    here: list[tuple[tuple[Any, ...], Change]] = field(
        default_factory=list
    )  # those of this row, with their order
    late: int = 0
    double: int = 0
    used: int = 0
    filtered: dict[int, tuple[str, float]] = field(default_factory=dict)
    places: dict[str, list[Fix]] = field(
        default_factory=dict
    )  # of each object the fixes that were used and have one

    def tick_of(self, event_us: int) -> int:
        """The tick of an event that takes effect at this row."""
        return (
            math.ceil(max(event_us, self.before) / self.rules.tick_us)
            * self.rules.tick_us
        )

    def features(self, query: Query) -> Sequence[Feature]:
        """The features of the version of the layer that a query is judged on."""
        if query.plan.join is None or query.layer_version is None:
            return ()
        return self.layers[query.plan.join.layer, query.layer_version]

    def judged_at(self, *, ticks: bool) -> Iterable[Query]:
        """The queries that are judged at ticks, or those that are judged fix by fix and tell no events."""
        return [
            query
            for query in self.queries.values()
            if query.plan.by_ticks == ticks and not query.plan.tells_events
        ]

    def fenced(self, *, ticks: bool = False) -> Iterable[Query]:
        """The fences that are judged fix by fix, or those at ticks."""
        return [
            query
            for query in self.queries.values()
            if query.plan.fence is not None and query.plan.by_ticks == ticks
        ]

    def lasting(self) -> Iterable[Query]:
        """Those that tell incidents."""
        return [
            query for query in self.queries.values() if query.plan.incident is not None
        ]

    def emit(
        self,
        query: Query,
        pair: Pair,
        sign: int,
        cause: str,
        *,
        event_us: int,
        fix_us: int,
        rank: int = FIX,
        value: float | None = None,
        fields: str | None = None,
    ) -> None:
        """Tells a change; its place among those of the row is found when the row is done."""
        if sign < 0:
            query.until.pop(pair, None)
        elif query.plan.valid_until:
            query.until[pair] = value
        order = (
            event_us,
            rank,
            pair[0],
            (-1, 1, 0).index(sign),
            query.number,
            pair[1] or "",
        )
        change = Change(
            position=self.position,
            seq=0,
            query=query.name,
            query_version=query.version,
            layer_version=query.layer_version,
            object=pair[0],
            partner=pair[1],
            sign=sign,
            cause=cause,
            event_us=event_us,
            fix_us=fix_us,
            value=value,
            fields=fields,
            **self._place(query, pair[0], fix_us),
        )
        self.here.append((order, change))

    def _place(self, query: Query, name: str, fix_us: int) -> dict[str, float]:
        """Where an object was by a time: at the last of its fixes by then that was used; groups are nowhere."""
        outer = query.plan.outer
        is_group = query.plan.aggregate is not None or (
            outer is not None and outer.aggregate is not None
        )
        fixes = [] if is_group else self.places.get(name, [])
        by_then = [fix for fix in fixes if fix.event_us <= fix_us]
        if not by_then:
            return {}
        last = max(by_then, key=lambda fix: fix.event_us)
        return {"x": last.x, "y": last.y}
