"""The right answer by brute force: dicts, loops and shapely, one row of the log after the other.

Slow on purpose and sharing nothing with the engines: no step, no kernel, no decoder. What it says is DESIGN section 3
word by word; where that leaves a choice, the docstrings of these modules make it:

    oracle_rows         what is read, what is said
    oracle_readings     what is known of objects, distances       oracle_expressions    SQL and what it means
    oracle_members      who satisfies a plan                      oracle_values         aggregates, valid until
    oracle_world        clock, objects, queries                   oracle_answers        answers as a whole
    oracle_ticks        what is judged at ticks                   oracle_frames         windows along a way
    oracle_streams      what is told again                        oracle_comparing      the boxes of fixes
    oracle              the rows, one by one
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from st_common.query.plan import Plan
from st_common.testing.oracle_answers import answer_of, fix_us_of, judge_anew, shown_last
from st_common.testing.oracle_expressions import fields_of
from st_common.testing.oracle_members import joined, qualifies
from st_common.testing.oracle_readings import Reading, distance_m, reading_of
from st_common.testing.oracle_rows import (
    NEVER,
    Change,
    Control,
    Feature,
    Fix,
    Layers,
    Outcome,
    Pair,
    Row,
    Rules,
)
from st_common.testing.oracle_ticks import happened, judge_ticks
from st_common.testing.oracle_world import EXPIRY, FIX, Query, World

__all__ = [
    "Change", "Control", "Feature", "Fix", "Layers", "Outcome", "Row", "Rules", "agree", "answer", "changes",
    "distance_m", "fold", "judge",
]  # fmt: skip

Answer = dict[tuple[str, str, str | None], float | None]
"""(query, object, partner) that hold; with the value of an aggregate's group, None for all others."""


def judge(rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None) -> Outcome:
    """The changes of the rows, which are in log order, and the counts of late, double and used fixes.

    `seq` counts the changes of one position from 0, in the order of event time, kind (expiry, fix, tick), object, sign
    (all -, all +, all 0), registration of the query, partner; ids in the order of their text, no partner first. A
    query that is replaced counts as registered anew.

    Raises:
        KeyError: a query joins a layer and nobody named a version of it, or `layers` does not hold that version; an
            expression is not in `oracle_expressions`.
    """
    world = _after(rows, layers or {}, rules or Rules())
    return Outcome(changes=world.changes, late=world.late, double=world.double, used=world.used)


def changes(rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None) -> list[Change]:
    """The changes alone of `judge`."""
    return judge(rows, layers=layers, rules=rules).changes


def answer(
    rows: Iterable[Row], *, upto: int | None = None, layers: Layers | None = None, rules: Rules | None = None
) -> Answer:
    """What holds after the rows up to position `upto`, both included (None: after all rows).

    Found anew from the last readings of all living objects, not by folding changes, so that the two check each other.
    A query at ticks holds what it held at the last one that was due, or when it was registered; nothing before that
    was judged, which is when the stream has a time.
    """
    world = _after((row for row in rows if upto is None or row.position <= upto), layers or {}, rules or Rules())
    found: Answer = {}
    for query in world.queries.values():
        if query.plan.by_ticks and query.judged is None:
            continue
        known, at_us = (world.known, _now(world)) if query.judged is None else query.judged
        now = answer_of(world, query, known, at_us)
        is_value = query.plan.aggregate is not None
        found |= {(query.name, *pair): told.value if is_value else None for pair, told in now.items()}
    return found


def fold(rows: Iterable[Change]) -> Answer:
    """The answers that changes add up to, by (position, seq), each with the value of its last +.

    Raises:
        AssertionError: a + for a member, a - or 0 for what is none, or a - that takes back another value than was told:
            no order of changes may do that.
    """
    found: Answer = {}
    for change in sorted(rows, key=lambda row: (row.position, row.seq)):
        key = (change.query, change.object, change.partner)
        if (key in found) != (change.sign <= 0):
            raise AssertionError(f"{change} does not follow from what is before it")
        if change.sign > 0:
            found[key] = change.value
        elif change.sign < 0 and found.pop(key) != change.value and change.value is not None:
            raise AssertionError(f"{change} takes back what was not told")
    return found


def agree(folded: Answer, held: Answer) -> bool:
    """Whether a fold says what an `answer` says; values count where they are those of aggregates."""
    return folded.keys() == held.keys() and all(
        folded[key] == value for key, value in held.items() if value is not None
    )


def _after(rows: Iterable[Row], layers: Layers, rules: Rules) -> World:
    world = World(rules=rules, layers=layers)
    for row in rows:
        world.position, world.before = row.position, world.clock
        if isinstance(row, Fix):
            _arrive(world, row)
            judge_ticks(world)
        else:
            _control(world, row.row)
        world.changes += [replace(change, seq=seq) for seq, (_, change) in enumerate(sorted(world.here, key=_first))]
        world.here = []
    return world


def _first(pair: tuple[tuple[Any, ...], Change]) -> tuple[Any, ...]:
    return pair[0]


def _arrive(world: World, fix: Fix) -> None:
    """Judges a fix against the clock before it (or, with no lateness, against the last of its object)."""
    due: list[Fix] = []
    if world.rules.lateness_us == 0:
        last, silence_us = world.known.last_us.get(fix.object, NEVER), world.rules.silence_us
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
    elif any(held.object == fix.object and held.event_us == fix.event_us for held in world.held):
        world.double += 1
    else:
        world.held.append(fix)
    _see(world, fix.event_us)
    _settle(world, due)


def _see(world: World, event_us: int) -> None:
    world.seen = max(world.seen, event_us)
    world.clock = max(world.clock, world.seen - world.rules.lateness_us)


def _settle(world: World, due: list[Fix]) -> None:
    """Uses the fixes that are due and expires who is silent, in the order of event time, until nothing is left."""
    due = due + [fix for fix in world.held if fix.event_us < world.clock]
    world.held = [fix for fix in world.held if fix.event_us >= world.clock]
    while True:
        effects = [(fix.event_us, 1, fix.position, fix) for fix in due]
        effects += [(at, 0, fix.position, fix) for at, fix in _silent(world, due)]
        if not effects:
            return
        event_us, is_fix, _, fix = min(effects, key=lambda effect: effect[:3])
        if is_fix:
            due.remove(fix)
            _use(world, fix)
        else:
            _expire(world, fix.object, event_us)


def _silent(world: World, due: list[Fix]) -> list[tuple[int, Fix]]:
    """The objects that were silent for longer than the silence: when it ended, and their last fix.

    A stay ends only when the next fix comes *more* than the silence later, so one that is due at that very moment
    or before keeps its object.
    """
    if world.rules.silence_us is None:
        return []
    found = []
    for fix in (reading.fix for reading in world.known.alive.values()):
        end = fix.event_us + world.rules.silence_us
        kept = any(other.object == fix.object and other.event_us <= end for other in due)
        if end < world.clock and not kept:
            found.append((end, fix))
    return found


def _use(world: World, fix: Fix) -> None:
    world.used += 1
    reading = reading_of(fix, world.known.alive.get(fix.object), world.rules)
    world.known.take(reading)
    happened(world, fix.event_us, fix.object, reading, None)
    for query in world.judged_at(ticks=False):
        if fix.gone:
            _leave(world, query, fix.object, "gone", fix.event_us, rank=FIX)
        else:
            _judge_fix(world, query, reading)


def _judge_fix(world: World, query: Query, reading: Reading) -> None:
    """The four cases for one fix: its pairs leave, come, or stay, which is told on request."""
    fix, now = reading.fix, set[Pair]()
    if qualifies(query.plan, reading, world.known, world.rules):
        now = {(fix.object, p) for p in joined(query.plan, reading, world.features(query), world.rules)}
    was = {pair for pair in query.answer if pair[0] == fix.object}
    fields = fields_of(query.plan, reading)
    for pair in was - now:
        world.emit(query, pair, -1, "leave", event_us=fix.event_us, fix_us=fix.event_us, fields=fields)
        del query.answer[pair]
    for pair in now - was:
        world.emit(query, pair, 1, "enter", event_us=fix.event_us, fix_us=fix.event_us, fields=fields)
        query.answer[pair] = None
    if query.plan.emit == "every":
        for pair in now & was:
            world.emit(query, pair, 0, "inside", event_us=fix.event_us, fix_us=fix.event_us, fields=fields)


def _expire(world: World, name: str, event_us: int) -> None:
    world.known.end(name, "expired")
    happened(world, event_us, name, None, "expired")
    for query in world.judged_at(ticks=False):
        _leave(world, query, name, "expired", event_us, rank=EXPIRY)


def _leave(world: World, query: Query, name: str, cause: str, event_us: int, *, rank: int) -> None:
    """An object that lives no longer leaves an answer that is judged fix by fix."""
    for pair in [pair for pair in query.answer if pair[0] == name]:
        world.emit(query, pair, -1, cause, event_us=event_us, fix_us=world.known.last_us[name], rank=rank,
                   fields=fields_of(query.plan, world.known.last[name]))  # fmt: skip
        del query.answer[pair]


def _control(world: World, row: Mapping[str, Any]) -> None:
    match row["op"]:
        case "clock":
            _see(world, row["ts"])
            _settle(world, [])
            judge_ticks(world)
        case "end":
            if world.rules.lateness_us > 0 and world.seen > NEVER:
                world.clock = max(world.clock, world.seen + 1)
            _settle(world, [])
            judge_ticks(world, at_end=True)
        case "register" | "replace":
            _register(world, row)
        case "drop" | "fail":
            _end(world, row)
        case "layer":
            _reload(world, row["layer"], row["version"])
        case op:
            raise ValueError(f"{op!r} is no control row")


def _now(world: World) -> int:
    """The clock; before anything was seen the beginning of time."""
    return world.clock if world.clock > NEVER else 0


def _register(world: World, row: Mapping[str, Any]) -> None:
    """A replaced query gives - for its members in its old version, then + for those of the new one."""
    name, plan, version = row["query"], Plan.from_json(row["plan"]), None
    if plan.join is not None:
        version = world.layer_rows[plan.join.layer] if plan.join.layer in world.layer_rows else row["layer_version"]
    if name in world.queries:
        _empty(world, world.queries.pop(name), "replaced")
    world.registered += 1
    query = Query(
        number=world.registered, name=name, version=row["version"], plan=plan, layer_version=version,
        first_tick=world.tick_of(world.clock),
    )  # fmt: skip
    world.queries[name] = query
    _judge_now(world, query, "registered")


def _judge_now(world: World, query: Query, cause: str) -> None:
    """A query is judged at once on the last readings; one that is judged fix by fix is that at every row.

    Before anything was seen nothing can be said with a time: also a count of nothing waits for the first tick.
    """
    if query.plan.by_ticks and world.clock == NEVER:
        return
    judge_anew(world, query, world.known, _now(world), plus=cause, minus=lambda _: cause, changed=cause)
    if not query.plan.by_ticks:
        query.judged = None


def _end(world: World, row: Mapping[str, Any]) -> None:
    """A query is dropped, or this version of it fails; one that failed may be dropped afterwards."""
    query = world.queries.get(row["query"])
    if query is not None and row.get("version", query.version) == query.version:
        _empty(world, world.queries.pop(query.name), "dropped" if row["op"] == "drop" else "failed")


def _empty(world: World, query: Query, cause: str) -> None:
    now = _now(world)
    for pair, value in query.answer.items():
        fix_us = fix_us_of(query, pair, world.known, now)
        fields = shown_last(query, pair, world.known, query.below)
        world.emit(query, pair, -1, cause, event_us=now, fix_us=fix_us, value=value, fields=fields)


def _reload(world: World, layer: str, version: int) -> None:
    """Query by query: - for pairs that the new version ends, + for those that it brings, both under that version."""
    world.layer_rows[layer] = version
    for query in world.queries.values():
        if query.plan.join is not None and query.plan.join.layer == layer:
            query.layer_version = version
            if query.plan.window is None:  # what is in a window stays there
                _judge_now(world, query, "layer")
