"""`fairway quality`: the reports of days, and a first contract of a stream."""

from argparse import Namespace
from datetime import datetime
from functools import partial
from typing import Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Stream, taking, told
from st_common.errors import QualityError
from st_common.programs import REPORT_QUALITY


@taking(REPORT_QUALITY)
@told
def report(ctx: typer.Context, given: Namespace) -> None:
    """Check days against the contracts and write their reports; exit code 3: a rule of severity error is broken."""
    import time

    from st_common.quality.daily import engine_of, report_days

    home = context.home(ctx, must_exist=True)
    reports = report_days(
        home,
        context.streams(ctx),
        given.day,
        checked_us=time.time_ns() // 1000,
        begin=partial(engine_of, home, given.engine),
    )
    for one in reports:
        verdict = f"{one.breaches} broken" if one.breaches else "all promises kept"
        typer.echo(f"{one.day}: {', '.join(one.streams)}: {verdict}: {one.path}")
        for sentence in one.sentences:
            typer.echo(f"  {sentence}")
    if not reports:
        typer.echo("no day is due")
    if any(one.breaches for one in reports):
        raise typer.Exit(QualityError.exit_code)


def propose(
    ctx: typer.Context,
    stream: Stream,
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also when the home has one.")
    ] = False,
) -> None:
    """Write a first contract of a stream's data into the home, from its newest days; look at it before you trust it."""
    from st_common.quality.propose import propose as write

    path = write(
        context.home(ctx, must_exist=True),
        context.stream(ctx, stream),
        replace=replace,
    )
    typer.echo(f"{path}: what was seen, and somewhat more; say there what should be")


def release(
    ctx: typer.Context,
    stream: Stream,
    day: Annotated[
        datetime,
        typer.Option(
            "--day", metavar="DAY", formats=["%Y-%m-%d"], help="Which day (UTC)."
        ),
    ],
    why: Annotated[
        str,
        typer.Option("--why", metavar="TEXT", help="Why it may go; it is kept."),
    ],
) -> None:
    """Let deliveries with after_quality go past a day that breaks its contract."""
    import time

    from st_common.quality.record import release as let_go

    context.stream(ctx, stream)
    home = context.home(ctx, must_exist=True)
    let_go(home, stream, day.date(), why, checked_us=time.time_ns() // 1000)
    typer.echo(f"{stream}: changes of {day.date()} may go: {why}")
