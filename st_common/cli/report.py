"""`fairway report`: the page of a home as one file, as it was between two times."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from st_common.cli import context
from st_common.cli.past import time_of
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from st_common.server.place import Place

_SPAN = timedelta(hours=1)


def report(
    ctx: typer.Context,
    page: Annotated[
        Path,
        typer.Argument(metavar="PAGE", help="The file to write, such as day.html."),
    ],
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="From when on; else an hour before the end."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TIME", help="Up to when; else up to the newest fix."
        ),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            "--stream", metavar="S", help="Only this stream; may be given again."
        ),
    ] = None,
) -> None:
    """Write the page with map, answers and changes between two times as one file, which needs no server."""
    from st_common.server.app import application
    from st_common.server.place import Place
    from st_common.server.recording import (
        Recorder,
        known_state,
        record_all,
        write_report,
    )

    home = context.home(ctx, must_exist=True)
    place = Place(home=home, conf=context.conf(ctx), only=tuple(stream or ()))
    app = application(place, version=metadata.version("fairway"))
    recorder = Recorder(app)
    try:
        state = _state(known_state(recorder, list(place.served())), place)
        begin, end = _between(state, since, until)
        record_all(recorder, home, state, begin, end)
    finally:
        recorder.close()
        app.state.server.kept.close()
    made = datetime.fromtimestamp(time.time_ns() // 1_000_000_000, UTC)
    size = write_report(page, recorder, since=begin, until=end, made=made)
    typer.echo(
        f"{page}: {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC, {size:,} bytes"
    )


def _state(told: dict[str, Any], place: "Place") -> dict[str, Any]:
    """The state of the streams that are reported about, and of what belongs to them.

    Raises:
        ConfigError: there is none.
    """
    only = set(place.only)
    streams = [one for one in told["streams"] if not only or one["name"] in only]
    missing = only - {one["name"] for one in streams}
    if missing or not streams:
        raise ConfigError(
            f"there is no stream {min(missing, default='to report about')!r}"
        )
    named = {one["name"] for one in streams}
    queries = [one for one in told["queries"] if one["stream"] in named]
    return {**told, "streams": streams, "queries": queries}


def _between(
    state: Mapping[str, Any], since: str | None, until: str | None
) -> tuple[datetime, datetime]:
    """Beginning and end of a report.

    Raises:
        ConfigError: a time cannot be read, nothing was archived yet, or the end is not behind the beginning.
    """
    known = [one["latest_event_ts"] for one in state["streams"]]
    newest = max((time_of(one) for one in known if one is not None), default=None)
    end = newest if until is None else time_of(until, "--to")
    if end is None:
        raise ConfigError("no stream has a fix yet", hint="--from and --to say when")
    begin = end - _SPAN if since is None else time_of(since, "--from")
    if begin >= end:
        raise ConfigError(f"--from {begin.isoformat()} is not before {end.isoformat()}")
    return begin, end
