"""Where the objects of a stream are now: from the archive, and what the log has behind it.

table `latest` -> positions behind it -> segments of the log behind those     each is read once, by whoever asks next
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.moving_places import Moved, MovingPlaces, Names
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock
from st_common.engine.filter_decisions import FilterDecisions
from st_common.history.latest import APP
from st_common.history.purged import kept_snapshot
from st_common.history.snapshots import objects_of
from st_common.history.stored import FILTERED, archived_end, fixes, parts
from st_common.history.world import COLUMNS, LAST
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.log.reader import Piece, pieces
from st_common.operations.status import read_all_status
from st_common.position import position_of, segment_of

_BATCH_BYTES = 4 << 20
_BATCH_SEGMENTS = 1024
_MOST_S = 0.5
"""So long one look reads on; what is left is for the next."""
_RECENT_ROWS, _RECENT_PARTS = 1_000_000, 256
"""So many fixes are kept as they were read, in so many parts, for the ways of objects behind the archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at a stream saw.

    Attributes:
        epoch: names this reading of the log: numbers of objects hold as long as it does.
        serial: what moved behind this number is news at the next look.
        is_whole: whether `moved` has every object.
        moved: who moved, and where they are.
        names_from: the number of the first object in `names`.
        names: of objects that are new.
        newest_us: the largest event time, us UTC; None before the first fix.
        unread_since_us: when the first segment arrived that is not read yet; None when all are.
    """

    epoch: str
    serial: int
    is_whole: bool
    moved: Moved
    names_from: int
    names: Names
    newest_us: int | None
    unread_since_us: int | None


class LivePlaces:
    """One reader of a stream for all who ask where its objects are; safe for threads.

    Where the archive leaves out filtered fixes, so does this; one that is held because of lateness is not judged yet,
    and counts once it is.

    Args:
        home: the home folder.
        stream: the settings of the stream.
        clock_s: tells how late it is, for the bound of a look.

    Attributes:
        seen: how many objects were there at the last look, and the largest event time, us UTC; None before the first.
    """

    def __init__(
        self,
        home: Home,
        stream: StreamSettings,
        *,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home, self._stream = home, stream
        self._clock_s, self._lock = clock_s, threading.Lock()
        self._epoch, self.places = "", MovingPlaces(stream.space)
        self.seen: tuple[int | None, int | None] = (None, None)

    def _begin(self) -> None:
        """Reads what the archive has; the log behind it is for looks."""
        stream, silence_s = self._stream, self._stream.silence_s
        self._epoch = ""
        self._log = Log(self._home.log(stream.name))
        self.places = MovingPlaces(
            stream.space,
            unit_m=stream.unit_m,
            silence_us=None if silence_s is None else round(silence_s * 1e6),
        )
        self._tail: FilterDecisions | None = None
        self._waiting: list[Piece] = []
        self._recent: deque[pa.Table] = deque()
        self._next = 0
        for rows, end in _archived(self._home, stream):
            self._take_archived(rows)
            self._next = segment_of(end)
        self._pass_to(self._archive_clock())
        self._recent_from = int(position_of(self._next, 0))
        self._epoch = os.urandom(6).hex()

    def _take_archived(self, rows: pa.Table) -> None:
        """Takes fixes of the archive, with those that were filtered: they say that an object is there."""
        accepted = None
        if FILTERED in rows.column_names:
            accepted = np.asarray(rows[FILTERED].is_null())
        self.places.take(rows, accepted)

    def _archive_clock(self) -> int | None:
        """The stream's clock at the end of what is archived: clock rows before it are not read; None: nobody says."""
        folder = self._home.stream(self._stream.name)
        clocks = [
            one.now_ts
            for one in read_all_status(folder)
            if segment_of(one.position) <= self._next
        ]
        return max((one for one in clocks if one is not None), default=None)

    def _pass_to(self, clock_us: int | None) -> None:
        if clock_us is not None:
            self.places.pass_to(clock_us)

    def look(self, epoch: str = "", serial: int = -1, names: int = 0) -> Look:
        """Reads on, and gives what moved behind a look before.

        Args:
            epoch: of that look; another one than now: everything is given.
            serial: of that look.
            names: how many names are known from it.

        Raises:
            LogError: a segment is missing or damaged.
            FairwayError: the archive cannot be read.
        """
        with self._lock:
            unread_us = self._read_on()
            is_whole = epoch != self._epoch or not 0 <= serial <= self.places.serial
            since, first = (-1, 0) if is_whole else (serial, names)
            return Look(
                epoch=self._epoch,
                serial=self.places.serial,
                is_whole=is_whole,
                moved=self.places.moved(since),
                names_from=first,
                names=self.places.names[first:],
                newest_us=self.places.newest_us,
                unread_since_us=unread_us,
            )

    def current(self) -> pa.Table:
        """Where the objects are that are there: object, event_ts, x, y and position (in the log), by object."""
        with self._lock:
            self._read_on()
            moved = self.places.moved()
            names = self.places.names[moved.index]
            position = self.places.positions_of(moved.index)
        rows = {
            "object": pa.array(names, pa.string()),
            "event_ts": pa.array(moved.event_us).cast(pa.timestamp("us", "UTC")),
            "x": moved.x,
            "y": moved.y,
            "position": position,
        }
        return pa.table(rows).sort_by("object")

    def place_of(self, name: str) -> tuple[float, float] | None:
        """X and y of an object; None where it is not there."""
        with self._lock:
            self._read_on()
            number = self.places.number_of(name)
            return None if number is None else self.places.place_of(number)

    def where(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """X and y of the objects that were there at the last look; nothing is read."""
        with self._lock:
            moved = self.places.moved()
        return moved.x, moved.y

    def position_of(self, name: str) -> int | None:
        """Where in the log the last fix of an object stands; None where it was never seen."""
        with self._lock:
            self._read_on()
            number = self.places.number_of(name)
            return None if number is None else self.places.last_of(number)[0]

    def _read_on(self) -> int | None:
        """Reads new segments for a while; when the first that is left arrived, None when none is."""
        if not self._epoch or self._log.end() < self._next:  # the stream began anew
            self._begin()
        unread_us = self._read_segments(self._clock_s() + _MOST_S)
        self.seen = (self.places.shown, self.places.newest_us)
        return unread_us

    def _read_segments(self, until_s: float) -> int | None:
        while segments := self._log.segments(
            self._next, max_bytes=_BATCH_BYTES, max_segments=_BATCH_SEGMENTS
        ):
            if self._clock_s() > until_s:
                return segments[0].arrival_us
            self._take(list(pieces(self._log, segments, self._stream)))
            self._next = segments[-1].number + 1
        return None

    def _take(self, new: Sequence[Piece]) -> None:
        known = self._decided(new)
        self._take_fixes(known)
        self._pass_to(self._clock_of(known))
        if known and self._tail is not None:
            self._tail.marks.forget(known[-1].segments[-1].number + 1)

    def _clock_of(self, known: Sequence[Piece]) -> int | None:
        """The latest event time that clock rows say has come; None where there are none."""
        times_us = (
            row.ts_us
            for piece in known
            for segment in piece.segments
            if segment.clock
            for _, row in chosen(control_rows(self._log, segment), Clock)
        )
        return max(times_us, default=None)

    def _take_fixes(self, known: Sequence[Piece]) -> None:
        rows = [fixes_of(piece) for piece in known if piece.part is not None]
        if not rows:
            return
        joined = pa.concat_tables(rows)
        accepted = self._accepted(joined["position"].to_numpy())
        self.places.take(joined, accepted)
        self._keep(joined if accepted is None else joined.filter(pa.array(accepted)))

    def _keep(self, rows: pa.Table) -> None:
        """Keeps fixes, and lets go of the oldest where there are too many."""
        self._recent.append(rows)
        if len(self._recent) > _RECENT_PARTS:
            self._recent = deque([pa.concat_tables(self._recent).combine_chunks()])
        while sum(map(len, self._recent)) > _RECENT_ROWS and len(self._recent) > 1:
            old = self._recent.popleft()
            if len(old):
                last = int(pc.max(old["position"]).as_py())
                self._recent_from = max(self._recent_from, last + 1)

    def behind(self, end: int, name: str) -> pa.Table | None:
        """The fixes of an object from a place of the log on; None where they are not kept any more.

        Args:
            end: the position of the first of them.
            name: the object.

        Returns:
            Rows of `fixes_of`, in the order of the log.
        """
        with self._lock:
            self._read_on()
            if end < self._recent_from:
                return None
            kept = list(self._recent)
        own = (pc.field("object") == name) & (pc.field("position") >= end)
        return pa.concat_tables([_NO_FIXES, *(rows.filter(own) for rows in kept)])

    def _decided(self, new: Sequence[Piece]) -> Sequence[Piece]:
        """Those pieces of which it is known which fixes are filtered; the others wait."""
        if self._tail is None:
            if all(piece.stream.position_filter is None for piece in new):
                return new
            start = new[0].segments[0].number
            self._tail = FilterDecisions(self._home, self._stream, self._log, start)
        self._tail.take(new)
        waiting = [*self._waiting, *new]
        decided = [
            one for one in waiting if one.segments[-1].number < self._tail.decided
        ]
        self._waiting = waiting[len(decided) :]
        return decided

    def _accepted(
        self, position: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_] | None:
        if self._tail is None:
            return None
        reasons = self._tail.marks.columns(position)[FILTERED]
        return np.asarray(reasons.is_null())


_NO_FIXES = pa.schema(
    [
        ("position", pa.int64()),
        ("event_ts", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("gone", pa.bool_()),
        ("object", pa.string()),
    ]
).empty_table()


def fixes_of(piece: Piece) -> pa.Table:
    """The fixes of a piece of a log: `position`, and the columns of `COLUMNS`; event_ts is int64, us UTC."""
    part = piece.part
    assert part is not None  # noqa: S101 - whoever asks has looked
    rows = part.decoded.fixes
    segment = piece.segments[0].number + part.fix_at.astype(np.int64)
    position = position_of(segment, rows["row"].to_numpy().astype(np.int64))
    columns = {name: rows[name] for name in COLUMNS if name != "object"}
    names = rows["object"].cast(pa.string())
    table = pa.table({"position": position, **columns, "object": names})
    return table.select(_NO_FIXES.column_names)


def _archived(home: Home, stream: StreamSettings) -> Iterator[tuple[pa.Table, int]]:
    """What the archive has, in the order of the log: fixes, and the position behind them."""
    path = home.table("positions", stream.name)
    if not tables.exists(path):
        return
    rows, start = _base(home, stream)
    yield rows, start
    has_filtered = FILTERED in tables.dataset(path).schema.names
    columns = (*COLUMNS, FILTERED) if has_filtered else COLUMNS
    for low, high in parts(path, start, archived_end(home, stream.name)):
        yield fixes(home, stream.name, low, high, columns, accepted=False), high


def _base(home: Home, stream: StreamSettings) -> tuple[pa.Table, int]:
    """The last fixes before a place in the log, and that place: of `latest` where it takes all, else of a snapshot."""
    latest = home.table("latest", stream.name)
    done = tables.committed(latest, APP) if stream.latest_every == 1 else None
    if done is not None:
        return _latest(latest), done + 1
    snapshot = kept_snapshot(home, stream.name, "positions")
    rows = objects_of(home, stream.name, snapshot)
    return rows, 0 if snapshot is None else snapshot.position


def _latest(path: Path) -> pa.Table:
    columns = ["segment", "row", *COLUMNS, "query"]
    rows = tables.read(path, columns=columns)
    rows = rows.filter(rows["query"].is_null())
    row = rows["row"].to_numpy().astype(np.int64)
    position = position_of(rows["segment"].to_numpy(), row)
    named = {name: rows[name] for name in COLUMNS}
    return pa.table({"position": position, **named}).select(LAST.names)
