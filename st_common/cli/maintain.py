"""`fairway maintain`: compaction, retention and what was left behind, of everything that a home holds."""

from argparse import Namespace
from typing import TYPE_CHECKING

import typer

from st_common.cli import context
from st_common.cli.arguments import taking, told
from st_common.config.streams import chosen, has_streams
from st_common.programs import MAINTAIN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from st_common.config.stream import StreamSettings


@taking(MAINTAIN)
@told
def maintain(ctx: typer.Context, given: Namespace) -> None:
    """Make few files of many, purge what is too old, delete what no reader can want; also beside running streams."""
    import time
    from datetime import UTC, datetime

    from st_common.cli.output import write_columns
    from st_common.maintenance.maintain import maintain as maintain_all
    from st_common.maintenance.maintain import upkeep_by

    if given.levels:
        _bring_up(ctx, given.stream)
        return
    now_us, purge = time.time_ns() // 1_000, given.purge
    today = datetime.fromtimestamp(now_us // 1_000_000, UTC).date()
    home, rows, notes = context.home(ctx, must_exist=True), [], []
    streams = _streams(ctx)
    with upkeep_by(home, given.engine) as upkeep_of:
        maintained = [
            *maintain_all(
                home, today=today, purge=purge, streams=streams, upkeep_of=upkeep_of
            )
        ]
    for done in maintained:
        retained = done.retained
        rows.append(
            (
                done.table,
                f"{done.before.files:,} -> {done.after.files:,}",
                f"{done.before.bytes:,} -> {done.after.bytes:,}",
                f"{done.joined:,}",
                f"{retained.purged.rows:,}",
                f"{done.deleted:,}",
                "" if retained.since is None else retained.since.isoformat(),
            )
        )
        if retained.held_by:
            notes.append(f"{done.table}: older rows are kept: {retained.held_by}")
    notes += _of_logs(ctx, now_us) if purge else []
    notes += _cleared(ctx, today) if purge else []
    write_columns(_SHOWN, rows)
    for note in notes:
        typer.echo(note)


_SHOWN = ("table", "files", "bytes", "joined", "rows purged", "deleted", "kept since")


def _bring_up(ctx: typer.Context, stream: str | None) -> None:
    """Brings `latest` up to date and takes snapshots; says of each stream what is new."""
    from st_common.history.taking import bring_up

    home = context.home(ctx, must_exist=True)
    done = bring_up(home, chosen(context.streams(ctx), stream))
    for name, rows in done["latest"].items():
        latest = "nothing new for latest" if rows is None else f"latest: {rows:,} rows"
        typer.echo(f"{name}: {latest}, {done['snapshots'][name]} snapshots taken")


def _streams(ctx: typer.Context) -> "Mapping[str, StreamSettings]":
    """The streams, where there are settings."""
    return context.streams(ctx) if has_streams(context.conf(ctx)) else {}


def _cleared(ctx: typer.Context, today: "date") -> list[str]:
    """Deletes what nothing needs any more beside tables and logs; says what went."""
    from st_common.maintenance.leftovers import clear_leftovers

    cleared = clear_leftovers(context.home(ctx), context.conf(ctx), today=today)
    counts = {
        "seeds of queries": cleared.seeds,
        "files of borders": cleared.borders,
        "days of lineage": cleared.lineage_files,
        "alerts": cleared.alerts,
        "files of reports": cleared.report_files,
    }
    return [f"deleted: {count:,} {what}" for what, count in counts.items() if count]


def _of_logs(ctx: typer.Context, now_us: int) -> list[str]:
    """Takes records out of logs that are kept for `log_days`; says what went, and who holds the others."""
    from st_common.maintenance.log_retention import retain_logs

    notes = []
    for log in retain_logs(context.home(ctx), _streams(ctx), now_us=now_us):
        what = f"{log.cut.segments:,} segments, {log.cut.bytes:,} bytes of records"
        notes.append(f"log of {log.stream}: {what} purged, before {log.before}")
        if log.held_by:
            notes.append(f"log of {log.stream}: older ones are kept: {log.held_by}")
    return notes
