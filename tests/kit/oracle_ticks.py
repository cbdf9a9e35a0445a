"""Ticks of event time: when they are due, what happened up to them, and what queries answer then."""

from dataclasses import replace
from functools import partial

from st_common.reference.travelled import outlives
from tests.kit.oracle_answers import answer_of, counting, fix_us_of, judge_anew
from tests.kit.oracle_frames import advance, own_ticks, remember
from tests.kit.oracle_lasting import age_of, lasting_us
from tests.kit.oracle_members import partners_of
from tests.kit.oracle_moving_fences import (
    judge_moving_fences,
    tell_moving_dwells,
)
from tests.kit.oracle_readings import Reading
from tests.kit.oracle_rows import NEVER, Pair
from tests.kit.oracle_settling import ripe_at
from tests.kit.oracle_streams import told_again
from tests.kit.oracle_world import TICK, Entry, Event, Query, World


def happened(
    world: World, event_us: int, name: str, reading: Reading | None, cause: str | None
) -> None:
    """Keeps an event until its tick is due, and puts a fix into the windows that it qualifies for, at its own row."""
    tick = world.tick_of(event_us)
    world.pending.append(Event(tick=tick, name=name, reading=reading, cause=cause))
    for query in world.queries.values():
        if query.plan.frame is not None:
            remember(
                query.frames,
                query.plan,
                tick=tick,
                name=name,
                reading=reading,
                cause=cause,
                rules=world.rules,
            )
    if reading is None or reading.fix.gone:
        return
    for query in world.queries.values():
        if query.plan.window is not None:
            features = world.features(query)
            query.entries += [
                Entry(
                    tick=tick, position=world.position, reading=reading, partner=partner
                )
                for partner in partners_of(query.plan, reading, features, world.rules)
            ]


def judge_ticks(world: World, *, at_end: bool = False) -> None:
    """Judges every tick that the clock is past; at an end mark also those in which something happened.

    An end mark cuts the tick short that is open: it is judged at the largest time seen, for no later one has come.
    """
    if at_end and world.seen > NEVER:
        _cut_short(world, world.seen)
    while True:
        happened_in = {event.tick for event in world.pending}
        ages = _ages(world)
        due = [
            tick
            for tick in happened_in | ages
            if tick < world.clock or (at_end and tick in happened_in)
        ]
        tell_moving_dwells(world, min(due, default=world.clock))
        if not due:
            return
        _judge(world, min(due))


def _ages(world: World) -> set[int]:
    """The ticks at which something ages or ripens though nothing happens."""
    queries, tick_us = world.queries.values(), world.rules.tick_us
    ages = {
        _too_old(world, query, entry) for query in queries for entry in _aging(query)
    }
    of_rows = [
        *(
            age_of(one.plan, row, tick_us)
            for one in queries
            for row in one.lately.values()
        ),
        *(
            ripe_at(one.plan, row, tick_us)
            for one in queries
            for row in one.settling.values()
        ),
    ]
    ages |= {age for age in of_rows if age is not None}
    return ages.union(*(_own_ticks(world, query) for query in queries))


def _cut_short(world: World, now_us: int) -> None:
    world.pending = [
        replace(event, tick=min(event.tick, now_us)) for event in world.pending
    ]
    for query in world.queries.values():
        query.entries = [
            replace(entry, tick=min(entry.tick, now_us)) for entry in query.entries
        ]
        if query.plan.frame is not None:
            query.frames.marks = [
                replace(mark, tick=min(mark.tick, now_us))
                for mark in query.frames.marks
            ]


def _aging(query: Query) -> list[Entry]:
    return (
        query.entries
        if query.plan.window is not None and query.plan.window.seconds is not None
        else []
    )


def _own_ticks(world: World, query: Query) -> set[int]:
    return (
        set()
        if query.plan.frame is None
        else own_ticks(query.frames, query.plan.frame, world.rules)
    )


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
    judge_moving_fences(world, tick, events)
    for query in world.judged_at(ticks=True):
        _judge_query(world, query, events, tick)
        if _aging(query):
            query.entries = [
                entry for entry in query.entries if _too_old(world, query, entry) > tick
            ]


def _age(world: World, query: Query, tick: int) -> None:
    """Says which rows are too old at a tick, and which count from then on."""
    query.aged = {
        pair
        for pair, row in query.lately.items()
        if (age_of(query.plan, row, world.rules.tick_us) or tick + 1) <= tick
    }
    query.ripe = {
        pair
        for pair, row in query.settling.items()
        if (ripe_at(query.plan, row, world.rules.tick_us) or tick + 1) <= tick
    }


def _judge_query(world: World, query: Query, events: list[Event], tick: int) -> None:
    """Judges one query on what holds at a tick; `events` is what happened since the tick before."""
    moved, was, answer_before = set[str](), query.below, _shown_now(query)
    _age(world, query, tick)
    if query.plan.frame is not None:
        moved = advance(
            query.frames, query.plan.frame, tick, world.rules, happened=bool(events)
        )
    stayed = judge_anew(
        world,
        query,
        world.ticked,
        tick,
        plus="enter",
        minus=partial(_minus, world, query, tick),
        changed="value",
        rank=TICK,
    )
    if query.plan.outer is not None and _shown_now(query) == answer_before:
        return
    again = told_again(
        query,
        stayed,
        events=events,
        moved=moved,
        was=was,
        tick=tick,
        rules=world.rules,
    )
    _confirm(world, query, again, tick)


def _shown_now(query: Query) -> dict[Pair, tuple[float | None, str | None]]:
    """The answer as it was told last: values and columns by row."""
    return {
        pair: (value, query.shown.get(pair)) for pair, value in query.answer.items()
    }


def _minus(world: World, query: Query, tick: int, pair: Pair) -> str:
    """Why a pair is no member any more: what ended the object, else its partner, else the first dead focal object."""
    if query.plan.outer is not None:
        return _minus_of_rows(world, query, tick, pair)
    if query.plan.aggregate is not None:
        return "leave"
    if query.plan.window is not None:
        return "aged"
    if query.plan.frame is not None:
        return _minus_of_row(world, query, pair)
    partner = [pair[1]] if query.plan.pairs is not None and pair[1] is not None else []
    for name in (pair[0], *partner, *query.plan.focals):
        if name not in world.ticked.alive:
            return world.ticked.ended[name]
    return "leave"


def _minus_of_rows(world: World, query: Query, tick: int, pair: Pair) -> str:
    """Why a row is not among those that are asked for: because it is none any more, else because of what is asked."""
    inner = replace(query, plan=replace(query.plan, outer=None, emit="changes"))
    if lasting_us(query.plan) is not None:
        return "leave" if _is_group(query) else "aged"
    if _is_group(query) or pair in answer_of(world, inner, world.ticked, tick):
        return "leave"
    return _minus(world, inner, tick, pair)


def _is_group(query: Query) -> bool:
    """Whether what is told of the rows of a query are values of groups."""
    return query.plan.outer is not None and query.plan.outer.aggregate is not None


def _minus_of_row(world: World, query: Query, pair: Pair) -> str:
    """Why a row is in no result any more: its stay ended with it, its object does not count, or it is too old."""
    ended, counts = query.frames.ended.get(pair), counting(world, query, world.ticked)
    if counts is not None and pair[0] not in counts:
        return ended or "leave"
    return (
        "aged"
        if ended is None or query.plan.frame is None or outlives(query.plan.frame)
        else ended
    )


def _is_same(said: float | None, value: float | None) -> bool:
    """Whether a member stays as long as was said: to a millisecond."""
    if said is None or value is None:
        return said is value
    return said == value or abs(said - value) <= 0.001


def _confirm(world: World, query: Query, pairs: set[Pair], tick: int) -> None:
    """Members that stay and are told again."""
    now = answer_of(world, query, world.ticked, tick) if pairs else {}
    for pair in pairs:
        fix_us = fix_us_of(query, pair, world.ticked, tick)
        if query.plan.outer is not None:
            fix_us = tick
        told = now[pair]
        if (
            query.plan.valid_until
            and query.plan.emit == "changes"
            and _is_same(query.until.get(pair, 0.0), told.value)
        ):
            continue
        world.emit(
            query,
            pair,
            0,
            "inside",
            event_us=tick,
            fix_us=fix_us,
            rank=TICK,
            value=told.value,
            fields=told.fields,
        )
