"""`fairway backup`: a copy of the home, beside running streams."""

from pathlib import Path
from typing import Annotated

import typer

from st_common.cli import context


def backup(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to; it must not exist yet.")
    ],
) -> None:
    """Copy the home into a new folder, also while streams run; they can go on from the copy elsewhere."""
    from st_common.lifecycle.backup import back_up

    done = back_up(context.home(ctx, must_exist=True), folder)
    typer.echo(f"{folder}: {done.files:,} files, {done.bytes:,} bytes")
