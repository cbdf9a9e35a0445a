"""Fences: when fixes move the machines of the reference, and what is told of it, as docs/adr/0024 says."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from st_common.query.fence import Event, Fence
from st_common.query.plan import Plan
from st_common.reference.fence import Machine, Seen, Side, targets_of
from st_common.reference.fence import seen as seen_by
from st_common.reference.moving_fence import seen_around
from tests.kit.oracle_expressions import fields_of
from tests.kit.oracle_members import features_of, fixes_of
from tests.kit.oracle_readings import Reading
from tests.kit.oracle_rows import Pair
from tests.kit.oracle_world import DWELL, FIX, TICK, Query, World


def judge_fences(world: World, reading: Reading, before: Reading | None) -> None:
    """A fix of a living object; `before` is the one before it in its stay."""
    name = reading.fix.object
    for query in world.fenced():
        seen = seen_of(world, query, [reading], before)
        known = [pair[1] for pair in query.machines if pair[0] == name]
        for partner in {**dict.fromkeys(targets(world, query)), **dict.fromkeys(known)}:
            passed_us = None
            if before is not None and partner in seen.passed.get(0, {}):
                passed_us = reading.fix.event_us - before.fix.event_us
            _judge(world, query, (name, partner), seen.side(0, partner), passed_us)


def _judge(
    world: World, query: Query, pair: Pair, side: Side, passed_us: int | None
) -> None:
    """The machine takes the last fix: its object enters, exits, or stays as it is."""
    now = world.known.last_us[pair[0]]
    for event, lasted_s in taken(query, pair, side, now, passed_us):
        tell(world, query, pair, event, now, value=lasted_s)


def taken(
    query: Query, pair: Pair, side: Side, now: int, passed_us: int | None = None
) -> Iterator[tuple[Event, float | None]]:
    """What a machine tells that takes where its object is, with the length of the visit that ended."""
    machine = query.machines.setdefault(pair, Machine())
    lasted_s = machine.lasted_s(now)
    for event in machine.take(fence_of(query), side, now, passed_us):
        yield event, lasted_s if event == "exit" else None


def seen_of(
    world: World,
    query: Query,
    readings: Sequence[Reading],
    before: Reading | None = None,
) -> Seen:
    """How the fence sees fixes; `before` is the one before the only one."""
    if query.plan.focals:
        return seen_around(query.plan, fixes_of(readings, world.rules))
    at = (math.nan, math.nan) if before is None else before.at
    x, y = (np.full(len(readings), one) for one in at)
    features = world.features(query)
    fixes = fixes_of(readings, world.rules)
    return seen_by(query.plan, fixes, (x, y), lambda: features_of(features))


def end_object(world: World, name: str, cause: str, event_us: int, rank: int) -> None:
    """An object is gone or silent: its visits end, and so does every row of fixes."""
    for query in world.fenced():
        for pair in [pair for pair in query.machines if pair[0] == name]:
            if query.machines[pair].since_us is not None:
                end_visit(world, query, pair, cause, event_us, rank=rank)
            del query.machines[pair]


def end_visit(
    world: World, query: Query, pair: Pair, cause: str, now: int, rank: int = FIX
) -> None:
    """Whoever was in is out; told as an EXIT, and where no fix or silence is the reason to who has an answer alone."""
    lasted_s = query.machines[pair].end(now)
    if fence_of(query).has_answer or cause in ("gone", "expired"):
        tell(world, query, pair, "exit", now, cause=cause, rank=rank, value=lasted_s)


def dwells(world: World) -> list[tuple[int, Query, Pair]]:
    """The visits that have lasted long enough by the clock, and when that was."""
    return [
        (at, query, pair)
        for query in world.fenced()
        for pair, machine in query.machines.items()
        if (at := machine.dwells_us(fence_of(query))) is not None and at < world.clock
    ]


def tell_dwell(world: World, query: Query, pair: Pair, now: int) -> None:
    """A visit has lasted long enough; once."""
    query.machines[pair].has_dwelled = True
    dwell_s = fence_of(query).dwell_s
    tell(world, query, pair, "dwell", now, rank=DWELL, value=dwell_s)


def begin_query(world: World, query: Query, now: int) -> None:
    """Objects whose last fix is in the target are in at once, without an ENTER."""
    _come_in(world, query, "registered", now)


def end_query(world: World, query: Query, cause: str, now: int) -> None:
    """A query is dropped, replaced or fails: all visits end."""
    for pair, machine in list(query.machines.items()):
        if machine.since_us is not None:
            end_visit(world, query, pair, cause, now)


def goes_on(before: Query, after: Plan, version: int | None) -> bool:
    """Whether a fence that replaces another keeps its visits: the same events at the same border."""
    old, new = before.plan, after
    if old.fence is None or new.fence is None or new.fence.restart:
        return False
    options = {"enter_after", "exit_after", "hysteresis_m", "max_gap_s", "restart"}
    same_events = all(
        getattr(old.fence, name) == getattr(new.fence, name)
        for name in Fence.__dataclass_fields__
        if name not in options
    )
    same_border = (old.inside, old.join, old.where) == (new.inside, new.join, new.where)
    return same_events and same_border and before.layer_version == version


def take_over(
    world: World, query: Query, machines: dict[Pair, Machine], now: int
) -> None:
    """The fence goes on where the one before it was; whoever is in is told again, for it is another version."""
    query.machines = machines
    for pair, machine in machines.items():
        if machine.since_us is not None:
            event: Event = "enter" if fence_of(query).has_answer else "inside"
            tell(world, query, pair, event, now, cause="registered")


def reload(world: World, query: Query, cause: str, now: int) -> None:
    """Another version of the layer, or another area: the last fixes judge who is in; rows of fixes go on."""
    alive = list(world.known.alive.values())
    seen, rows = (
        seen_of(world, query, alive),
        {one.fix.object: row for row, one in enumerate(alive)},
    )
    for pair, machine in list(query.machines.items()):
        # At ticks the end of an object may not have been judged yet.
        is_out = pair[0] not in rows or seen.side(rows[pair[0]], pair[1]) == "out"
        if machine.since_us is not None and is_out:
            end_visit(world, query, pair, cause, now)
    _come_in(world, query, cause, now)


def _come_in(world: World, query: Query, cause: str, now: int) -> None:
    """Whoever is in the target by the last fix, and was not, is in; without an answer that is told as INSIDE."""
    fence, alive = fence_of(query), list(world.known.alive.values())
    seen = seen_of(world, query, alive)
    for row, reading in enumerate(alive):
        for partner in targets(world, query):
            pair = reading.fix.object, partner
            machine = query.machines.setdefault(pair, Machine())
            if machine.since_us is None and seen.side(row, partner) == "in":
                machine.begin(now)
                event: Event = "enter" if fence.has_answer else "inside"
                tell(world, query, pair, event, now, cause=cause)


def tell(
    world: World,
    query: Query,
    pair: Pair,
    event: Event,
    now: int,
    *,
    cause: str | None = None,
    rank: int = FIX,
    value: float | None = None,
) -> None:
    """Writes an event, where the query asks for it; at a tick with what was known there."""
    fence = fence_of(query)
    known = world.ticked if query.plan.by_ticks and rank == TICK else world.known
    if event not in fence.events:
        return
    sign = {"enter": 1, "exit": -1}.get(event, 0) if fence.has_answer else 0
    world.emit(
        query,
        pair,
        sign,
        cause or {"exit": "leave"}.get(event, event),
        event_us=now,
        fix_us=known.last_us[pair[0]],
        rank=rank,
        value=value,
        fields=fields_of(query.plan, known.last[pair[0]]),
    )


def inside(query: Query) -> set[Pair]:
    """Who is in now, of a fence that has an answer."""
    if not fence_of(query).has_answer:
        return set()
    return {
        pair for pair, machine in query.machines.items() if machine.since_us is not None
    }


def targets(world: World, query: Query) -> list[str | None]:
    """What the fence is around: the region (None), or the ids of the features that are meant."""
    if query.plan.focals:
        return [None]
    features = world.features(query)
    return list(targets_of(query.plan, lambda: features_of(features)).fids)


def fence_of(query: Query) -> Fence:
    """The fence of a query that has one."""
    assert query.plan.fence is not None
    return query.plan.fence
