"""`fairway quality rejects`, `replay-rejects`: records that could not be read, and once more after a mend."""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Json, Stream
from st_common.errors import one_line

if TYPE_CHECKING:
    from st_common.rejects.replay import Replayed


_REASON = Annotated[
    list[str] | None,
    typer.Option(
        "--reason",
        metavar="REASON",
        help="Only records rejected for this; may be given more than once.",
    ),
]
_DAY = Annotated[
    datetime | None,
    typer.Option(
        "--day",
        metavar="DAY",
        formats=["%Y-%m-%d"],
        help="Only those that came on this day (UTC).",
    ),
]
_SHOWN = 10
_TEXT = 60  # characters of a record


def list_rejects(
    ctx: typer.Context,
    stream: Stream,
    *,
    reason: _REASON = None,
    day: _DAY = None,
    every: Annotated[
        bool, typer.Option("--all", help="All of them, not the first ten of a reason.")
    ] = False,
    json_lines: Json = False,
) -> None:
    """List the records of a stream that could not be read: where they stand, why, and how they begin."""
    from st_common.cli.output import write_listing
    from st_common.rejects.listed import listed

    rows = listed(
        context.home(ctx, must_exist=True),
        context.stream(ctx, stream).name,
        reasons=reason or (),
        day=day.date() if day else None,
        most=None if every or json_lines else _SHOWN,
    )
    records = rows.records.to_pylist()
    for record in records:
        record["raw"] = record["raw"].decode("utf-8", "replace")
        record["arrival_ts"] = record["arrival_ts"].isoformat()
    names = ("segment", "row", "line", "reason", "record")
    cells = [
        (
            f"{record['segment']}",
            f"{record['row']}",
            "" if record["line"] is None else f"{record['line']}",
            record["reason"],
            _shown(record["raw"]),
        )
        for record in records
    ]
    write_listing(names, cells, records, json_lines=json_lines)
    if not json_lines:
        for name, count in rows.counts.items():
            typer.echo(f"{stream}: {count:,} are {name}")


def _shown(text: str) -> str:
    """How a record begins, on one line, with nothing in it that a terminal would obey."""
    plain = one_line(text)
    return plain if len(plain) <= _TEXT else f"{plain[: _TEXT - 1]}…"


def replay(
    ctx: typer.Context,
    stream: Stream,
    *,
    reason: _REASON = None,
    day: _DAY = None,
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
