"""`fairway query`: register queries while streams run, look at them, drop them."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.errors import ConfigError, FairwayError, QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from st_common.query.control import QueryRow
    from st_common.query.text import Statement

_FILE = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="A file of statements, or - for standard input.", show_default=False),
]
_TEXT = Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The statements themselves.")]
_NAME = Annotated[str, typer.Argument(metavar="NAME", help="The name of a query.")]


def register(ctx: typer.Context, file: _FILE = None, text: _TEXT = None) -> None:
    """Carry out REGISTER, REPLACE and DROP statements: all of them, or none."""
    from st_common.query.registry import register as carry_out

    statements = statements_of(file, text)
    rows = carry_out(context.home(ctx), context.streams(ctx), statements, owner=getpass.getuser())
    _roll_forward(ctx)
    for op, done in (("register", "registered"), ("replace", "replaced"), ("drop", "dropped")):
        names = [f"{row.name} (version {row.version})" for row in rows if row.op == op]
        if names:
            typer.echo(f"{done} {_few(names)}")


def check(ctx: typer.Context, file: _FILE = None, text: _TEXT = None) -> None:
    """Say what is wrong with statements; register nothing."""
    from st_common.query.registry import check as check_all

    statements = statements_of(file, text)
    check_all(context.home(ctx), context.streams(ctx), statements)
    typer.echo(f"{len(statements)} statement{'' if len(statements) == 1 else 's'}, nothing wrong")


def list_queries(
    ctx: typer.Context,
    stream: Annotated[
        str | None, typer.Option("--stream", metavar="STREAM", help="Only queries on this stream.")
    ] = None,
) -> None:
    """List the registered queries: name, version, stream, who registered it, text."""
    from st_common.cli.output import write_columns
    from st_common.query.registry import queries

    rows = queries(context.home(ctx, must_exist=True), None if stream is None else [stream])
    write_columns(
        ("query", "version", "stream", "owner", "text"),
        [(row.name, str(row.version), row.stream, row.owner or "", " ".join((row.text or "").split())) for row in rows],
    )


def show(ctx: typer.Context, name: _NAME) -> None:
    """Show one query: its text, its canonical text, its plan, and its history."""
    import json

    from st_common.query.registry import find, history
    from st_common.query.text import to_text

    home = context.home(ctx, must_exist=True)
    newest = find(home, name)
    if newest.plan is not None:
        typer.echo(f"{name} (version {newest.version}) on stream {newest.stream}, by {newest.owner or 'unknown'}")
        typer.echo(f"text      {newest.text}")
        typer.echo(f"canonical {to_text(newest.plan, name)}")
        typer.echo(f"plan      {json.dumps(newest.plan.to_json())}")
    else:
        typer.echo(f"{name} was dropped")
    for row in history(home, name):
        typer.echo(f"history   {_when(row)} {row.op} version {row.version} at position {row.position} of {row.stream}")


def drop(ctx: typer.Context, name: _NAME) -> None:
    """Drop one query: its members leave its answer."""
    from st_common.query.registry import drop as drop_one

    row = drop_one(context.home(ctx, must_exist=True), name)
    _roll_forward(ctx)
    typer.echo(f"dropped {row.name} (version {row.version})")


def statements_of(file: Path | None, text: str | None) -> "Sequence[Statement]":
    """The statements of a file or of a text, of which one is given; there is at least one statement."""
    from st_common.query.text import parse

    if (file is None) == (text is None):
        raise ConfigError("statements come from a file or from --text", hint="name one of them; - is standard input")
    if file is None:
        statements = parse(text or "")
    else:
        name = "standard input" if str(file) == "-" else str(file)
        statements = parse(_read(file), file=name)
    if not statements:
        raise QueryError("the text has no statement", hint="REGISTER QUERY name AS SELECT * FROM stream ...")
    return statements


def _read(file: Path) -> str:
    try:
        content = typer.get_binary_stream("stdin").read() if str(file) == "-" else file.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise QueryError(f"{file} is not UTF-8: byte {error.start}", hint="save it as UTF-8") from None


def _roll_forward(ctx: typer.Context) -> None:
    """Brings the derived table up to date, for those who read it by other tools; the logs have the queries already."""
    from st_common.query.derived import roll_forward

    try:
        roll_forward(context.home(ctx))
    except FairwayError as error:
        typer.echo(f"note: the table of queries will follow later: {error}", err=True)


def _few(names: "Sequence[str]") -> str:
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} queries, {names[0]} to {names[-1]}"


def _when(row: "QueryRow") -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(row.arrival_us / 1e6, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
