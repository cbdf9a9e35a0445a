"""`fairway reprocess`: closed days once more, with the fixes that came late."""

from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context

if TYPE_CHECKING:
    from st_common.engine.batch.reprocess import DayAgain


def reprocess(
    ctx: typer.Context,
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM", help="The name of a stream in conf/streams.toml."
        ),
    ],
    since: Annotated[
        str, typer.Option("--from", metavar="DAY", help="The first day, UTC.")
    ],
    until: Annotated[
        str, typer.Option("--to", metavar="DAY", help="The day to stop before, UTC.")
    ],
) -> None:
    """Process closed days again, late fixes too, and put their visits into the table; nothing is delivered."""
    from st_common.engine.batch.reprocess import day_of
    from st_common.engine.batch.reprocess import reprocess as process_again

    again = process_again(
        context.home(ctx, must_exist=True),
        context.stream(ctx, stream),
        day_of(since, "--from"),
        day_of(until, "--to"),
    )
    for day in again.days:
        typer.echo(f"{stream}: {_told(day)}")
    rate = round(again.fixes / again.seconds) if again.seconds else 0
    typer.echo(
        f"{stream}: {again.fixes:,} fixes from {again.began or 'no day'} on in {again.seconds} s ({rate:,}/s)"
    )


def _told(day: "DayAgain") -> str:
    """A line about a day, and what could not be judged."""
    written = "" if day.replaced else ", as they were"
    failed = "".join(f"; not judged: {one}" for one in day.failed)
    differs = f"; {day.differs:,} differ from what was told" if day.differs else ""
    unexplained = f", {day.unexplained:,} UNEXPLAINED" if day.unexplained else ""
    fixes = f"{day.fixes:,} fixes ({day.late:,} late)"
    return f"{day.day}: {fixes}, {day.visits:,} visits{written}{differs}{unexplained}{failed}"
