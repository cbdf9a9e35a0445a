"""`fairway check`: what a file or a feed is, and how well it can be read, before any of it goes into a log."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import (
    ObjectColumn,
    PlaceColumn,
    TimeColumn,
    XColumn,
    YColumn,
    named_columns,
)
from st_common.errors import ConfigError
from st_common.installed import place_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from st_common.detect.report import Detected
    from st_common.geometry.extent import Box

_FILE = Annotated[str, typer.Argument(metavar="FILE|URL", help="A file, or a feed.")]
_WRITE = Annotated[
    str | None,
    typer.Option(
        "--write", metavar="NAME", help="Write the settings as a stream of this name."
    ),
]
_STREAM = Annotated[
    str | None,
    typer.Option(
        "--stream", metavar="S", help="Try the settings of this stream instead."
    ),
]
_ATTRIBUTES = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS", help="Columns to keep, with commas between; or `all`."
    ),
]
_FOR = Annotated[
    float,
    typer.Option(
        "--for", metavar="SECONDS", min=0.1, help="How long a socket or - is read."
    ),
]


def check(
    ctx: typer.Context,
    file: _FILE,
    *,
    write: _WRITE = None,
    stream: _STREAM = None,
    object_column: ObjectColumn = None,
    time: TimeColumn = None,
    x: XColumn = None,
    y: YColumn = None,
    place: PlaceColumn = None,
    attributes: _ATTRIBUTES = None,
    seconds: _FOR = 5.0,
) -> None:
    """Say what a file or a feed is: format, columns, unit of time, system; five fixes, and why records are none."""
    from st_common.detect.report import source_to_toml, to_toml
    from st_common.detect.several import detect_any

    if write is not None and stream is not None:
        raise ConfigError("--write and --stream do not go together")
    named = named_columns(time=time, x=x, y=y, place=place)
    _check_alone(stream, {"object": object_column, **named, "--attributes": attributes})
    given = None if stream is None else context.stream(ctx, stream)
    kept = [] if attributes is None else [n.strip() for n in attributes.split(",")]
    seen = detect_any(
        place_of(file),
        given,
        owner=object_column,
        named=named,
        kept=kept,
        seconds=seconds,
    )
    name = write or "NAME"
    source = source_to_toml(name, file)
    settings = to_toml(name, seen.table) + source
    if given is None:
        typer.echo(settings)
    _tell(seen)
    _require_readable(seen)
    if write is not None:
        _require_known(seen, file)
        _write(ctx, write, settings)
        _go_on(ctx, write, file, seen, has_source=bool(source))


def _require_readable(seen: "Detected") -> None:
    """Raises where `replay` would refuse it."""
    if not seen.is_readable:
        raise ConfigError(
            f"{seen.place}: {seen.odd}"
            if seen.odd
            else f"of {seen.records:,} records of {seen.place} {seen.good:,} can be read",
            hint=f"{seen.mend}; settings can be tried with --stream",
        )


def _require_known(seen: "Detected", file: str) -> None:
    """Raises where settings would be written that nothing has shown."""
    if not seen.is_known:
        raise ConfigError(
            f"{file} has 0 records, so that nothing shows how its times are written",
            hint="write its settings when it has some, or by hand",
        )


def _check_alone(stream: str | None, others: "Mapping[str, str | None]") -> None:
    """Raises where columns are named beside a stream, whose settings name them."""
    from st_common.detect.report import OPTION_OF

    for key, value in others.items():
        if value is not None and stream is not None:
            option = OPTION_OF.get(key, key)
            raise ConfigError(f"{option} and --stream do not go together")


def _go_on(
    ctx: typer.Context, name: str, file: str, seen: "Detected", *, has_source: bool
) -> None:
    """Says which commands come next."""
    typer.echo(f"next: {_query(name, seen)}{context.at_home(ctx)}")
    typer.echo(f"then: {_records(ctx, name, file, has_source=has_source)}")


def _query(name: str, seen: "Detected") -> str:
    """The command that registers a first query: it tells what comes after it, and so stands before the records."""
    from st_common.query.grammar.words import quoted

    region = "" if seen.extent is None else f" INSIDE ({_sides(seen.extent)})"
    select = f"SELECT * FROM {quoted(name)}{region}"  # noqa: S608 - of our language
    text = f"REGISTER QUERY first AS {select}"
    return f"fairway query register --text {shlex.quote(text)}"


def _sides(extent: "Box") -> str:
    return ", ".join(f"{side:.10g}" for side in extent)


def _records(ctx: typer.Context, name: str, file: str, *, has_source: bool) -> str:
    from st_common.detect.head import is_address

    if has_source:
        return f"fairway capture {name}{context.at_home(ctx)}"
    if is_address(file):
        return "a source of kind http; the address may hold a key, so it is not written"
    return f"fairway replay {name} {file}{context.at_home(ctx)}"


def _tell(seen: "Detected") -> None:
    """Writes the first fixes, how many records are none and why, and what should be looked at."""
    from st_common.cli.output import write

    if len(seen.fixes):
        names = [n for n in seen.fixes.column_names if n not in ("row", "gone")]
        shown = seen.fixes.select(names)
        write(_with_times(shown, is_timeless=seen.is_timeless), "table")
    typer.echo("")
    if not seen.records:
        typer.echo(f"0 records: {seen.place} holds nothing but what stands around them")
        return
    typer.echo(f"{seen.good:,} of {seen.records:,} records looked at are fixes")
    for reason, count in seen.reasons.items():
        typer.echo(f"{count:,} are {reason}")
    if seen.extent is not None:
        more = "" if seen.is_whole else "; what was not looked at may lie elsewhere"
        typer.echo(f"all of them are INSIDE ({_sides(seen.extent)}){more}")
    for note in (*seen.notes, *seen.order):
        typer.echo(f"note: {note}", err=True)


def _with_times(fixes: "pa.Table", *, is_timeless: bool) -> "pa.Table":
    """Fixes whose times people can read; where no column has any, each has that of its arrival."""
    import pyarrow as pa

    at = fixes.schema.get_field_index("event_ts")
    times = fixes["event_ts"].cast(pa.timestamp("us", "UTC"))
    if is_timeless:
        times = pa.array(["arrival"] * len(fixes))
    return fixes.set_column(at, "event_ts", times)


def _write(ctx: typer.Context, name: str, text: str) -> None:
    """Adds a stream to the settings.

    Raises:
        ConfigError: there is one of that name, or the name is none.
    """
    from st_common.config.home import checked_name

    checked_name(name, "stream")
    path = context.conf(ctx) / "streams.toml"
    if path.is_file() and name in context.streams(ctx):
        raise ConfigError(
            f"{path} has a stream {name!r} already", hint="--write ANOTHER"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    gap = "\n" if before and not before.endswith("\n\n") else ""
    path.write_text(f"{before}{gap}{text}", encoding="utf-8")
    typer.echo(f"{path}: stream {name!r} is written")
