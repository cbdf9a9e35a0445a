"""Snapshots are taken: those of a backlog in one pass over the fixes and the changes.

log        ....*......*...*........*......       * a snapshot is due
read       |------------------||---------|       in parts of about two million rows
carried    the last fix of every object, and the members of every answer, from place to place
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.errors import ConflictError, FairwayError
from st_common.history.due import due, multiple_us
from st_common.history.fold import fold
from st_common.history.latest import flush_latest
from st_common.history.snapshots import (
    Snapshot,
    event_times,
    members_of,
    newest_snapshot,
    objects_of,
    rows_of,
)
from st_common.history.stored import archived_end, changes, fixes, parts
from st_common.history.world import COLUMNS, LastFixes
from st_common.operators.state.fixes import NEVER
from st_common.tables.files import write_files

APP = "snapshots"
TOGETHER = 64  # snapshots in one commit: what a crash lets be taken anew
_ENGINE = "engine"
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
        ConflictError: somebody else took one meanwhile.
    """
    before = newest_snapshot(home, stream.name)
    if before is not None and before.position == at_position:
        return before
    _check(home, stream, at_position, before)
    taken = next(_taken(home, stream, [at_position]), None)
    if taken is None:
        raise FairwayError(
            f"stream {stream.name!r} has no fix before {at_position}",
            hint="there is nothing to hold",
        )
    return taken


def bring_up(
    home: Home, streams: Mapping[str, StreamSettings]
) -> dict[str, dict[str, int | None]]:
    """Brings `latest` up to date and takes the snapshots that are due, also beside running engines.

    Returns:
        By stream, what `flush_latest` gives (`latest`), and how many `snapshots` were taken.
    """
    latest = {name: flush_latest(home, one) for name, one in streams.items()}
    return {
        "latest": latest,
        "snapshots": {name: len(take_due(home, one)) for name, one in streams.items()},
    }


def take_due(
    home: Home, stream: StreamSettings, *, most: int | None = None
) -> list[Snapshot]:
    """Takes the snapshots that are due (see `due`) and not yet taken, and gives them in the order of the log.

    They are taken in one pass, and committed up to `TOGETHER` at a time. Where no fix was accepted yet there is nothing
    to be held, and none is taken. When somebody else takes them meanwhile, the rest is left to him.

    Args:
        home: where the tables lie.
        stream: the settings; without `snapshot_s` none is ever due.
        most: how many at most; None: all.
    """
    taken: list[Snapshot] = []
    places = list(islice(_due(home, stream), most))
    with suppress(ConflictError):
        taken.extend(_taken(home, stream, places))  # keeps those that came before
    return taken


def _taken(
    home: Home, stream: StreamSettings, places: Sequence[int]
) -> Iterator[Snapshot]:
    """Takes snapshots at ascending places behind the newest one, each given when it is committed."""
    path, contract = home.table("snapshots", stream.name), load_contract("snapshots")
    done = tables.committed(path, APP)
    after = -1 if done is None else done
    none = contract.empty_table()
    # A file for each: what files say of themselves tells where a snapshot stands.
    written = (
        (snapshot, write_files(path, tables.fit(rows, contract), contract))
        for snapshot, rows in _made(home, stream, places)
    )
    while group := list(islice(written, TOGETHER)):
        files = [file for _, of_one in group for file in of_one]
        version = group[-1][0].position
        tables.append(
            path, none, contract, app=APP, version=version, after=after, files=files
        )
        after = version
        yield from (snapshot for snapshot, _ in group)


def _made(
    home: Home, stream: StreamSettings, places: Sequence[int]
) -> Iterator[tuple[Snapshot, pa.Table]]:
    """Snapshots at ascending places behind the newest one, each with its rows; none where there is nothing to hold."""
    if not places:
        return
    before, changed_us = newest_snapshot(home, stream.name), NEVER
    objects = objects_of(home, stream.name, before)
    members = members_of(home, stream.name, before)
    start = 0 if before is None else before.position
    for low, high in _parts(home, stream.name, start, places[-1]):
        last = LastFixes.of(objects, fixes(home, stream.name, low, high, COLUMNS))
        told = _Told.of(changes(home, stream.name, low, high))
        within = [place for place in places if low < place <= high]
        for at in sorted({*within, high}):
            since, objects = told.before(at), last.before(at)
            members = fold(since, members) if len(since) else members
            changed_us = max(changed_us, _latest_us(since))
            if at in within and len(objects):
                before = _header(stream, at, objects, changed_us, before)
                changed_us = NEVER
                yield before, rows_of(before, objects, members)


def _parts(home: Home, stream: str, start: int, end: int) -> list[tuple[int, int]]:
    """A part of the log in pieces of which neither fixes nor changes are many."""
    cuts = (
        list(parts(home.table(name, stream), start, end))
        for name in ("positions", "changes")
    )
    return max(cuts, key=len)


@dataclass
class _Told:
    """Changes by their place in the log, given out up to one place after another.

    Attributes:
        rows: the changes.
        order: int64[n], their rows in the order of the log.
        position: int64[n], their places, ascending.
    """

    rows: pa.Table
    order: np.ndarray
    position: np.ndarray
    _at: int = 0

    @staticmethod
    def of(rows: pa.Table) -> "_Told":
        """From changes in any order."""
        position = rows["position"].to_numpy()
        order = np.argsort(position)
        return _Told(rows, order, position[order])

    def before(self, place: int) -> pa.Table:
        """Those before a place that were not given out yet, in no order."""
        start, self._at = self._at, int(np.searchsorted(self.position, place))
        return self.rows.take(pa.array(self.order[start : self._at]))


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
        held = event_times(home, stream.name, before)
        highest = max(_latest_us(rows) for rows in (held, at_it) if len(rows))
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


def _latest_us(rows: pa.Table) -> int:
    """The largest event time; NEVER of no rows."""
    latest = pc.max(rows["event_ts"].cast(pa.int64())).as_py()
    return NEVER if latest is None else int(latest)


def _header(
    stream: StreamSettings,
    position: int,
    objects: pa.Table,
    changed_us: int,
    before: Snapshot | None,
) -> Snapshot:
    highest_us = _latest_us(objects)
    # whole milliseconds: some writers cut instants in a table's log to them
    from_ts = _time(multiple_us(max(highest_us, changed_us), 1000))
    return Snapshot(
        snapshot_ts=_time(
            multiple_us(
                highest_us - _us(stream.lateness_s), _us(stream.snapshot_s or 1.0)
            )
        ),
        position=position,
        from_ts=from_ts if before is None else max(from_ts, before.from_ts),
    )


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
