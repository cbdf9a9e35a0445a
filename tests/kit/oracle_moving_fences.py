"""Fences on regions that move: when ticks move the machines of the reference, as docs/adr/0024 says."""

import math
from collections.abc import Sequence

from tests.kit.oracle_fences import (
    end_visit,
    fence_of,
    seen_of,
    taken,
    tell,
)
from tests.kit.oracle_rows import Pair
from tests.kit.oracle_world import DWELL, TICK, Event, Query, World


def judge_moving_fences(world: World, tick: int, events: Sequence[Event]) -> None:
    """A tick at which something happened: machines take it whose object, or focal object, it happened to."""
    happened_to = {event.name for event in events}
    for query in world.fenced(ticks=True):
        names = happened_to
        if names & {*query.plan.focals}:
            names = {*world.ticked.alive, *(pair[0] for pair in query.machines)}
        _judge(world, query, tick, names)


def _judge(world: World, query: Query, tick: int, names: set[str]) -> None:
    alive = list(world.ticked.alive.values())
    rows = {one.fix.object: row for row, one in enumerate(alive)}
    seen = seen_of(world, query, alive)
    for name in names:
        pair: Pair = name, None
        ended = [one for one in (name, *query.plan.focals) if one not in rows]
        if ended:
            _end(world, query, pair, ended[0], tick)
            continue
        for event, lasted_s in taken(query, pair, seen.side(rows[name], None), tick):
            # The tick in which a query was registered has fixes from before it.
            if event != "inside" or tick > query.first_tick:
                tell(world, query, pair, event, tick, rank=TICK, value=lasted_s)


def _end(world: World, query: Query, pair: Pair, ended: str, tick: int) -> None:
    """The object or the focal one is gone or silent: a visit ends, and so does every row of ticks."""
    machine = query.machines.get(pair)
    if machine is not None and machine.since_us is not None:
        end_visit(world, query, pair, world.ticked.ended[ended], tick, rank=TICK)
    query.machines.pop(pair, None)


def tell_moving_dwells(world: World, before_us: int) -> None:
    """Visits that are long enough at a tick before this time, once each: who leaves at that tick has not stayed."""
    tick_us = world.rules.tick_us
    for query in world.fenced(ticks=True):
        for pair, machine in query.machines.items():
            at_us, since_us = machine.dwells_us(fence_of(query)), machine.since_us
            if at_us is None or since_us is None:
                continue
            tick = math.ceil(at_us / tick_us) * tick_us
            if tick < before_us:
                machine.has_dwelled = True
                lasted_s = (tick - since_us) / 1e6
                tell(world, query, pair, "dwell", tick, rank=DWELL, value=lasted_s)
