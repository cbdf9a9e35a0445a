"""Snapshots: what a stream's log came to before a place in it, made from the snapshot before and what came since.

A snapshot at `position` holds the last fix of every object and the members of every answer after all rows before it.
Questions about a time T start from the newest snapshot with `from_ts` <= T: everything that it holds happened by then,
so what else counts stands at `position` or later.
"""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.history.fold import MEMBERS
from st_common.history.world import LAST
from st_common.tables.handle import newest


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


def event_times(home: Home, stream: str, snapshot: Snapshot) -> pa.Table:
    """The event times of the last fixes that a snapshot holds: the column `event_ts`."""
    return _rows(home, stream, snapshot, "object", ["event_ts"])


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


def rows_of(snapshot: Snapshot, objects: pa.Table, members: pa.Table) -> pa.Table:
    """The rows of the table, objects after answers, so that a reader of one query's answer skips all else.

    Args:
        snapshot: which one they are of.
        objects: rows of `LAST`, sorted by object.
        members: rows of `MEMBERS`, in any order.
    """
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
        (as_object, "object"),
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
