"""`fairway changes`, `sql`: what the queries say, read without a JVM."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from st_common.cli import context
from st_common.cli.arguments import Follow, Form, ForSeconds, JsonLines, UntilIdle
from st_common.cli.export import ExportForm, Out, export, has_places
from st_common.cli.lean import without_pandas
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from st_common.cli.output import Format
    from st_common.config.home import Home

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
_TAIL = Annotated[
    int | None,
    typer.Option(
        "--tail", metavar="N", min=1, help="Only the last N; read from the end."
    ),
]
_PLACES = Annotated[
    bool,
    typer.Option("--places", help="With x and y of each change: where its object was."),
]


def changes(
    ctx: typer.Context,
    query: _QUERY = None,
    *,
    form: ExportForm = "table",
    json_lines: JsonLines = False,
    stream: _ON_STREAM = None,
    since_position: _SINCE = None,
    limit: _LIMIT = None,
    tail: _TAIL = None,
    places: _PLACES = False,
    out: Out = None,
    follow: Follow = False,
    seconds: ForSeconds = None,
    until_idle: UntilIdle = False,
) -> None:
    """Show the changes of answers in their order: + enters (1), - leaves (-1), a new value of a member (0)."""
    without_pandas(ctx)
    from st_common.position import parsed

    home, form = context.home(ctx, must_exist=True), "jsonl" if json_lines else form
    since = None if since_position is None else parsed(since_position)
    if stream is not None:
        _check_stream(ctx, stream)
    columns = (*_ROW, "x", "y") if places or has_places(form) else _ROW
    if follow:
        _check_follow(form, others=(tail, out))
        how = {"seconds": seconds, "until_idle": until_idle}
        coming = _Shown(columns=columns, form=cast("Format", form), limit=limit)
        _follow(home, (stream, query, since), coming, how)
        return
    if seconds is not None or until_idle:
        raise ConfigError(
            "--for and --until-idle say when --follow ends", hint="add --follow"
        )
    rows = _changes(home, query, stream, since, tail).slice(0, limit)
    of = _stream_of(home, query, stream) if has_places(form) else ""
    shown = _shown(rows, columns)
    # Whole, for the same columns must come from each call, whichever changes there are.
    export(shown, form, out, epsg=lambda: context.stream(ctx, of).epsg, is_whole=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What is shown of changes that come: which columns, how, and at most how many."""

    columns: tuple[str, ...]
    form: "Format"
    limit: int | None


def _follow(
    home: "Home",
    wanted: tuple[str | None, str | None, int | None],
    shown: _Shown,
    how: "dict[str, Any]",
) -> None:
    """Writes changes as they are committed: of a stream, of a query, behind a position."""
    from st_common.answers.follow import follow
    from st_common.cli.interrupt import until_interrupted

    with until_interrupted() as is_over:
        parts = follow(home, *wanted, **how, is_over=is_over)
        _write_growing(parts, shown)


def _write_growing(parts: "Iterator[pa.Table]", shown: _Shown) -> None:
    from st_common.cli.output import write_growing

    rows = (_shown(part, shown.columns) for part in parts)
    write_growing(rows, shown.form, limit=shown.limit)


def _shown(rows: "pa.Table", columns: tuple[str, ...]) -> "pa.Table":
    """Some columns of changes; groups have the place that their values say."""
    from st_common.answers.places import with_group_places

    return (with_group_places(rows) if "x" in columns else rows).select(columns)


def _check_follow(form: ExportForm, *, others: tuple[object, ...]) -> None:
    """Raises where an option is about changes that are there, and not about those that come."""
    if has_places(form):
        raise ConfigError(
            f"--format {form} does not go with --follow: it is a file that ends",
            hint="--format jsonl --places",
        )
    if any(other is not None for other in others):
        raise ConfigError(
            "--tail and --out do not go with --follow", hint="--since POSITION does"
        )


def _changes(
    home: "Home",
    query: str | None,
    stream: str | None,
    since: int | None,
    tail: int | None,
) -> "pa.Table":
    if tail is None:
        from st_common.answers.changes import passed_changes

        return passed_changes(home, query, stream=stream, since=since)
    if since is not None:
        raise ConfigError("--tail and --since do not go together", hint="choose one")
    from st_common.answers.last_changes import last_changes

    return last_changes(home, query, stream=stream, count=tail)


def _stream_of(home: "Home", query: str | None, stream: str | None) -> str:
    """The one stream that changes with places are of."""
    from st_common.answers.changes import streams_of

    names = streams_of(home, query) if stream is None else [stream]
    if len(names) != 1:
        raise ConfigError(
            f"places are those of one stream, and these are of {', '.join(names) or 'none'}",
            hint="--stream says of which",
        )
    return names[0]


def sql(
    ctx: typer.Context,
    text: Annotated[
        str,
        typer.Argument(
            metavar="SQL", help='One SELECT, such as "SELECT count(*) FROM changes".'
        ),
    ],
    form: Form = "table",
    *,
    json_lines: JsonLines = False,
) -> None:
    """Ask the tables of the home by SQL; "SHOW TABLES" lists the views."""
    from st_common.answers.sql import sql as result_of
    from st_common.cli.output import write

    write(
        result_of(
            context.home(ctx, must_exist=True), text, lambda: context.streams(ctx)
        ),
        "jsonl" if json_lines else form,
    )


def _check_stream(ctx: typer.Context, stream: str) -> None:
    from st_common.answers.changes import changed_streams

    known = changed_streams(context.home(ctx))
    if stream not in known:
        context.stream(ctx, stream)
