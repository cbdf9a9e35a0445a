"""`fairway changes`, `sql`: what the queries say, read without a JVM."""

from typing import Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Follow, Form, ForSeconds, UntilIdle
from st_common.cli.lean import without_pandas
from st_common.errors import ConfigError

_ROW = (
    "query",
    "object",
    "partner",
    "sign",
    "cause",
    "event_ts",
    "position",
    "seq",
    "value",
    "fields",
)
_QUERY = Annotated[
    str | None,
    typer.Argument(
        metavar="QUERY",
        help="One query; all of them when left out.",
        show_default=False,
    ),
]
_JSON_LINES = Annotated[
    bool, typer.Option("--json", help="JSON lines: the same as --format jsonl.")
]
_ON_STREAM = Annotated[
    str | None, typer.Option(metavar="S", help="Only queries on this stream.")
]
_SINCE = Annotated[
    str | None,
    typer.Option(
        "--since",
        "--since-position",
        metavar="POSITION",
        help="Only changes after this position of the log: a number, or segment.row.",
    ),
]
_LIMIT = Annotated[
    int | None,
    typer.Option(
        "--limit", metavar="N", min=0, help="At most so many, from the first on."
    ),
]


def changes(
    ctx: typer.Context,
    query: _QUERY = None,
    *,
    form: Form = "table",
    json_lines: _JSON_LINES = False,
    stream: _ON_STREAM = None,
    since_position: _SINCE = None,
    limit: _LIMIT = None,
    follow: Follow = False,
    seconds: ForSeconds = None,
    until_idle: UntilIdle = False,
) -> None:
    """Show the changes of answers in their order: + enters (1), - leaves (-1), a new value of a member (0)."""
    without_pandas(ctx)
    from st_common.cli.output import shown, write, write_growing
    from st_common.position import parsed
    from st_common.serving.changes import passed_changes
    from st_common.serving.follow import follow as follow_of

    home, form = context.home(ctx, must_exist=True), "jsonl" if json_lines else form
    since = None if since_position is None else parsed(since_position)
    if stream is not None:
        _check_stream(ctx, stream)
    if follow:
        parts = follow_of(
            home, stream, query, since, seconds=seconds, until_idle=until_idle
        )
        write_growing((part.select(_ROW) for part in parts), form, limit=limit)
        return
    if seconds is not None or until_idle:
        raise ConfigError(
            "--for and --until-idle say when --follow ends", hint="add --follow"
        )
    tables = passed_changes(home, query, stream=stream, since=since)
    write(shown(tables.select(_ROW).slice(0, limit), form), form)


def sql(
    ctx: typer.Context,
    text: Annotated[
        str,
        typer.Argument(
            metavar="SQL", help='One SELECT, such as "SELECT count(*) FROM changes".'
        ),
    ],
    form: Form = "table",
) -> None:
    """Ask the tables of the home by SQL; "SHOW TABLES" lists the views."""
    from st_common.cli.output import write
    from st_common.serving.sql import sql as result_of

    write(
        result_of(
            context.home(ctx, must_exist=True), text, lambda: context.streams(ctx)
        ),
        form,
    )


def _check_stream(ctx: typer.Context, stream: str) -> None:
    from st_common.serving.changes import changed_streams

    known = changed_streams(context.home(ctx))
    if stream not in known:
        context.stream(ctx, stream)
