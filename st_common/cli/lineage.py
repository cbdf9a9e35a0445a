"""Commands that do what jobs do are told to lineage as these: `[lineage]` of conf/operations.toml says to whom."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, cast

import typer

from st_common.cli import context
from st_common.errors import QualityError

P = ParamSpec("P")
Command = Callable[P, None]


def told_as(job: str, *, about: str = "") -> Callable[[Command[P]], Command[P]]:
    """Tells of each call of a command as a run of a job.

    Args:
        job: the job, a module of `jobs/`.
        about: the parameter that says which stream, layer or group it is about; "" for none.
    """

    def wrap(command: Command[P]) -> Command[P]:
        @wraps(command)
        def told(*args: P.args, **options: P.kwargs) -> None:
            from st_common.lineage.telling import telling  # imports delivery

            ctx = cast("typer.Context", options["ctx"])  # Typer gives all by name
            name = f"{job}.{options[about]}" if about else job
            code = 0
            with telling(context.home(ctx), context.conf(ctx), name) as ending:
                try:
                    command(*args, **options)
                except typer.Exit as end:
                    code = end.exit_code
                if code not in (0, QualityError.exit_code):
                    ending.failure = f"it ended with exit code {code}"
            if code:
                raise typer.Exit(code)

        return told

    return wrap
