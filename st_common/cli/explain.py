"""`fairway explain`: how a query is carried out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.statements import statements_of, write_explained, write_notices
from st_common.errors import ConfigError, QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from st_common.query.plan import Plan


def explain(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="A registered query.", show_default=False),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="A file of statements, or - for standard input.",
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", help="The statements themselves."),
    ] = None,
    analyze: Annotated[
        bool,
        typer.Option(
            "--analyze",
            help="Run it over the archived fixes, and count what goes through.",
        ),
    ] = False,
) -> None:
    """Show how a query is carried out: its operators, their stages and order, the tuples that are expected."""
    for number, (query, plan) in enumerate(_plans(ctx, name, file, text)):
        if number:
            typer.echo("")
        write_explained(ctx, query, plan, analyze=analyze)


def _plans(
    ctx: typer.Context, name: str | None, file: Path | None, text: str | None
) -> "Iterator[tuple[str, Plan]]":
    """The plans to explain, with the names of their queries."""
    from st_common.query.lookup import find
    from st_common.query.registry import fitted

    if name is None:
        statements = statements_of(ctx, file, text)
        known, notices = fitted(context.home(ctx), context.streams(ctx), statements)
        write_notices(notices)
        yield from ((each.name, each.plan) for each in known if each.plan is not None)
        return
    if file is not None or text is not None:
        raise ConfigError("a query by its name, or statements", hint="name one of them")
    row = find(context.home(ctx, must_exist=True), name)
    if row.plan is None:
        raise QueryError(f"query {name!r} was dropped", hint="see fairway query list")
    yield row.name, row.plan
