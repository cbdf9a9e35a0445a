"""`fairway layer` and `fairway partition`: static layers, and the regions that tables are spread over."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context

if TYPE_CHECKING:
    from st_common.layers.features import Progress
    from st_common.query.control import QueryRow

_NAME = Annotated[str, typer.Argument(metavar="NAME", help="The name of a layer.")]


def load(
    ctx: typer.Context,
    name: _NAME,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="An OSM file (.osm.pbf, .osm, ..) or GeoJSON."
        ),
    ],
    *,
    group: Annotated[
        str, typer.Option(help="The group whose regions the layer is spread over.")
    ] = "default",
    kinds: Annotated[
        str,
        typer.Option(metavar="KIND,..", help="Only these kinds of conf/layers.toml."),
    ] = "",
    planar: Annotated[
        bool, typer.Option("--planar", help="Coordinates are planar, not degrees.")
    ] = False,
) -> None:
    """Load a layer, or load it again: running queries go over to the new version."""
    from st_common.geometry.space import GLOBE, PLANE
    from st_common.layers.load import load as load_layer
    from st_common.query.layer_following import follow_layers

    home, conf = context.home(ctx), context.conf(ctx)
    chosen = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    with _progress(f"layer {name}", "features") as progress:
        report = load_layer(
            home,
            name,
            file,
            group=group,
            kinds=chosen or None,
            conf=conf,
            space=PLANE if planar else GLOBE,
            progress=progress,
        )
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
    if report.streams:
        typer.echo(f"told to {', '.join(report.streams)}")
    _write_followed(follow_layers(home, lambda: context.streams(ctx)))


def _write_followed(rows: "Sequence[QueryRow]") -> None:
    """Says which queries have another region by the load, and which have none any more."""
    went_over = [row.name for row in rows if row.op != "fail"]
    if went_over:
        typer.echo(f"other regions for {', '.join(went_over)}")
    for row in rows:
        if row.op == "fail":
            typer.echo(f"query {row.name} is suspended: {row.why}", err=True)


def list_layers(ctx: typer.Context) -> None:
    """List the layers: name, newest version, features."""
    from st_common.cli.output import write_columns
    from st_common.layers.summary import summaries

    rows = [
        (one.layer, str(one.version), f"{one.features:,}")
        for one in summaries(context.home(ctx, must_exist=True))
    ]
    write_columns(("layer", "version", "features"), rows)


def show(ctx: typer.Context, name: _NAME) -> None:
    """Show a layer: its box, and how many features of which kind are home in which region."""
    from st_common.cli.output import write_columns
    from st_common.layers.summary import summary

    one = summary(context.home(ctx, must_exist=True), name)
    typer.echo(
        f"layer {one.layer}, version {one.version}: {one.features:,} features in {one.rows:,} rows"
    )
    typer.echo("box " + ",".join(f"{edge:.7g}" for edge in one.box))
    write_columns(
        ("kind", "features"),
        [(kind, f"{count:,}") for kind, count in one.by_kind.items()],
    )
    write_columns(
        ("region", "home in it"),
        [(region, f"{count:,}") for region, count in one.by_region.items()],
    )


def partition(
    ctx: typer.Context,
    group: Annotated[
        str, typer.Argument(metavar="GROUP", help="The group of streams and layers.")
    ],
    *,
    strategy: Annotated[
        str,
        typer.Option(
            help="sample: a share of the data; elements: the first of a stream."
        ),
    ] = "sample",
    share: Annotated[
        float,
        typer.Option(
            help="Of the data, for sample; at least 20 rows per region are taken."
        ),
    ] = 0.002,
    first: Annotated[
        int, typer.Option(help="How many elements, for elements.")
    ] = 10_000,
    regions: Annotated[int, typer.Option(help="How many regions.")] = 40,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="stream:NAME, layer:NAME or a file; else the logs of the group's streams.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Over so many workers the second deviation is taken.")
    ] = 2,
) -> None:
    """Divide space into regions of like load, and store them as the group's next version."""
    from st_common.spark.prepartition import prepartition, source_of

    home, conf = context.home(ctx), context.conf(ctx)
    with _progress(f"group {group}", "rows") as progress:
        points = source_of(
            home, conf, list(context.streams(ctx).values()), source, group=group
        )
        done = prepartition(
            home,
            group,
            points,
            strategy=strategy,
            regions=regions,
            share=share,
            elements=first,
            workers=workers,
            stage=progress,
        )
    typer.echo(
        f"group {group}, version {done.version}: {done.regions} regions by {done.strategy} ({done.tree} split of "
        f"{done.chosen:,} rows)"
        + (f"; not by Sedona: {done.note}" if done.note else "")
    )
    typer.echo(
        f"std deviation of {done.rows:,} rows: {done.std_deviation:,.1f} over regions "
        f"(mean {done.rows / done.regions:,.1f}), {done.std_deviation_workers:,.1f} over {workers} workers"
    )


@contextmanager
def _progress(title: str, unit: str) -> Iterator["Progress"]:
    """A line on stderr that says what is being done and how far it is; nothing where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(pulse_style="cyan"),
        TextColumn("{task.fields[done]}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(title, total=None, done="")
        yield lambda doing, count: bar.update(
            task, description=f"{title}: {doing}", done=f"{count:,} {unit}"
        )
