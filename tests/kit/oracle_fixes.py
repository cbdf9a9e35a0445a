"""What a fix does: it is late, double, held or used, silent objects expire, and queries are judged fix by fix."""

from functools import partial
from operator import itemgetter

from tests.kit.oracle_expressions import fields_of
from tests.kit.oracle_fences import (
    dwells,
    end_object,
    judge_fences,
    tell_dwell,
)
from tests.kit.oracle_filters import filtered
from tests.kit.oracle_incidents import (
    end_incidents,
    gaps,
    judge_incidents,
    tell_gap,
)
from tests.kit.oracle_members import partners_of
from tests.kit.oracle_readings import Reading, reading_of
from tests.kit.oracle_rows import NEVER, Fix
from tests.kit.oracle_ticks import happened
from tests.kit.oracle_world import EXPIRY, FIX, Query, World


def arrive(world: World, fix: Fix) -> None:
    """Judges a fix against the clock before it (or, with no lateness, against the last of its object)."""
    due: list[Fix] = []
    if world.rules.lateness_us == 0:
        last, silence_us = (
            world.known.seen_us.get(fix.object, NEVER),
            world.rules.silence_us,
        )
        if silence_us is not None and fix.event_us + silence_us < world.before:
            world.late += 1  # its object would be silent already
        elif fix.event_us > last:
            due = [fix]
        elif fix.event_us == last:
            world.double += 1
        else:
            world.late += 1
    elif fix.event_us < world.before:
        world.late += 1
    elif any(
        held.object == fix.object and held.event_us == fix.event_us
        for held in world.held
    ):
        world.double += 1
    else:
        world.held.append(fix)
    see(world, fix.event_us)
    settle(world, due)


def see(world: World, event_us: int) -> None:
    """Moves the clock on to what the time of a fix, or a row `clock`, allows."""
    world.seen = max(world.seen, event_us)
    world.clock = max(world.clock, world.seen - world.rules.lateness_us)


def settle(world: World, due: list[Fix]) -> None:
    """Uses fixes that are due, expires who is silent and tells who dwelled, by event time, until nothing is left."""
    due = due + [fix for fix in world.held if fix.event_us < world.clock]
    world.held = [fix for fix in world.held if fix.event_us >= world.clock]
    while True:
        _break(world, due)
        effects = [(fix.event_us, 1, fix.position, fix) for fix in due]
        effects += [(at, 0, fix.position, fix) for at, fix in _silent(world, due)]
        stayed = min(dwells(world), key=itemgetter(0), default=None)
        if not effects and stayed is None:
            return
        first = min(effects, key=itemgetter(0, 1, 2), default=None)
        if stayed is not None and (first is None or stayed[0] < first[0]):
            at, query, pair = stayed  # who leaves at that very moment has not stayed
            tell_dwell(world, query, pair, at)
        elif first is not None and first[1]:
            due.remove(first[3])
            _use(world, first[3])
        elif first is not None:
            _expire(world, first[3].object, first[0])


def _break(world: World, due: list[Fix]) -> None:
    """Ends what a gap ends before anything else happens to its object; silence of the same length comes first."""
    silent = {fix.object: at for at, fix in _silent(world, due)}
    for end, query, pair in gaps(world, due):
        if end < silent.get(pair[0], end + 1):
            tell_gap(world, query, pair)


def _silent(world: World, due: list[Fix]) -> list[tuple[int, Fix]]:
    """The objects that were silent for longer than the silence: when it ended, and their last fix.

    A stay ends only when the next fix comes *more* than the silence later, so one that is due at that very moment
    or before keeps its object.
    """
    if world.rules.silence_us is None:
        return []
    silent = []
    for fix in (reading.fix for reading in world.known.alive.values()):
        end = world.known.seen_us[fix.object] + world.rules.silence_us
        kept = any(
            other.object == fix.object and other.event_us <= end for other in due
        )
        if end < world.clock and not kept:
            silent.append((end, fix))
    return silent


def _use(world: World, fix: Fix) -> None:
    world.known.seen_us[fix.object] = fix.event_us
    said = filtered(fix, world.known, world.rules)
    if said is not None:
        world.filtered[fix.position] = said
        return
    world.used += 1
    if not fix.gone:
        world.places.setdefault(fix.object, []).append(fix)
    before = world.known.alive.get(fix.object)
    reading = reading_of(fix, before, world.rules)
    world.known.take(reading)
    happened(world, fix.event_us, fix.object, reading, None)
    for query in world.judged_at(ticks=False):
        if fix.gone:
            _leave(world, query, fix.object, "gone", fix.event_us, rank=FIX)
        else:
            _judge_fix(world, query, reading)
    if fix.gone:
        end_object(world, fix.object, "gone", fix.event_us, FIX)
        end_incidents(world, fix.object, "gone", fix.event_us, FIX)
    else:
        judge_fences(world, reading, before)
        judge_incidents(world, reading)


def _judge_fix(world: World, query: Query, reading: Reading) -> None:
    """The four cases for one fix: its pairs leave, come, or stay, which is told on request."""
    fix, features = reading.fix, world.features(query)
    partners = partners_of(query.plan, reading, features, world.rules)
    now = {(fix.object, partner) for partner in partners}
    was = {pair for pair in query.answer if pair[0] == fix.object}
    emit = partial(
        world.emit,
        query,
        event_us=fix.event_us,
        fix_us=fix.event_us,
        fields=fields_of(query.plan, reading),
    )
    for pair in was - now:
        emit(pair, -1, "leave")
        del query.answer[pair]
    for pair in now - was:
        emit(pair, 1, "enter")
        query.answer[pair] = None
    if query.plan.emit == "every":
        for pair in now & was:
            emit(pair, 0, "inside")


def _expire(world: World, name: str, event_us: int) -> None:
    world.known.end(name, "expired")
    happened(world, event_us, name, None, "expired")
    for query in world.judged_at(ticks=False):
        _leave(world, query, name, "expired", event_us, rank=EXPIRY)
    end_object(world, name, "expired", event_us, EXPIRY)
    end_incidents(world, name, "expired", event_us, EXPIRY)


def _leave(
    world: World, query: Query, name: str, cause: str, event_us: int, *, rank: int
) -> None:
    """An object that lives no longer leaves an answer that is judged fix by fix."""
    for pair in [pair for pair in query.answer if pair[0] == name]:
        world.emit(
            query,
            pair,
            -1,
            cause,
            event_us=event_us,
            fix_us=world.known.last_us[name],
            rank=rank,
            fields=fields_of(query.plan, world.known.last[name]),
        )
        del query.answer[pair]
