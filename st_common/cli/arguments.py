"""Arguments and options that several commands share: one name, one help text."""

from typing import Annotated

import typer

from st_common.cli.output import Format

Stream = Annotated[
    str,
    typer.Argument(metavar="STREAM", help="The name of a stream in conf/streams.toml."),
]
QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="The name of a query.")]
Form = Annotated[
    Format,
    typer.Option(
        "--format", help="A table for people, JSON lines or CSV for programs."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON lines, for programs.")]
JsonLines = Annotated[
    bool, typer.Option("--json", help="JSON lines: the same as --format jsonl.")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Say on standard error which rows were read.")
]
Follow = Annotated[
    bool,
    typer.Option("--follow", help="Go on: show changes as they are committed."),
]
ForSeconds = Annotated[
    float | None,
    typer.Option(
        "--for", metavar="SECONDS", min=0, help="With --follow: end after this time."
    ),
]
UntilIdle = Annotated[
    bool,
    typer.Option(
        "--until-idle",
        help="With --follow: end when the engines have done what the logs hold.",
    ),
]
ObjectColumn = Annotated[
    str | None,
    typer.Option(
        "--object", metavar="COLUMN", help="The column of objects, if its name is rare."
    ),
]
TimeColumn = Annotated[
    str | None, typer.Option("--time", metavar="COLUMN", help="The column of times.")
]
XColumn = Annotated[
    str | None,
    typer.Option("--x", metavar="COLUMN", help="The column of x, or longitude."),
]
YColumn = Annotated[
    str | None,
    typer.Option("--y", metavar="COLUMN", help="The column of y, or latitude."),
]
PlaceColumn = Annotated[
    str | None,
    typer.Option(
        "--place", metavar="COLUMN", help="The column of points, in place of x and y."
    ),
]


def named_columns(
    *,
    time: str | None = None,
    x: str | None = None,
    y: str | None = None,
    place: str | None = None,
) -> dict[str, str]:
    """The columns that options name, by their keys in a stream's `columns`; without the one of objects."""
    given = {"event_ts": time, "x": x, "y": y, "place": place}
    return {key: name for key, name in given.items() if name is not None}
