"""`fairway layer` and `fairway partition`: static layers, and the regions that tables are spread over."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from st_common.cli import context
from st_common.cli.arguments import Json
from st_common.cli.lineage import told_as
from st_common.cli.progress import progress_of_stages
from st_common.config.home import DEFAULT_GROUP
from st_common.config.stream_values import PLANAR
from st_common.config.streams import has_streams
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from st_common.batch.prepartition import Partitioned
    from st_common.layers.load import LayerReport
    from st_common.query.control import QueryRow

_NAME = Annotated[str, typer.Argument(metavar="NAME", help="The name of a layer.")]

_FILE = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="OpenStreetMap (.osm.pbf, .osm, ..), GeoJSON, CSV, KML, Shapefile, GeoPackage, FlatGeobuf, GeoParquet, "
        "GPX, TopoJSON or a GTFS feed; also .gz and .zip.",
    ),
]
_OF_GROUP = Annotated[
    str, typer.Option(help="The group whose regions the layer is spread over.")
]
_KINDS = Annotated[
    str,
    typer.Option(metavar="KIND,..", help="Only these kinds of conf/layers.toml."),
]
_PLANAR = Annotated[
    bool,
    typer.Option(
        "--planar", help="Coordinates are planar, not degrees, and stay as they are."
    ),
]
_CRS = Annotated[
    str | None,
    typer.Option(
        metavar="EPSG:N",
        help="Convert coordinates into this system; else that of the group's streams.",
        show_default=False,
    ),
]
_X = Annotated[
    str | None,
    typer.Option(
        "--x",
        metavar="COLUMN",
        help="Of CSV: the column of longitudes, or of x; else it is found by its values and its name.",
        show_default=False,
    ),
]
_Y = Annotated[
    str | None,
    typer.Option(
        "--y",
        metavar="COLUMN",
        help="Of CSV: the column of latitudes, or of y.",
        show_default=False,
    ),
]
_PLACE = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Of CSV: the column that holds geometries, as WKT, EWKT or WKB.",
        show_default=False,
    ),
]
_LAT_LON = Annotated[
    bool,
    typer.Option(
        "--lat-lon", help="The file has latitude first, where longitude should stand."
    ),
]
_ALL = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Name all features that were rejected or repaired, not ten of each.",
    ),
]
_SOURCE_CRS = Annotated[
    str | None,
    typer.Option(
        metavar="EPSG:N",
        help="In which system the file's coordinates are, where it does not say it.",
        show_default=False,
    ),
]
_TABLE = Annotated[
    str | None,
    typer.Option(
        help="Which table of a file, or which file of an archive, if there are several.",
        show_default=False,
    ),
]
_ID = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Whose values are the ids of features; else their places: #1, #2, ..",
        show_default=False,
    ),
]


_ATTRIBUTION = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Whose data it is, as the page says it; else OpenStreetMap's where the ids of features are its own.",
        show_default=False,
    ),
]


@told_as("load_layer", about="name")
def load(
    ctx: typer.Context,
    name: _NAME,
    file: _FILE,
    *,
    group: _OF_GROUP = DEFAULT_GROUP,
    kinds: _KINDS = "",
    planar: _PLANAR = False,
    crs: _CRS = None,
    source_crs: _SOURCE_CRS = None,
    table: _TABLE = None,
    id_column: _ID = None,
    lat_lon: _LAT_LON = False,
    x: _X = None,
    y: _Y = None,
    place: _PLACE = None,
    attribution: _ATTRIBUTION = None,
    all_faults: _ALL = False,
) -> None:
    """Load a layer, or load it again: running queries go over to the new version."""
    from st_common.layers.faults import SHOWN
    from st_common.layers.load import load as load_layer
    from st_common.layers.load import local
    from st_common.layers.options import FileOptions
    from st_common.query.layer_following import follow_layers

    home, conf = context.home(ctx), context.conf(ctx)
    columns = {"x": x, "y": y, "place": place}
    options = FileOptions(
        table=table,
        ids=id_column,
        crs=source_crs,
        columns={key: name for key, name in columns.items() if name is not None},
        lat_lon=lat_lon,
    )
    chosen = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    with progress_of_stages(f"layer {name}", "features") as progress:
        report = load_layer(
            home,
            name,
            file,
            group=group,
            kinds=chosen or None,
            conf=conf,
            crs=_target(ctx, group, crs, planar=planar),
            options=options,
            attribution=attribution,
            engine=partial(local, progress=progress),
        )
    _write_loaded(name, report, most=None if all_faults else SHOWN)
    _write_followed(follow_layers(home, lambda: context.streams(ctx)))


def _target(ctx: typer.Context, group: str, crs: str | None, *, planar: bool) -> str:
    """The system of the layer's coordinates: as it is told, else that of the group's streams."""
    from st_common.layers.conversion import crs_of_group

    if planar and crs is not None:
        raise ConfigError(
            "--planar takes coordinates as they are, --crs converts them",
            hint="give one of them",
        )
    if planar:
        return PLANAR
    conf = context.conf(ctx)
    streams = context.streams(ctx).values() if has_streams(conf) else ()
    return crs or crs_of_group(streams, group)


def _write_loaded(name: str, report: "LayerReport", *, most: int | None) -> None:
    """Says what a load brought, what it left out, and which streams were told."""
    from st_common.layers.faults import told

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
    for line in told(report.faults, most=most):
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
    from st_common.layers.faults import SHOWN, shared_out, told
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
    typer.echo("box " + ",".join(f"{edge:.7g}" for edge in one.box))
    write_columns(
        ("kind", "features"),
        [(kind, f"{count:,}") for kind, count in one.by_kind.items()],
    )
    write_columns(
        ("region", "home in it"),
        [(region, f"{count:,}") for region, count in one.by_region.items()],
    )
    for line in told(one.faults, most=None if all_faults else SHOWN):
        typer.echo(line)


_GROUP = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group of streams and layers.")
]
_STRATEGY = Annotated[
    str,
    typer.Option(
        help="sample: a share of the data; elements: the first of a stream; thresholds: the regions that there are, "
        "split and merged."
    ),
]
_SHARE = Annotated[
    float | None,
    typer.Option(
        help="Of the data, for sample; else .002, and at least 300 rows per region.",
        show_default=False,
    ),
]
_FIRST = Annotated[int, typer.Option(help="How many elements, for elements.")]
_REGIONS = Annotated[int, typer.Option(help="How many regions.")]
_SOURCE = Annotated[
    str | None,
    typer.Option(
        metavar="SOURCE,..",
        help="stream:NAME, layer:NAME or a file, several for regions of like load of all of them; else the logs of the "
        "group's streams.",
    ),
]
_UPPER = Annotated[
    float | None,
    typer.Option(
        help="For thresholds: a region that holds more is split; else as the group's regions were made.",
        show_default=False,
    ),
]
_LOWER = Annotated[
    float | None,
    typer.Option(
        help="Siblings that hold less together are merged; else a quarter of --upper.",
        show_default=False,
    ),
]
_UNIT = Annotated[str, typer.Option(help="Of both: rows or mb.")]
_WORKERS = Annotated[
    int, typer.Option(help="Over so many workers the second deviation is taken.")
]


_TREE = Annotated[
    Literal["kdtree", "quadtree"],
    typer.Option(help="Of Sedona's, that parts a sample on Spark."),
]
_ENGINE = Annotated[
    Literal["spark", "local"],
    typer.Option(help="What reads and splits; local splits at medians."),
]


@told_as("partition", about="group")
def partition(
    ctx: typer.Context,
    group: _GROUP,
    *,
    strategy: _STRATEGY = "sample",
    share: _SHARE = None,
    first: _FIRST = 10_000,
    regions: _REGIONS = 40,
    source: _SOURCE = None,
    workers: _WORKERS = 2,
    upper: _UPPER = None,
    lower: _LOWER = None,
    unit: _UNIT = "rows",
    tree: _TREE = "kdtree",
    engine: _ENGINE = "local",
) -> None:
    """Divide space into regions of like load, store them as the group's next version, and bring layers to them."""
    from st_common.batch.rebalance import thresholds_given
    from st_common.spark.partitioning import engine_of, follow_regions, partition_group

    home, conf = context.home(ctx), context.conf(ctx)
    with (
        progress_of_stages(f"group {group}", "rows") as progress,
        engine_of(home, group, engine, tree) as reader,
    ):
        done = partition_group(
            home,
            conf,
            list(context.streams(ctx).values()),
            group,
            source,
            strategy=strategy,
            regions=regions,
            share=share,
            elements=first,
            thresholds=thresholds_given(upper, lower, unit),
            workers=workers,
            engine=reader,
            stage=progress,
        )
    _tell(done, workers)
    _write_spread(follow_regions(home, lambda: context.streams(ctx)))


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
