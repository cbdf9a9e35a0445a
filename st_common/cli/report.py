"""`fairway streams report`: the page of a home as one file, as it was between two times."""

from pathlib import Path
from typing import Annotated

import typer

from st_common.cli import context
from st_common.cli.past import time_of


def report(
    ctx: typer.Context,
    page: Annotated[
        Path,
        typer.Argument(metavar="PAGE", help="The file to write, such as day.html."),
    ],
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="From when on; else an hour before the end, or the first fix.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TIME", help="Up to when; else up to the newest fix."
        ),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            "--stream", metavar="S", help="Only this stream; may be given again."
        ),
    ] = None,
) -> None:
    """Write the page with map, answers and changes between two times as one file, which needs no server."""
    from st_common.server.installation import Installation
    from st_common.server.report import report_home

    home = context.home(ctx, must_exist=True)
    place = Installation(home=home, conf=context.conf(ctx), only=tuple(stream or ()))
    done = report_home(
        place,
        page,
        since=None if since is None else time_of(since, "--from"),
        until=None if until is None else time_of(until, "--to"),
    )
    if done.known is not None:
        first, last = (f"{one:%Y-%m-%d %H:%M:%S}" for one in done.known)
        said = f"no fix lies in that time; there are some from {first} to {last} UTC"
        typer.echo(f"note: {said}", err=True)
    typer.echo(
        f"{page}: {done.since:%Y-%m-%d %H:%M:%S} to {done.until:%Y-%m-%d %H:%M:%S} UTC, {done.size_bytes:,} bytes"
    )
