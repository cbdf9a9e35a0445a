"""`fairway replay`: the records of files into a stream's log."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Stream
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
    """Put the records of a file into a stream's log, then an end mark. No query is evaluated yet: `run` does that.

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
