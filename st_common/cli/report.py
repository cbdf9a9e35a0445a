"""`fairway streams report`: the page of a home as one file, as it was between two times."""

from argparse import Namespace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import taking
from st_common.programs import REPORT_STREAMS


@taking(REPORT_STREAMS)
def report(
    ctx: typer.Context,
    given: Namespace,
    *,
    page: Annotated[
        Path,
        typer.Argument(metavar="PAGE", help="The file to write, such as day.html."),
    ],
) -> None:
    """Write the page with map, answers and changes between two times as one file, which needs no server."""
    from st_common.server.installation import Installation
    from st_common.server.report import report_home

    home = context.home(ctx, must_exist=True)
    place = Installation(home=home, conf=context.conf(ctx), only=tuple(given.stream))
    done = report_home(
        place,
        page,
        since=given.from_,
        until=given.to,
        span=timedelta(hours=given.hours or 1),
    )
    if done.known is not None:
        first, last = (f"{one:%Y-%m-%d %H:%M:%S}" for one in done.known)
        said = f"no fix lies in that time; there are some from {first} to {last} UTC"
        typer.echo(f"note: {said}", err=True)
    typer.echo(
        f"{page}: {done.since:%Y-%m-%d %H:%M:%S} to {done.until:%Y-%m-%d %H:%M:%S} UTC, {done.size_bytes:,} bytes"
    )
