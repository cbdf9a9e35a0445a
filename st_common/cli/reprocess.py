"""`fairway reprocess`: closed days once more, with the fixes that came late."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Stream
from st_common.cli.lineage import told_as
from st_common.errors import ConfigError
from st_common.programs import REPROCESS

if TYPE_CHECKING:
    from st_common.batch.days import DayAgain
    from st_common.batch.trial import Trial
    from st_common.query.plan import Plan


@told_as("reprocess", about="stream")
def reprocess(
    ctx: typer.Context,
    stream: Stream,
    *,
    since: Annotated[
        str,
        typer.Option(
            "--from", metavar="TIME", help=f"The beginning: {REPROCESS['from'].takes}."
        ),
    ],
    until: Annotated[
        str,
        typer.Option("--to", metavar="TIME", help="The end, not in it: likewise."),
    ],
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="With --into: registrations that count in the place of the stream's queries, from its first fix on.",
        ),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            "--layers",
            metavar="NAME@VERSION",
            help="With --into: a layer counts in this version throughout; may be repeated.",
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            metavar="NAME",
            help="A trial: its visits go into a table of its own, and the stream's stay.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="spark or local; else the one that the stream runs on."),
    ] = None,
) -> None:
    """Process the closed days that an interval touches again, late fixes too, and put their visits into the table."""
    from st_common.batch.days import engine_of, whole_days

    days = whole_days(REPROCESS["from"].read(since), REPROCESS["to"].read(until))
    home = context.home(ctx, must_exist=True)
    if engine_of(home, stream, engine) == "spark":
        from st_common.spark.batch_days import reprocess_on_spark as process_again
    else:
        from st_common.batch.reprocess import reprocess as process_again
    again = process_again(
        home,
        context.stream(ctx, stream),
        days.since,
        days.until,
        _trial(ctx, stream, queries, layers or [], into),
    )
    if days.note:
        typer.echo(f"{stream}: {days.note}")
    for day in again.days:
        typer.echo(f"{stream}: {_told(day, is_trial=into is not None)}")
    rate = round(again.fixes / again.seconds) if again.seconds else 0
    typer.echo(
        f"{stream}: {again.fixes:,} fixes from {again.began or 'no day'} on in {again.seconds} s ({rate:,}/s)"
    )


def _trial(
    ctx: typer.Context,
    stream: str,
    queries: Path | None,
    layers: list[str],
    into: str | None,
) -> "Trial | None":
    """The trial that the options ask for; None for none.

    Raises:
        ConfigError: they do not fit together, or the file holds anything but registrations on the stream.
    """
    from st_common.batch.trial import Trial, versions_of

    if into is None:
        if queries is not None or layers:
            raise ConfigError(
                "--queries and --layers are for trials",
                hint="--into NAME says where they go",
            )
        return None
    plans = {} if queries is None else plans_of(ctx, stream, queries)
    versions = versions_of(context.home(ctx), layers)
    return Trial(name=into, queries=plans, versions=versions)


def plans_of(ctx: typer.Context, stream: str, file: Path) -> "dict[str, Plan]":
    """The plans of the registrations in a file, by the names of their queries.

    Raises:
        ConfigError: it holds anything but registrations on the stream.
    """
    from st_common.cli.statements import statements_of, write_notices
    from st_common.query.registry import fitted
    from st_common.query.tried import tried_plans

    statements = statements_of(ctx, file, None)
    known, notices = fitted(context.home(ctx), context.streams(ctx), statements)
    write_notices(notices)
    return tried_plans(known, stream, f"{file}, ")


def _told(day: "DayAgain", *, is_trial: bool) -> str:
    """A line about a day, and what could not be judged."""
    written = "" if day.replaced else ", as they were"
    failed = "".join(f"; not judged: {one}" for one in day.failed)
    differs = f"; {day.differs:,} differ from what was told" if day.differs else ""
    if not (day.compared or is_trial):
        differs = "; not compared with what was told"
    unexplained = f", {day.unexplained:,} UNEXPLAINED" if day.unexplained else ""
    fixes = f"{day.fixes:,} fixes ({day.late:,} late)"
    return f"{day.day}: {fixes}, {day.visits:,} visits{written}{differs}{unexplained}{failed}"
