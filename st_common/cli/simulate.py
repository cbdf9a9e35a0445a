"""`fairway simulate`: objects on a road network, in place of a feed."""

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Stream
from st_common.cli.progress import progress_of_stages
from st_common.errors import ConfigError
from st_common.written import whole_number

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from st_common.config.stream import StreamSettings
    from st_common.simulation.network import RoadNetwork
    from st_common.simulation.simulate import Target

_OBJECTS = Annotated[int, typer.Option(metavar="N", help="How many objects travel.")]
_NETWORK = Annotated[
    str | None,
    typer.Option(
        metavar="LAYER|FILE",
        help="Roads: a layer, a file of lines, a folder with *_nodes.csv and *_edges.csv; else a grid of streets.",
        show_default=False,
    ),
]
_SECONDS = Annotated[
    float | None,
    typer.Option(metavar="S", help="How long; else until Ctrl-C.", show_default=False),
]
_RATE = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Fixes in a second, of all together; else one of each object.",
        show_default=False,
    ),
]
_SEED = Annotated[int, typer.Option(metavar="N", help="The same: the same fixes.")]
_ARRIVALS = Annotated[
    float,
    typer.Option(
        metavar="N",
        help="New objects in a second: then those that arrive are gone. With 0 they set out again.",
    ),
]
_TCP = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Send lines there, in place of the stream's log."
    ),
]
_START = Annotated[
    str | None,
    typer.Option(metavar="T", help="The time of the first fixes: ISO 8601; else now."),
]
_FAST = Annotated[
    bool,
    typer.Option(
        "--fast",
        help="As fast as possible, with an end mark; else each when it is due.",
    ),
]


def simulate(
    ctx: typer.Context,
    stream: Stream,
    *,
    objects: _OBJECTS = 2000,
    network: _NETWORK = None,
    seconds: _SECONDS = None,
    rate: _RATE = None,
    seed: _SEED = 1,
    arrivals: _ARRIVALS = 0.0,
    tcp: _TCP = None,
    start: _START = None,
    fast: _FAST = False,
) -> None:
    """Let objects travel on roads, and write their fixes in the stream's format into its log, or to a socket."""
    from st_common.simulation import simulate as simulation

    settings = context.stream(ctx, stream)
    plan = simulation.Plan(
        objects=objects,
        rate=objects if rate is None else rate,
        seconds=seconds,
        seed=seed,
        arrivals=arrivals,
        start_us=_start_us(start),
        paced=not fast,
    )
    simulation.check(plan)
    roads, nodes = _roads(ctx, settings, network)
    with (
        _target(ctx, settings, tcp, live=not fast) as target,
        progress_of_stages(stream, "fixes") as progress,
    ):
        done = simulation.simulate(roads, settings, plan, target, progress=progress)
    where = "its log" if tcp is None else tcp
    on = f"{len(roads.x):,}" + (f" of {nodes:,}" if nodes > len(roads.x) else "")
    typer.echo(
        f"{stream}: {done.fixes:,} fixes of {done.seconds:g} s into {where}, on {on} nodes"
    )


def _start_us(start: str | None) -> int:
    from st_common.cli.past import time_of

    if start is None:
        return time.time_ns() // 1_000_000 * 1_000
    return round(time_of(start).timestamp() * 1e6)


def _roads(
    ctx: typer.Context, stream: "StreamSettings", network: str | None
) -> "tuple[RoadNetwork, int]":
    """The roads that are travelled on, and how many nodes there are in all."""
    from st_common.simulation.roads import grid_of_streets, roads_of

    if network is None:
        streets = grid_of_streets(stream.space, unit_m=stream.unit_m)
        return streets, len(streets.x)
    home, conf = context.home(ctx), context.conf(ctx)
    roads, nodes, left_out = roads_of(home, conf, network, space=stream.space)
    for line in left_out:
        typer.echo(line, err=True)
    return roads, nodes


def _target(
    ctx: typer.Context, stream: "StreamSettings", tcp: str | None, *, live: bool
) -> "AbstractContextManager[Target]":
    from st_common.log.reading import log_for
    from st_common.simulation.simulate import ToLog, ToSocket

    if tcp is None:
        return nullcontext(ToLog(log_for(context.home(ctx), stream), stream, live=live))
    host, _, port = tcp.rpartition(":")
    number = whole_number(port, 65535)
    if not host or not number:
        raise ConfigError(f"--tcp {tcp!r} is no address", hint="HOST:PORT")
    return ToSocket(host.strip("[]"), number)
