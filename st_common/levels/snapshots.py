"""Snapshots: what a stream's log came to before a place in it, made from the snapshot before and what came since.

A snapshot at `position` holds the last fix of every object and the members of every answer after all rows before it.
Questions about a time T start from the newest snapshot with `from_ts` <= T: everything that it holds happened by then,
so what else counts stands at `position` or later.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.contracts import load_contract
from st_common.errors import FairwayError
from st_common.home import Home
from st_common.levels.due import due, multiple_us
from st_common.levels.fold import MEMBERS, fold
from st_common.levels.stored import archived_end, changes, fixes, parts
from st_common.levels.world import COLUMNS, LAST, last_fixes
from st_common.settings import StreamSettings
from st_common.tables.handle import newest

APP = "snapshots"
_ENGINE = "engine"
_STAMP = pa.timestamp("us", tz="UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Which snapshot of a stream it is.

    Attributes:
        snapshot_ts: its time: the first multiple of `snapshot_s` that the clock was not past.
        position: it holds what all rows of the log before this position came to.
        from_ts: the largest event time in it, rounded up to milliseconds: it serves questions about that time and
            later.
    """

    snapshot_ts: datetime
    position: int
    from_ts: datetime


def snapshots(home: Home, stream: str) -> list[Snapshot]:
    """The snapshots of a stream in log order, from the table's log alone: their rows are not read."""
    table = newest(home.table("snapshots", stream))
    actions = pa.table(table.get_add_actions(flatten=True)) if table else None
    if actions is None or not len(actions):
        return []
    columns = ("partition.snapshot_ts", "min.position", "min.from_ts")
    rows = zip(*(actions[name].to_pylist() for name in columns), strict=True)
    by_number = {
        row[1]: Snapshot(snapshot_ts=row[0], position=row[1], from_ts=row[2])
        for row in rows
        if None not in row
    }
    return [by_number[position] for position in sorted(by_number)]


def newest_snapshot(
    home: Home, stream: str, at: datetime | None = None
) -> Snapshot | None:
    """The newest snapshot that a question about a time may start from.

        snapshots from 10:00 and 11:00 on; a question about 10:30   ->   the first one, and what came after it

    Args:
        home: where the tables lie.
        stream: the stream.
        at: the time, with a time zone; None: the newest of all.

    Returns:
        None when there is none: the question is answered from the log's beginning.
    """
    usable = [
        each for each in snapshots(home, stream) if at is None or each.from_ts <= at
    ]
    return usable[-1] if usable else None


def objects_of(home: Home, stream: str, snapshot: Snapshot | None) -> pa.Table:
    """The last fixes that a snapshot holds, as rows of `LAST`, gone objects included.

    Args:
        home: where the tables lie.
        stream: the stream.
        snapshot: None holds nothing.
    """
    if snapshot is None:
        return LAST.empty_table()
    names = ["since_position" if name == "position" else name for name in LAST.names]
    return (
        _rows(home, stream, snapshot, "object", names)
        .rename_columns(LAST.names)
        .cast(LAST)
    )


def members_of(
    home: Home, stream: str, snapshot: Snapshot | None, query: str | None = None
) -> pa.Table:
    """The members of all answers that a snapshot holds, as rows of `MEMBERS`.

    Args:
        home: where the tables lie.
        stream: the stream.
        snapshot: None holds nothing.
        query: of this query alone; None: of all.
    """
    if snapshot is None:
        return MEMBERS.empty_table()
    renamed = {"position": "since_position", "since_ts": "event_ts"}
    names = [renamed.get(name, name) for name in MEMBERS.names]
    return (
        _rows(home, stream, snapshot, "answer", names, query)
        .rename_columns(MEMBERS.names)
        .cast(MEMBERS)
    )


def take_snapshot(home: Home, stream: StreamSettings, at_position: int) -> Snapshot:
    """The snapshot before a place in the log, taken now unless it is there.

    It reads the snapshot before it, the fixes and the changes since, and nothing older. Taking one twice gives the
    same rows once: the table remembers `at_position` with them.

    Args:
        home: where the tables lie.
        stream: the settings of the stream, with `snapshot_s`.
        at_position: what stands before this position is held; engine and archive have committed all of it.

    Raises:
        FairwayError: the stream has no `snapshot_s`, engine or archive have not come so far, nothing is there to be
            held, or a later snapshot was taken.
    """
    taken = snapshots(home, stream.name)
    if taken and taken[-1].position == at_position:
        return taken[-1]
    before = taken[-1] if taken else None
    _check(home, stream, at_position, before)
    objects = _objects(home, stream.name, before, at_position)
    if not len(objects):
        raise FairwayError(
            f"stream {stream.name!r} has no fix before {at_position}",
            hint="there is nothing to hold",
        )
    members, changed_us = _members(home, stream.name, before, at_position)
    snapshot = _header(stream, at_position, objects, changed_us, before)
    path, rows = (
        home.table("snapshots", stream.name),
        _as_rows(snapshot, objects, members),
    )
    tables.append(path, rows, load_contract("snapshots"), app=APP, version=at_position)
    return snapshot


def take_due(
    home: Home, stream: StreamSettings, *, most: int | None = None
) -> list[Snapshot]:
    """Takes the snapshots that are due (see `due`) and not yet taken, and gives them in the order of the log.

    Args:
        home: where the tables lie.
        stream: the settings; without `snapshot_s` none is ever due.
        most: how many at most; None: all.
    """
    taken: list[Snapshot] = []
    for position in _due(home, stream):
        if most is not None and len(taken) >= most:
            break
        taken.append(take_snapshot(home, stream, position))
    return taken


def _due(home: Home, stream: StreamSettings) -> Iterator[int]:
    if stream.snapshot_s is None:
        return
    before = newest_snapshot(home, stream.name)
    start, highest = 0, None
    if before is not None:
        start = before.position + 1
        at_it = fixes(
            home, stream.name, before.position, start, ("event_ts",), accepted=False
        )  # it brought the clock past the multiple
        highest = max(
            map(
                _latest_us,
                [
                    objects_of(home, stream.name, before),
                    *([at_it] if len(at_it) else []),
                ],
            )
        )
    yield from due(
        home,
        stream.name,
        start=start,
        end=_reached(home, stream.name),
        highest_us=highest,
        lateness_us=_us(stream.lateness_s),
        every_us=_us(stream.snapshot_s),
    )


def _reached(home: Home, stream: str) -> int:
    """The place in the log up to which the archive and the engine have committed everything."""
    engine = tables.committed(home.table("changes", stream), _ENGINE)
    return 0 if engine is None else min(engine + 1, archived_end(home, stream))


def _check(
    home: Home, stream: StreamSettings, at_position: int, before: Snapshot | None
) -> None:
    if stream.snapshot_s is None:
        raise FairwayError(
            f"stream {stream.name!r} takes no snapshots",
            hint="set snapshot_s in conf/streams.toml",
        )
    reached = _reached(home, stream.name)
    if at_position > reached:
        raise FairwayError(
            f"stream {stream.name!r} is committed up to {reached}, not to {at_position}",
            hint=f"`fairway run {stream.name}` first",
        )
    if before is not None and at_position < before.position:
        raise FairwayError(
            f"a snapshot at {before.position} is there, after {at_position}",
            hint="they go forward",
        )


def _objects(home: Home, stream: str, before: Snapshot | None, end: int) -> pa.Table:
    objects = objects_of(home, stream, before)
    for low, high in parts(
        home.table("positions", stream), before.position if before else 0, end
    ):
        objects = last_fixes(objects, fixes(home, stream, low, high, COLUMNS))
    return objects


def _members(
    home: Home, stream: str, before: Snapshot | None, end: int
) -> tuple[pa.Table, int | None]:
    """The members before a place in the log, and the largest event time of a change since the snapshot before."""
    members, latest_us = members_of(home, stream, before), None
    for low, high in parts(
        home.table("changes", stream), before.position if before else 0, end
    ):
        rows = changes(home, stream, low, high)
        if len(rows):
            members = fold(rows, members)
            latest_us = (
                _latest_us(rows)
                if latest_us is None
                else max(_latest_us(rows), latest_us)
            )
    return members, latest_us


def _latest_us(rows: pa.Table) -> int:
    return int(pc.max(rows["event_ts"].cast(pa.int64())).as_py())


def _header(
    stream: StreamSettings,
    position: int,
    objects: pa.Table,
    changed_us: int | None,
    before: Snapshot | None,
) -> Snapshot:
    highest_us = _latest_us(objects)
    # whole milliseconds: some writers cut instants in a table's log to them
    from_ts = _time(
        multiple_us(
            max(highest_us, highest_us if changed_us is None else changed_us), 1000
        )
    )
    return Snapshot(
        snapshot_ts=_time(
            multiple_us(
                highest_us - _us(stream.lateness_s), _us(stream.snapshot_s or 1.0)
            )
        ),
        position=position,
        from_ts=from_ts if before is None else max(from_ts, before.from_ts),
    )


def _as_rows(snapshot: Snapshot, objects: pa.Table, members: pa.Table) -> pa.Table:
    """The rows of the table, objects after answers, so that a reader of one query's answer skips all else."""
    schema = load_contract("snapshots").arrow_schema()
    as_object = objects.rename_columns(
        ["since_position" if n == "position" else n for n in objects.column_names]
    )
    renamed = {"position": "since_position", "since_ts": "event_ts"}
    as_answer = members.rename_columns(
        [renamed.get(name, name) for name in members.column_names]
    )
    order = [("query", "ascending"), ("object", "ascending"), ("partner", "ascending")]
    both = [
        (as_answer.sort_by(order), "answer"),
        (as_object.sort_by("object"), "object"),
    ]
    return pa.concat_tables(
        [_filled(rows, kind, snapshot, schema) for rows, kind in both]
    )


def _filled(
    rows: pa.Table, kind: str, snapshot: Snapshot, schema: pa.Schema
) -> pa.Table:
    same = {
        "snapshot_ts": snapshot.snapshot_ts,
        "position": snapshot.position,
        "from_ts": snapshot.from_ts,
    }
    n = len(rows)
    columns = [
        rows[field.name]
        if field.name in rows.column_names and field.name not in same
        else pa.repeat(
            pa.scalar((same | {"kind": kind}).get(field.name), field.type), n
        )
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _rows(
    home: Home,
    stream: str,
    snapshot: Snapshot,
    kind: str,
    columns: list[str],
    query: str | None = None,
) -> pa.Table:
    filters = [
        ("snapshot_ts", "=", snapshot.snapshot_ts),
        ("position", "=", snapshot.position),
        ("kind", "=", kind),
    ]
    if query is not None:
        filters.append(("query", "=", query))
    return tables.read(
        home.table("snapshots", stream), columns=columns, filters=filters
    )


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
