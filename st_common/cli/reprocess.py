"""`fairway reprocess`: closed days once more, with the fixes that came late."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import taking, told
from st_common.errors import ConfigError, FairwayError
from st_common.programs import REPROCESS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from st_common.batch.days import Again, DayAgain
    from st_common.batch.trial import Trial
    from st_common.config.stream import StreamSettings
    from st_common.processes.tasks import Reprocessed
    from st_common.query.plan import Plan


@taking(REPROCESS)
@told
def reprocess(
    ctx: typer.Context,
    given: Namespace,
    *,
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
) -> None:
    """Process closed days again, late fixes too, and put their visits into the table: those due, or an interval's.

    Of all streams those are left out for which a day is open; one that fails keeps no other from being processed.
    """
    from st_common.processes.tasks import reprocess as process_again

    home, streams = context.home(ctx, must_exist=True), context.streams(ctx)
    trial = _trial(ctx, given.stream, queries, layers or [], into)
    again = process_again(home, streams, given, trial)
    if given.plan or given.from_ is None:
        _write_plan(again, [given.stream] if given.stream else list(streams))
    for name, one in again.done.items():
        _write_done(name, one, again.note, is_trial=trial is not None)
    for line in again.plan.lines():
        typer.echo(line)
    if given.from_ is not None and trial is None:
        _write_due({name: streams[name] for name in again.done}, ctx)
    for name, why in again.failed.items():
        typer.echo(f"FAILED: {name}: {why}", err=True)
    if again.failed:
        raise typer.Exit(FairwayError.exit_code)


def _write_plan(again: "Reprocessed", streams: list[str]) -> None:
    """A line for each of the streams: what is due, or that nothing is."""
    runs = {run.stream: run for run in again.plan.runs}
    for name in streams:
        if again.note and name in runs:
            typer.echo(f"{name}: {again.note}")
        if name in runs:
            typer.echo(str(runs[name]))
        elif name not in again.plan.open:
            typer.echo(f"{name}: no day is due")


def _write_done(name: str, again: "Again", note: str, *, is_trial: bool) -> None:
    """Lines about each of the days, and about all of them."""
    if note:
        typer.echo(f"{name}: {note}")
    for day in again.days:
        typer.echo(f"{name}: {_told(day, is_trial=is_trial)}")
    rate = round(again.fixes / again.seconds) if again.seconds else 0
    typer.echo(
        f"{name}: {again.fixes:,} fixes from {again.began or 'no day'} on in {again.seconds} s ({rate:,}/s)"
    )


def _write_due(streams: "Mapping[str, StreamSettings]", ctx: typer.Context) -> None:
    """What is due of streams behind days that were asked for: those that no run had processed are, from then on."""
    from st_common.batch.run_plan import plan_runs

    for run in plan_runs(context.home(ctx), streams, None).runs:
        typer.echo(f"{run}; the next run without --from and --to processes them")


def _trial(
    ctx: typer.Context,
    stream: str | None,
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
    if stream is None:
        raise ConfigError("--into is for one stream", hint="name it")
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
