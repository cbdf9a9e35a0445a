"""`fairway`: the command line. Thin: a command reads its arguments, calls the library and writes what it gives.

Each group of commands is a file here, with functions that take `ctx: typer.Context` first and ask
`st_common.cli.context` for the home folder, the settings and the streams. What is slow to import is imported inside the
functions, so that `fairway --help` is quick. A command fails by a FairwayError (`error: ...` on stderr, its exit code)
or by `typer.Exit(code)`.
"""

from collections.abc import Callable
from typing import Annotated

import typer

from st_common.cli import (
    backtest,
    backup,
    capture,
    check,
    deliver,
    explain,
    installing,
    join,
    layer,
    maintain,
    past,
    quality,
    query,
    read,
    rejects,
    replay,
    report,
    reprocess,
    run,
    serve,
    streams,
    supervise,
    table,
    trial,
    verify,
    why,
)
from st_common.cli.frame import ALONE, FairwayCommand, FairwayGroup
from st_common.cli.shell.command import shell
from st_common.installed import own_version
from st_common.programs import PLACES

app = typer.Typer(
    name="fairway",
    cls=FairwayGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _show_version(asked: bool) -> None:  # noqa: FBT001 - a flag
    if not asked:
        return
    typer.echo(f"fairway {own_version()}")
    raise typer.Exit


@app.callback()
def _fairway(
    home: Annotated[
        str | None,  # as it was typed: a path would lose a slash of s3://
        typer.Option("--home", metavar="DIR", help=PLACES[0].sentence),
    ] = None,
    conf: Annotated[
        str | None,  # no path, for which typer would import pydantic
        typer.Option("--conf", metavar="DIR", help=PLACES[1].sentence),
    ] = None,
    debug: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
    version: Annotated[  # noqa: FBT002 - its callback shows it
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_show_version,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """Continuous spatial queries over moving objects."""


def main() -> None:
    """Runs the command line of this process and exits with the command's code."""
    app(prog_name="fairway", obj=ALONE)


def _group(name: str, text: str) -> typer.Typer:
    """A group of commands, and what it is for."""
    group = typer.Typer(cls=FairwayGroup, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(group, name=name, help=text)
    return group


_queries = _group("query", "Register queries while streams run, and drop them.")
_layers = _group(
    "layer",
    "Load layers of features that do not move, look at them, and join fixes with them.",
)
_tables = _group(
    "table",
    "Put and delete rows one by one while streams run, and look them up by key and place.",
)
_streams = _group(
    "streams",
    "See on which engine streams run, take them to another one, begin them anew, report on them.",
)
_quality = _group(
    "quality",
    "Check days against the contracts, and see and replay what could not be read.",
)
_backups = _group(
    "backup", "Copy the home beside running streams, and put a copy back."
)

_COMMANDS: dict[tuple[typer.Typer, str], Callable[..., None]] = {
    (app, "try"): trial.try_query,
    (_queries, "register"): query.register,
    (_queries, "run"): query.run,
    (_queries, "check"): query.check,
    (_queries, "list"): query.list_queries,
    (_queries, "show"): query.show,
    (_queries, "drop"): query.drop,
    (_layers, "load"): layer.load,
    (_layers, "list"): layer.list_layers,
    (_layers, "show"): layer.show,
    (_layers, "join"): join.join,
    (_tables, "create"): table.create,
    (_tables, "drop"): table.drop,
    (_tables, "list"): table.list_tables,
    (_tables, "put"): table.put,
    (_tables, "get"): table.get,
    (_tables, "delete"): table.delete,
    (_tables, "load"): table.load,
    (_tables, "rect"): table.rect,
    (_tables, "join"): table.join,
    (_streams, "list"): streams.list_streams,
    (_streams, "reshard"): streams.reshard,
    (_streams, "reset"): streams.reset,
    (_streams, "retry"): streams.retry,
    (_streams, "skip"): streams.skip,
    (_streams, "report"): report.report,
    (_quality, "report"): quality.report,
    (_quality, "propose"): quality.propose,
    (_quality, "release"): quality.release,
    (_quality, "rejects"): rejects.list_rejects,
    (_quality, "replay-rejects"): rejects.replay,
    (app, "partition"): layer.partition,
    (app, "check"): check.check,
    (app, "replay"): replay.replay,
    (app, "capture"): capture.capture,
    (app, "serve"): serve.serve,
    (app, "explain"): explain.explain,
    (app, "changes"): read.changes,
    (app, "answer"): past.answer,
    (app, "objects"): past.objects,
    (app, "shell"): shell,
    (app, "why"): why.why,
    (app, "sql"): read.sql,
    (app, "run"): run.run,
    (app, "supervise"): supervise.supervise,
    (app, "deliver"): deliver.deliver,
    (app, "reprocess"): reprocess.reprocess,
    (app, "backtest"): backtest.backtest,
    (app, "verify"): verify.verify,
    (app, "maintain"): maintain.maintain,
    (_backups, "create"): backup.create,
    (_backups, "restore"): backup.restore,
    (app, "status"): run.status,
    (app, "doctor"): run.doctor,
    (app, "init"): installing.init,
}
for (_group, _name), _command in _COMMANDS.items():
    _group.command(_name, cls=FairwayCommand)(_command)
