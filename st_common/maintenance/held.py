"""What a home keeps beyond its retention, and for whom; and what could go at the next maintenance."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import TableError
from st_common.layers.table import layer_names
from st_common.log.log import Log
from st_common.log.log_purging import arrived_before, to_cut
from st_common.maintenance.layer_retention import needed_versions, retain_layer
from st_common.maintenance.log_retention import retain_logs
from st_common.maintenance.retention import kept_days, retain
from st_common.maintenance.stored import stored_tables

_MIB = 1 << 20
_US_PER_DAY = 86_400_000_000
_OLD_DAYS = 30


def held(
    home: Home, streams: Mapping[str, StreamSettings], *, now_us: int
) -> Iterator[str]:
    """Looks at every table and log of a home; nothing is changed.

    Args:
        home: the home folder.
        streams: the settings by name.
        now_us: now, us UTC.

    Yields:
        A line for people for each table, layer and log of which something could go, or is held by somebody:

            positions/taxis: 1,210.5 MiB in 12 files could go: fairway maintain
            changes/taxis: rows before 2024-05-03 are kept: delivery slow stands at 12
            log of taxis: 3,120.4 MiB of records are older than 30 days; none go without log_days
            layers/parks: old versions are kept: stream taxis needs version 3
    """
    today = datetime.fromtimestamp(now_us / 1e6, UTC).date()
    yield from _of_tables(home, streams, today)
    yield from _of_layers(home, today)
    for log in retain_logs(home, streams, now_us=now_us, purge=False):
        if log.cut.segments:
            what = f"{log.cut.bytes / _MIB:,.1f} MiB in {log.cut.segments:,} segments"
            yield f"log of {log.stream}: {what} could go: fairway maintain"
        if log.held_by:
            yield f"log of {log.stream}: older records are kept: {log.held_by}"
    yield from _of_logs_for_ever(home, streams, now_us=now_us)


def _of_logs_for_ever(
    home: Home, streams: Mapping[str, StreamSettings], *, now_us: int
) -> Iterator[str]:
    """Logs whose records never go, once some of these are old: nobody shall find that out by a full disk."""
    old_us = now_us - _OLD_DAYS * _US_PER_DAY
    for stream in streams.values():
        log = Log(home.log(stream.name))
        if stream.log_days is None and log.end():
            old = to_cut(log, arrived_before(log, old_us))
            if old.segments:
                what = f"{old.bytes / _MIB:,.1f} MiB of records"
                yield (
                    f"log of {stream.name}: {what} are older than {_OLD_DAYS} days; "
                    "none go without log_days"
                )


def _of_tables(
    home: Home, streams: Mapping[str, StreamSettings], today: date
) -> Iterator[str]:
    for stored in stored_tables(home):
        days = kept_days(stored, streams)
        try:
            retained = retain(home, stored, today=today, days=days, dry=True)
        except TableError as error:  # which stands among what is wrong
            yield f"{stored.label}: not known: {error.message}"
            continue
        purged = retained.purged
        if purged.files:
            what = f"{purged.bytes / _MIB:,.1f} MiB in {purged.files:,} files"
            yield f"{stored.label}: {what} could go: fairway maintain"
        if retained.held_by:
            since = f"rows before {retained.since} are kept"
            yield f"{stored.label}: {since}: {retained.held_by}"


def _of_layers(home: Home, today: date) -> Iterator[str]:
    needed = needed_versions(home)
    for layer in layer_names(home):
        kept = retain_layer(home, layer, needed, today=today, dry=True)
        gone = kept.dropped
        if gone.files:
            what = f"{gone.bytes / _MIB:,.1f} MiB in {gone.files:,} files"
            yield f"layers/{layer}: {what} of old versions could go: fairway maintain"
        if kept.held_by:
            yield f"layers/{layer}: old versions are kept: {kept.held_by}"
