"""`fairway answer`, `objects`: who was in an answer and where objects were, now or at a time."""

from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Explain, JsonLines, QueryName, Stream
from st_common.cli.export import ExportForm, Out, export, has_places
from st_common.cli.lean import without_pandas
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from st_common.answers.answers import Reads
    from st_common.config.home import Home
    from st_common.config.stream import StreamSettings

_Rectangle = tuple[float, float, float, float]
_INSIDE = Annotated[
    _Rectangle | None,
    typer.Option(
        "--inside",
        metavar="X1 Y1 X2 Y2",
        help="Only objects in this rectangle; its border belongs to it.",
    ),
]
_NEAREST = Annotated[
    tuple[int, float, float] | None,
    typer.Option(
        "--nearest",
        metavar="K X Y",
        help="Only the K objects nearest to a point, nearest first.",
    ),
]


_WHERE = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help='Only objects of whose last fix this holds, as behind WHERE: "speed > 5".',
    ),
]


def answer(
    ctx: typer.Context,
    query: QueryName,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="T",
            help="The answer at this time: ISO 8601, UTC if no zone is given.",
        ),
    ] = None,
    *,
    explain: Explain = False,
    form: ExportForm = "table",
    json_lines: JsonLines = False,
    out: Out = None,
) -> None:
    """Show who is in the answer of a query, with which partner and values, and since when."""
    without_pandas(ctx)
    from st_common.answers.answers import answered

    home, form = context.home(ctx, must_exist=True), "jsonl" if json_lines else form
    then = None if at is None else time_of(at)
    answer_then = answered(home, query, then)
    rows = answer_then.rows
    if has_places(form):
        from st_common.answers.member_places import placed_answer

        rows = placed_answer(home, context.streams(ctx), query, then)
    export(rows, form, out, epsg=lambda: _stream_of(ctx, query).epsg)
    if explain:
        _say(answer_then.reads, "changes")


def objects(
    ctx: typer.Context,
    stream: Stream,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="T",
            help="Where they were at this time: ISO 8601, UTC if no zone is given.",
        ),
    ] = None,
    inside: _INSIDE = None,
    nearest: _NEAREST = None,
    where: _WHERE = None,
    *,
    explain: Explain = False,
    form: ExportForm = "table",
    json_lines: JsonLines = False,
    out: Out = None,
) -> None:
    """Show where the objects of a stream are, or were at a time."""
    without_pandas(ctx)
    from st_common.answers.history import NearestTo, objects_at
    from st_common.answers.object_conditions import condition_of
    from st_common.regions.registry import Box

    settings = context.stream(ctx, stream)
    if nearest is not None and nearest[0] < 1:
        raise ConfigError(
            f"--nearest {nearest[0]} is no number of objects", hint="at least 1"
        )
    home, condition = context.home(ctx, must_exist=True), None
    if where is not None:
        condition = condition_of(home, context.streams(ctx), stream, where)
    objects_then = objects_at(
        home,
        settings,
        None if at is None else time_of(at),
        inside=None if inside is None else Box.of_corners(*inside),
        nearest=None
        if nearest is None
        else NearestTo(k=nearest[0], x=nearest[1], y=nearest[2]),
        where=condition,
        shapes=form in ("geojson", "geoparquet"),
    )
    form = "jsonl" if json_lines else form
    export(objects_then.rows, form, out, epsg=lambda: settings.epsg)
    _tell_always_late(home, settings)
    if explain:
        _say([objects_then.reads], "fixes")


def _tell_always_late(home: "Home", stream: "StreamSettings") -> None:
    """Says on stderr which objects are in no answer because all their fixes came too late."""
    from st_common.operations.status import read_status

    said = read_status(home.stream(stream.name))
    if said is None or not said.late:
        return
    from st_common.answers.lateness import lateness_of, words_of

    late = [one for one in lateness_of(home, stream).objects if one.is_always_late]
    for one in late[:_SHOWN]:
        typer.echo(f"note: {words_of(one)}", err=True)
    if len(late) > _SHOWN:
        more = len(late) - _SHOWN
        typer.echo(f"note: so are all fixes of {more:,} other objects", err=True)


_SHOWN = 10


def _stream_of(ctx: typer.Context, query: str) -> "StreamSettings":
    from st_common.query.lookup import find

    home = context.home(ctx, must_exist=True)
    return context.stream(ctx, find(home, query).stream)


def time_of(text: str, option: str = "--at") -> "datetime":
    """The time that an option gives: ISO 8601, UTC without a zone.

    Raises:
        ConfigError: it is none.
    """
    from st_common.query.past import time_written

    try:
        return time_written(text)
    except ValueError:
        raise ConfigError(
            f"{option} {text!r} is no time", hint="such as 2024-05-01T12:30:00Z"
        ) from None


def _say(reads: "Iterable[Reads]", what: str) -> None:
    for each in reads:
        snapshot = each.snapshot
        start = (
            "no snapshot"
            if snapshot is None
            else f"{each.snapshot_rows:,} rows of the snapshot of {snapshot.snapshot_ts:%Y-%m-%dT%H:%M:%SZ} "
            f"(position {snapshot.position})"
        )
        typer.echo(
            f"read of {each.stream}: {start}, {each.after_rows:,} {what} from there on"
            f"{', and the visits of the day, which was processed again' if each.again else ''}",
            err=True,
        )
