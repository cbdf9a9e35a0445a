"""Statements from files, texts and standard input, and what they say on the terminal."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from st_common.cli import context
from st_common.cli.output import FileFormat, write_columns, write_listing
from st_common.cli.text_file import read_text
from st_common.config.home import DEFAULT_GROUP
from st_common.errors import ConfigError, QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from st_common.config.home import Home
    from st_common.config.stream import StreamSettings
    from st_common.query.area_store import NamedArea
    from st_common.query.control import QueryRow
    from st_common.query.past import Past
    from st_common.query.plan import Plan
    from st_common.query.problem import Problem
    from st_common.query.registry import Outcome
    from st_common.query.shown import ToShow
    from st_common.query.text import Statement


def statements_of(
    ctx: typer.Context,
    file: Path | None,
    text: str | None,
    params: Path | None = None,
) -> "Sequence[Statement]":
    """The statements of a file or of a text, of which one is given; there is at least one statement.

    With `params`, a file of CSV or Parquet, each statement with parameters becomes one for each row.

    Raises:
        TextError: with every place that cannot be understood, and with what does not fit its stream elsewhere.
        QueryError: `params` is no table.
    """
    from st_common.query.area_store import HomeAreas
    from st_common.query.parameter_table import read_table
    from st_common.query.registry import with_misfits
    from st_common.query.text import parse

    if (file is None) == (text is None):
        raise ConfigError(
            "statements come from a file or from --text",
            hint="name one of them; - is standard input",
        )
    if file is not None and " " in str(file) and not file.exists():
        # A statement where a file's name belongs is the likeliest slip of a first try.
        raise ConfigError(
            f"there is no file '{textwrap.shorten(str(file), 60, placeholder=' ..')}'",
            hint="a statement itself is given by --text",
        )
    content = read_text(file) if file is not None else text or ""
    name = None if file is None else "standard input" if str(file) == "-" else str(file)
    home = context.home(ctx)
    table = None if params is None else read_table(params)
    with with_misfits(home, lambda: context.streams(ctx)):
        statements = parse(
            content,
            file=name,
            areas=HomeAreas(home, lambda: context.streams(ctx)),
            params=table,
        )
    if not statements:
        raise QueryError(
            "the text has no statement",
            hint="REGISTER QUERY name AS SELECT * FROM stream ...",
        )
    return statements


def write_notices(notices: "Iterable[Problem]") -> None:
    """Tells on stderr how something was understood."""
    for notice in notices:
        typer.echo(f"note: {notice}", err=True)


def write_outcome(ctx: typer.Context, done: "Outcome") -> None:
    """Says what statements did, and shows what they asked for."""
    write_notices(done.notices)
    for op, verb in (
        ("register", "registered"),
        ("replace", "replaced"),
        ("follow", "gave another area to"),
        ("drop", "dropped"),
    ):
        names = [
            f"{row.name} (version {row.version})" for row in done.rows if row.op == op
        ]
        if names:
            typer.echo(f"{verb} {_few(names, 'queries')}")
    for verb, names in (
        ("created area", list(done.created)),
        ("replaced area", list(done.replaced)),
        ("dropped area", list(done.removed)),
        ("created stream", list(done.streams_created)),
        ("dropped stream", list(done.streams_dropped)),
        ("created table", list(done.tables_created)),
        ("dropped table", list(done.tables_dropped)),
    ):
        if names:
            typer.echo(
                f"{verb}{'s' if len(names) > 1 else ''} {_few(names, 'of them')}"
            )
    for number, shown in enumerate(done.shown):
        if number or done.did_something:
            typer.echo("")
        write_shown(ctx, shown)


def write_shown(ctx: typer.Context, shown: "ToShow") -> None:
    """Writes what a SHOW, an EXPLAIN or a SELECT alone asked for."""
    from st_common.query.shown import (
        Asked,
        Explained,
        ShownAreas,
        ShownQueries,
        ShownTables,
    )

    if isinstance(shown, Explained):
        write_explained(ctx, shown.name, shown.plan, analyze=shown.analyze)
    elif isinstance(shown, Asked):
        write_asked(ctx, shown.plan, shown.past, "table")
    elif isinstance(shown, ShownQueries):
        write_queries(shown.rows, context.streams(ctx))
    elif isinstance(shown, ShownAreas):
        write_areas(shown.areas)
    elif isinstance(shown, ShownTables):
        write_tables(context.home(ctx))
    else:
        rows = [
            (
                one.name,
                one.format,
                one.crs,
                "yes" if one.moving else "no",
                _attributes(one.attributes, one.units),
            )
            for one in shown.streams
        ]
        write_columns(("stream", "format", "crs", "moving", "attributes"), rows)


def write_asked(
    ctx: typer.Context, plan: "Plan", past: "Past | None", form: FileFormat
) -> None:
    """Who was in at a time, or the stays of an interval, day by day.

    Raises:
        QueryError: the stream has not come to the time.
        FairwayError: fixes that the answer follows from were purged.
    """
    from st_common.batch.asking import asked, shows_fields
    from st_common.cli.output import shown, write, write_growing, write_parquet
    from st_common.query.relations import source_of

    home = context.home(ctx, must_exist=True)
    stream = source_of(home, context.streams(ctx), plan)
    tables = asked(home, stream, plan, past)
    if form == "parquet":
        write_parquet(tables)
    elif past is None or past.since is None:
        write(shown(next(tables), form), form)
    elif form == "table" and not shows_fields(plan):
        write_growing((one.drop_columns("fields") for one in tables), form)
    else:
        write_growing(tables, form)


def write_queries(
    rows: "Sequence[QueryRow]",
    streams: "Mapping[str, StreamSettings]",
    *,
    json_lines: bool = False,
) -> None:
    """Queries as a table: name, version, stream, who registered it, its state, text; on stderr why some failed.

    A stream of another group than `default` has it before its name. With `json_lines` each is an object with these,
    with the `group`, null where no settings describe the stream, and with `why`.
    """
    names = ("query", "version", "stream", "owner", "state", "text")
    records = [
        {name: getattr(row, _OF_ROW.get(name, name)) for name in (*names, "why")}
        | {"group": streams[row.stream].group if row.stream in streams else None}
        for row in rows
    ]
    cells = [
        [" ".join(str(record[name] or "").split()) for name in names]
        for record in (_with_group(record) for record in records)
    ]
    write_listing(names, cells, records, json_lines=json_lines)
    for row in () if json_lines else rows:
        if row.why is not None:
            hint = f"REPLACE QUERY {row.name}, or drop it"
            typer.echo(f"note: query {row.name} failed: {row.why} ({hint})", err=True)


def _with_group(record: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """The record as the table shows it: a stream with its group, where that is one that people name."""
    stream, group = record["stream"], record["group"]
    is_named = group not in (None, DEFAULT_GROUP)
    return {**record, "stream": f"{group}.{stream}"} if is_named else record


_OF_ROW = {"query": "name"}


def write_areas(areas: "Sequence[NamedArea]") -> None:
    """Named areas as a table: name, who created it and when, region."""
    rows = [
        (area.name, area.owner, when(area.created_us), area.region.text())
        for area in areas
    ]
    write_columns(("area", "owner", "created", "region"), rows)


def write_tables(home: "Home", *, json_lines: bool = False) -> None:
    """Tables and layers: their rows, their key and columns, how many versions of a row stay and how long."""
    from st_common.layers.find import tables_shown

    shown = tables_shown(home)
    names = ("table", "version", "rows", "key", "columns", "versions", "ttl_s", "group")
    cells = [[one[name] for name in names] for one in shown]
    rows = [
        [
            ",".join(cell)
            if isinstance(cell, list)
            else str("" if cell is None else cell)
            for cell in row
        ]
        for row in cells
    ]
    write_listing(names, rows, shown, json_lines=json_lines)


def write_explained(
    ctx: typer.Context, name: str, plan: "Plan", *, analyze: bool = False
) -> None:
    """How a plan is carried out, as a tree.

    Args:
        ctx: the command.
        name: of its query, empty without one.
        plan: the plan.
        analyze: whether it is run over the archived fixes, to count what goes through its operators.

    Raises:
        ConfigError: no settings describe its stream, or the stream that is to be counted never ran.
    """
    from st_common.answers.estimates import explained, explained_by_counts
    from st_common.query.explain import lines

    stream = context.streams(ctx).get(plan.stream)
    if stream is None:
        raise ConfigError(
            f"unknown stream {plan.stream!r}",
            hint="conf/streams.toml describes the streams",
        )
    home = context.home(ctx)
    explaining = explained_by_counts if analyze else explained
    for line in lines(explaining(home, stream, name, plan)):
        typer.echo(line)


def when(time_us: int) -> str:
    """A time in microseconds as ISO 8601 to the second, UTC."""
    from datetime import UTC, datetime

    return (
        datetime.fromtimestamp(time_us / 1e6, UTC)
        .isoformat(timespec="seconds")
        .replace("+00:00", "Z")
    )


def _attributes(attributes: "Iterable[str]", units: "Mapping[str, str]") -> str:
    return ", ".join(
        f"{name} ({units[name]})" if name in units else name for name in attributes
    )


def _few(names: "Sequence[str]", what: str) -> str:
    return (
        ", ".join(names)
        if len(names) <= 3
        else f"{len(names)} {what}, {names[0]} to {names[-1]}"
    )
