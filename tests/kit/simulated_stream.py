"""A stream on a simulated machine: captures and engines as its actors, and a calm engine to compare with.

Real are the step, the local engine with its states and journals, the log, the lease, and the disk's adapter. Simulated
are the disk below it, processes, clocks, and the table of changes (Delta's writer brings its own files).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

import pyarrow as pa

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode.packed import Encoder
from st_common.engine import committing, local
from st_common.engine.journal import Journal
from st_common.engine.owner import Owner
from st_common.log import log as logs
from st_common.log import packs
from st_common.log.keys import SEGMENTS
from st_common.log.log import Log
from st_common.log.packing import pack
from st_common.log.packs import PACKS
from st_common.operations import lease, process, records
from st_common.operators.turn.changes import settled
from st_common.storage import local as disks
from tests.kit.log_writer import HEADER, bare_log
from tests.kit.oracle import Fix
from tests.kit.simulated import Actor, Inline, World
from tests.kit.simulated_disk import SimulatedDisk
from tests.kit.simulated_path import SimulatedPath, copy_folder, root_of
from tests.kit.simulated_system import System
from tests.kit.simulated_tables import SimulatedTables

if TYPE_CHECKING:
    from pathlib import Path

SECOND_US = 1_000_000
LONG_US = 200 * SECOND_US
"""Longer than a lease lives whose owner cannot be looked at."""
STREAM = "grid"
Part = list[Fix]
"""What a capture appends at once."""
real_is_held = lease.is_held
_EMPTY = "," * (len(HEADER) - 4)  # neither gone nor any attribute


@dataclass
class Machine:
    """A stream with its log, lease, states and table; `told` by journals, `acknowledged` to captures."""

    world: World
    disk: SimulatedDisk
    system: System
    tables: SimulatedTables
    stream: StreamSettings
    is_live: bool = False
    naps: float = 0.0
    packing: float = 0.0
    told: list[dict[str, Any]] = field(default_factory=list)
    acknowledged: list[tuple[int, bytes]] = field(default_factory=list)
    wanted: list[Part] = field(default_factory=list)
    owner: Actor | None = None
    before: dict[Actor | None, lease.Lease] = field(
        default_factory=dict
    )  # whose lease each actor looked at
    epoch: int = 0
    cut_in: int = 0
    is_ending: bool = False

    @staticmethod
    def of(world: World, stream: StreamSettings, *, is_live: bool = False) -> "Machine":
        """An empty one; in half of them the locks of the log and of the table keep nobody waiting."""
        disk, system = (
            SimulatedDisk(world),
            System(world, locks=world.rng.random() < 0.5),
        )
        tables = SimulatedTables(disk, system)
        return Machine(
            world=world,
            disk=disk,
            system=system,
            tables=tables,
            stream=stream,
            is_live=is_live,
        )

    @property
    def home(self) -> Home:
        """The home of the stream."""
        return Home(cast("Path", root_of(self.disk)))

    @property
    def table(self) -> SimulatedPath:
        """The folder of its table of changes."""
        return cast("SimulatedPath", self.home.table("changes", STREAM))

    def log(self) -> Log:
        """The log, as a new process sees it."""
        return bare_log(self.home.log(STREAM))

    def capture(self) -> None:
        """Appends what is wanted, segment after segment; one that dies has lost what was not acknowledged."""
        log = self.log()
        while self.wanted:
            payload = self._payload(self.wanted.pop(0))
            now_us = self.world.now_us
            is_packed = len(payload) % 3 == 0
            coded = (
                Encoder(payload, self.stream, arrival_us=now_us) if is_packed else None
            )
            segment = log.append(
                payload, arrival_us=now_us, live=self.is_live, coded=coded
            )
            self.acknowledged.append((segment.number, payload))
            self.world.now_us += (
                self.world.rng.choice((0, 5, 90, 90)) * SECOND_US * self.is_live
            )
            for _ in range(self.world.rng.choice((0, 10, 40))):
                self.world.pause()  # engines are slower

    def _payload(self, part: Part) -> bytes:
        """The records of a part: live ones happen now."""
        by_us = self.world.now_us - part[-1].event_us if self.is_live else 0
        lines = [
            f"{fix.object},{fix.event_us + by_us},{fix.x},{fix.y}{_EMPTY}\n"
            for fix in part
        ]
        return f"{','.join(HEADER)}\n{''.join(lines)}".encode()

    def packer(self) -> None:
        """Packs some of what the log has, at once: on this machine all that lies there is old."""
        log = self.log()
        pack(log, upto=self.world.rng.randint(0, log.end()))

    def engine(self) -> None:
        """Takes the stream over, and follows it until the end is wanted and nothing is new."""
        owner = self._taken()
        try:
            self.tables.recover(self.table)
            engine = local.LocalEngine(
                self.home, self.stream, owner, now_us=lambda: self.world.now_us
            )
            self._follow(engine, owner)
            engine.close()
        finally:
            self.owner = None if self.owner is self.world.here else self.owner
            lease.release(owner.lease)

    def _taken(self) -> Owner:
        self.before.pop(self.world.here, None)
        taken = lease.take(self.home.stream(STREAM), now_us=self.world.now_us)
        before = self.before.get(self.world.here)
        holder = (
            None
            if before is None or before.released
            else self.world.actors[before.owner.ticks]
        )
        is_seen = (
            holder is not None
            and not holder.is_done
            and holder.namespace == taken.owner.namespace
        )
        assert not is_seen, (
            f"epoch {taken.epoch} overtakes an owner that it sees living"
        )
        assert taken.epoch > self.epoch, f"epoch {taken.epoch} comes after {self.epoch}"
        self.owner, self.epoch = self.world.here, taken.epoch
        return _Sleepy(
            folder=taken.folder, engine="local", lease=taken, before=None, machine=self
        )

    def is_held(self, of: lease.Lease, *, now_us: int) -> bool:
        """See `lease.is_held`; keeps who asked about whom."""
        self.before[self.world.here] = of
        return real_is_held(of, now_us=now_us)

    def _follow(self, engine: local.LocalEngine, owner: Owner) -> None:
        while True:
            is_overtaken = self.epoch != owner.lease.epoch
            lease.check(owner.lease)
            assert not is_overtaken, (
                f"epoch {owner.lease.epoch} goes on after {self.epoch}"
            )
            if not engine.batch() and self.is_ending:
                return
            self.world.rng.choice(
                (engine.commit, engine.commit, engine.store, self._wait_for(engine))
            )()
            if self.world.rng.random() < 0.1:
                owner.lease = lease.beat(owner.lease, now_us=self.world.now_us)

    def _wait_for(self, engine: local.LocalEngine) -> Any:
        """What an engine does that has nothing to do: it looks at the clock, unless the end is wanted."""
        return (
            self.world.pause
            if self.is_ending or engine.state.next_segment < engine.log.end()
            else engine.keep_time
        )

    def cut(self) -> None:
        """Power is cut: everybody dies, what was not synced may be lost, and at times the table is an older copy."""
        for actor in self.world.actors:
            self.world.kill(actor)
        self.world.boots += 1
        self.disk.cut()
        if self.world.rng.random() < 0.5:
            self.tables.recover(self.table)
            least = max(
                0, self.tables.versions(self.table) - self.world.rng.randint(1, 4)
            )
            self.tables.restore(self.table, least)


@dataclass(kw_only=True)
class _Sleepy(Owner):
    """An owner whom the machine at times puts to sleep between its look at the lease and its commit."""

    machine: Machine

    def check(self) -> None:
        """See `Owner.check`."""
        super().check()
        world = self.machine.world
        if (
            world.here
            and not self.machine.is_ending
            and world.rng.random() < self.machine.naps
        ):
            world.here.is_paused = True
            world.now_us += LONG_US
            world.pause()


class _Told(Journal):
    """A journal that keeps all that it ever told."""

    def __init__(self, machine: Machine, epoch: int) -> None:
        self._machine = machine
        super().__init__(machine.home, STREAM, epoch=epoch)

    def append(self, changes: pa.Table, *, behind: int) -> None:
        """See `Journal.append`."""
        super().append(changes, behind=behind)
        self._machine.told += changes.select(settled([]).column_names).to_pylist()


@contextmanager
def installed(machine: Machine) -> Iterator[None]:
    """While this is open, logs, leases and local engines work on a machine instead of files."""
    system = machine.system
    with (
        patch.multiple(disks, os=system, fcntl=system),
        patch.object(lease, "is_held", machine.is_held),
        patch.object(
            records, "flock", System(machine.world).flock
        ),  # a lease relies on it
        patch.multiple(process, **_processes(machine.world, system)),
        # Time is not the machine's where packs are looked for: a minute has always passed.
        patch.object(packs, "PAUSE_S", -1.0),
        patch.object(logs, "PAUSE_S", -1.0),
        patch.object(local, "Thread", Inline),
        patch.multiple(
            committing,
            tables=machine.tables,
            Journal=lambda _home, _stream, *, epoch: _Told(machine, epoch),
        ),
    ):
        yield


def _processes(world: World, system: System) -> dict[str, Any]:
    """What a simulated process sees of others: those of its own namespace, since the machine was started."""

    def owner_of(pid: int) -> process.Owner | None:
        by_id = next(
            (actor for actor in world.actors if actor.pid == pid and not actor.is_done),
            None,
        )
        if by_id is None or by_id.namespace != namespace():
            return None
        return process.Owner(
            host="machine",
            pid=pid,
            started_s=world.now_us / 1e6,
            boot=f"boot {world.boots}",
            namespace=namespace(),
            ticks=by_id.serial,
        )

    def namespace() -> str:
        return world.here.namespace if world.here else ""

    return {
        "os": system,
        "owner_of": owner_of,
        "this_host": lambda: "machine",
        "this_namespace": namespace,
        "this_boot": lambda: f"boot {world.boots}",
    }


def calm(machine: Machine) -> list[dict[str, Any]]:
    """What an engine that nobody disturbs makes of a machine's log."""
    other = Machine.of(World(0), machine.stream)
    for kind in (SEGMENTS, PACKS):
        copy_folder(machine.disk, f"{machine.home.log(STREAM)}/{kind}", other.disk)
    with installed(other):
        engine = local.LocalEngine(other.home, other.stream)
        while engine.batch():
            pass
        engine.close()
        return other.tables.rows(other.table)
