"""`fairway rejects`: records that could not be read, once more after a mend."""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Json, Stream

if TYPE_CHECKING:
    from st_common.rejects.replay import Replayed


def replay(
    ctx: typer.Context,
    stream: Stream,
    *,
    reason: Annotated[
        list[str] | None,
        typer.Option(
            "--reason",
            metavar="REASON",
            help="Only records rejected for this; may be given more than once.",
        ),
    ] = None,
    day: Annotated[
        datetime | None,
        typer.Option(
            "--day",
            metavar="DAY",
            formats=["%Y-%m-%d"],
            help="Only those that came on this day (UTC).",
        ),
    ] = None,
    json_lines: Json = False,
) -> None:
    """Put rejected records into the stream's log again that its settings of now can read, each once."""
    from st_common.rejects.replay import replay_rejects

    done = replay_rejects(
        context.home(ctx, must_exist=True),
        context.stream(ctx, stream),
        reasons=reason or (),
        day=day.date() if day else None,
    )
    if json_lines:
        from st_common.cli.output import write_listing

        write_listing((), (), [{"stream": stream, **asdict(done)}], json_lines=True)
        return
    for line in _lines(done):
        typer.echo(f"{stream}: {line}")


def _lines(done: "Replayed") -> list[str]:
    """What became of the records, a line each."""
    lines = [f"{done.records:,} rejected records"]
    if done.before:
        lines.append(f"{done.before:,} went into the log before")
    if done.again:
        count = len(done.segments)
        where = f"in {count:,} segments, from {done.segments[0]} on"
        lines.append(f"{done.again:,} go into the log again, {where}")
    stay = sum(done.stay.values())
    by_reason = ", ".join(f"{n:,} {reason}" for reason, n in done.stay.items())
    lines.append(f"{stay:,} stay rejected" + (f": {by_reason}" if stay else ""))
    lines += [
        f"{n:,} of these could not be judged: {why}" for why, n in done.beyond.items()
    ]
    return lines
