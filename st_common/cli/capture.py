"""`fairway capture`: what feeds bring, or what a query's stream gives, into a stream's log."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import ForSeconds
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from st_common.config.home import Home
    from st_common.config.stream import StreamSettings

_FED = Annotated[
    str,
    typer.Argument(metavar="STREAM", help="The stream that is fed."),
]
_SOURCE = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="NAME",
        help="One of its sources, instead of all; may be given again.",
    ),
]
_QUERY = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="NAME",
        help="The query whose rows feed it; else the one in its settings.",
    ),
]
_FOLLOW = Annotated[
    bool, typer.Option("--follow", help="Go on: feed changes as they are committed.")
]


def capture(
    ctx: typer.Context,
    stream: _FED,
    query: _QUERY = None,
    *,
    source: _SOURCE = None,
    follow: _FOLLOW = False,
    seconds: ForSeconds = None,
) -> None:
    """Put what the sources of a stream give into its log, as it comes, until Ctrl-C; or what a query's stream gives.

    A query's stream is put there once, each element once, from where it ended before; with --follow it goes on.
    """
    settings = context.stream(ctx, stream)
    if source or (query is None and settings.sources):
        if query is not None or follow:
            raise ConfigError(
                "--source goes with neither --query nor --follow",
                hint="sources are followed until Ctrl-C, or --for SECONDS",
            )
        _capture_sources(ctx, settings, source, seconds)
    elif settings.joins and query is None:
        _capture_joined(ctx, settings, follow=follow, seconds=seconds)
    else:
        _capture_query(ctx, settings, query, follow=follow, seconds=seconds)


def _capture_sources(
    ctx: typer.Context,
    settings: "StreamSettings",
    names: list[str] | None,
    seconds: float | None,
) -> None:
    """Runs sources of a stream until they end, or it is asked to stop."""
    import asyncio

    from st_common.sources.running import run_until_stopped

    chosen = tuple(names or settings.sources)
    _warn_of_others(context.home(ctx), settings.name, chosen)
    notes = asyncio.run(
        run_until_stopped(context.home(ctx), settings, chosen, seconds=seconds)
    )
    for note in notes:
        skipped = f", {note.skipped:,} skipped" if note.skipped else ""
        typer.echo(
            f"{settings.name}: {note.records:,} records from {note.source} "
            f"in {note.segments:,} segments{skipped}"
        )


def _warn_of_others(home: "Home", stream: str, sources: "Sequence[str]") -> None:
    """Says on stderr which of some sources another process captures now."""
    import time

    from st_common.sources.note import read_notes

    now_us = time.time_ns() // 1000
    for note in read_notes(home, stream):
        if note.source in sources and note.is_captured(now_us=now_us):
            pid = note.owner and note.owner.pid
            typer.echo(
                f"note: process {pid} captures {note.source} of {stream} already; one is enough",
                err=True,
            )


def _capture_joined(
    ctx: typer.Context,
    settings: "StreamSettings",
    *,
    follow: bool,
    seconds: float | None,
) -> None:
    """Joins two streams until all that there is now is written, with `follow` until interrupted."""
    from st_common.delivery.joint_feed import JointFeed

    home = context.home(ctx, must_exist=True)
    feed = JointFeed(home, settings, context.streams(ctx))
    with suppress(KeyboardInterrupt):
        feed.run(follow=follow, seconds=seconds)
    streams = " and ".join(settings.joined)
    late = f", {feed.late:,} late" if feed.late else ""
    typer.echo(f"{settings.name}: {feed.records:,} fixes of {streams}{late}")
    if feed.waits_for:
        typer.echo(
            f"note: later fixes wait for {feed.waits_for}: {settings.name} goes by the stream furthest behind",
            err=True,
        )


def _capture_query(
    ctx: typer.Context,
    settings: "StreamSettings",
    query: str | None,
    *,
    follow: bool,
    seconds: float | None,
) -> None:
    from st_common.delivery.stream_feed import StreamFeed

    stream = settings.name
    if seconds is not None and not follow:
        raise ConfigError("--for says when --follow ends", hint="add --follow")
    query = query or settings.query
    if query is None:
        raise ConfigError(
            f"nothing says what feeds stream {stream!r}",
            hint=f"--query NAME, query in its settings, or [streams.{stream}.sources.NAME]",
        )
    feed = StreamFeed(context.home(ctx, must_exist=True), query, settings)
    with suppress(KeyboardInterrupt):
        feed.run(follow=follow, seconds=seconds)
    others = feed.records_of_others
    between = f", {others:,} of other queries between them" if others else ""
    typer.echo(
        f"{stream}: {feed.records:,} records of query {query} on stream {feed.stream}{between}"
    )
    if feed.waits_for:
        typer.echo(
            f"note: later records wait for {', '.join(feed.waits_for)}: {stream} goes by the feed furthest behind",
            err=True,
        )
