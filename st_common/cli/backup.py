"""`fairway backup`: a copy of the home beside running streams, and back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.errors import FairwayError

if TYPE_CHECKING:
    from st_common.maintenance.backup import BackedUp


def create(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to; it must not exist yet.")
    ],
) -> None:
    """Copy the home into a new folder, also while streams run; they can go on from the copy elsewhere.

    It ends with a line for each stream: how far its log and its tables are in the copy. Exit code 2: a table is
    copied as it is, and its rows cannot be read.
    """
    from st_common.maintenance.backup import back_up

    _write(folder, back_up(context.home(ctx, must_exist=True), folder))


def restore(
    ctx: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="A folder that `fairway backup create` made."
        ),
    ],
) -> None:
    """Put a backup in the place of the home, which must not be there: all of it, each file checked, or nothing."""
    from st_common.maintenance.backup import restore as put_back

    home = context.home(ctx)
    _write(home.root, put_back(folder, home))


def _write(folder: Path, done: "BackedUp") -> None:
    count = len(done.unread)
    lacks = f"; {count} table{'s' * (count != 1)} cannot be read" if count else ""
    typer.echo(f"{folder}: {done.files:,} files, {done.bytes:,} bytes{lacks}")
    for stream, places in done.streams.items():
        typer.echo(
            f"{stream}: {', '.join(f'{what} at {at}' for what, at in places.items())}"
        )
    for problem in (*done.unread, *done.problems):
        typer.echo(f"WRONG {problem}")
    if done.unread:
        which = f"{count} table{'s' * (count != 1)} of {folder} cannot be read"
        raise FairwayError(which, hint="the lines with WRONG say which and why")
    if done.problems:
        raise typer.Exit(1)
