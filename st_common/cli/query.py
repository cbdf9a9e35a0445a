"""`fairway query`: register queries while streams run, look at them, drop them."""

import getpass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Json, JsonLines
from st_common.cli.output import FileFormat
from st_common.cli.statements import (
    statements_of,
    when,
    write_notices,
    write_outcome,
    write_queries,
)
from st_common.errors import ConfigError, FairwayError, QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from st_common.config.stream import StreamSettings
    from st_common.query.registry import Outcome
    from st_common.query.text import Statement

_FILE = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="A file of statements, or - for standard input.",
        show_default=False,
    ),
]
_TEXT = Annotated[
    str | None,
    typer.Option("--text", metavar="TEXT", help="The statements themselves."),
]
_NAME = Annotated[str, typer.Argument(metavar="NAME", help="The name of a query.")]
_PARAMS = Annotated[
    Path | None,
    typer.Option(
        "--params",
        metavar="TABLE",
        help="CSV or Parquet: statements with $1 or $name are carried out for each row.",
    ),
]
_PLAN = Annotated[
    Path | None,
    typer.Option(
        "--plan", metavar="FILE", help="A plan as JSON instead of statements."
    ),
]
_CALLED = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The name of the plan's query."),
]
_REPLACE = Annotated[
    bool, typer.Option("--replace", help="Replace the query of this name by the plan.")
]
_FORM = Annotated[
    FileFormat,
    typer.Option(
        "--format",
        help="A table for people, JSON lines, CSV or Parquet for programs.",
    ),
]
_FAR_SHOWN = 3
_JSON = Annotated[bool, typer.Option("--json", help="Only the plan, as JSON.")]


def register(
    ctx: typer.Context,
    file: _FILE = None,
    *,
    text: _TEXT = None,
    params: _PARAMS = None,
    plan: _PLAN = None,
    name: _CALLED = None,
    replace: _REPLACE = False,
) -> None:
    """Carry out statements, all or none: REGISTER, REPLACE, DROP, CREATE AREA or STREAM, SHOW, EXPLAIN; or a plan."""
    if plan is not None or name is not None or replace:
        from st_common.cli.plans import statement_of_plan

        alone = file is None and text is None and params is None
        statement = statement_of_plan(plan, name, replace=replace, alone=alone)
        carried_out(ctx, [statement])
    else:
        carried_out(ctx, statements_of(ctx, file, text, params))


def carried_out(ctx: typer.Context, statements: "Sequence[Statement]") -> "Outcome":
    """Carries out statements, and writes what they did; the shell does the same.

    Raises:
        TextError: what is wrong with them; nothing is done.
    """
    from st_common.engine.carrying_out import carry_out

    home, streams = context.home(ctx), context.streams(ctx)
    done = carry_out(home, streams, statements, owner=getpass.getuser())
    _tell_late(done.late)
    write_outcome(ctx, done.outcome)
    _tell_beginnings(ctx, done.outcome)
    return done.outcome


def _tell_beginnings(ctx: typer.Context, done: "Outcome") -> None:
    """Says of what was just registered what lies before it, and whether it is far off; what is unknown is no error."""
    from st_common.answers.beginnings import beginnings, in_words
    from st_common.answers.far_regions import far_regions, said

    home, streams = context.home(ctx), context.streams(ctx)
    try:
        anew = [row for row in done.rows if row.seed is None]
        queries_begun = beginnings(home, streams, anew)
        far = list(islice(far_regions(home, streams, done.rows), _FAR_SHOWN))
    except FairwayError as error:
        typer.echo(f"note: what lies before cannot be counted: {error}", err=True)
        return
    begun = [line for one in queries_begun for line in in_words(one)]
    for line in (*begun, *map(said, far)):
        typer.echo(f"note: {line}", err=True)


def run(
    ctx: typer.Context,
    file: _FILE = None,
    text: _TEXT = None,
    form: _FORM = "table",
    *,
    json_lines: JsonLines = False,
) -> None:
    """Answer a SELECT .. [AS OF 'T' | BETWEEN 'T1' AND 'T2'] from archived fixes, or FROM a layer; keep nothing."""
    from st_common.cli.statements import write_asked
    from st_common.query.registry import fitted

    (asked, *more), notices = fitted(
        context.home(ctx, must_exist=True),
        context.streams(ctx),
        statements_of(ctx, file, text),
    )
    write_notices(notices)
    if more or asked.op != "ask" or asked.plan is None:
        raise QueryError(
            "one SELECT is answered at a time",
            hint="`fairway query register` carries out all other statements",
        )
    chosen = "jsonl" if json_lines else form
    write_asked(ctx, asked.plan, asked.past, chosen)


def check(
    ctx: typer.Context,
    file: _FILE = None,
    text: _TEXT = None,
    params: _PARAMS = None,
) -> None:
    """Say everything that is wrong with statements; carry out nothing."""
    from st_common.query.registry import check as check_all

    statements = statements_of(ctx, file, text, params)
    write_notices(check_all(context.home(ctx), context.streams(ctx), statements))
    typer.echo(
        f"{len(statements)} statement{'' if len(statements) == 1 else 's'}, nothing wrong"
    )


def list_queries(
    ctx: typer.Context,
    stream: Annotated[
        str | None,
        typer.Option("--stream", metavar="STREAM", help="Only queries on this stream."),
    ] = None,
    *,
    json_lines: Json = False,
) -> None:
    """List the registered queries: name, version, stream, who registered it, state, text."""
    from st_common.query.lookup import queries

    write_queries(
        queries(
            context.home(ctx, must_exist=True), None if stream is None else [stream]
        ),
        _known_streams(ctx),
        json_lines=json_lines,
    )


def _known_streams(ctx: typer.Context) -> "Mapping[str, StreamSettings]":
    """The streams; none without settings, for queries are registered in logs, and are listed without."""
    try:
        return context.streams(ctx)
    except ConfigError:
        return {}


def show(
    ctx: typer.Context,
    name: _NAME,
    version: Annotated[
        int | None,
        typer.Option(
            "--version",
            metavar="N",
            help="This version, also when it was replaced or dropped.",
        ),
    ] = None,
    as_json: _JSON = False,  # noqa: FBT002 - a flag
) -> None:
    """Show one query: its text, its canonical text, its plan, and its history."""
    import json

    from st_common.query.lookup import find, history, version_of
    from st_common.query.text import to_text

    home = context.home(ctx, must_exist=True)
    shown = find(home, name) if version is None else version_of(home, name, version)
    if as_json:
        from st_common.cli.plans import write_plan

        write_plan(shown)
        return
    if shown.plan is not None:
        typer.echo(
            f"{shown.name} (version {shown.version}) on stream {shown.stream}, by {shown.owner or 'unknown'}"
        )
        typer.echo(f"text      {shown.text}")
        typer.echo(f"canonical {to_text(shown.plan, shown.name)}")
        typer.echo(f"plan      {json.dumps(shown.plan.to_json())}")
    else:
        typer.echo(f"{shown.name} was dropped")
    for row in history(home, shown.name):
        did = (
            f"{row.op} version {row.version} at position {row.position} of {row.stream}"
        )
        did += f": {row.why}" if row.why else ""
        typer.echo(f"history   {when(row.arrival_us)} {did}")


def drop(ctx: typer.Context, name: _NAME) -> None:
    """Drop one query: its members leave its answer."""
    from st_common.engine.carrying_out import drop as drop_one

    row, late = drop_one(context.home(ctx, must_exist=True), name)
    _tell_late(late)
    typer.echo(f"dropped {row.name} (version {row.version})")


def _tell_late(error: FairwayError | None) -> None:
    """Says why the table of queries will follow later, where it does."""
    if error is not None:
        typer.echo(f"note: the table of queries will follow later: {error}", err=True)
