"""`fairway layer` and `fairway partition`: static layers, and the regions that tables are spread over."""

from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from st_common.cli import context
from st_common.cli.arguments import Json, taking, told
from st_common.cli.progress import progress_of_stages
from st_common.config.streams import has_streams
from st_common.errors import FairwayError
from st_common.programs import LOAD_LAYER, PARTITION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from st_common.batch.prepartition import Partitioned
    from st_common.layers.load import LayerReport
    from st_common.query.control import QueryRow

_NAME = Annotated[str, typer.Argument(metavar="NAME", help="The name of a layer.")]
_ALL = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Name all features that were rejected or repaired, not ten of each.",
    ),
]


@taking(LOAD_LAYER)
@told
def load(ctx: typer.Context, given: Namespace, *, all_faults: _ALL = False) -> None:
    """Load a layer, or load it again: running queries go over to the new version."""
    from st_common.layers.faults import SHOWN
    from st_common.processes.tasks import load_layer
    from st_common.query.layer_following import follow_layers

    home, conf = context.home(ctx), context.conf(ctx)
    streams = context.streams(ctx).values() if has_streams(conf) else ()
    with progress_of_stages(f"layer {given.layer}", "features") as progress:
        report = load_layer(home, conf, streams, given, progress)
    _write_loaded(given.layer, report, most=None if all_faults else SHOWN)
    _write_followed(follow_layers(home, lambda: context.streams(ctx)))


def _write_loaded(name: str, report: "LayerReport", *, most: int | None) -> None:
    """Says what a load brought, what it left out, and which streams were told."""
    from st_common.layers.faults import told as lines_of

    for note in report.notes:
        typer.echo(f"note: {note}", err=True)
    by_kind = ", ".join(f"{count:,} {kind}" for kind, count in report.by_kind.items())
    typer.echo(
        f"layer {name}, version {report.version}: {report.features:,} of {report.wanted:,} features "
        f"in {report.rows:,} rows ({by_kind})"
    )
    rejected = ", ".join(
        f"{count:,} {reason}" for reason, count in report.rejected.items()
    )
    typer.echo(
        f"repaired {report.repaired:,}; rejected {sum(report.rejected.values()):,}{f': {rejected}' * bool(rejected)}"
    )
    for line in lines_of(report.faults, most=most):
        typer.echo(line)
    if report.streams:
        typer.echo(f"told to {', '.join(report.streams)}")
    if report.warning:
        typer.echo(f"WARNING: {report.warning}", err=True)


def _write_followed(rows: "Sequence[QueryRow]") -> None:
    """Says which queries have another region by the load, and which have none any more."""
    went_over = [row.name for row in rows if row.op != "fail"]
    if went_over:
        typer.echo(f"other regions for {', '.join(went_over)}")
    for row in rows:
        if row.op == "fail":
            typer.echo(f"query {row.name} is suspended: {row.why}", err=True)


def list_layers(ctx: typer.Context, *, json_lines: Json = False) -> None:
    """List the layers: name, newest version, features."""
    from st_common.cli.output import write_listing
    from st_common.layers.summary import summaries

    layers = summaries(context.home(ctx, must_exist=True))
    rows = [(one.layer, str(one.version), f"{one.features:,}") for one in layers]
    names = ("layer", "version", "features")
    records = [
        {"layer": one.layer, "version": one.version, "features": one.features}
        for one in layers
    ]
    write_listing(names, rows, records, json_lines=json_lines)


def show(
    ctx: typer.Context,
    layer: _NAME,
    *,
    all_faults: _ALL = False,
    json_lines: Json = False,
) -> None:
    """Show a layer: its box, how many features of which kind are home in which region, and what its load left out."""
    from st_common.cli.output import write_columns, write_listing
    from st_common.layers.faults import SHOWN, shared_out
    from st_common.layers.faults import told as lines_of
    from st_common.layers.summary import summary

    one = summary(context.home(ctx, must_exist=True), layer)
    if json_lines:
        record = {**asdict(one), "faults": shared_out(one.faults, most=None)}
        write_listing((), (), [record], json_lines=True)
        return
    typer.echo(
        f"layer {one.layer}, version {one.version}: {one.features:,} features in {one.rows:,} rows"
    )
    if one.attribution:
        typer.echo(f"attribution {one.attribution}")
    if one.box is not None:
        typer.echo("box " + ",".join(f"{edge:.7g}" for edge in one.box))
    write_columns(
        ("kind", "features"),
        [(kind, f"{count:,}") for kind, count in one.by_kind.items()],
    )
    write_columns(
        ("region", "home in it"),
        [(region, f"{count:,}") for region, count in one.by_region.items()],
    )
    for line in lines_of(one.faults, most=None if all_faults else SHOWN):
        typer.echo(line)


@taking(PARTITION)
@told
def partition(ctx: typer.Context, given: Namespace) -> None:
    """Divide space into regions of like load, store them as the group's next version, and bring layers to them."""
    from st_common.processes.partitioning import (
        engine_of,
        follow_regions,
        partition_as,
        rebalance_groups,
    )

    home, conf = context.home(ctx), context.conf(ctx)
    streams = list(context.streams(ctx).values())
    failed: dict[str, str] = {}
    with (
        progress_of_stages(f"group {given.group}", "rows") as progress,
        engine_of(home, given.group, given.engine, given.tree) as engine,
    ):
        if given.rebalance:
            done, failed = rebalance_groups(home, conf, streams, engine)
        else:
            one = partition_as(home, conf, streams, given, engine, progress)
            done = {given.group: one}
    for one in done.values():
        _tell(one, given.workers)
    for group, why in failed.items():
        typer.echo(f"FAILED: {group}: {why}", err=True)
    _write_spread(follow_regions(home, lambda: context.streams(ctx)))
    if failed:
        raise typer.Exit(FairwayError.exit_code)


def _write_spread(done: "Mapping[str, Any]") -> None:
    """Says which layers went over to new regions, and which queries with them."""
    for name, version in done["versions"].items():
        typer.echo(f"layer {name}, version {version}, by the new regions")
    for name in done["unknown"]:
        typer.echo(f"WARNING: load {name} again: its group is not known", err=True)
    if done["followed"]:
        typer.echo(f"other regions for {', '.join(done['followed'])}")
    for name in done["suspended"]:
        typer.echo(f"query {name} is suspended", err=True)


def _tell(done: "Partitioned", workers: int) -> None:
    """Says what regions there are now."""
    for line in done.left_out:
        typer.echo(line, err=True)
    space = "" if done.dimensions == 2 else f" in {done.dimensions}-D"
    typer.echo(
        f"group {done.group}, version {done.version}: {done.regions} regions{space} by {done.strategy} "
        f"({done.tree} split of {done.chosen:,} rows)"
        + (f"; not by Sedona: {done.note}" if done.note else "")
    )
    typer.echo(
        f"std deviation of {done.rows:,} rows: {done.std_deviation:,.1f} over regions "
        f"(mean {done.rows / done.regions:,.1f}), {done.std_deviation_workers:,.1f} over {workers} workers"
    )
