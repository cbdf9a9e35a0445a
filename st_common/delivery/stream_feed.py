"""A query's stream into the log of another stream: there its elements are fixes again (SPEC W6).

A record is one JSON object with the place of the change that it came from: `stream`, `query`, `position` and `seq`. So
the log itself tells how far it was fed, whenever the feeder dies: a note beside it only says from which segment on to
look. Records and note are written under the log's lock, so two feeders of one query write each record once.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from st_common.answers.feedable import (
    OF_CHANGES,
    beside,
    check_feeds,
    check_target,
    fed_of,
)
from st_common.answers.follow import FIRST, POLL_S, Follower, Place
from st_common.answers.json_rows import json_line
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.units import TIME_UNIT_US
from st_common.delivery.watermarks import SourceTime, pass_on, time_now
from st_common.errors import ConfigError, QueryError
from st_common.log.log import Segment
from st_common.log.record_settings import log_for
from st_common.operations.records import read_record, write_record
from st_common.query.control import QueryRow
from st_common.query.lookup import find
from st_common.replay.files import wall_clock

_SEGMENT_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """How far a log was fed with a query, as the log's segments before `segment` have it; and the time passed on."""

    position: int
    seq: int
    segment: int
    time: SourceTime = field(default_factory=SourceTime)

    @staticmethod
    def of_record(record: Mapping[str, Any]) -> "_Note":
        """What `asdict` made of a note."""
        time = SourceTime.of_note(record.get("time", {}))
        return _Note(
            position=record["position"],
            seq=record["seq"],
            segment=record["segment"],
            time=time,
        )


class StreamFeed:
    """Feeds one query's rows into the log of another stream, from where it ended before (SPEC W6).

    Records have the columns of a change, and those of the query's rows, `x` and `y` among them (`feedable`). Times are
    in the target's unit: `event_ts` is when the answer changed, `fix_ts` when the fix was. Once all that is committed
    is fed, the time of the source is passed on: its clock, and its end mark. A target without event times goes by
    arrivals: its records are live.

    Args:
        home: the home folder of both streams.
        query: the query's name.
        target: the stream that is fed; its settings say which parts of a record are its object, time and place.
        clock: the time that stamps arrivals, us UTC.

    Raises:
        QueryError: no such query, or its rows have no place.
        ConfigError: the target's settings do not fit its records.
    """

    def __init__(
        self,
        home: Home,
        query: str,
        target: StreamSettings,
        *,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        row = _source(home, query, target)
        self.stream, self.records = row.stream, 0
        self._home, self._query, self._target, self._clock = (
            home,
            row.name,
            target,
            clock,
        )
        self._log = log_for(home, target)
        self._path = (
            feed_folder(home, target.name)
            / f"{self.stream}.{quote(row.name, safe='')}.json"
        )
        self._outlet = Outlet(home, self.stream)
        self._timed = target.columns.event_ts is not None
        self._passed = self._note().time
        self._passed_s = -math.inf
        with self._log.locked():
            self._follower = Follower(
                home, self.stream, after=self._place(), query=row.name
            )

    @property
    def position(self) -> int:
        """The row of the source's log up to which its changes were looked at."""
        return self._follower.place[0]

    def run(self, *, follow: bool = False, seconds: float | None = None) -> None:
        """Feeds what is committed, and with `follow` also what comes.

        Args:
            follow: go on until interrupted.
            seconds: stop after this time.

        Raises:
            QueryError: a change has no place; what came before it was fed.
        """
        end_s = None if seconds is None else time.monotonic() + seconds
        while True:
            fed = self.poll()
            if fed is None and not follow:
                return
            if end_s is not None and time.monotonic() >= end_s:
                return
            if fed is None:
                time.sleep(POLL_S)

    def poll(self) -> int | None:
        """Feeds the next part of what is committed, and gives how many records it wrote; None: there is nothing new."""
        time_before = time_now(
            self._home, self.stream, self._passed
        )  # first: what comes after it is not of that time
        rows = self._follower.poll()
        if not len(rows):
            self._pass_on(time_before)
            return None
        records: list[tuple[Place, bytes]] = []
        try:
            records.extend(
                self._records(fed_of(self._outlet.passed(rows)))
            )  # keeps those before an error
        except QueryError:
            self._write(records, up_to=records[-1][0] if records else FIRST)
            raise
        return self._write(records, up_to=self._follower.place)

    def _write(self, records: list[tuple[Place, bytes]], *, up_to: Place) -> int:
        """Appends what the log does not have yet, and notes that it has all up to a place."""
        with self._log.locked():
            after = self._place()
            # Another feeder of the same query may have written since: what the log has by now is left out.
            fresh = [line for place, line in records if place > after]
            payloads = list(_payloads(fresh))
            if payloads:
                is_live = timeless = not self._timed
                self._log.append_all(
                    payloads, arrival_us=self._clock(), timeless=timeless, live=is_live
                )
            self._write_note(max(up_to, after))
        self.records += len(fresh)
        return len(fresh)

    def _pass_on(self, now: SourceTime) -> None:
        """Passes the source's time on: at most one clock in a tick of the target, and in a second."""
        pause_s = max(self._target.tick_s, 1.0)
        is_due = (
            now.ended > self._passed.ended
            or time.monotonic() - self._passed_s >= pause_s
        )
        if now == self._passed or not is_due:
            return
        with self._log.locked():
            before, place = self._note().time, self._place()
            others = [_Note.of_record(record).time for record in self._other_notes()]
            pass_on(
                self._log,
                before=before,
                now=now,
                others=others,
                timed=self._timed,
                arrival_us=self._clock(),
            )
            self._passed, self._passed_s = now, time.monotonic()
            self._write_note(place)

    def _other_notes(self) -> Iterator[Mapping[str, Any]]:
        """The notes of what else feeds the target; a query that was dropped does so no more."""
        for path in sorted(self._path.parent.glob("*.json")):
            record = (
                None
                if path == self._path or not _feeds(self._home, path)
                else read_record(path)
            )
            if record is not None:
                yield record

    def _records(self, rows: pa.Table) -> Iterator[tuple[Place, bytes]]:
        stamps = {
            name: rows[name].cast(pa.int64()).to_pylist()
            for name in ("event_ts", "fix_ts")
        }
        for at, row in enumerate(rows.select([*OF_CHANGES, "fields"]).to_pylist()):
            text = row.pop("fields")
            fields = json.loads(text) if text else {}
            if fields.get("x") is None or fields.get("y") is None:
                raise QueryError(
                    f"the change of query {self._query!r} at position {row['position']} has no place",
                    hint="its x or y is null; of a group without rows HAVING COUNT(*) > 0 tells nothing",
                )
            times = {
                name: _stamp(values[at], self._target)
                for name, values in stamps.items()
            }
            record = {**fields, **row, **times, **beside(row), "stream": self.stream}
            yield (row["position"], row["seq"]), json_line(record).encode() + b"\n"

    def _place(self) -> Place:
        """The place of the last change that the log has; the log is locked."""
        note = self._note()
        places = [(note.position, note.seq)]
        for segment in self._log.segments(note.segment):
            places += self._places_in(segment)
        return max(places)

    def _places_in(self, segment: Segment) -> Iterator[Place]:
        if (
            segment.control or segment.packet
        ):  # a feed writes records as they are: its place is read from them
            return
        for line in self._log.read(segment).split(b"\n"):
            record = _record(line) if b'"seq"' in line else {}
            if (
                record.get("query") == self._query
                and record.get("stream") == self.stream
            ):
                yield record["position"], record["seq"]

    def _note(self) -> _Note:
        noted = read_record(self._path)
        return (
            _Note.of_record(noted)
            if noted
            else _Note(position=FIRST[0], seq=FIRST[1], segment=0)
        )

    def _write_note(self, place: Place) -> None:
        note = _Note(
            position=place[0], seq=place[1], segment=self._log.end(), time=self._passed
        )
        write_record(self._path, asdict(note))


def feed_folder(home: Home, stream: str) -> Path:
    """The folder beside a stream's log with a note of each query that feeds it."""
    return home.log(stream) / "feeds"


def _feeds(home: Home, note: Path) -> bool:
    """Whether the query of a note is still registered."""
    name = unquote(note.name.removesuffix(".json").partition(".")[2])
    try:
        return find(home, name).live
    except QueryError:  # its log was removed
        return False


def _source(home: Home, query: str, target: StreamSettings) -> QueryRow:
    """The query, when its elements can be the target's fixes."""
    row = find(home, query)
    if row.plan is None:
        raise QueryError(
            f"query {query!r} was dropped",
            hint="`fairway query list` names those that run",
        )
    check_feeds(query, row.plan)
    if row.stream == target.name:
        raise ConfigError(
            f"query {query!r} reads stream {target.name!r} itself",
            hint="feed another stream",
        )
    check_target(row.plan, target)
    return row


def _stamp(us: int, target: StreamSettings) -> Any:
    """A time in the unit of the target; text, when the unit is iso."""
    divisor = TIME_UNIT_US.get(target.time_unit)
    if divisor is None:
        seconds, fraction = divmod(us, 1_000_000)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{fraction:06d}Z"
    return us // divisor if us % divisor == 0 else us / divisor


def _payloads(lines: list[bytes]) -> Iterator[bytes]:
    """The lines in as few segments as hold them."""
    start = size = 0
    for end, line in enumerate(lines):
        if size + len(line) > _SEGMENT_BYTES and end > start:
            yield b"".join(lines[start:end])
            start, size = end, 0
        size += len(line)
    if size:
        yield b"".join(lines[start:])


def _record(line: bytes) -> dict[str, Any]:
    """What a line says, when it is a JSON object; others write into this log too."""
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
