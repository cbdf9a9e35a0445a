"""`fairway supervise`: what the settings say is running runs, and nothing else."""

from argparse import Namespace

import typer

from st_common.cli.arguments import taking
from st_common.programs import SUPERVISE


@taking(SUPERVISE)
def supervise(ctx: typer.Context, given: Namespace) -> None:
    """Start and end streams and deliveries as the settings say, alert, and print what was done as JSON.

    What it starts goes on after it. While another one supervises the home, it only looks.
    """
    del ctx
    from st_common.processes.supervise import run

    raise typer.Exit(run(given))
