"""`fairway supervise`: what the settings say is running runs, and nothing else."""

from typing import Annotated

import typer


def supervise(
    ctx: typer.Context,
    *,
    every: Annotated[
        str | None,  # checked where the options of the process are declared
        typer.Option(
            metavar="S",
            help="Again and again, so many seconds apart, until Ctrl-C; else once.",
        ),
    ] = None,
    beat: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --every: touched after each time that went well.",
        ),
    ] = None,
) -> None:
    """Start and end streams and deliveries as the settings say, alert, and print what was done as JSON.

    What it starts goes on after it. While another one supervises the home, it only looks.
    """
    from st_common.processes.supervise import main

    places = {"--home": ctx.obj.home, "--conf": ctx.obj.conf}
    given = {**places, "--every": every, "--beat": beat}
    raise typer.Exit(
        main([f"{option}={value}" for option, value in given.items() if value])
    )
