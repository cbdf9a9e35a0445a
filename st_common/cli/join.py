"""`fairway layer join`: the stored fixes of a stream with the features of a layer."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from st_common.cli import context
from st_common.cli.arguments import JsonLines, Stream
from st_common.cli.export import ExportForm, Out, export
from st_common.cli.lean import without_pandas
from st_common.config.parameters import Parameter
from st_common.config.values import day

if TYPE_CHECKING:
    import pyarrow as pa

    from st_common.config.stream import StreamSettings
    from st_common.engine.region_join import RegionJoin

_LAYER = Annotated[str, typer.Argument(metavar="LAYER", help="The name of a layer.")]
_WITHIN = Annotated[
    float | None,
    typer.Option(
        "--within",
        metavar="METRES",
        help="How far a fix may be from a feature, in a plane in its unit; else it lies in one, or on its border.",
        show_default=False,
    ),
]
_KINDS = Annotated[
    list[str] | None,
    typer.Option(
        "--kind", metavar="KIND", help="Only features of this kind; may be given again."
    ),
]
_SINCE = Annotated[
    str | None,
    typer.Option("--from", metavar="DAY", help="The first day of the fixes (UTC)."),
]
_UNTIL = Annotated[
    str | None,
    typer.Option("--to", metavar="DAY", help="The end, not in it: a day (UTC)."),
]
_FROM = Parameter("from", day, "the first day of the fixes (UTC)")
_TO = Parameter("to", day, "the end, not in it: a day (UTC)")
_ENGINE = Annotated[
    Literal["local", "spark"],
    typer.Option(help="local: one region after another; spark: a task for each."),
]


def join(
    ctx: typer.Context,
    stream: Stream,
    layer: _LAYER,
    *,
    within: _WITHIN = None,
    kinds: _KINDS = None,
    since: _SINCE = None,
    until: _UNTIL = None,
    engine: _ENGINE = "local",
    form: ExportForm = "table",
    json_lines: JsonLines = False,
    out: Out = None,
) -> None:
    """Show each stored fix of a stream with each feature of a layer that it lies in or is near to."""
    without_pandas(ctx)
    from st_common.engine.region_join import join_of

    settings = context.stream(ctx, stream)
    what = join_of(
        context.home(ctx, must_exist=True),
        settings,
        layer,
        distance_m=within,
        kinds=kinds or (),
        since=_FROM.read(since or ""),
        until=_TO.read(until or ""),
    )
    pairs = _pairs(settings, what, engine)
    form = "jsonl" if json_lines else form
    export(pairs, form, out, epsg=lambda: settings.epsg)


def _pairs(stream: "StreamSettings", what: "RegionJoin", engine: str) -> "pa.Table":
    """The pairs by fix, then feature."""
    import pyarrow as pa

    from st_common.engine.region_join import ORDER, PAIRS, joined

    if engine == "spark":
        from st_common.spark.region_join import pairs_on_spark

        return pairs_on_spark(stream, what).sort_by(ORDER)
    return pa.concat_tables([PAIRS.empty_table(), *joined(what)]).sort_by(ORDER)
