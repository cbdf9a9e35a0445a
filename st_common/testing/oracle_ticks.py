"""Ticks of event time: when they are due, what happened up to them, and what queries answer then."""

from functools import partial

from st_common.testing.oracle_answers import answer_of, judge_anew
from st_common.testing.oracle_members import joined, qualifies
from st_common.testing.oracle_readings import Reading
from st_common.testing.oracle_rows import Pair
from st_common.testing.oracle_world import TICK, Entry, Event, Query, World


def happened(world: World, event_us: int, name: str, reading: Reading | None, cause: str | None) -> None:
    """Keeps an event until its tick is due, and puts a fix into the windows that it qualifies for, at its own row."""
    tick = world.tick_of(event_us)
    world.pending.append(Event(tick=tick, name=name, reading=reading, cause=cause))
    if reading is None or reading.fix.gone:
        return
    for query in world.queries.values():
        if query.plan.window is not None and qualifies(query.plan, reading, world.known, world.rules):
            query.entries += [
                Entry(tick=tick, position=world.position, reading=reading, partner=partner)
                for partner in joined(query.plan.join, reading, world.features(query), world.rules)
            ]


def judge_ticks(world: World, *, at_end: bool = False) -> None:
    """Judges every tick that the clock is past; at an end mark also those in which something happened."""
    while True:
        happened_in = {event.tick for event in world.pending}
        ages = {_too_old(world, query, entry) for query in world.queries.values() for entry in _aging(query)}
        due = [tick for tick in happened_in | ages if tick < world.clock or (at_end and tick in happened_in)]
        if not due:
            return
        _judge(world, min(due))


def _aging(query: Query) -> list[Entry]:
    return query.entries if query.plan.window is not None and query.plan.window.seconds is not None else []


def _too_old(world: World, query: Query, entry: Entry) -> int:
    """The first tick at which an entry of a window of seconds does not count (any more)."""
    seconds = query.plan.window.seconds if query.plan.window is not None else None
    last_us = entry.reading.fix.event_us + round((seconds or 0.0) * 1e6)
    return max(entry.tick, (last_us // world.rules.tick_us + 1) * world.rules.tick_us)


def _judge(world: World, tick: int) -> None:
    """Every query at ticks is judged on what happened up to the tick."""
    events = [event for event in world.pending if event.tick <= tick]
    world.pending = [event for event in world.pending if event.tick > tick]
    for event in events:
        if event.reading is not None:
            world.ticked.take(event.reading)
        else:
            world.ticked.end(event.name, event.cause or "")
    moved = {event.name for event in events if event.reading is not None}
    for query in world.judged_at(ticks=True):
        stayed = judge_anew(
            world, query, world.ticked, tick, plus="enter", minus=partial(_minus, world, query),
            changed="value", rank=TICK,
        )  # fmt: skip
        if query.plan.emit == "every" and tick > query.first_tick:  # some fixes of the first came before the query
            _confirm(world, query, {pair for pair in stayed if pair[0] in moved}, tick)
        if _aging(query):
            query.entries = [entry for entry in query.entries if _too_old(world, query, entry) > tick]


def _minus(world: World, query: Query, pair: Pair) -> str:
    """Why a pair is no member any more: what ended the object, else its partner, else the first dead focal object."""
    if query.plan.window is not None and query.plan.aggregate is None:
        return "aged"
    if query.plan.aggregate is not None:
        return "leave"
    partner = [pair[1]] if query.plan.pairs is not None and pair[1] is not None else []
    for name in (pair[0], *partner, *query.plan.focals):
        if name not in world.ticked.alive:
            return world.ticked.ended[name]
    return "leave"


def _confirm(world: World, query: Query, pairs: set[Pair], tick: int) -> None:
    """Members that stay and had a fix in the tick, for queries that want every one."""
    now = answer_of(world, query, world.ticked, tick)
    for pair in pairs:
        fix_us = world.ticked.last_us[pair[0]]
        told = now[pair]
        world.emit(query, pair, 0, "inside", event_us=tick, fix_us=fix_us, rank=TICK, value=told.value,
                   fields=told.fields)  # fmt: skip
