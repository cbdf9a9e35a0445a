"""Histories of captures and engines on a simulated machine: kills, pauses, takeovers, power cuts, clock steps."""

import importlib.util
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.engine.local import LocalEngine
from st_common.engine.states import States, end_of
from st_common.errors import FairwayError, LogError
from st_common.log import log as logs
from st_common.log.log import Log
from st_common.operations import lease
from st_common.storage import LocalStorage
from st_common.storage import local as disks
from tests.kit import histories
from tests.kit.effort import tries
from tests.kit.simulated import World
from tests.kit.simulated_disk import SimulatedDisk
from tests.kit.simulated_path import SimulatedPath, root_of
from tests.kit.simulated_system import System
from tests.kit.simulated_tables import SimulatedTables

TOOL = Path(__file__).parents[2] / "tools" / "histories.py"
SEEDS = st.integers(0, (1 << 32) - 1)
MOST = 2000
CUTS = [*product(range(9, 20), range(20), range(6))]
"""After how many steps one of two writers is killed, after how many more the power is cut, and a seed."""


@pytest.mark.spec("X1", "X6", "S2")
@tries(30)
@given(SEEDS)
def test_whatever_breaks_nothing_is_lost_and_nothing_is_told_twice(seed):
    histories.live(seed)


def test_a_history_is_its_seed():
    assert histories.live(5) == histories.live(5)


def test_a_program_that_lives_histories_names_the_seed_of_any_error(monkeypatch):
    def live(seed):
        if seed == 3:
            raise LogError("segment 1 is gone")

    spec = importlib.util.spec_from_file_location("histories_tool", TOOL)
    living = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(living)
    monkeypatch.setattr(living, "KINDS", {"engines": live, "servers": live})
    monkeypatch.setattr(living.logging, "disable", lambda _level: None)
    broken = living.lived([2, 3, 4], ("engines",))
    assert broken == [(3, "engines", "LogError: segment 1 is gone")]


def test_histories_have_all_that_can_break():
    missing = {"changes", "kills", "cuts", "takeovers", "clocks"}
    for seed in range(200):
        one = histories.live(seed)
        missing = {what for what in missing if not getattr(one, what)}
        if not missing:
            break
    assert missing == set()


# --- bugs that are planted: each breaks some history ------------------------------------------------------------------


def nothing(*_args, **_kwargs):
    """What should be done is not done."""


def newest_of_all(states, *, upto):
    """The newest state, also when it has seen more than the table holds."""
    return real_newest(states, upto=1 << 62)


def stands_where_the_state_stands(engine):
    """What was committed is what the state says, not what the table says."""
    return end_of(
        real_newest(States.of(engine._home, engine._stream.name), upto=1 << 62)
    )


def without_sync_of_files(system, handle):
    """Files are renamed and linked before their bytes are synced."""
    if handle._inode is None:
        real_fsync(system, handle)


def lives_by_the_wall_clock(owner):
    """A process is the one of its record when it seems to have been started at the same second."""
    now = lease.this_process()
    return abs(now.started_s - owner.started_s) < 1800


def by_its_own_clock(payload, before, marks):
    """A segment arrives when its writer says, also before the one in front of it."""
    made = real_segment(payload, before, marks)
    return replace(made, arrival_us=marks.arrival_us)


def over_another(storage, objects):
    """Objects take the place of those that have their names."""
    for key, data in objects:
        storage.put(key, data)
    return True


real_newest, real_fsync, real_segment = States.newest, System.fsync, logs.make_segment


@pytest.mark.parametrize(
    "plants",
    [
        pytest.param([(Log, "sync", nothing)], id="told before it is durable"),
        pytest.param(
            [(States, "newest", newest_of_all)], id="a state ahead of the table"
        ),
        pytest.param(
            [(SimulatedTables, "require_at", nothing)],
            id="a commit without compare-and-set",
        ),
        pytest.param(
            [
                (LocalEngine, "_stands_at", stands_where_the_state_stands),
                (SimulatedTables, "require_at", nothing),
            ],
            id="an older table is jumped over",
        ),
        pytest.param([(lease, "check", nothing)], id="nobody looks at the lease"),
        pytest.param(
            [(lease, "lives", lives_by_the_wall_clock)],
            id="a clock step makes a living engine look dead",
        ),
        pytest.param([(disks, "_sync_folder", nothing)], id="names are not synced"),
        pytest.param(
            [(System, "fsync", without_sync_of_files)], id="bytes are not synced"
        ),
        pytest.param(
            [(logs, "make_segment", by_its_own_clock)], id="arrivals run backwards"
        ),
        pytest.param(
            [(LocalStorage, "create_all", over_another)], id="two take the same number"
        ),
    ],
)
def test_a_planted_bug_breaks_some_history(monkeypatch, plants):
    for where, name, planted in plants:
        monkeypatch.setattr(where, name, planted)
    with pytest.raises(AssertionError):
        all(histories.live(seed) for seed in range(MOST))


# --- the simulated disk -----------------------------------------------------------------------------------------------


def test_what_was_synced_survives_a_power_cut_and_what_was_not_may_go(monkeypatch):
    left = set()
    for seed in range(60):
        world = World(seed)
        disk, system = SimulatedDisk(world), System(world)
        monkeypatch.setattr(disks, "os", system)
        monkeypatch.setattr(disks, "fcntl", system)
        storage = LocalStorage(root_of(disk))
        storage.create("a/1", b"whole")
        actor = world.start(
            "writer", lambda at=storage: at.create_all([("b/1", b"x"), ("b/2", b"y")])
        )
        for _ in range(4 + seed % 12):
            world.turn(actor)
        world.kill(actor)
        disk.cut()
        assert storage.read("a/1") == b"whole"
        left.add(tuple(storage.names("b")))
        assert all(
            storage.read(f"b/{name}") in (b"x", b"y") for name in storage.names("b")
        )
    assert left == {(), ("1",), ("1", "2")}  # the second never without the first


@pytest.mark.spec("S2")
def test_what_a_dead_writer_left_behind_is_durable_for_the_next_one(monkeypatch):
    """Wherever one dies: its folders and names are there for others before any of them is durable."""
    deaths = set()
    for seed in range(200):
        world = World(seed)
        disk, system = SimulatedDisk(world), System(world)
        monkeypatch.setattr(disks, "os", system)
        monkeypatch.setattr(disks, "fcntl", system)
        storage = LocalStorage(root_of(disk) / "log")
        write = lambda at=storage: at.create("raw/00/1", b"whole")
        actor = world.start("writer", write)
        for _ in range(seed % 20):
            world.turn(actor)
        world.kill(actor)
        deaths.add(LocalStorage(root_of(disk) / "log").create("raw/00/1", b"whole"))
        disk.cut()
        assert storage.read("raw/00/1") == b"whole"
    assert deaths == {True, False}  # before its object had a name, and after


def test_bytes_that_were_not_synced_are_torn_by_a_power_cut():
    left = set()
    for seed in range(60):
        disk = SimulatedDisk(World(seed))
        path, system = root_of(disk) / "a", System(disk.world)
        with path.open("wb") as file:
            file.write(b"whole")
        system.fsync(system.open(root_of(disk), 0))
        disk.cut()
        left.add(path.read_bytes())
    assert {b"", b"whole", b"\0" * 5} < left


def test_a_path_knows_its_parts():
    path = root_of(SimulatedDisk(World(0))) / "a" / "b.json"
    assert (str(path), path.name, path.parent.name) == ("/home/a/b.json", "b.json", "a")
    assert path == SimulatedPath(path.disk, "/home/a/b.json")


# --- the simulated table ----------------------------------------------------------------------------------------------


def append_one(tables, path, version):
    """One commit of no rows."""
    tables.append(
        path,
        pa.table({}),
        None,
        app="engine",
        version=version,
        after=version - 1,
        check=None,
        notes={},
    )


def cut_between_two(first, second, seed):
    """What a power cut leaves of a table: one commits so many steps and is killed, the next one goes so many on."""
    world = World(seed)
    disk, system = SimulatedDisk(world), System(world)
    path, tables = root_of(disk) / "tables" / "changes", SimulatedTables(disk, system)
    with patch.multiple(disks, os=system, fcntl=system):
        for steps in (first, second):
            version = tables.versions(path)
            work = partial(append_one, tables, path, version)
            actor = world.start("engine", work)
            for _ in range(steps):
                world.turn(actor)
            world.kill(actor)
        versions = tables.versions(path)
        disk.cut()
        tables.recover(path)
        return versions, tables.versions(path)


def test_a_power_cut_never_takes_a_version_and_leaves_the_one_behind_it():
    found = {cut_between_two(*one) for one in CUTS}
    assert found == {(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)}


def test_a_table_that_is_not_synced_before_the_next_version_gets_a_hole(monkeypatch):
    monkeypatch.setattr(SimulatedTables, "_sync_before", nothing)
    with pytest.raises(FairwayError, match=r"only \[.*\] are whole"):
        [cut_between_two(*one) for one in CUTS]
