"""Histories of captures and engines that die, sleep and lose power, over the real log and the real local engine.

A history is a seed. Two captures append to one log, engines take its lease, read it and commit, and all of them are
killed, paused and overtaken, lose power, and see the clock step. In the end one more engine reads the log to its end:

    what a calm engine makes of the log that survived is what the table holds, row for row
    what was acknowledged is in the log, once
    what a journal told is in the table: it was told of rows of the log that no power cut can take
    who was overtaken does no other batch, and nobody overtakes an owner that he sees living
"""

from dataclasses import dataclass
from random import Random

from st_common.errors import FencedError, LogError
from st_common.log.log import Log, Segment
from st_common.query.control import QueryRow, encoded
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Aggregate, Plan
from st_common.regions.registry import Box, MovingBox
from tests.kit.log_writer import settings_of
from tests.kit.oracle import Fix, Rules
from tests.kit.simulated import Actor, World
from tests.kit.simulated_stream import (
    LONG_US,
    SECOND_US,
    STREAM,
    Machine,
    Part,
    calm,
    installed,
)

_SILENCE_US = 30 * SECOND_US
_BOX = Plan(stream=STREAM, inside=Box(minx=0, miny=0, maxx=4, maxy=8))
_MOVING = Plan(stream=STREAM, inside=MovingBox(focal="a", width=4, height=4))
_NEAREST = Plan(stream=STREAM, neighbours=Nearest(k=1, place=Place(focal="b")))
_COUNT = Plan(
    stream=STREAM,
    inside=Box(minx=0, miny=0, maxx=4, maxy=4),
    aggregate=Aggregate(function="count"),
)
_PLANS = (*(3 * [(_BOX,)]), *(3 * [(_MOVING,)]), (_NEAREST,), (_BOX, _MOVING, _COUNT))
"""Which queries a history has: what breaks seldom depends on them, and ticks are what costs most."""
_FAULTS = ("kill", "no feed", "cut", "pause", "clock")
_TURNS = 800
"""After so many turns nothing is broken any more, and what lives comes to its end."""
_QUIET_TURNS = 60
"""So long engines look at the clock when the feed has become quiet."""
_LOOK_EVERY = 20
"""So many turns after one look of the supervisor comes the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a history was: what happened in it, and how much it told."""

    seed: int
    changes: int
    kills: int
    cuts: int
    takeovers: int
    clocks: int


def live(seed: int) -> History:
    """One history.

    Raises:
        AssertionError: something was lost, told twice, or is not what a calm engine makes of the log.
    """
    world = World(seed)
    is_live = world.rng.random() < 0.3
    rules = Rules(silence_us=_SILENCE_US if is_live else None)
    machine = Machine.of(world, settings_of(STREAM, rules), is_live=is_live)
    machine.wanted, machine.naps = _parts(world.rng), world.rng.choice((0.0, 0.2))
    machine.packing = world.rng.choice((0.0, 0.2, 0.5))
    rows = [
        encoded(_row(number, plan))
        for number, plan in enumerate(world.rng.choice(_PLANS))
    ]
    with installed(machine):
        machine.log().append(b"".join(rows), arrival_us=world.now_us, control=True)
        counts = _broken(machine)
        _ended(machine)
        clocks = sum(segment.clock for segment in machine.log().segments(0))
        _judge(machine)
        return History(
            seed=seed,
            changes=len(machine.tables.rows(machine.table)),
            clocks=clocks,
            **counts,
        )


def _row(number: int, plan: Plan) -> QueryRow:
    return QueryRow(
        name=f"q{number}",
        version=1,
        op="register",
        stream=STREAM,
        position=0,
        arrival_us=0,
        plan=plan,
        text="",
        owner="t",
    )


def _parts(rng: Random) -> list[Part]:
    at_s = 1_700_000_000
    parts = []
    for _ in range(rng.randint(2, 7)):
        part = []
        for _ in range(rng.randint(2, 10)):
            at_s += rng.choice((0, 1, 1, 2))
            at_us, x, y = (
                at_s * SECOND_US + rng.randrange(3),
                rng.randint(0, 8),
                rng.randint(0, 8),
            )
            part.append(
                Fix(position=0, object=rng.choice("abcd"), event_us=at_us, x=x, y=y)
            )
        parts.append(part)
    return parts


def _broken(machine: Machine) -> dict[str, int]:
    """Lets actors run, and breaks what a machine can break."""
    world, rng = machine.world, machine.world.rng
    counts = {"kills": 0, "cuts": 0, "takeovers": 0}
    danger = rng.choice((0.0, 0.01, 0.03, 0.05, 0.1))
    patience = rng.choice((0.0, 0.7, 0.9, 0.95))
    _revive(machine)
    actor, quiet = world.actors[0], 0
    for turn in range(_TURNS):
        broken = rng.random() < danger or machine.cut_in == 1
        if broken:
            _break_one(
                machine, "cut" if machine.cut_in == 1 else rng.choice(_FAULTS), counts
            )
        machine.cut_in = max(0, machine.cut_in - 1)
        if broken or turn % _LOOK_EVERY == 0 or not world.living():
            _revive(machine)
        living = world.living()
        if not machine.wanted and not any(one.name == "capture" for one in living):
            quiet += 1
        if quiet > _QUIET_TURNS:
            break
        if (
            actor not in living or rng.random() > patience
        ):  # some run long while others stand in the middle of a write
            actor = rng.choice(living)
        world.turn(actor)
    return counts


def _break_one(machine: Machine, what: str, counts: dict[str, int]) -> None:
    world, rng = machine.world, machine.world.rng
    if what == "kill" and world.living():
        _kill(machine, [rng.choice(world.living())], counts)
    elif what == "no feed":
        captures = [actor for actor in world.living() if actor.name == "capture"]
        for actor in captures:
            _run_into_append(machine, actor)
        _kill(machine, captures, counts)
    elif what == "cut":
        machine.cut()
        counts["cuts"] += 1
    elif what == "pause" and machine.owner is not None:
        machine.owner.is_paused = True  # another one takes over when its lease is old
        world.now_us += rng.choice((SECOND_US, LONG_US))
        counts["takeovers"] += 1
    elif what == "clock":
        world.now_us += rng.choice((-3600, -1, 1, 40, 3600)) * SECOND_US


def _run_into_append(machine: Machine, actor: Actor) -> None:
    """Lets a capture run until it is in the middle of an append: a segment has its name, which is not synced yet."""
    segments = f"{machine.home.log(STREAM)}/segments/00000000"
    for _ in range(_TURNS):
        if actor.is_done or machine.disk.is_unsynced(segments, ".seg"):
            break
        machine.world.turn(actor)


def _kill(machine: Machine, actors: list[Actor], counts: dict[str, int]) -> None:
    """Kills actors; what they left half done is lost by a power cut soon after, or never."""
    rng = machine.world.rng
    for actor in actors:
        machine.world.kill(actor)
        counts["kills"] += 1
    machine.cut_in = rng.choice((0, rng.randint(1, 20), rng.randint(20, 150)))


def _revive(machine: Machine) -> None:
    """What is desired runs again: an engine, in one of two containers, and captures while there is what to append.

    At times somebody starts one engine more, which is refused.
    """
    world, rng = machine.world, machine.world.rng
    for actor in world.actors:
        actor.is_paused = actor.is_paused and rng.random() < 0.9
    names = [actor.name for actor in world.living()]
    if "engine" not in names or rng.random() < 0.2:
        world.start("engine", machine.engine, namespace=rng.choice(("one", "other")))
    if "packer" not in names and rng.random() < machine.packing:
        world.start("packer", machine.packer)
    if machine.cut_in:
        return
    for _ in range(names.count("capture"), 2 if machine.wanted else 0):
        world.start("capture", machine.capture)


def _ended(machine: Machine) -> None:
    """Nobody sleeps any more; who was overtaken notices, and one more engine comes to the log's end."""
    world = machine.world
    for actor in world.actors:
        actor.is_paused = False
    machine.is_ending = True
    while living := world.living():
        world.turn(world.rng.choice(living))
    world.now_us += (
        1000 * 3600 * SECOND_US
    )  # a lease of a container that is gone is old, wherever the clock stepped
    last = world.start("last engine", machine.engine)
    while not last.is_done:
        world.turn(last)
    _raise_of([last], ())
    _raise_of(world.actors, (FencedError,))


def _raise_of(actors: list[Actor], expected: tuple[type[Exception], ...]) -> None:
    for actor in actors:
        if actor.error is not None and not isinstance(actor.error, expected):
            raise AssertionError(
                f"{actor.name} ended with {actor.error!r}"
            ) from actor.error


def _judge(machine: Machine) -> None:
    log = machine.log()
    segments = log.segments(0)
    payloads = {segment.number: _raw(log, segment) for segment in segments}
    for number, payload in machine.acknowledged:
        assert payloads.get(number) == payload, f"segment {number} was acknowledged"
    arrivals = [segment.arrival_us for segment in segments]
    assert arrivals == sorted(arrivals), "arrivals run backwards"
    rows, expected = machine.tables.rows(machine.table), calm(machine)
    assert rows == expected, "the table is not what a calm engine makes of the log"
    known = {repr(row) for row in rows}
    assert all(repr(row) in known for row in machine.told), (
        "what was told is not in the table"
    )


def _raw(log: Log, segment: Segment) -> bytes:
    """What a capture appended; nothing on this machine takes it away for its age."""
    try:
        return log.raw(segment)
    except LogError as error:
        raise AssertionError(f"a power cut took what was appended: {error}") from error
