"""Objects on roads, in place of a feed: `python -m demo.simulation STREAM [--network roads] [--objects 500]`."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from demo.simulation.network import RoadNetwork
from demo.simulation.roads import grid_of_streets, roads_of
from demo.simulation.simulate import Plan, Target, ToLog, ToSocket, check, simulate
from st_common.cli.progress import progress_of_stages
from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.parameters import Parameter, Program
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of
from st_common.config.values import flag, instant, named, number, text, whole
from st_common.errors import ConfigError
from st_common.log.record_settings import log_for
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.written import whole_number

SIMULATE = Program(
    "simulate",
    "Lets objects travel on roads, and writes their fixes in the stream's format into its log, or to a socket.",
    (
        Parameter("stream", named(), "its name", is_word=True, is_required=True),
        Parameter("objects", whole(), "how many travel", default=2000),
        Parameter(
            "network",
            text,
            "roads: a layer, a file of lines, a folder with *_nodes.csv and *_edges.csv; none: a grid of streets",
        ),
        Parameter("seconds", number(above=0), "how long; none: until Ctrl-C", unit="s"),
        Parameter(
            "rate",
            number(above=0),
            "fixes in a second, of all together; none: one of each object",
        ),
        Parameter("seed", whole(least=0), "the same: the same fixes", default=1),
        Parameter(
            "arrivals",
            number(least=0),
            "new objects in a second: then those that arrive are gone; with 0 they set out again",
            default=0.0,
        ),
        Parameter("tcp", text, "HOST:PORT: lines go there, not into the stream's log"),
        Parameter("start", instant, "the time of the first fixes; none: now"),
        Parameter(
            "fast",
            flag,
            "as fast as possible, with an end mark; else each when it is due",
        ),
    ),
    module="demo.simulation",
)


def simulated(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Lets objects travel as the command line says, and sums up how many fixes there are, and on how many nodes."""
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    stream = stream_of(streams_of(home, conf), arguments.stream)
    plan = Plan(
        objects=arguments.objects,
        rate=arguments.rate or arguments.objects,
        seconds=arguments.seconds,
        seed=arguments.seed,
        arrivals=arguments.arrivals,
        start_us=_start_us(arguments.start),
        paced=not arguments.fast,
    )
    check(plan)
    roads, nodes = _roads(home, conf, stream, arguments.network)
    with (
        _target(home, stream, arguments.tcp, live=plan.paced) as target,
        progress_of_stages(stream.name, "fixes") as progress,
    ):
        done = simulate(roads, stream, plan, target, progress=progress)
    return {
        "stream": stream.name,
        "fixes": done.fixes,
        "seconds": done.seconds,
        "nodes": len(roads.x),
        "nodes_of_network": nodes,
    }


def _start_us(start: datetime | None) -> int:
    if start is None:
        return time.time_ns() // 1_000_000 * 1_000
    return round(start.timestamp() * 1e6)


def _roads(
    home: Home, conf: Path, stream: StreamSettings, network: str | None
) -> tuple[RoadNetwork, int]:
    """The roads that are travelled on, and how many nodes there are in all."""
    if network is None:
        streets = grid_of_streets(stream.space, unit_m=stream.unit_m)
        return streets, len(streets.x)
    roads, nodes, left_out = roads_of(home, conf, network, space=stream.space)
    for line in left_out:
        print(line, file=sys.stderr)
    return roads, nodes


def _target(
    home: Home, stream: StreamSettings, tcp: str | None, *, live: bool
) -> AbstractContextManager[Target]:
    if tcp is None:
        return nullcontext(ToLog(log_for(home, stream), stream, live=live))
    host, _, port = tcp.rpartition(":")
    number_of_port = whole_number(port, 65535)
    if not host or not number_of_port:
        raise ConfigError(f"--tcp {tcp!r} is no address", hint="HOST:PORT")
    return ToSocket(host.strip("[]"), number_of_port)


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, simulates, gives back the exit code."""
    return finish(simulated, job_parser(SIMULATE).parse_args(argv), is_told=False)


if __name__ == "__main__":
    sys.exit(main())
