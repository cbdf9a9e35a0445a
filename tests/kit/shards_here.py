"""What Spark does with a stream that begins with the states of a reshard, in this process: up to an export."""

import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.committing import APP
from st_common.engine.export import (
    asked_exports,
    export_path,
    exported,
    seed_folder,
    seed_path,
)
from st_common.engine.local import layers_of
from st_common.engine.owner import Owner
from st_common.engine.packets import packets, step_settings
from st_common.engine.states import end_of, load, save
from st_common.engine.topology import generation_folder, topology_of
from st_common.log.control import write_export
from st_common.log.log import Log
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled


def shards_here(home: Home, stream: StreamSettings, owner: Owner) -> list[State]:
    """The states of all shards at a mark that is put at the log's end; what was not committed of changes is, in one.

    Args:
        home: the home folder.
        stream: the settings, with the shards that it has.
        owner: of the stream.
    """
    log, topology = Log(home.log(stream.name)), topology_of(home, stream.name)
    assert topology is not None
    segment = write_export(log, arrival_us=0).number
    seeds = seed_folder(generation_folder(home, stream.name))
    read = [
        packets(log, one, stream, shards=stream.shards)
        for one in log.segments(topology.start)
    ]
    done = []
    for shard in range(stream.shards):
        mine = [row[shard] for row in read]
        of = step_settings(stream, shard=shard, shards=stream.shards)
        begun = load(seed_path(seeds, shard))
        done.append(step(begun, mine, of, layers_of(home, stream)))
        for asked in asked_exports(mine):
            path = export_path(home, stream.name, asked, shard)
            save(path, done[-1].state)
    table = home.table("changes", stream.name)
    committed = tables.committed(table, APP)
    changes = settled([one.changes for one in done])
    if committed is not None:  # one that was killed has told some of them
        ahead = pc.greater(changes["position"], committed)
        changes = changes.filter(ahead)
    owner.check()
    end, contract = end_of(done[0].state), load_contract("changes")
    tables.append(table, changes, contract, app=APP, version=end)
    return exported(home, stream.name, segment, stream.shards)
