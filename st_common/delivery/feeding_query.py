"""One query that feeds a stream: its note beside the stream's log, and its records that wait to be written there.

A record is one JSON object with the place of the change that it came from: `stream`, `query`, `position` and `seq`. So
the log itself tells how far it was fed, whenever the feeder dies: the note only says from which segment on to look.
"""

import json
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.answers.feedable import OF_CHANGES, beside, fed_of
from st_common.answers.follow import FIRST, Follower, Place
from st_common.answers.json_rows import json_line
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.units import TIME_UNIT_US
from st_common.delivery.watermarks import SourceTime
from st_common.errors import QueryError
from st_common.log.log import Log
from st_common.operations.records import read_record, write_record
from st_common.operators.events.timeline import LAST
from st_common.operators.state.fixes import NEVER
from st_common.query.control import QueryRow
from st_common.query.lookup import find
from st_common.uncollected import uncollected

_MOST = 100_000  # records that are read before some are written
_LOOK_S = 1.0  # between two looks whether a query is still registered


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """How far a log was fed with a query, and how far the query's stream has come.

    Attributes:
        position: the place of the last change that the log's segments before `segment` have, or that none of them
            needs; `seq` likewise.
        segment: from where on the log may have later ones.
        time: of the query's stream: up to there its changes may be written, by whichever feeder of the log.
        passed_us: the clock that the log was given last, us UTC; `NEVER` for none.
        passed_end: the end mark of the query's stream that the log has as its own; -1 for none.
        failed: its next change has no place, so that nothing comes of it until it is fed again.
    """

    position: int = FIRST[0]
    seq: int = FIRST[1]
    segment: int = 0
    time: SourceTime = field(default_factory=SourceTime)
    passed_us: int = NEVER
    passed_end: int = -1
    failed: bool = False

    @staticmethod
    def of_record(record: Mapping[str, Any]) -> "Note":
        """What `asdict` made of a note; one of before there were several clocks has passed on what it says."""
        time_of_it = SourceTime.of_note(record.get("time", {}))
        return Note(
            position=record["position"],
            seq=record["seq"],
            segment=record["segment"],
            time=time_of_it,
            passed_us=record.get("passed_us", NEVER),
            passed_end=record.get("passed_end", time_of_it.ended),
            failed=record.get("failed", False),
        )

    @property
    def place(self) -> Place:
        """The place up to which the log was fed, as far as the note knows."""
        return self.position, self.seq


class Record(NamedTuple):
    """A change as a line of the log that is fed.

    Attributes:
        due_us: its event time in that log or, where it is out of order, the largest of its query before it, us UTC.
        place: of the change.
        line: JSON, with its line feed.
    """

    due_us: int
    place: Place
    line: bytes


def feed_folder(home: Home, stream: str) -> Path:
    """The folder beside a stream's log with a note of each query that feeds it."""
    return home.log(stream) / "feeds"


class FeedingQuery:
    """A query that feeds a stream, as far as one process has read its changes.

    Args:
        home: the home folder of both streams.
        stream: the stream of the query.
        query: the query's name.
        target: the stream that is fed.
    """

    def __init__(
        self, home: Home, stream: str, query: str, target: StreamSettings
    ) -> None:
        self.stream, self.query = stream, query
        self.path = (
            feed_folder(home, target.name) / f"{stream}.{quote(query, safe='')}.json"
        )
        self.waiting: deque[Record] = deque()
        self.known_us = NEVER
        self._home, self._target = home, target
        self._outlet = Outlet(home, stream)
        self._follower: Follower | None = None
        self._read_us = NEVER
        self._problem: QueryError | None = None
        self._row: QueryRow | None = None
        self._looked_s = -math.inf

    @staticmethod
    def of_note(home: Home, path: Path, target: StreamSettings) -> "FeedingQuery":
        """The query whose note lies there."""
        stream, _, query = path.name.removesuffix(".json").partition(".")
        return FeedingQuery(home, stream, unquote(query), target)

    @property
    def place(self) -> Place:
        """The place up to which its changes were read, or are of other queries; that before all of them at first."""
        return FIRST if self._follower is None else self._follower.place

    @property
    def has_begun(self) -> bool:
        """Whether it was said from where on its changes are read."""
        return self._follower is not None

    def row(self) -> QueryRow | None:
        """The newest row about the query, looked up once a second at most; None where its log was removed."""
        if time.monotonic() - self._looked_s >= _LOOK_S:
            self._looked_s = time.monotonic()
            try:
                self._row = find(self._home, self.query)
            except QueryError:
                self._row = None
        return self._row

    def note(self) -> Note:
        """What was noted last; a note of nothing when there is none."""
        record = read_record(self.path)
        return Note.of_record(record) if record else Note()

    def write_note(self, note: Note) -> None:
        """Replaces the note; the log is locked."""
        write_record(self.path, asdict(note))

    def begin(self, after: Place) -> None:
        """Reads on behind a place from now on."""
        self._follower = Follower(
            self._home, self.stream, after=after, query=self.query
        )

    def read(self, up_to_us: int) -> None:
        """Reads changes on until the records up to a time wait, or many do; `known_us` says up to when they all do.

        A change that has no place stops it there, for good; see `problem`.
        """
        assert self._follower is not None  # noqa: S101 - whoever reads has begun
        self.known_us = LAST
        while self._read_us <= up_to_us:
            if self._problem is not None or len(self.waiting) >= _MOST:
                self.known_us = self._read_us
                return
            rows = self._follower.poll()
            if not len(rows):
                return
            try:
                with uncollected():
                    passed = self._outlet.passed(rows)
                    self.waiting.extend(self._records(fed_of(passed)))
            except QueryError as error:
                self._problem = error

    @property
    def problem(self) -> QueryError | None:
        """Why the next change cannot be written, once all before it are; None: it can."""
        return None if self.waiting else self._problem

    def ready(self, up_to_us: int, below: int) -> Iterator[Record]:
        """The records that wait up to a time and from before a position of the query's log, in their order."""
        for record in self.waiting:
            if record.due_us > up_to_us or record.place[0] >= below:
                return
            yield record

    def let_go(self, records: int, after: Place) -> Place:
        """Forgets the first records that wait, as they are written; the place up to which nothing is to be written.

        Args:
            records: how many.
            after: the place up to which the log had it before.
        """
        last = [self.waiting[records - 1].place] if records else []
        if records == len(self.waiting):
            self.waiting.clear()
        for _ in range(min(records, len(self.waiting))):
            self.waiting.popleft()
        has_all = not self.waiting and self._problem is None
        return max(after, *last, self.place if has_all else after)

    def _records(self, rows: pa.Table) -> Iterator[Record]:
        stamps = {name: rows[name].cast(pa.int64()).to_pylist() for name in _STAMPS}
        due_us = self._due_us(rows)
        for at, row in enumerate(rows.select([*OF_CHANGES, "fields"]).to_pylist()):
            text = row.pop("fields")
            fields = json.loads(text) if text else {}
            if fields.get("x") is None or fields.get("y") is None:
                raise QueryError(
                    f"the change of query {self.query!r} at position {row['position']} has no place",
                    hint="its x or y is null; of a group without rows HAVING COUNT(*) > 0 tells nothing",
                )
            times = {
                name: _stamp(values[at], self._target)
                for name, values in stamps.items()
            }
            record = {**fields, **row, **times, **beside(row), "stream": self.stream}
            self._read_us = due_us[at]
            yield Record(
                due_us[at],
                (row["position"], row["seq"]),
                json_line(record).encode() + b"\n",
            )

    def _due_us(self, rows: pa.Table) -> list[int]:
        """By row the largest event time so far, as the target has it."""
        ts = rows["event_ts"]
        if self._target.columns.event_ts == "fix_ts":
            ts = pc.coalesce(rows["fix_ts"], ts)
        ts_us = ts.cast(pa.int64()).to_numpy()
        due_us: list[int] = np.maximum.accumulate(
            np.maximum(ts_us, self._read_us)
        ).tolist()
        return due_us

    def written(self, log: Log) -> Place:
        """The place of its last change that the log has; the log is locked."""
        note = self.note()
        places = [note.place]
        for segment in log.segments(note.segment):
            # A feed writes records as they are: its place is read from them.
            if not (segment.control or segment.packet):
                places += self._places_in(log.read(segment))
        return max(places)

    def _places_in(self, payload: bytes) -> Iterator[Place]:
        for line in payload.split(b"\n"):
            record = _record(line) if b'"seq"' in line else {}
            if (
                record.get("query") == self.query
                and record.get("stream") == self.stream
            ):
                yield record["position"], record["seq"]


_STAMPS = ("event_ts", "fix_ts")


def _stamp(us: int, target: StreamSettings) -> Any:
    """A time in the unit of the target; text, when the unit is iso."""
    divisor = TIME_UNIT_US.get(target.time_unit)
    if divisor is None:
        seconds, fraction = divmod(us, 1_000_000)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{fraction:06d}Z"
    return us // divisor if us % divisor == 0 else us / divisor


def _record(line: bytes) -> dict[str, Any]:
    """What a line says, when it is a JSON object; others write into this log too."""
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
