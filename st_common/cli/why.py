"""`fairway why`: one change, explained."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from st_common.cli import context
from st_common.cli.arguments import QueryName
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from st_common.answers.batch import Batch
    from st_common.checks.sentences import Fix
    from st_common.checks.why import Filtered, Why
    from st_common.config.stream import StreamSettings


def why(
    ctx: typer.Context,
    query: QueryName,
    name: Annotated[
        str,
        typer.Argument(
            metavar="OBJECT", help="The id of an object, or the group of an aggregate."
        ),
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="T",
            help="The newest change up to this time: ISO 8601, UTC.",
        ),
    ] = None,
    partner: Annotated[
        str | None,
        typer.Option("--partner", metavar="P", help="Only changes with this partner."),
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object, for programs.")
    ] = False,
) -> None:
    """Explain the newest change of an object in an answer: fix, query, layer, tick, batch and cause."""
    from st_common.checks.why import why as why_of
    from st_common.cli.past import time_of
    from st_common.query.lookup import find

    home = context.home(ctx, must_exist=True)
    stream = _settings(ctx, find(home, query).stream)
    reason = why_of(
        home,
        query,
        name,
        at=None if at is None else time_of(at),
        partner=partner,
        stream=stream,
    )
    if as_json:
        typer.echo(json.dumps(reason.to_json(), ensure_ascii=False))
    else:
        _write(reason)


def _settings(ctx: typer.Context, stream: str) -> "StreamSettings | None":
    """The stream's settings, where there are some: they make the explanation better, it stands without them."""
    try:
        return context.streams(ctx).get(stream)
    except ConfigError:
        return None


def _write(reason: "Why") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
    console.print(Text(reason.sentence, style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _lines(reason):
        grid.add_row(label, Text(text))
    console.print(grid)


def _lines(reason: "Why") -> list[tuple[str, str]]:
    return [
        *_change(reason),
        ("fix", _fix(reason.fix) if reason.fix else _no_fix(reason)),
        *_evidence(reason),
        *_fixes("focal", reason.focals),
        *_fixes("newcomer", reason.newcomers),
        *_query(reason),
    ]


def _change(reason: "Why") -> Iterator[tuple[str, str]]:
    """What the row of the change says, and which batch brought it."""
    change = reason.change
    told = f"{change['sign']:+d} {change['cause']} at {_time(change['event_ts'])}"
    yield "change", told
    yield (
        "place",
        f"position {change['position']} (segment {change['segment']}, row {change['row']}), "
        f"seq {change['seq']}, of stream {reason.stream}",
    )
    yield "batch", _batch(reason.batch)
    if change["value"] is not None:
        yield "value", f"{change['value']:.10g}"
    if change["fields"] is not None:
        yield "fields", change["fields"]


def _evidence(reason: "Why") -> Iterator[tuple[str, str]]:
    """Beside the fix: what was filtered since then, the feature of the layer, the tick."""
    if reason.filtered is not None:
        yield "filtered", _filtered(reason.filtered)
    if reason.joined is not None:
        yield "layer", _layer(reason)
    if reason.tick is not None:
        yield "tick", _time(reason.tick)


def _fixes(what: str, fixes: "Mapping[str, Fix | None]") -> Iterator[tuple[str, str]]:
    """The fixes of other objects, by their ids."""
    for name, fix in fixes.items():
        yield f"{what} {name}", _fix(fix) if fix else "no fix known"


_HOW = {"register": "registered", "follow": "follows an area that was replaced"}
_FOLLOWS_LAYER = "follows a feature of {}, which was loaded anew,"


def _query(reason: "Why") -> list[tuple[str, str]]:
    from st_common.query.printed import to_text

    row, name = reason.registered, reason.change["query"]
    if row is None:
        return [
            (
                "query",
                f"{name}, version {reason.change['query_version']}: no log knows its registration",
            )
        ]
    how = _HOW.get(row.op, "replaced an older one")
    how = how if row.layer is None else _FOLLOWS_LAYER.format(row.layer)
    newest = (
        ""
        if reason.newest == row.version
        else f"; the newest is version {reason.newest}"
    )
    by = f"{how} by {row.owner or 'unknown'} at position {row.position}"
    return [
        ("query", f"{name}, version {row.version}, {by}{newest}"),
        ("text", " ".join((row.text or "").split())),
        ("plan", to_text(row.plan, row.name) if row.plan is not None else "unknown"),
    ]


def _batch(batch: "Batch") -> str:
    if batch.journal:
        return "in the journal: no version of the table has it yet"
    if batch.version is not None:
        span = f"positions {batch.from_position} to {batch.through_position}"
        return f"version {batch.version} of the table, committed at {_time(batch.committed_ts)}: {span}"
    if batch.file is not None:
        return f"file {batch.file}, written at {_time(batch.written_ts)}: the commit's log is kept no more"
    return "unknown"


def _fix(fix: "Fix") -> str:
    where = "gone" if fix.gone else f"({fix.x:.10g}, {fix.y:.10g})"
    attributes = "".join(
        f", {name} {value}"
        for name, value in fix.attributes.items()
        if value is not None
    )
    return f"{_time(fix.event_ts)} {where}{attributes}; segment {fix.segment}, row {fix.row}"


def _filtered(filtered: "Filtered") -> str:
    from st_common.checks.sentences import why_filtered

    count = "1 fix" if filtered.count == 1 else f"{filtered.count:,} fixes"
    reason = why_filtered(filtered.reason, filtered.value)
    return f"{count} since then; the last: {reason}: {_fix(filtered.fix)}"


def _no_fix(reason: "Why") -> str:
    plan = reason.registered.plan if reason.registered else None
    if plan is not None and plan.aggregate is not None:
        return "none: the row is of a group"
    return "not archived yet, or kept no more"


def _layer(reason: "Why") -> str:
    joined = reason.joined
    if joined is None:
        return ""
    version = "" if joined.version is None else f", version {joined.version}"
    named = joined.tags.get("name")
    feature = f": {joined.fid}" if joined.fid else ""
    about = ", ".join(part for part in (joined.kind, named) if part)
    return f"{joined.layer}{version}{feature}{f' ({about})' if about else ''}"


def _time(time: Any) -> str:
    from st_common.checks.sentences import moment

    return moment(time)
