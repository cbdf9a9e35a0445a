"""What tables keep no longer, by the retention of their contracts, or of the stream that they are of.

Tables of a stream go by its clock, so that a replay of an old year keeps it. `changes` and `positions` are purged
behind a snapshot that serves the oldest time which is kept, and behind whoever still reads them:

    clock           day 500, retention 400 days: wanted are the days from 100 on
    snapshots       at the end of day 99 (position 7,000), each day after
    readers         a delivery at 6,000: the snapshot of day 80 (position 5,500) is the newest before it
    purged          files of days before 100, all of whose rows stand before 5,500; the delivery holds the others
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.history.snapshots import Snapshot, snapshots
from st_common.maintenance.readers import readers_of
from st_common.maintenance.stored import Stored
from st_common.operations.days import open_since
from st_common.position import segment_of
from st_common.tables.handle import required
from st_common.tables.purging import Mask

_PLACES = {"changes": "max.position", "positions": "max.segment"}

Purge = Callable[..., tables.Purged]

_SOME = 1  # the place that says of a table whose rows go by the day alone that some are gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What retention did to one table.

    Attributes:
        purged: what went.
        since: the first day that is kept; None: all are, for ever or because no day is closed yet.
        held_by: why days before it are kept all the same; "" for nothing.
    """

    purged: tables.Purged = field(default_factory=tables.Purged)
    since: date | None = None
    held_by: str = ""


def kept_days(stored: Stored, streams: Mapping[str, StreamSettings]) -> int | None:
    """How many days of a table are kept: by the settings of its stream, else by its contract; None: all.

    Args:
        stored: the table.
        streams: the settings by name.
    """
    stream = streams.get(stored.part or "")
    own: dict[str, int | None] = {}
    if stream is not None:
        own = {"positions": stream.positions_days, "changes": stream.changes_days}
    days = own.get(stored.contract.name)
    return stored.contract.retention_days if days is None else days


def retain(
    home: Home,
    stored: Stored,
    *,
    today: date,
    days: int | None,
    dry: bool = False,
    purge: Purge = tables.purge,
) -> Retained:
    """Takes out of a table what is older than some days.

    Args:
        home: the home folder.
        stored: the table.
        today: the day (UTC) by the wall clock, by which tables go that are of no stream.
        days: how many are kept, see `kept_days`; None: all.
        dry: only say what would go.
        purge: takes rows out of tables to which no stream appends, see `tables.purge`.

    Returns:
        What went; nothing where all is kept, or no day of the stream is closed.
    """
    clock = today if stored.part is None else open_since(home, stored.part)
    if days is None or clock is None:
        return Retained()
    since = clock - timedelta(days=days)
    if stored.part is not None and stored.contract.name in _PLACES:
        return _behind_a_snapshot(home, stored, stored.part, since, dry=dry)
    if stored.part is not None and stored.contract.name == "snapshots":
        purged = _thin(home, stored.part, stored.path, since, dry=dry)
    else:
        purged = purge(
            stored.path,
            lambda files: _old(files, stored, since),
            before=_SOME,
            dry=dry,
        )
    return Retained(purged=purged, since=since)


def _behind_a_snapshot(
    home: Home, stored: Stored, stream: str, since: date, *, dry: bool
) -> Retained:
    """Purges `changes` or `positions`, as far as a snapshot and all readers let it."""
    name, path = stored.contract.name, stored.path
    files = pa.table(required(path).get_add_actions(flatten=True))
    if not _days_before(files, since).any():
        return Retained(since=since)
    start = datetime.combine(since, time(), UTC)
    serving = [each for each in snapshots(home, stream) if each.from_ts <= start]
    if not serving:
        return Retained(
            since=since, held_by="no snapshot serves the first day that is kept"
        )
    wanted = serving[-1].position
    reader, place = min(
        readers_of(home, stream, name), key=lambda each: each[1], default=("", wanted)
    )
    held_by = f"{reader} stands at {place}" if place < wanted else ""
    behind = [each.position for each in serving if each.position <= place]
    if not behind:
        return Retained(since=since, held_by=held_by)
    column, before = _PLACES[name], max(behind)
    least = before if name == "changes" else segment_of(before)

    def is_gone(files: pa.Table) -> Mask:
        ends = pc.less(files[column], least).fill_null(False)  # noqa: FBT003, the value
        return np.asarray(_days_before(files, since) & ends.to_numpy(), bool)

    purged = tables.purge(path, is_gone, before=before, dry=dry)
    return Retained(purged=purged, since=since, held_by=held_by)


def _thin(
    home: Home, stream: str, path: Path, since: date, *, dry: bool
) -> tables.Purged:
    """Keeps one snapshot of each day before `since`, and none before what `changes` and `positions` still hold."""
    purged = [
        tables.purged_before(home.table(name, stream))
        for name in _PLACES
        if tables.exists(home.table(name, stream))
    ]
    gone = list(_not_needed(snapshots(home, stream), since, purged))
    positions = pa.array([each.position for each in gone], pa.int64())
    return tables.purge(
        path,
        lambda files: pc.is_in(files["min.position"], positions).to_numpy(),
        dry=dry,
    )


def _not_needed(
    taken: list[Snapshot], since: date, purged: list[int]
) -> Iterator[Snapshot]:
    """Those before all that is kept, and of older days all but the first; never one behind which a table was purged."""
    first, day = min(purged, default=0), None
    for each in taken:
        taken_on = each.snapshot_ts.astimezone(UTC).date()
        is_thinned = taken_on < since and taken_on == day
        if each.position not in purged and (each.position < first or is_thinned):
            yield each
        else:
            day = taken_on


def _old(files: pa.Table, stored: Stored, since: date) -> Mask:
    """Per file whether all of its rows are of before `since`, by the column that the contract names."""
    column = stored.contract.retention_by
    if column is None or column in stored.contract.partition_by:
        return _days_before(files, since)
    start = datetime.combine(since, time(), UTC)
    newest = files[f"max.{column}"].cast(pa.timestamp("us", "UTC"))
    return np.asarray(pc.less(newest, start).fill_null(False))  # noqa: FBT003, the value


def _days_before(files: pa.Table, since: date) -> Mask:
    """Per file whether its partition's day is before `since`."""
    column = next(
        name
        for name in files.column_names
        if name.startswith("partition.") and pa.types.is_date(files[name].type)
    )
    return np.asarray(pc.less(files[column], since).fill_null(False))  # noqa: FBT003, the value
