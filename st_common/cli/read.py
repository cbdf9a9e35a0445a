"""`fairway changes`, `sql`: what the queries say, read without a JVM."""

from typing import Annotated

import typer

from st_common.cli import context
from st_common.cli.output import Format

_ROW = ("query", "object", "partner", "sign", "cause", "event_ts", "position", "seq", "value", "fields")
_FORMAT = Annotated[Format, typer.Option("--format", help="A table for people, JSON lines or CSV for programs.")]


def changes(
    ctx: typer.Context,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="One query; all of them when left out.", show_default=False)
    ] = None,
    form: _FORMAT = "table",
    since_position: Annotated[
        int | None, typer.Option("--since-position", metavar="N", help="Only changes after this position of the log.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help="At most so many, from the first on.")
    ] = None,
) -> None:
    """Show the changes of answers in their order: + enters (1), - leaves (-1), a new value of a member (0)."""
    from st_common.cli.output import shown, write
    from st_common.serving.changes import home_changes

    found = home_changes(context.home(ctx, must_exist=True), query, since=since_position)
    write(shown(found.select(_ROW).slice(0, limit), form), form)


def sql(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="SQL", help='One SELECT, such as "SELECT count(*) FROM changes".')],
    form: _FORMAT = "table",
) -> None:
    """Ask the tables of the home by SQL; "SHOW TABLES" lists the views."""
    from st_common.cli.output import write
    from st_common.serving.sql import sql as result_of

    write(result_of(context.home(ctx, must_exist=True), text, lambda: context.streams(ctx)), form)
