"""What engines told, as visits: folded from `changes`, beginning no earlier than a day needs.

changes     snapshot ----- before the day ----- | first change of the day ------------->
members     those of the snapshot, then folded  | who is in: they begin what is folded to visits
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.history.fold import MEMBERS, fold
from st_common.history.purged import kept_snapshot
from st_common.history.snapshots import members_of, snapshots
from st_common.history.stored import changes, parts
from st_common.history.visits import TOLD, came_in, fold_visits, needed
from st_common.operations.history import days_of
from st_common.tables.handle import newest

_DAY = timedelta(days=1)
_NO_FILES = pa.schema(
    [
        ("partition.event_date", pa.date32()),
        ("min.position", pa.int64()),
        ("max.position", pa.int64()),
    ]
).empty_table()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Where the changes of a day and of later ones begin.

    Attributes:
        position: of the first of them; all changes before it are older than the day.
        members: who was in before it, as rows that fit `visits_select`: each came in when it did, with the cause `day`.
    """

    position: int
    members: pa.Table


def begin_of(day: date) -> datetime:
    """When a day begins, UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def days_again(home: Home, stream: str) -> set[date]:
    """The days that were processed again.

    A day that came to no visits has no rows to be known by; where any were told of it, they are among the differences.
    """
    return {
        day
        for name in ("visits", "differences")
        for day in days_of(home.table(name, stream))
    }


def first_told(home: Home, stream: str) -> date | None:
    """The first day that `changes` tells wholly, nothing of it or before it being purged; None without changes.

    Raises:
        FairwayError: changes were purged, and there is no snapshot behind which they are all there.
    """
    path = home.table("changes", stream)
    days = days_of(path)
    if not days or not tables.purged_before(path):
        return days[0] if days else None
    kept_snapshot(home, stream, "changes")
    return _first_whole(home, stream)


def is_told(home: Home, stream: str, day: date) -> bool:
    """Whether `changes` tells a day wholly: nothing of it, or that it follows from, was purged."""
    first = _first_whole(home, stream)
    return first is not None and day >= first


def _first_whole(home: Home, stream: str) -> date | None:
    """The first day all of whose changes are kept, and a snapshot before it; None for none."""
    purged = tables.purged_before(home.table("changes", stream))
    if not purged:
        return date.min
    serving = [one for one in snapshots(home, stream) if one.position >= purged]
    return (serving[0].from_ts + _DAY).astimezone(UTC).date() if serving else None


def told_from(home: Home, stream: str, since: date) -> Told:
    """Where the changes of a day begin, and who was in before.

    Args:
        home: where the tables lie.
        stream: the name of the stream.
        since: the day; `date.min` has no day before it.

    Returns:
        Of a stream without changes, and of `date.min`, a place before all.

    Raises:
        FairwayError: changes from which it follows were purged.
    """
    path = home.table("changes", stream)
    if since == date.min or not tables.exists(path):
        return Told(position=0, members=came_in(MEMBERS.empty_table()))
    before = begin_of(since) - timedelta(microseconds=1)
    snapshot = kept_snapshot(home, stream, "changes", before)
    start = 0 if snapshot is None else snapshot.position
    end = _first_position(_files(path), since)
    members = members_of(home, stream, snapshot)
    for low, high in parts(path, start, end):
        members = fold(changes(home, stream, low, high), members)
    return Told(position=end, members=came_in(members))


def told_visits(home: Home, stream: str, since: date, until: date) -> pa.Table:
    """The visits of closed days as `changes` has them: rows of the contract `visits`.

    Args:
        home: where the tables lie.
        stream: the name of the stream.
        since: the first day.
        until: the day to stop before.

    Raises:
        FairwayError: changes from which they follow were purged.
    """
    told = told_from(home, stream, since)
    end = _end_position(_files(home.table("changes", stream)), until)
    rows = needed(changes(home, stream, told.position, end))
    visits = fold_visits(
        pa.concat_tables([told.members, rows]),
        since=begin_of(since),
        until=begin_of(until),
        run=TOLD,
    )
    is_of_days = pc.and_(
        pc.greater_equal(visits["event_date"], since),
        pc.less(visits["event_date"], until),
    )
    return visits.filter(is_of_days)


def _first_position(files: pa.Table, day: date) -> int:
    """The place of the first change of a day or a later one, from what files say of themselves."""
    first = pc.min(files.filter(_is_from(files, day))["min.position"]).as_py()
    return _end_position(files, day) if first is None else int(first)


def _end_position(files: pa.Table, day: date) -> int:
    """The place behind the last change of all days before one: event times need not rise along the log."""
    last = pc.max(files.filter(pc.invert(_is_from(files, day)))["max.position"]).as_py()
    return 0 if last is None else int(last) + 1


def _is_from(files: pa.Table, day: date) -> pa.ChunkedArray:
    return pc.greater_equal(files["partition.event_date"], day)


def _files(path: Path) -> pa.Table:
    """The files of a table of changes, with their days and the places of their first and last rows."""
    table = newest(path)
    if table is None:
        return _NO_FILES
    return pa.table(table.get_add_actions(flatten=True)).select(_NO_FILES.column_names)
