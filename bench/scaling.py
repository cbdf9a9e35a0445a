"""How work falls with the number of shards: the step of each of 1 to 64 shards, timed alone.

usage: python -m bench.scaling [--workload w1|w2|w3|roads|p9] [--queries N] [--shards 1,4,16,64] [--following N]

Each shard steps the same log by itself, in this process: CPU time, with nothing beside it. What all of them tell
together must be what one shard tells, else it fails with exit code 3. `--following`: so many of the shards follow all
objects, as those do which judge a query that asks where others are. Of P9, as many moving squares as `--queries` and as
many objects, all of them do; what is timed is the last round.

    efficiency = time of one shard / (shards x time of the slowest)

Decoding is not in it: it is done once for each task, whatever its shards. Nor are the queries in the bytes of states:
shards of one process share them.
"""

import argparse
import hashlib
import json
import statistics
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa

from bench import oldenburg
from bench.rounds import prepared
from bench.throughput import (
    ROOT,
    SHARED,
    fill,
    load_buildings,
    register_rows,
    stream_settings,
    workload,
)
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.rows import Register
from st_common.controls.writing import to_bytes
from st_common.engine.local import layers_of
from st_common.engine.packets import packets_of, step_settings
from st_common.layers.load import load
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.operators.events.packet import Packet
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.query.plan import LayerJoin, Plan
from st_common.spark.resident_engine import batch_bytes

_BEHIND_QUERIES = slice(2, None)
_LAST_ROUND = slice(-3, None)
"""Two segments of fixes, and the row of the clock."""
_MOST = 1 << 10
ROADS = SHARED / "data" / "osm-porto" / "porto-metro-roads-2015.osm.pbf"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the shards of one number took (seconds of CPU), and what they hold and read at most (bytes)."""

    shards: int
    slowest_s: float
    mean_s: float
    efficiency: float
    most_state_bytes: int
    most_read_bytes: int
    changes: int


def load_roads(home: Home) -> bytes:
    """Loads the roads of metropolitan Porto; the registration of the query for whom is within 5 m of one."""
    conf = ROOT / "conf"
    done = load(home, "roads", ROADS, group="default", kinds=["road"], conf=conf)
    join = LayerJoin(layer="roads", predicate="dwithin", distance_m=5.0)
    row = Register(
        query="on_road",
        version=1,
        text="",
        owner="bench",
        plan=Plan(stream="load", join=join).to_json(),
        layer_version=done.version,
    )
    return to_bytes(row)


def filled(args: Namespace, home: Home) -> Log:
    """A log with the queries of a workload, then its points."""
    files = workload(args.work, args.replays)
    points = files / f"{'w3' if args.workload == 'w3' else 'w1'}_points.csv"
    if args.workload == "w2":
        asked = load_buildings(home)
    elif args.workload == "roads":
        asked = load_roads(home)
    else:
        rects = pa.csv.read_csv(files / f"{args.workload}_rects.csv")
        asked = register_rows(rects.slice(0, args.queries))
    log = log_for(home, stream_settings(1))
    fill(log, points, asked, 1 << 20, args.copies)
    return log


def filled_with_squares(args: Namespace) -> tuple[Home, Log, StreamSettings]:
    """A log with two rounds of as many objects as moving squares, each of which goes with one of them."""
    rounds = Namespace(
        **{**vars(args), "objects": args.queries, "kind": "squares", "members": 11.0},
        k=16,
        distance_m=0.0,
        divisor=2500,
        cache_share=None,
        share=1.0,
        warm=1,
        rounds=1,
        parts=2,
    )
    run, stream = prepared(rounds, shards=1)
    for unit in range(len(run.space.x)):
        who = oldenburg.reporters(run.space.x.shape[1], unit, 1.0)
        run.land(unit, oldenburg.data_segments(run.space, unit, who, parts=2))
        if unit == 0:
            run.register()
    return run.home, run.log, stream


def packets_by_shard(
    log: Log, stream: StreamSettings, shards: int, following: int
) -> list[list[Packet]]:
    """The packets of each shard, in log order."""
    made = packets_of(
        log, log.segments(0), stream, shards=shards, following=range(following)
    )
    return [list(of) for of in zip(*made, strict=True)]


def stepped(
    home: Home,
    stream: StreamSettings,
    packets: Sequence[Packet],
    shard: int,
    of: int,
    untimed: int,
) -> tuple[float, State, list[pa.Table]]:
    """The seconds of CPU that a shard takes for its packets behind some, its state, and what it tells."""
    settings, layer_of = (
        step_settings(stream, shard=shard, shards=of),
        layers_of(home, stream),
    )
    # Queries, indexes, first fixes.
    done = step(State(), packets[:untimed], settings, layer_of)
    told, state = [done.changes], done.state
    # In segments of 1 MiB, as the engine takes them from a backlog.
    rest, size = packets[untimed:], batch_bytes(of) >> 20
    batches = [rest[at : at + size] for at in range(0, len(rest), size)]
    started_s = time.process_time()
    for batch in batches:
        done = step(state, batch, settings, layer_of)
        state = done.state
        told.append(done.changes)
    return time.process_time() - started_s, state, told


def measured(
    home: Home,
    log: Log,
    stream: StreamSettings,
    shards: int,
    following: int,
    timed: slice,
) -> tuple[Measured, str]:
    """What so many shards take, and the hash of all that they tell."""
    seconds, states, told = [], [], []
    dealt = packets_by_shard(log, stream, shards, following)
    for shard, packets in enumerate(dealt):
        untimed = len(packets) - len(packets[timed])
        took_s, state, changes = stepped(home, stream, packets, shard, shards, untimed)
        seconds.append(took_s)
        states.append(len(state.to_blob(queries=False)))
        told += changes
    changes = settled(told)
    read = [sum(len(packet.to_blob()) for packet in packets) for packets in dealt]
    figures = Measured(
        shards=shards,
        slowest_s=round(max(seconds), 4),
        mean_s=round(statistics.mean(seconds), 4),
        efficiency=0.0,
        most_state_bytes=max(states),
        most_read_bytes=max(read),
        changes=len(changes),
    )
    return figures, hash_of(changes)


def hash_of(changes: pa.Table) -> str:
    """Of rows in their order, whatever chunks and dictionaries they are in."""
    digest = hashlib.sha256()
    for name in ("position", "query", "object", "partner", "sign"):
        column = (
            changes[name].cast(pa.string()) if name != "position" else changes[name]
        )
        digest.update(repr(column.to_pylist()).encode())
    return digest.hexdigest()


def main() -> None:
    """Measures each number of shards, and prints the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--workload", choices=["w1", "w2", "w3", "roads", "p9"], default="w1"
    )
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--replays", type=int, default=60)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--shards", default="1,4,16,64")
    parser.add_argument("--following", type=int, default=0)
    parser.add_argument("--work", type=Path, default=ROOT / "bench" / "work")
    args = parser.parse_args()
    if args.workload == "p9":
        home, log, stream = filled_with_squares(args)
        following, timed = _MOST, _LAST_ROUND
    else:
        home = Home(args.work / f"home-{time.time_ns()}")
        log, stream = filled(args, home), stream_settings(1)
        following, timed = args.following, _BEHIND_QUERIES
    found = [
        measured(home, log, stream, int(n), following, timed)
        for n in args.shards.split(",")
    ]
    one_s = found[0][0].mean_s * found[0][0].shards
    rows = [
        replace(one, efficiency=round(one_s / (one.shards * one.slowest_s), 3))
        for one, _ in found
    ]
    what = f"{args.workload} {args.queries} queries, {following} shards follow all"
    print(json.dumps({"what": what, "by_shards": [asdict(row) for row in rows]}))
    if len({told for _, told in found}) > 1:
        raise SystemExit(3)


if __name__ == "__main__":
    main()
