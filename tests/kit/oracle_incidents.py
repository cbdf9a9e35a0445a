"""Incidents: when fixes and the clock move the stretches of the reference, and what is told, as docs/adr/0024 says."""

import json
from datetime import UTC, datetime

from st_common.query.incident import Incident
from st_common.reference.incident import Stretch
from tests.kit.oracle_expressions import fields_of, value_of
from tests.kit.oracle_members import partners_of
from tests.kit.oracle_readings import Reading
from tests.kit.oracle_rows import Fix, Pair
from tests.kit.oracle_world import FIX, TICK, Query, World

_SIGNS = {"started": 1, "ongoing": 0}


def judge_incidents(world: World, reading: Reading) -> None:
    """A fix of a living object."""
    name = reading.fix.object
    for query in world.lasting():
        partners = partners_of(query.plan, reading, world.features(query), world.rules)
        known = [pair[1] for pair in query.stretches if pair[0] == name]
        for partner in dict.fromkeys([*partners, *known]):
            _judge(world, query, (name, partner), reading, holds=partner in partners)


def _judge(
    world: World, query: Query, pair: Pair, reading: Reading, *, holds: bool
) -> None:
    incident, now = incident_of(query), reading.fix.event_us
    stretch = query.stretches.setdefault(pair, Stretch())
    until, worst = incident.until, incident.worst
    told = stretch.take(
        incident,
        now,
        holds=holds,
        ends=until is not None and value_of(until, reading) is True,
        value=None if worst is None else value_of(worst.argument, reading),
    )
    if told == "ended":
        end_incident(world, query, pair, "ended", now)
    elif told == "started" or (told == "ongoing" and query.plan.emit == "every"):
        _tell(world, query, pair, told, now)


def end_incidents(
    world: World, name: str, cause: str, event_us: int, rank: int
) -> None:
    """An object is gone or silent: so ends all that is of it."""
    for query in world.lasting():
        for pair in [pair for pair in query.stretches if pair[0] == name]:
            end_incident(world, query, pair, cause, event_us, rank=rank)


def end_incident(
    world: World, query: Query, pair: Pair, cause: str, now: int, rank: int = FIX
) -> None:
    """There is no incident from now on, nor what may become one; only one that was open is told of."""
    stretch = query.stretches[pair]
    if stretch.is_open:
        _tell(world, query, pair, cause, now, rank=rank)
    stretch.forget()


def gaps(world: World, due: list[Fix]) -> list[tuple[int, Query, Pair]]:
    """The stretches that the clock has passed the last moment of, and that no fix which is due goes on with."""
    stretches = []
    for query in world.lasting():
        for pair, stretch in query.stretches.items():
            end = stretch.broken_us(incident_of(query))
            if end is None or end >= world.clock:
                continue
            if not any(one.object == pair[0] and one.event_us <= end for one in due):
                stretches.append((end, query, pair))
    return stretches


def tell_gap(world: World, query: Query, pair: Pair) -> None:
    """The next fix comes too late: it ended with the one before."""
    last_us = query.stretches[pair].at_us[-1]
    end_incident(world, query, pair, "gap", last_us, rank=TICK)


def end_all(world: World, query: Query, cause: str, now: int) -> None:
    """A query is dropped, replaced or fails."""
    for pair in list(query.stretches):
        end_incident(world, query, pair, cause, now)


def reload_incidents(world: World, query: Query, cause: str, now: int) -> None:
    """Another version of the layer, or another area: without UNTIL the last fix says what goes on."""
    if incident_of(query).until is not None:
        return
    features = world.features(query)
    for pair, stretch in query.stretches.items():
        last = world.known.last[pair[0]]
        if stretch.is_open and pair[1] not in partners_of(
            query.plan, last, features, world.rules
        ):
            end_incident(world, query, pair, cause, now)


def open_incidents(query: Query) -> set[Pair]:
    """Those that are open now."""
    return {pair for pair, stretch in query.stretches.items() if stretch.is_open}


def _tell(
    world: World, query: Query, pair: Pair, cause: str, now: int, *, rank: int = FIX
) -> None:
    incident, stretch = incident_of(query), query.stretches[pair]
    fields = json.loads(fields_of(query.plan, world.known.last[pair[0]]) or "{}")
    fields["started"] = _moment(stretch.at_us[0])
    if incident.worst is not None:
        fields[incident.worst.name] = stretch.worst(incident)
    world.emit(
        query,
        pair,
        _SIGNS.get(cause, -1),
        cause,
        event_us=now,
        fix_us=world.known.last_us[pair[0]],
        rank=rank,
        value=stretch.lasted_s(now),
        fields=json.dumps(fields),
    )


def _moment(at_us: int) -> str:
    """A time as SQL prints it: `1970-01-01 00:00:01.5`."""
    seconds, rest = divmod(at_us, 1_000_000)
    text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{text}.{rest:06}".rstrip("0") if rest else text


def incident_of(query: Query) -> Incident:
    """The incident of a query that has one."""
    assert query.plan.incident is not None
    return query.plan.incident
