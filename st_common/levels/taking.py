"""Taking snapshots: each is made from the one before and what came since, in memory where many are due."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.contracts import load_contract
from st_common.errors import FairwayError
from st_common.home import Home
from st_common.levels.due import due, multiple_us
from st_common.levels.fold import fold
from st_common.levels.snapshots import (
    Snapshot,
    members_of,
    newest_snapshot,
    objects_of,
)
from st_common.levels.stored import ROWS, archived_end, changes, fixes, parts
from st_common.levels.world import COLUMNS, last_fixes
from st_common.operators.state.fixes import NEVER
from st_common.settings import StreamSettings

_APP = "snapshots"
_ENGINE = "engine"
_S = TypeVar("_S")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    before = newest_snapshot(home, stream.name)
    if before is not None and before.position == at_position:
        return before
    _check(home, stream, at_position, before)
    return _take(home, stream, before, [at_position])[0]


def take_due(
    home: Home, stream: StreamSettings, *, most: int | None = None
) -> list[Snapshot]:
    """Takes the snapshots that are due (see `due`) and not yet taken, and gives them in the order of the log.

    Those of a backlog are made one from the other in memory: the table is read once, and written once for many.

    Args:
        home: where the tables lie.
        stream: the settings; without `snapshot_s` none is ever due.
        most: how many at most; None: all.
    """
    before = newest_snapshot(home, stream.name)
    places = list(islice(_due(home, stream, before), most))
    return _take(home, stream, before, places) if places else []


def _take(
    home: Home, stream: StreamSettings, before: Snapshot | None, places: Sequence[int]
) -> list[Snapshot]:
    """The snapshots before some places, rising, all behind the one before."""
    taken: list[Snapshot] = []
    waiting: list[pa.Table] = []
    for snapshot, rows in _made(home, stream, before, places):
        taken.append(snapshot)
        waiting.append(rows)
        if sum(map(len, waiting)) >= ROWS:
            _write(home, stream.name, waiting, snapshot.position)
            waiting = []
    if waiting:
        _write(home, stream.name, waiting, taken[-1].position)
    return taken


def _write(home: Home, stream: str, rows: Sequence[pa.Table], version: int) -> None:
    tables.append(
        home.table("snapshots", stream),
        pa.concat_tables(rows),
        load_contract("snapshots"),
        app=_APP,
        version=version,
    )


def _made(
    home: Home, stream: StreamSettings, before: Snapshot | None, places: Sequence[int]
) -> Iterator[tuple[Snapshot, pa.Table]]:
    """Snapshots with their rows, each made from the one before and what came since."""
    objects = _objects(home, stream.name, before, places)
    members = _members(home, stream.name, before, places)
    for place, seen, held in zip(places, objects, members, strict=True):
        if not len(seen):
            raise FairwayError(
                f"stream {stream.name!r} has no fix before {place}",
                hint="there is nothing to hold",
            )
        before = _header(stream, place, seen, held.latest_us, before)
        yield before, _as_rows(before, seen, held.rows)


def _due(home: Home, stream: StreamSettings, before: Snapshot | None) -> Iterator[int]:
    if stream.snapshot_s is None:
        return
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


def _objects(
    home: Home, stream: str, before: Snapshot | None, places: Sequence[int]
) -> Iterator[pa.Table]:
    """The last fixes before each of some places, as rows of `LAST`."""

    def read(low: int, high: int) -> pa.Table:
        return fixes(home, stream, low, high, COLUMNS)

    return _states(
        home.table("positions", stream),
        (before.position if before else 0, *places),
        read,
        last_fixes,
        objects_of(home, stream, before),
    )


@dataclass(frozen=True, slots=True)
class _Held:
    """The members of all answers, and the largest event time of a change that was read; None: none was."""

    rows: pa.Table
    latest_us: int | None = None

    def after(self, rows: pa.Table) -> "_Held":
        """What they are after more changes."""
        if not len(rows):
            return self
        latest_us = max(_latest_us(rows), self.latest_us or NEVER)
        return _Held(fold(rows, self.rows), latest_us)


def _members(
    home: Home, stream: str, before: Snapshot | None, places: Sequence[int]
) -> Iterator[_Held]:
    """The members before each of some places."""

    def read(low: int, high: int) -> pa.Table:
        return changes(home, stream, low, high)

    return _states(
        home.table("changes", stream),
        (before.position if before else 0, *places),
        read,
        _Held.after,
        _Held(members_of(home, stream, before)),
    )


def _states(
    path: Path,
    places: Sequence[int],
    read: Callable[[int, int], pa.Table],
    advance: Callable[[_S, pa.Table], _S],
    state: _S,
) -> Iterator[_S]:
    """What a state at the first of some places is at each of the others, rising.

        places 0 40 70, parts of the table 0..50 and 50..70   ->   state + rows 0..40   ->   .. + 40..50 + 50..70

    Args:
        path: the table that is read, a part that fits into memory at a time.
        places: positions.
        read: gives its rows between two of them.
        advance: gives a state after more rows.
        state: what it is at the first.
    """
    wanted = deque(places[1:])
    for low, high in parts(path, places[0], places[-1]):
        rows = read(low, high).sort_by("position")
        positions, begin = rows["position"].to_numpy(), 0
        while wanted and wanted[0] <= high:
            end = int(np.searchsorted(positions, wanted.popleft()))
            state = advance(state, rows.slice(begin, end - begin))
            begin = end
            yield state
        state = advance(state, rows.slice(begin))


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


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
