"""`fairway maintain`: compaction, retention and what was left behind, of everything that a home holds."""

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import typer

from st_common.cli import context
from st_common.cli.arguments import taking, told
from st_common.errors import TableError
from st_common.programs import MAINTAIN

if TYPE_CHECKING:
    from st_common.maintenance.leftovers import Cleared
    from st_common.maintenance.log_retention import LogRetained
    from st_common.maintenance.maintain import Maintained

_SHOWN = ("table", "files", "bytes", "joined", "rows purged", "deleted", "kept since")


@taking(MAINTAIN)
@told
def maintain(ctx: typer.Context, given: Namespace) -> None:
    """Make few files of many, purge what is too old, delete what no reader can want; also beside running streams."""
    from st_common.cli.output import write_columns
    from st_common.processes.upkeep import levels, maintain_all

    home, streams = context.home(ctx, must_exist=True), partial(context.streams, ctx)
    if given.levels:
        done = levels(home, streams, given)
        for name, rows in done["latest"].items():
            latest = "nothing new for latest" if rows is None else f"latest: {rows:,} rows"  # fmt: skip
            typer.echo(f"{name}: {latest}, {done['snapshots'][name]} snapshots taken")
        return
    maintained = maintain_all(home, context.conf(ctx), streams, given)
    write_columns(_SHOWN, [_row(one) for one in maintained.tables])
    for one in maintained.tables:
        if one.retained.held_by:
            typer.echo(f"{one.table}: older rows are kept: {one.retained.held_by}")
    for note in (*_of_logs(maintained.logs), *_of_cleared(maintained.cleared)):
        typer.echo(note)
    for line in maintained.refused:
        typer.echo(f"WRONG: {line}", err=True)
    if maintained.refused:
        raise typer.Exit(TableError.exit_code)


def _row(done: "Maintained") -> tuple[str, ...]:
    """What was done to a table, as its line shows it."""
    retained = done.retained
    return (
        done.table,
        f"{done.before.files:,} -> {done.after.files:,}",
        f"{done.before.bytes:,} -> {done.after.bytes:,}",
        f"{done.joined:,}",
        f"{retained.purged.rows:,}",
        f"{done.deleted:,}",
        "" if retained.since is None else retained.since.isoformat(),
    )


def _of_logs(logs: "list[LogRetained]") -> Iterator[str]:
    """What went of logs whose records are kept for `log_days`, and who holds the others."""
    for log in logs:
        what = f"{log.cut.segments:,} segments, {log.cut.bytes:,} bytes of records"
        yield f"log of {log.stream}: {what} purged, before {log.before}"
        if log.held_by:
            yield f"log of {log.stream}: older ones are kept: {log.held_by}"


def _of_cleared(cleared: "Cleared") -> Iterator[str]:
    """What went of that which nothing needs any more beside tables and logs."""
    counts = {
        "seeds of queries": cleared.seeds,
        "files of borders": cleared.borders,
        "days of lineage": cleared.lineage_files,
        "alerts": cleared.alerts,
        "files of reports": cleared.report_files,
    }
    for what, count in counts.items():
        if count:
            yield f"deleted: {count:,} {what}"
