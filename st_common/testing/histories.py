"""Histories of captures and engines that die, sleep and lose power, over the real log and the real local engine.

A history is a seed. Two captures append to one log, engines read it and commit, and all of them are killed, paused and
overtaken, lose power, and see the clock step. In the end one more engine reads the log to its end. Then

    what a calm engine makes of the log that survived is what the table holds, row for row
    what was acknowledged is in the log, once
    what a journal told is in the table: it was told of rows of the log that no power cut can take
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from st_common import tables as real_tables
from st_common.capture.log import Log
from st_common.engine import local
from st_common.engine.states import States
from st_common.errors import ConflictError, FencedError
from st_common.home import Home
from st_common.operators.changes import settled
from st_common.query.control import QueryRow, encoded
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Aggregate, Plan
from st_common.query.region import Box, MovingBox
from st_common.testing.log_writer import HEADER, settings_of
from st_common.testing.oracle import Rules
from st_common.testing.simulated import Actor, SimulatedStorage, World

_SECOND_US = 1_000_000
_HOME = Home(Path("/nowhere"))
_PLANS = (
    Plan(stream="grid", inside=Box(minx=0, miny=0, maxx=4, maxy=8)),
    Plan(stream="grid", inside=MovingBox(focal="a", width=4, height=4)),
    Plan(stream="grid", neighbours=Nearest(k=1, place=Place(focal="b"))),
    Plan(stream="grid", inside=Box(minx=0, miny=0, maxx=4, maxy=4), aggregate=Aggregate(function="count")),
)
_EMPTY = "," * (len(HEADER) - 4)  # neither gone nor any attribute
_TURNS = 400
"""After so many turns nothing is broken any more, and what lives comes to its end."""


@dataclass
class _Table:
    """The table of changes: one commit after the other, each visible before it is durable."""

    world: World
    commits: list[tuple[int, pa.Table]] = field(default_factory=list)
    durable: int = 0

    def committed(self, _path: Path, _app: str) -> int | None:
        self.world.pause()
        return self.commits[-1][0] if self.commits else None

    def append(
        self, _path: Path, data: pa.Table, _contract: object, *, app: str, version: int, after: int,
        check: Callable[[], None] | None,
    ) -> bool:  # fmt: skip
        self.world.pause()
        if check is not None:
            check()
        self.world.pause()  # here an owner may sleep for an hour
        stands = self.commits[-1][0] if self.commits else -1
        if stands != after:
            raise ConflictError(f"{app} stands at {stands}, not at {after}")
        self.commits.append((version, data))
        number = len(self.commits)
        self.world.pause()
        self.durable = max(self.durable, number)
        return True

    def cut(self) -> None:
        """Commits that were not durable are there up to some of them; at times the table comes from an older copy."""
        least = 0 if self.world.rng.random() < 0.2 else self.durable
        self.commits = self.commits[: self.world.rng.randint(least, len(self.commits))]
        self.durable = len(self.commits)

    def rows(self) -> list[dict[str, Any]]:
        return [row for _, data in self.commits for row in data.to_pylist()]


@dataclass
class Machine:
    """A stream with its log, states and table; `told` by journals, `acknowledged` to captures."""

    world: World
    log: SimulatedStorage
    states: SimulatedStorage
    table: _Table
    epoch: int = 0
    now_us: int = 1_700_000_000 * _SECOND_US
    told: list[dict[str, Any]] = field(default_factory=list)
    acknowledged: list[tuple[int, bytes]] = field(default_factory=list)
    wanted: list[bytes] = field(default_factory=list)
    is_ending: bool = False

    @staticmethod
    def of(world: World) -> "Machine":
        """An empty one; in half of them locks keep nobody waiting."""
        locks = world.rng.random() < 0.5
        storages = [SimulatedStorage(world, locks=locks) for _ in range(2)]
        return Machine(world=world, log=storages[0], states=storages[1], table=_Table(world))

    def stored_log(self) -> Log:
        """The log, as a new process sees it."""
        return Log(_HOME.log("grid"), storage=self.log)

    def capture(self) -> None:
        """Appends what is wanted, segment after segment; one that dies has lost what was not acknowledged."""
        log = self.stored_log()
        while self.wanted:
            payload = self.wanted.pop(0)
            segment = log.append(payload, arrival_us=self.now_us)
            self.acknowledged.append((segment.number, payload))

    def engine(self) -> None:
        """Takes the stream over, and follows it until the end is wanted and nothing is new."""
        self.epoch += 1
        owner = SimpleNamespace(lease=SimpleNamespace(epoch=self.epoch), check=self._check(self.epoch))
        engine = local.LocalEngine(_HOME, settings_of("grid", Rules()), owner)  # type: ignore[arg-type]
        rng = self.world.rng
        while True:
            self.world.pause()
            owner.check()
            busy = engine.batch()
            if not busy and self.is_ending:
                break
            rng.choice((engine.commit, engine.store, self.world.pause))()
        engine.close()

    def _check(self, epoch: int) -> Callable[[], None]:
        def check() -> None:
            self.world.pause()
            if self.epoch != epoch:
                raise FencedError(f"the stream belongs to epoch {self.epoch}")

        return check

    def cut(self) -> None:
        """Power is cut: everybody dies, and what was not synced may be lost."""
        for actor in self.world.actors:
            self.world.kill(actor)
        for each in (self.log, self.states, self.table):
            each.cut()


class _Inline:
    """A thread that runs where it is started: the machine's actors are the only ones at work."""

    def __init__(self, *, target: Callable[..., None], args: tuple[Any, ...], name: str) -> None:
        self._target, self._args, self.name = target, args, name

    def start(self) -> None:
        """Runs to the end."""
        self._target(*self._args)

    def join(self) -> None:
        """It has ended."""

    def is_alive(self) -> bool:
        """It has ended."""
        return False


class _Journal:
    def __init__(self, machine: Machine) -> None:
        self._told = machine.told

    def append(self, changes: pa.Table) -> None:
        self._told += changes.select(settled([]).column_names).to_pylist()

    def clear(self) -> None: ...

    def close(self) -> None: ...


@contextmanager
def installed(machine: Machine) -> Iterator[None]:
    """While this is open, local engines work on a machine instead of files."""
    fakes = SimpleNamespace(
        committed=machine.table.committed, append=machine.table.append, with_date=real_tables.with_date
    )
    states = SimpleNamespace(of=lambda *_: States(machine.states, Path("states")))
    with patch.multiple(
        local, tables=fakes, States=states, Log=lambda _: machine.stored_log(), Thread=_Inline,
        Journal=lambda *_, **__: _Journal(machine), tidy=lambda *_: None, write_orders=lambda *_: None,
    ):  # fmt: skip
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a history was: what happened in it, and how much it told."""

    seed: int
    changes: int
    kills: int
    cuts: int
    takeovers: int


def live(seed: int) -> History:
    """One history.

    Raises:
        AssertionError: something was lost, told twice, or is not what a calm engine makes of the log.
    """
    world = World(seed)
    machine = Machine.of(world)
    machine.wanted = _payloads(world.rng)
    registered = b"".join(encoded(_row(number, plan)) for number, plan in enumerate(_PLANS))
    machine.stored_log().append(registered, arrival_us=machine.now_us, control=True)
    with installed(machine):
        counts = _broken(machine)
        _ended(machine)
        _judge(machine)
    return History(seed=seed, changes=len(machine.table.rows()), **counts)


def _row(number: int, plan: Plan) -> QueryRow:
    return QueryRow(
        name=f"q{number}", version=1, op="register", stream="grid", position=0, arrival_us=0, plan=plan, text="",
        owner="t",
    )  # fmt: skip


def _payloads(rng: Random) -> list[bytes]:
    found, at_s = [], 0
    for _ in range(rng.randint(4, 10)):
        lines = []
        for _ in range(rng.randint(1, 4)):
            at_s += rng.choice((0, 1, 1, 2))
            name, x, y = rng.choice("abcd"), rng.randint(0, 8), rng.randint(0, 8)
            lines.append(f"{name},{(1_700_000_000 + at_s) * _SECOND_US + rng.randrange(3)},{x},{y}{_EMPTY}\n")
        found.append(f"{','.join(HEADER)}\n{''.join(lines)}".encode())
    return found


def _broken(machine: Machine) -> dict[str, int]:
    """Lets actors run, and breaks what a machine can break."""
    world, rng, counts = machine.world, machine.world.rng, {"kills": 0, "cuts": 0, "takeovers": 0}
    _revive(machine)
    danger, patience = rng.choice((0.0, 0.01, 0.03, 0.1)), rng.choice((0.0, 0.7, 0.9, 0.95))
    actor = world.actors[0]
    for _ in range(_TURNS):
        living = world.living()
        if not machine.wanted and not any(actor.name == "capture" for actor in living):
            break
        if rng.random() < danger:
            _break_one(machine, rng.choice(("kill", "cut", "cut", "pause", "pause", "clock")), counts)
            _revive(machine)
            living = world.living()
        if actor not in living or rng.random() > patience:  # some run long while others stand in the middle of a write
            actor = rng.choice(living)
        world.turn(actor)
    return counts


def _break_one(machine: Machine, what: str, counts: dict[str, int]) -> None:
    world, rng = machine.world, machine.world.rng
    engines = [actor for actor in world.living() if actor.name == "engine"]
    if what == "kill" and world.living():
        world.kill(rng.choice(world.living()))
        counts["kills"] += 1
    elif what == "cut":
        machine.cut()
        counts["cuts"] += 1
    elif what == "pause" and engines:
        engines[0].is_paused = True  # another one takes over while it sleeps
        counts["takeovers"] += 1
    elif what == "clock":
        machine.now_us += rng.choice((-3600, -1, 1, 3600)) * _SECOND_US
    for actor in world.actors:
        actor.is_paused = actor.is_paused and rng.random() < 0.7


def _revive(machine: Machine) -> None:
    """What is desired runs again: an engine, and captures while there is something to append."""
    names = [actor.name for actor in machine.world.living()]
    if "engine" not in names:
        machine.world.start("engine", machine.engine)
    for _ in range(names.count("capture"), 2 if machine.wanted else 0):
        machine.world.start("capture", machine.capture)


def _ended(machine: Machine) -> None:
    """Nobody sleeps any more; who was overtaken notices, and one more engine comes to the log's end."""
    world = machine.world
    for actor in world.actors:
        actor.is_paused = False
    machine.is_ending = True
    while world.living():
        world.turn(world.rng.choice(world.living()))
    last = world.start("last engine", machine.engine)
    while not last.is_done:
        world.turn(last)
    _raise_of([last], ())
    _raise_of(world.actors, (FencedError,))


def _raise_of(actors: list[Actor], expected: tuple[type[Exception], ...]) -> None:
    for actor in actors:
        if actor.error is not None and not isinstance(actor.error, expected):
            raise AssertionError(f"{actor.name} ended with {actor.error!r}") from actor.error


def _judge(machine: Machine) -> None:
    log = machine.stored_log()
    segments = log.segments(0)
    payloads = {segment.number: log.read(segment) for segment in segments}
    for number, payload in machine.acknowledged:
        assert payloads.get(number) == payload, f"segment {number} was acknowledged"  # noqa: S101 - a law
    arrivals = [segment.arrival_us for segment in segments]
    assert arrivals == sorted(arrivals)  # noqa: S101 - a law
    found, expected = machine.table.rows(), calm(machine)
    assert found == expected  # noqa: S101 - a law
    known = {repr(row) for row in found}
    assert [row for row in machine.told if repr(row) not in known] == []  # noqa: S101 - a law


def calm(machine: Machine) -> list[dict[str, Any]]:
    """What an engine that nobody disturbs makes of a machine's log."""
    other = Machine.of(World(0))
    other.log.visible = dict(machine.log.visible)
    other.log.visible = {key: data for key, data in other.log.visible.items() if key.startswith("segments/")}
    other.is_ending = True
    with installed(other):
        other.engine()
    return other.table.rows()
