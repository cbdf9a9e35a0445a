"""Another number of shards or another engine for a stream, from a place in its log on (docs/architecture.md).

The old engine goes up to that place and gives out what it knows. That is stored for the new one in the folder of the
next generation, which comes into force with the record of the topology and not before: a crash leaves the old
generation or the new one, and both go on from where the committed changes end.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine import states
from st_common.engine.committing import APP
from st_common.engine.cross_shard import NOBODY, Shards, everybody
from st_common.engine.export import export_folder, seed_folder, seed_path
from st_common.engine.owner import Owner, owned
from st_common.engine.recovery import prepare
from st_common.engine.run import follow
from st_common.engine.topology import (
    Topology,
    begin,
    generation_folder,
    put_in_force,
    topology_of,
)
from st_common.errors import ConfigError, StateError
from st_common.operations.stop import clear_marker
from st_common.operators.runtime.reshape import joined, split
from st_common.operators.state.state import State

Export = Callable[[Home, StreamSettings, Owner], list[State]]
"""Runs the old engine, with the settings that it has had, and gives the states of its shards at one place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resharded:
    """What a reshard did.

    Attributes:
        before: the topology that was in force.
        after: the one that is now; the same when there was nothing to do.
        objects: how many objects the state took over.
    """

    before: Topology
    after: Topology
    objects: int


def of_local(home: Home, stream: StreamSettings, owner: Owner) -> list[State]:
    """The state of the local engine, the only one, after it has followed the log to its end."""
    return [follow(home, stream, owner, until_idle=True).state]


def reshard(
    home: Home, stream: StreamSettings, *, engine: str, shards: int, export: Export
) -> Resharded:
    """Takes a stream over to another engine or another number of shards, at the end of its log (docs/adr/0011).

    Nothing is done when it has these already.

        generation 0   on Spark, reads segments 0 to 99, and gives out its states at 100, a control row `export`
        joined         one state whose next segment is 101
        generation 1   begins at segment 101; each shard with its own part of that state

    Args:
        home: the home folder.
        stream: the settings, whatever engine and shards they say.
        engine: `local` or `spark`.
        shards: how many; the local engine has one.
        export: how the present engine gives out its states.

    Raises:
        ConfigError: there is no such topology.
        FencedError: the stream is running.
        StateError: it has never run, was begun with other settings, or its state is of another format.
    """
    _check(engine, shards)
    before = _in_force(home, stream.name)
    if (before.engine, before.shards) == (engine, shards):
        return Resharded(before=before, after=before, objects=0)
    with owned(home, stream.name, engine=before.engine) as owner:
        _check_wanted(owner)
        _remove_others(home, stream.name, before)
        old = replace(stream, engine=before.engine, shards=before.shards)  # type: ignore[arg-type]
        prepare(home, stream.name)
        old = begin(home, old, engine=before.engine, shards=before.shards)
        exported = export(home, old, owner)
        whole = joined(exported, following=_following(stream, len(exported)))
        _check_end(home, stream.name, whole)
        after = Topology(
            engine=engine,
            shards=shards,
            generation=before.generation + 1,
            start=whole.next_segment,
        )
        store(home, stream, whole, after)
        owner.check()
        # From here on a start finds the new generation; before it, the old one, whose state is still there.
        put_in_force(home, stream.name, after)
        _remove_others(home, stream.name, after)
    return Resharded(before=before, after=after, objects=len(whole.objects))


def store(home: Home, stream: StreamSettings, whole: State, topology: Topology) -> None:
    """Stores a state so that the engine of a topology begins with it.

    Args:
        home: the home folder.
        stream: the settings of the stream.
        whole: the state of all shards together.
        topology: the local engine gets the state as it is, Spark one file per shard.
    """
    if topology.engine == "local":
        states.States.of(home, stream.name, topology.generation).store(whole)
        return
    folder = generation_folder(home, stream.name, topology.generation)
    following = _following(stream, topology.shards)
    parts = split(whole, shards=topology.shards, following=following)
    for shard, state in enumerate(parts):
        states.save(seed_path(seed_folder(folder), shard), state)


def _following(stream: StreamSettings, shards: int) -> Shards:
    """The shards that follow all objects: all, unless settings say none; who needs them is seen later."""
    return everybody(shards) if stream.moving else NOBODY


def _check(engine: str, shards: int) -> None:
    if engine not in ("local", "spark"):
        raise ConfigError(f"there is no engine {engine!r}", hint="spark or local")
    if shards < 1 or (engine == "local" and shards != 1):
        raise ConfigError(
            f"the {engine} engine cannot have {shards} shards",
            hint="local has 1, spark 1 or more",
        )


def _in_force(home: Home, stream: str) -> Topology:
    topology = topology_of(home, stream)
    if topology is None:
        raise StateError(
            f"stream {stream!r} has never run",
            hint="nothing is fixed yet: change its settings",
        )
    return topology


def _check_wanted(owner: Owner) -> None:
    """Makes sure that the old engine may run to its end; the supervisor's wish was fulfilled, for nobody runs."""
    clear_marker(owner.folder)
    if owner.stop_wanted():
        raise StateError(
            f"stream {owner.folder.name!r} is held by the file `stop` in its folder",
            hint="remove it",
        )


def _check_end(home: Home, stream: str, whole: State) -> None:
    """Makes sure that the new generation begins where the committed changes end: else some came twice, or never."""
    committed = tables.committed(home.table("changes", stream), APP)
    if states.end_of(whole) != (-1 if committed is None else committed):
        raise StateError(
            f"the state of stream {stream!r} is not at the end of its changes",
            hint="its engine was asked to stop on the way; try again",
        )


def _remove_others(home: Home, stream: str, topology: Topology) -> None:
    """Removes the states of other generations, and exports; the journal of changes belongs to none."""
    folder = home.stream(stream)
    for path in [*folder.glob("g[0-9]*"), export_folder(home, stream)]:
        if path != generation_folder(home, stream, topology.generation):
            shutil.rmtree(path, ignore_errors=True)
    if topology.generation:
        shutil.rmtree(folder / "local" / "states", ignore_errors=True)
        for mode in ("spark", "resident"):
            shutil.rmtree(folder / mode, ignore_errors=True)
