"""The answer of a query as a whole, and the changes that lead to it from the answer before."""

from collections.abc import Callable
from dataclasses import dataclass

from st_common.testing.oracle_expressions import fields_of
from st_common.testing.oracle_members import members
from st_common.testing.oracle_readings import Known
from st_common.testing.oracle_rows import Pair
from st_common.testing.oracle_values import Counted, groups, stays_until
from st_common.testing.oracle_world import FIX, Entry, Query, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a + says of a member."""

    value: float | None = None
    fields: str | None = None


def answer_of(world: World, query: Query, known: Known, at_us: int) -> dict[Pair, Told]:
    """The answer for what is known, with what a + would say of each member."""
    plan = query.plan
    if plan.aggregate is not None:
        values = groups(plan.aggregate, counted(world, query, known, at_us))
        return {(group, None): Told(value=value) for group, value in values.items()}
    if plan.window is not None:
        return {(r.fix.object, partner): Told() for r, partner in counted(world, query, known, at_us)}
    found = members(plan, known, world.features(query), world.rules)
    until = plan.inside if plan.valid_until else None
    return {
        pair: Told(
            value=None if until is None else stays_until(until, reading, known, at_us, world.rules),
            fields=fields_of(plan.columns, reading),
        )
        for pair, reading in found.items()
    }


def counted(world: World, query: Query, known: Known, at_us: int) -> list[Counted]:
    """What an aggregate counts: the members of the answer below it, or the entries of the window."""
    window = query.plan.window
    if window is None:
        found = members(query.plan, known, world.features(query), world.rules)
        return [(reading, partner) for (_, partner), reading in found.items()]
    entries = [entry for entry in query.entries if entry.tick <= at_us]
    if window.seconds is not None:
        oldest = at_us - round(window.seconds * 1e6)
        entries = [entry for entry in entries if entry.reading.fix.event_us >= oldest]
    if window.tuples is not None:
        entries = sorted(entries, key=_newness)[max(0, len(entries) - window.tuples) :]
    return [(entry.reading, entry.partner) for entry in entries]


def _newness(entry: Entry) -> tuple[int, int, str, str]:
    """By event time, then by the row of the log at which it took effect; one row releases several by their ids."""
    return entry.reading.fix.event_us, entry.position, entry.reading.fix.object, entry.partner or ""


def judge_anew(
    world: World, query: Query, known: Known, at_us: int, *, plus: str, minus: Callable[[Pair], str],
    changed: str, rank: int = FIX,
) -> set[Pair]:  # fmt: skip
    """Brings a query's answer to what holds now, by - and +; gives back the pairs that stayed as they were.

    The value of an aggregate that changed is taken back and told anew, both with the cause `changed`. Other values do
    not change by themselves.
    """
    now, was = answer_of(world, query, known, at_us), query.answer
    query.judged = known.copy(), at_us
    stayed = set()
    for pair in was.keys() | now.keys():
        fix_us = at_us if query.plan.aggregate is not None else known.last_us[pair[0]]
        same = pair in was and pair in now and (query.plan.aggregate is None or was[pair] == now[pair].value)
        if same:
            stayed.add(pair)
            continue
        both = pair in was and pair in now
        if pair in was:
            cause = changed if both else minus(pair)
            world.emit(query, pair, -1, cause, event_us=at_us, fix_us=fix_us, rank=rank, value=was[pair])
        if pair in now:
            told = now[pair]
            cause = changed if both else plus
            world.emit(query, pair, 1, cause, event_us=at_us, fix_us=fix_us, rank=rank, value=told.value,
                       fields=told.fields)  # fmt: skip
    query.answer = {pair: told.value if query.plan.aggregate is not None else None for pair, told in now.items()}
    return stayed
