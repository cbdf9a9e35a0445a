"""Fences by brute force: a machine for each object and target, fix by fix, as docs/adr/0024 draws it."""

from collections.abc import Mapping

from st_common.query.fence import Debounce, Event, Fence
from st_common.query.plan import Plan
from st_common.testing.oracle_borders import Side, Target, passes, side_of
from st_common.testing.oracle_expressions import fields_of
from st_common.testing.oracle_members import is_meant
from st_common.testing.oracle_readings import Reading
from st_common.testing.oracle_rows import Pair
from st_common.testing.oracle_world import DWELL, FIX, Machine, Query, World


def judge_fences(world: World, reading: Reading, before: Reading | None) -> None:
    """A fix of a living object; `before` is the one before it in its stay."""
    name = reading.fix.object
    for query in world.fenced():
        own = targets(world, query)
        known = [pair[1] for pair in query.machines if pair[0] == name]
        for partner in {**own, **dict.fromkeys(known)}:
            _judge(world, query, (name, partner), own.get(partner), (before, reading))


def _judge(
    world: World,
    query: Query,
    pair: Pair,
    target: Target | None,
    fixes: tuple[Reading | None, Reading],
) -> None:
    """The machine takes a fix: it enters, exits, or stays as it is. Who has no target any more is out of it."""
    fence, (before, reading) = fence_of(query), fixes
    machine = query.machines.setdefault(pair, Machine())
    now, side = reading.fix.event_us, _side(world, query, reading, target)
    was_in, came_near = machine.since_us is not None, bool(machine.row_us)
    speaks = side == ("out" if was_in else "in")
    machine.row_us = [*machine.row_us, now] if speaks else []
    debounce = fence.exit_after if was_in else fence.enter_after
    if _is_long_enough(machine.row_us, debounce):
        if was_in:
            end_visit(world, query, pair, "leave", now)
        else:
            _begin(machine, now)
            _tell(world, query, pair, "enter", "enter", now)
        return
    if was_in:
        _tell(world, query, pair, "inside", "inside", now)
        return
    _tell(world, query, pair, "outside", "outside", now)
    if before is None or target is None or came_near or side == "in":
        return  # a row of an object that is out says that the fix before was in
    gap_s = (now - before.fix.event_us) / 1e6
    soon = fence.max_gap_s is None or gap_s <= fence.max_gap_s
    if soon and passes(query.plan, before, reading, target, world.rules):
        _tell(world, query, pair, "cross", "cross", now)


def _side(world: World, query: Query, reading: Reading, target: Target | None) -> Side:
    if target is None:
        return "out"
    return side_of(query.plan, reading, target, world.rules)


def _is_long_enough(row_us: list[int], debounce: Debounce) -> bool:
    """So many fixes, the last so long after the first."""
    if len(row_us) < debounce.fixes or not row_us:
        return False
    return row_us[-1] - row_us[0] >= round(debounce.seconds * 1e6)


def _begin(machine: Machine, now: int) -> None:
    machine.since_us, machine.dwelled, machine.row_us = now, False, []


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
    machine = query.machines[pair]
    assert machine.since_us is not None  # noqa: S101 - for the type: it is a visit
    lasted_s = (now - machine.since_us) / 1e6
    query.machines[pair] = Machine()
    if fence_of(query).has_answer or cause in ("leave", "gone", "expired"):
        _tell(world, query, pair, "exit", cause, now, rank=rank, value=lasted_s)


def dwells(world: World) -> list[tuple[int, Query, Pair]]:
    """The visits that have lasted long enough by the clock, and when that was."""
    found: list[tuple[int, Query, Pair]] = []
    for query in world.fenced():
        dwell_s = fence_of(query).dwell_s
        if dwell_s is None:
            continue
        for pair, machine in query.machines.items():
            if machine.since_us is None or machine.dwelled:
                continue
            at = machine.since_us + round(dwell_s * 1e6)
            if at < world.clock:
                found.append((at, query, pair))
    return found


def tell_dwell(world: World, query: Query, pair: Pair, now: int) -> None:
    """A visit has lasted long enough; once."""
    query.machines[pair].dwelled = True
    dwell_s = fence_of(query).dwell_s
    _tell(world, query, pair, "dwell", "dwell", now, rank=DWELL, value=dwell_s)


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
            _tell(world, query, pair, event, "registered", now)


def reload(world: World, query: Query, cause: str, now: int) -> None:
    """Another version of the layer, or another area: the last fixes judge who is in; rows of fixes go on."""
    known, own = world.known.alive, targets(world, query)
    for pair, machine in list(query.machines.items()):
        side = _side(world, query, known[pair[0]], own.get(pair[1]))
        if machine.since_us is not None and side == "out":
            end_visit(world, query, pair, cause, now)
    _come_in(world, query, cause, now)


def _come_in(world: World, query: Query, cause: str, now: int) -> None:
    """Whoever is in the target by the last fix, and was not, is in; without an answer that is told as INSIDE."""
    fence = fence_of(query)
    for name, reading in world.known.alive.items():
        for partner, target in targets(world, query).items():
            machine = query.machines.setdefault((name, partner), Machine())
            is_in = side_of(query.plan, reading, target, world.rules) == "in"
            if machine.since_us is None and is_in:
                _begin(machine, now)
                event: Event = "enter" if fence.has_answer else "inside"
                _tell(world, query, (name, partner), event, cause, now)


def _tell(
    world: World,
    query: Query,
    pair: Pair,
    event: Event,
    cause: str,
    now: int,
    *,
    rank: int = FIX,
    value: float | None = None,
) -> None:
    """Writes an event, where the query asks for it."""
    fence = fence_of(query)
    if event not in fence.events:
        return
    sign = {"enter": 1, "exit": -1}.get(event, 0) if fence.has_answer else 0
    world.emit(
        query,
        pair,
        sign,
        cause,
        event_us=now,
        fix_us=world.known.last_us[pair[0]],
        rank=rank,
        value=value,
        fields=fields_of(query.plan, world.known.last[pair[0]]),
    )


def inside(query: Query) -> set[Pair]:
    """Who is in now, of a fence that has an answer."""
    if not fence_of(query).has_answer:
        return set()
    return {
        pair for pair, machine in query.machines.items() if machine.since_us is not None
    }


def targets(world: World, query: Query) -> Mapping[str | None, Target]:
    """What the fence is around: the region, or the features that are meant, by their ids."""
    join, region = query.plan.join, query.plan.inside
    if join is not None:
        features = world.features(query)
        return {one.fid: one for one in features if is_meant(join, one)}
    return {} if region is None else {None: region}


def fence_of(query: Query) -> Fence:
    """The fence of a query that has one."""
    assert query.plan.fence is not None  # noqa: S101 - for the type: only fences are asked
    return query.plan.fence
