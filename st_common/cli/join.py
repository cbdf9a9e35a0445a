"""`fairway layer join`: the stored fixes of a stream with the features of a layer."""

from argparse import Namespace
from typing import TYPE_CHECKING

import typer

from st_common.cli import context
from st_common.cli.arguments import JsonLines, taking
from st_common.cli.export import ExportForm, Out, export
from st_common.cli.lean import without_pandas
from st_common.programs import JOIN_LAYER

if TYPE_CHECKING:
    import pyarrow as pa

    from st_common.config.stream import StreamSettings
    from st_common.engine.region_join import RegionJoin


@taking(JOIN_LAYER)
def join(
    ctx: typer.Context,
    given: Namespace,
    *,
    form: ExportForm = "table",
    json_lines: JsonLines = False,
    out: Out = None,
) -> None:
    """Show each stored fix of a stream with each feature of a layer that it lies in or is near to."""
    without_pandas(ctx)
    from st_common.engine.region_join import join_of

    settings = context.stream(ctx, given.stream)
    what = join_of(
        context.home(ctx, must_exist=True),
        settings,
        given.layer,
        distance_m=given.within,
        kinds=given.kinds,
        since=given.from_,
        until=given.to,
    )
    pairs = _pairs(settings, what, given.engine)
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
