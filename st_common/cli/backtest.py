"""`fairway backtest`: what queries would have told on days that are past."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Form, JsonLines
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from st_common.batch.backtest import Backtest

_OF_OLD = ("visits_old", "objects_old", "same", "only_new", "only_old")


def backtest(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A file of registrations, or - for standard input."
        ),
    ],
    *,
    stream: Annotated[
        str,
        typer.Option("--stream", metavar="STREAM", help="The stream that they are on."),
    ],
    days: Annotated[
        int,
        typer.Option("--days", metavar="N", min=1, help="So many closed days."),
    ] = 30,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="OLD",
            help="A file of older versions of the queries, which are compared by name.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="PAGE", help="Write a page with all of it, too."
        ),
    ] = None,
    cores: Annotated[
        int,
        typer.Option(
            "--cores", metavar="N", min=1, help="So many processes fold the days."
        ),
    ] = 1,
    engine: Annotated[
        str,
        typer.Option(help="local, or spark: by as many shards as the stream has."),
    ] = "local",
    form: Form = "table",
    json_lines: JsonLines = False,
) -> None:
    """Show what queries would have told on the last days: visits, objects, what differs from an older version."""
    from st_common.cli.output import write
    from st_common.cli.reprocess import plans_of

    home, form = context.home(ctx, must_exist=True), "jsonl" if json_lines else form
    done = _runner(engine, cores)(
        home,
        context.stream(ctx, stream),
        plans_of(ctx, stream, file),
        days=days,
        against=None if against is None else plans_of(ctx, stream, against),
    )
    write(_shown(done, done.days), form)
    if form == "table":
        typer.echo("")
        write(_shown(done, done.totals), form)
    if report is not None:
        from st_common.quality.backtest_page import page
        from st_common.quality.report import write_page

        write_page(report.absolute(), page(done))
    rate = round(done.fixes / done.seconds) if done.seconds else 0
    typer.echo(
        f"{stream}: {done.fixes:,} fixes of {(done.until - done.since).days} days from {done.since} on "
        f"in {done.seconds} s ({rate:,}/s)",
        err=True,
    )


def _runner(engine: str, cores: int) -> "Callable[..., Backtest]":
    """What runs a backtest where options say.

    Raises:
        ConfigError: there is no such engine, or it takes no number of processes.
    """
    if engine == "local":
        from st_common.batch.backtest import backtest as run

        return partial(run, cores=cores)
    if engine != "spark" or cores != 1:
        raise ConfigError(
            f"--engine {engine} --cores {cores}",
            hint="local, with any number of cores; or spark, whose cores the settings of the stream say",
        )
    from st_common.spark.batch_days import backtest_on_spark

    return backtest_on_spark


def _shown(done: "Backtest", table: "pa.Table") -> "pa.Table":
    """The columns that there are: those of an older version where there is one."""
    import pyarrow.compute as pc

    old = [] if done.is_compared else [n for n in _OF_OLD if n in table.column_names]
    hours = table.column_names.index("hours")
    rounded = pc.round(table["hours"], 2)
    return table.set_column(hours, "hours", rounded).drop_columns(old)
