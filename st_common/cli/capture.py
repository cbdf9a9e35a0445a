"""`fairway replay`: a file into a stream's log."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from st_common.capture.files import Rate


def replay(
    ctx: typer.Context,
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="The name of a stream in conf/streams.toml.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Records in the stream's format; may be gzip.")],
    rate: Annotated[
        str, typer.Option(help="fast, a number of records a second, or event: as the event times say.")
    ] = "fast",
    speed: Annotated[float, typer.Option(help="With --rate event: how many times as fast.")] = 1.0,
    no_end: Annotated[bool, typer.Option("--no-end", help="Write no end mark, for more will follow.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Put the records of a file into a stream's log, then an end mark. Nothing is judged yet: `run` does that."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    from st_common.capture import files
    from st_common.capture.log import Log

    streams = context.streams(ctx)
    if stream not in streams:
        raise ConfigError(f"there is no stream {stream!r}", hint=f"the settings have {', '.join(streams) or 'none'}")
    pace = _rate(rate)
    log = Log(context.home(ctx).log(stream))
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(stream, total=file.stat().st_size if file.is_file() else None)
        report = files.replay(
            log,
            file,
            streams[stream],
            rate=pace,
            speed=speed,
            end_mark=not no_end,
            progress=lambda records, read: bar.update(
                task, completed=read, description=f"{stream}: {records:,} records"
            ),
        )
    typer.echo(f"{stream}: {report.records:,} records in {report.segments:,} segments, from {report.first} on")
    if report.broken:
        typer.echo(
            f"warning: {file} is packed and ends or breaks early; what could be unpacked is in the log", err=True
        )


def _rate(text: str) -> "Rate":
    if text == "fast":
        return "fast"
    if text == "event":
        return "event"
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"a rate of {text!r}", hint="fast, event, or a number of records a second") from None
