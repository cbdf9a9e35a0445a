"""`fairway replay`, `capture`: a file, a feed, or a query's stream, into a stream's log."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import ForSeconds, Stream
from st_common.cli.progress import progress_of_records
from st_common.errors import ConfigError
from st_common.installed import place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from st_common.config.home import Home
    from st_common.config.stream import StreamSettings
    from st_common.replay.files import Rate, ReplayReport
    from st_common.replay.source import NamedFile


_FILE = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Records in the stream's format; may be gzip, a folder of files, a pipe, or - for standard input.",
    ),
]
_RATE = Annotated[
    str,
    typer.Option(
        help="fast, a number of records a second, or event: as the event times say."
    ),
]
_SPEED = Annotated[
    float, typer.Option(help="With --rate event: how many times as fast.")
]
_STAND = Annotated[
    bool,
    typer.Option(
        "--as-they-stand",
        help="In the order of the file, and not of event times: what is out of order may be late.",
    ),
]
_FORCE = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also a file of which hardly anything can be read, or whose dates are odd.",
    ),
]
_NO_END = Annotated[
    bool, typer.Option("--no-end", help="Write no end mark, for more will follow.")
]
_LIVE = Annotated[
    bool,
    typer.Option(
        "--live",
        help="The records tell of now: time goes on after them. Without it time stands still.",
    ),
]
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


def replay(
    ctx: typer.Context,
    stream: Stream,
    file: _FILE,
    rate: _RATE = "fast",
    speed: _SPEED = 1.0,
    *,
    as_they_stand: _STAND = False,
    force: _FORCE = False,
    no_end: _NO_END = False,
    live: _LIVE = False,
) -> None:
    """Put the records of a file into a stream's log, then an end mark. Nothing is judged yet: `run` does that.

    Records are put in the order of their event times, whatever order they stand in; those of a folder's files together.
    A file of which most of the first records cannot be read is refused: then the settings are wrong, or the file. So is
    one of which most are dated before 1990 or beyond tomorrow. Of a pipe nothing is taken before its end.
    """
    from st_common.replay.readable import refuse_unreadable
    from st_common.replay.source import files_to_read

    settings, pace = context.stream(ctx, stream), _rate(rate)
    how = _How(
        rate=pace,
        speed=speed,
        live=live,
        end_mark=not no_end,
        as_they_stand=as_they_stand,
    )
    home = context.home(ctx)
    with files_to_read(Path(place_of(str(file)))) as named:
        for each in () if force else named:
            odd = refuse_unreadable(each.path, settings, name=each.name)
            if odd:
                typer.echo(f"warning: {odd}", err=True)
        report = _replayed(home, settings, [each.path for each in named], how)
    _write_report(stream, named, report)


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """How files are replayed, as `replay.files.replay` has it."""

    rate: "Rate"
    speed: float
    live: bool
    end_mark: bool
    as_they_stand: bool


def _replayed(
    home: "Home", settings: "StreamSettings", paths: "Sequence[Path]", how: _How
) -> "ReplayReport":
    """Replays files as one feed."""
    from st_common.log.log import Log
    from st_common.replay import files

    with progress_of_records(settings.name) as progress:
        return files.replay(
            Log(home.log(settings.name)),
            paths,
            settings,
            as_they_stand=how.as_they_stand,
            rate=how.rate,
            speed=how.speed,
            end_mark=how.end_mark,
            live=how.live,
            progress=progress,
        )


def _write_report(
    stream: str, named: "Sequence[NamedFile]", report: "ReplayReport"
) -> None:
    """Says what was written to the log, and warns of files that ended early."""
    typer.echo(
        f"{stream}: {report.records:,} records in {report.segments:,} segments, from {report.first} on"
    )
    if report.descents:
        typer.echo(
            f"{stream}: sorted by event time, which goes back in {report.descents:,} places of what was read"
        )
    if report.reading is not None:
        typer.echo(
            f"{stream}: they are read by other settings than the records before segment {report.reading}"
        )
    if report.ahead:
        typer.echo(
            f"warning: {report.ahead:,} records are rejects, ahead_of_stream: their event time leaps more than "
            f"max_jump_s ahead of all others; after a run, fairway quality rejects {stream} shows them",
            err=True,
        )
    for each in named:
        if each.path in report.grown:
            typer.echo(
                f"warning: {each.name} grew while it was read: a file that grows is a feed; a source of kind "
                f'"files" in [streams.{stream}.sources.NAME] and fairway capture {stream} follow it',
                err=True,
            )
        if each.path in report.broken:
            typer.echo(
                f"warning: {each.name} is packed and ends or breaks early; what could be unpacked is in the log",
                err=True,
            )


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


def _capture_query(
    ctx: typer.Context,
    settings: "StreamSettings",
    query: str | None,
    *,
    follow: bool,
    seconds: float | None,
) -> None:
    from st_common.answers.feeding import Feed

    stream = settings.name
    if seconds is not None and not follow:
        raise ConfigError("--for says when --follow ends", hint="add --follow")
    query = query or settings.query
    if query is None:
        raise ConfigError(
            f"nothing says what feeds stream {stream!r}",
            hint=f"--query NAME, query in its settings, or [streams.{stream}.sources.NAME]",
        )
    feed = Feed(context.home(ctx, must_exist=True), query, settings)
    with suppress(KeyboardInterrupt):
        feed.run(follow=follow, seconds=seconds)
    typer.echo(
        f"{stream}: {feed.records:,} records of query {query} on stream {feed.stream}"
    )


def _rate(text: str) -> "Rate":
    if text == "fast":
        return "fast"
    if text == "event":
        return "event"
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            f"a rate of {text!r}", hint="fast, event, or a number of records a second"
        ) from None
