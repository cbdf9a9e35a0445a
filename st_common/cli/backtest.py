"""`fairway backtest`: what queries would have told on days that are past."""

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Form, JsonLines, taking
from st_common.errors import ConfigError
from st_common.programs import BACKTEST

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from st_common.batch.backtest import Backtest

_OF_OLD = ("visits_old", "objects_old", "same", "only_new", "only_old")


@taking(BACKTEST)
def backtest(
    ctx: typer.Context,
    given: Namespace,
    *,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A file of registrations, or - for standard input."
        ),
    ],
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="PAGE", help="Write a page with all of it, too."
        ),
    ] = None,
    form: Form = "table",
    json_lines: JsonLines = False,
) -> None:
    """Show what queries would have told on the last days: visits, objects, what differs from an older version."""
    from st_common.cli.output import write
    from st_common.cli.reprocess import plans_of

    home, form = context.home(ctx, must_exist=True), "jsonl" if json_lines else form
    stream, old = given.stream, given.against
    done = _runner(given.engine, given.cores)(
        home,
        context.stream(ctx, stream),
        plans_of(ctx, stream, file),
        days=given.days,
        against=None if old is None else plans_of(ctx, stream, old),
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
        ConfigError: the engine takes no number of processes.
    """
    if engine == "local":
        from st_common.batch.backtest import backtest as run

        return partial(run, cores=cores)
    if cores != 1:
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
