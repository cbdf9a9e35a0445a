"""The right answer by brute force: dicts, loops and shapely, one row of the log after the other.

Slow on purpose and sharing nothing with the engines: no step, no kernel, no decoder. What it says is DESIGN section 3
word by word; where that leaves a choice, the docstrings of this module make it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import shapely
from shapely.geometry.base import BaseGeometry

from st_common.query.plan import Plan

Feature = tuple[str, str, BaseGeometry]
"""A feature of a layer: fid, kind, geometry."""

Layers = Mapping[tuple[str, int], Sequence[Feature]]
"""The features of every version of every layer."""

Pair = tuple[str, str | None]
"""An object and its partner, which is None where a query joins no layer."""

NEVER = -(1 << 62)
"""The clock before anything was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One fix as decoders give it; `x` and `y` mean nothing when `gone`."""

    position: int
    object: str
    event_us: int
    x: float = math.nan
    y: float = math.nan
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One control row of the log."""

    position: int
    row: Mapping[str, Any]


Row = Fix | Control


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a stream's settings say, in microseconds. `geographic`: x and y are degrees, and distances are metres."""

    lateness_us: int = 0
    silence_us: int | None = None
    geographic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change, as the table `changes` has it; `position` is that of the row that brought it about."""

    position: int
    seq: int
    query: str
    query_version: int
    layer_version: int | None
    object: str
    partner: str | None
    sign: int
    cause: str
    event_us: int
    fix_us: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that the rows bring about, in the order of the log, and how many fixes were late or double."""

    changes: list[Change]
    late: int
    double: int
    used: int


@dataclass(slots=True)
class _Query:
    number: int  # counts registrations
    name: str
    version: int
    plan: Plan
    layer_version: int | None
    members: set[Pair] = field(default_factory=set)


@dataclass(slots=True)
class _World:
    """What is known after some rows of the log."""

    rules: Rules
    layers: Layers
    position: int = 0  # of the row that is looked at
    clock: int = NEVER
    seen: int = NEVER  # the largest event time so far
    alive: dict[str, Fix] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)  # of the last used fix, gone or not, for judging late
    held: list[Fix] = field(default_factory=list)
    queries: dict[str, _Query] = field(default_factory=dict)
    layer_rows: dict[str, int] = field(default_factory=dict)
    registered: int = 0
    changes: list[Change] = field(default_factory=list)
    here: list[tuple[tuple[Any, ...], Change]] = field(default_factory=list)  # those of this position, with their order
    late: int = 0
    double: int = 0
    used: int = 0


def judge(rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None) -> Outcome:
    """The changes of the rows, which are in log order, and the counts of late, double and used fixes.

    `seq` counts the changes of one position from 0, in the order of event time, expiry before all else, object, sign
    (all -, all +, all 0), registration of the query, partner; ids in the order of their text, no partner first. A
    query that is replaced counts as registered anew.

    Raises:
        KeyError: a query joins a layer and nobody named a version of it, or `layers` does not hold that version.
    """
    world = _after(rows, layers or {}, rules or Rules())
    return Outcome(changes=world.changes, late=world.late, double=world.double, used=world.used)


def changes(rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None) -> list[Change]:
    """The changes alone of `judge`."""
    return judge(rows, layers=layers, rules=rules).changes


def answer(
    rows: Iterable[Row], *, upto: int | None = None, layers: Layers | None = None, rules: Rules | None = None
) -> set[tuple[str, str, str | None]]:
    """(query, object, partner) that hold after the rows up to position `upto`, both included (None: after all rows).

    Found anew from the last fix of every living object, not by folding changes, so that the two check each other.
    """
    world = _after((row for row in rows if upto is None or row.position <= upto), layers or {}, rules or Rules())
    return {(query.name, *pair) for query in world.queries.values() for pair in _holding(world, query)}


def fold(rows: Iterable[Change]) -> set[tuple[str, str, str | None]]:
    """The answers that changes add up to, by (position, seq).

    Raises:
        AssertionError: a + for a member, a - or 0 for what is none: no order of changes may do that.
    """
    found: set[tuple[str, str, str | None]] = set()
    for change in sorted(rows, key=lambda row: (row.position, row.seq)):
        key = (change.query, change.object, change.partner)
        if (key in found) != (change.sign <= 0):
            raise AssertionError(f"{change} does not follow from what is before it")
        if change.sign > 0:
            found.add(key)
        elif change.sign < 0:
            found.remove(key)
    return found


def _after(rows: Iterable[Row], layers: Layers, rules: Rules) -> _World:
    world = _World(rules=rules, layers=layers)
    for row in rows:
        world.position = row.position
        if isinstance(row, Fix):
            _arrive(world, row)
        else:
            _control(world, row)
        world.changes += [replace(change, seq=seq) for seq, (_, change) in enumerate(sorted(world.here, key=_first))]
        world.here = []
    return world


def _first(pair: tuple[tuple[Any, ...], Change]) -> tuple[Any, ...]:
    return pair[0]


def _arrive(world: _World, fix: Fix) -> None:
    """Judges a fix against the clock before it (or, with no lateness, against the last of its object)."""
    before = world.clock
    due: list[Fix] = []
    if world.rules.lateness_us == 0:
        last = world.times.get(fix.object, NEVER)
        if fix.event_us > last:
            due = [fix]
        elif fix.event_us == last:
            world.double += 1
        else:
            world.late += 1
    elif fix.event_us < before:
        world.late += 1
    elif any(held.object == fix.object and held.event_us == fix.event_us for held in world.held):
        world.double += 1
    else:
        world.held.append(fix)
    _see(world, fix.event_us)
    _settle(world, due)


def _see(world: _World, event_us: int) -> None:
    world.seen = max(world.seen, event_us)
    world.clock = max(world.clock, world.seen - world.rules.lateness_us)


def _settle(world: _World, due: list[Fix]) -> None:
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
            _leave_all(world, fix, "expired", event_us)


def _silent(world: _World, due: list[Fix]) -> list[tuple[int, Fix]]:
    """The objects that were silent for longer than the silence: when it ended, and their last fix.

    A stay ends only when the next fix comes *more* than the silence later, so one that is due at that very moment
    or before keeps its object.
    """
    if world.rules.silence_us is None:
        return []
    found = []
    for fix in world.alive.values():
        end = fix.event_us + world.rules.silence_us
        kept = any(other.object == fix.object and other.event_us <= end for other in due)
        if end < world.clock and not kept:
            found.append((end, fix))
    return found


def _partners(world: _World, query: _Query, fix: Fix) -> list[str | None]:
    """The partners with which a fix satisfies a query; [None] without a layer, [] when it does not."""
    box, join = query.plan.inside, query.plan.join
    if box is not None and not (box.minx <= fix.x <= box.maxx and box.miny <= fix.y <= box.maxy):
        return []
    if join is None or query.layer_version is None:
        return [None]
    found: list[str | None] = []
    for fid, kind, geometry in world.layers[join.layer, query.layer_version]:
        if join.kinds and kind not in join.kinds:
            continue
        if join.predicate == "intersects":
            near = geometry.intersects(shapely.Point(fix.x, fix.y))
        else:
            near = distance_m(geometry, fix.x, fix.y, geographic=world.rules.geographic) <= join.distance_m
        if near:
            found.append(fid)
    return found


def distance_m(geometry: BaseGeometry, x: float, y: float, *, geographic: bool) -> float:
    """How far a geometry is from a point; on degrees in metres, in a plane that touches WGS84 at the point.

    The plane is right to 0.5 % for some tens of kilometres around the point.
    """
    if not geographic:
        return geometry.distance(shapely.Point(x, y))
    a, e2, sine = 6378137.0, 0.00669437999014, math.sin(math.radians(y))
    normal = a / math.sqrt(1 - e2 * sine * sine)
    meridian = a * (1 - e2) / (1 - e2 * sine * sine) ** 1.5
    east, north = math.radians(normal * math.cos(math.radians(y))), math.radians(meridian)
    plane = shapely.transform(geometry, lambda at: (at - [x, y]) * [east, north])
    return plane.distance(shapely.Point(0, 0))


def _use(world: _World, fix: Fix) -> None:
    world.used += 1
    world.times[fix.object] = fix.event_us
    world.alive[fix.object] = fix
    if fix.gone:
        _leave_all(world, fix, "gone", fix.event_us)
        return
    for query in world.queries.values():
        now, was = set(_partners(world, query, fix)), set(_partners_of(query, fix.object))
        for partner in was - now:
            _emit(world, query, (fix.object, partner), -1, "leave", event_us=fix.event_us)
        for partner in now - was:
            _emit(world, query, (fix.object, partner), 1, "enter", event_us=fix.event_us)
        if query.plan.emit == "every":
            for partner in now & was:
                _emit(world, query, (fix.object, partner), 0, "inside", event_us=fix.event_us)


def _partners_of(query: _Query, moving: str) -> list[str | None]:
    return [partner for name, partner in query.members if name == moving]


def _leave_all(world: _World, fix: Fix, cause: str, event_us: int) -> None:
    """The object of its last fix leaves every answer and lives no longer."""
    for query in world.queries.values():
        for partner in _partners_of(query, fix.object):
            _emit(world, query, (fix.object, partner), -1, cause, event_us=event_us)
    del world.alive[fix.object]


def _emit(world: _World, query: _Query, pair: Pair, sign: int, cause: str, *, event_us: int) -> None:
    if sign > 0:
        query.members.add(pair)
    elif sign < 0:
        query.members.remove(pair)
    order = (event_us, cause != "expired", pair[0], (-1, 1, 0).index(sign), query.number, pair[1] or "")
    change = Change(
        position=world.position,
        seq=0,
        query=query.name,
        query_version=query.version,
        layer_version=query.layer_version,
        object=pair[0],
        partner=pair[1],
        sign=sign,
        cause=cause,
        event_us=event_us,
        fix_us=world.alive[pair[0]].event_us,
    )
    world.here.append((order, change))


def _control(world: _World, control: Control) -> None:
    row = control.row
    match row["op"]:
        case "clock":
            _see(world, row["ts"])
            _settle(world, [])
        case "end":
            if world.rules.lateness_us > 0 and world.seen > NEVER:
                world.clock = max(world.clock, world.seen + 1)
            _settle(world, [])
        case "register" | "replace":
            _register(world, row)
        case "drop":
            _empty(world, world.queries[row["query"]], "dropped")
            del world.queries[row["query"]]
        case "layer":
            _reload(world, row["layer"], row["version"])
        case op:
            raise ValueError(f"{op!r} is no control row")


def _register(world: _World, row: Mapping[str, Any]) -> None:
    """A replaced query gives - for its members in its old version, then + for those of the new one."""
    name, plan, version = row["query"], Plan.from_json(row["plan"]), None
    if plan.join is not None:
        version = world.layer_rows[plan.join.layer] if plan.join.layer in world.layer_rows else row["layer_version"]
    if name in world.queries:
        _empty(world, world.queries[name], "replaced")
    world.registered += 1
    query = _Query(number=world.registered, name=name, version=row["version"], plan=plan, layer_version=version)
    world.queries[name] = query
    for pair in _holding(world, query):
        _emit(world, query, pair, 1, "registered", event_us=world.clock)


def _empty(world: _World, query: _Query, cause: str) -> None:
    for pair in set(query.members):
        _emit(world, query, pair, -1, cause, event_us=world.clock)


def _reload(world: _World, layer: str, version: int) -> None:
    """Query by query: - for pairs that the new version ends, + for those that it brings, both under that version."""
    world.layer_rows[layer] = version
    for query in world.queries.values():
        if query.plan.join is None or query.plan.join.layer != layer:
            continue
        query.layer_version = version
        now, was = _holding(world, query), set(query.members)
        for pair in was - now:
            _emit(world, query, pair, -1, "layer", event_us=world.clock)
        for pair in now - was:
            _emit(world, query, pair, 1, "layer", event_us=world.clock)


def _holding(world: _World, query: _Query) -> set[Pair]:
    """The pairs that satisfy a query now, from the last fix of every living object."""
    return {(fix.object, partner) for fix in world.alive.values() for partner in _partners(world, query, fix)}
