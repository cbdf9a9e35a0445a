"""Queries' streams into the log of another stream: there their elements are fixes again (SPEC W6).

Records and notes are written under the log's lock, so two feeders of one query write each record once. Several queries
are written as one feed, in the order of event time: none goes further than the one that is furthest behind (ADR 106).

    query   its stream's clock   its changes at      written            waits
    fast    12:05                12:01, 12:04        12:01              12:04, for the clock of slow
    slow    12:02                12:00, 12:02        12:00, 12:02
                                                     12:00 12:01 12:02 and then the clock 12:02, whoever writes them
"""

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from operator import itemgetter
from typing import Any

from st_common.answers.feedable import check_feeds, check_target
from st_common.answers.follow import POLL_S, Place
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.delivery.feeding_query import FeedingQuery, Note, Record
from st_common.delivery.watermarks import FedTime, SourceTime, time_now
from st_common.errors import ConfigError, QueryError
from st_common.log.control import write_clock, write_end
from st_common.log.record_settings import log_for
from st_common.operations.awaited import write_awaited
from st_common.operations.records import read_record
from st_common.operators.events.timeline import LAST
from st_common.query.control import QueryRow
from st_common.query.lookup import find
from st_common.replay.files import wall_clock

_SEGMENT_BYTES = 8 << 20
_ASK_S = 1.0  # between two times that a source is asked to come to at least


class StreamFeed:
    """Feeds one query's rows into the log of another stream, from where it ended before (SPEC W6).

    Records have the columns of a change, and those of the query's rows, `x` and `y` among them (`feedable`). Times are
    in the target's unit: `event_ts` is when the answer changed, `fix_ts` when the fix was. Once all that is committed
    is fed, the time of the source is passed on: its clock, and its end mark. A target without event times goes by
    arrivals: its records are live.

    Where other queries feed the target too, this feeder says how far its own stream is, and writes what of all of them
    may be written by what the others have said.

    Args:
        home: the home folder of both streams.
        query: the query's name.
        target: the stream that is fed; its settings say which parts of a record are its object, time and place.
        clock: the time that stamps arrivals, us UTC.

    Attributes:
        records: how many records of the query it wrote.
        records_of_others: how many of other queries it wrote between them.
        waits_for: the queries whose streams are behind records that wait, each as `stream.query`.

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
        self.stream, self.records, self.records_of_others = row.stream, 0, 0
        self.waits_for: tuple[str, ...] = ()
        self._home, self._target, self._clock = home, target, clock
        self._log = log_for(home, target)
        self._own = FeedingQuery(home, row.stream, row.name, target)
        self._others: dict[str, FeedingQuery] = {}
        self._timed = target.columns.event_ts is not None
        self._time = self._own.note().time
        self._passed: tuple[SourceTime, ...] = ()
        self._passed_s = self._asked_s = -math.inf
        with self._log.locked():
            place = self._own.written(self._log)
            self._own.begin(place)
            self._write_note(
                self._own, place, failed=False
            )  # from now on others wait for it

    @property
    def position(self) -> int:
        """The row of the source's log up to which its changes were looked at."""
        return self._own.place[0]

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
        # First: what comes after it is not of that time.
        self._time = time_now(self._home, self.stream, self._time)
        others = self._other_queries()
        # Without event times each query is written as it comes.
        joined = others if self._timed else ()
        if joined:
            self._say()
        notes = {query: query.note() for query in (self._own, *others)}
        notes[self._own] = replace(notes[self._own], time=self._time)
        times = {q: note.time for q, note in notes.items() if self._counts(q)}
        fed = FedTime.of(tuple(times.values()))
        up_to_us = fed.up_to_us if joined else LAST
        below = {q: notes[q].time.position if joined else LAST for q in notes}
        queries = sorted((self._own, *joined), key=lambda q: (q.stream, q.query))
        known_us = _read(queries, notes, up_to_us)
        ready = {q: list(q.ready(known_us, below[q])) for q in queries}
        if any(ready.values()):
            return self._write(ready)
        self._fail(queries)
        self.waits_for = self._ask(queries, times) if joined else ()
        if known_us == up_to_us:
            self._pass_on(times)
        return None

    def close(self) -> None:
        """Nothing: the log itself says how far it was fed."""

    def _fail(self, queries: Sequence[FeedingQuery]) -> None:
        """Lets nobody wait for queries whose next change cannot be written.

        Raises:
            QueryError: the own query is one of them.
        """
        for query in queries:
            if query.problem is not None:
                with self._log.locked():
                    query.write_note(replace(query.note(), failed=True))
        if self._own.problem is not None:
            raise self._own.problem

    def _counts(self, query: FeedingQuery) -> bool:
        """Whether the stream that is fed goes by a query's stream; by one that was dropped it does so no more."""
        row = query.row()
        return query is self._own or (row is not None and row.live)

    def _other_queries(self) -> tuple[FeedingQuery, ...]:
        """What else feeds the target, by its notes; those that were dropped may have records that wait."""
        paths = sorted(self._own.path.parent.glob("*.json"))
        self._others = {
            path.name: self._others.get(path.name)
            or FeedingQuery.of_note(self._home, path, self._target)
            for path in paths
            if path != self._own.path and read_record(path) is not None
        }
        return tuple(
            query
            for query in self._others.values()
            if query.row() is not None and not query.note().failed
        )

    def _say(self) -> None:
        """Notes how far the own stream is, for whoever else feeds the target."""
        if self._own.note().time == self._time:
            return
        with self._log.locked():
            self._own.write_note(replace(self._own.note(), time=self._time))

    def _write(self, ready: Mapping[FeedingQuery, Sequence[Record]]) -> int:
        """Appends what the log does not have yet, in the order of event time, and notes that it has it."""
        with self._log.locked():
            # Another feeder may have written since: what the log has by now is left out.
            after = {q: q.written(self._log) for q, records in ready.items() if records}
            of = {q: _behind(ready[q], place) for q, place in after.items()}
            fresh = list(of.values())
            # Merging one would cost as much as all else here.
            merged = merge(*fresh, key=itemgetter(0)) if fresh[1:] else fresh[0]
            lines = [record.line for record in merged]
            if payloads := list(_payloads(lines)):
                is_live = timeless = not self._timed
                self._log.append_all(
                    payloads, arrival_us=self._clock(), timeless=timeless, live=is_live
                )
            for query, place in after.items():
                self._write_note(query, query.let_go(len(ready[query]), place))
        own = len(of.get(self._own, ()))
        self.records += own
        self.records_of_others += len(lines) - own
        return len(lines)

    def _ask(
        self,
        queries: Sequence[FeedingQuery],
        times: Mapping[FeedingQuery, SourceTime],
    ) -> tuple[str, ...]:
        """Asks the streams that are behind to come to the next time that another has; the queries that are waited for.

        A stream that is live and quiet does so by a clock row (docs/adr/0013); nobody else would have it write one.
        """
        going = {q: time.clock_us for q, time in times.items() if not time.over}
        behind_us = min(going.values(), default=LAST)
        heads = [q.waiting[0].due_us for q in queries if q.waiting]
        later = [us for us in (*heads, *going.values()) if us > behind_us]
        behind = [q for q, clock_us in going.items() if clock_us == behind_us]
        if later and time.monotonic() - self._asked_s >= _ASK_S:
            self._asked_s = time.monotonic()
            for query in behind:
                folder = self._home.stream(query.stream)
                write_awaited(folder, self._target.name, min(later))
        waits = any(us > behind_us for us in heads)
        return tuple(f"{q.stream}.{q.query}" for q in behind) if waits else ()

    def _pass_on(self, times: Mapping[FeedingQuery, SourceTime]) -> None:
        """Passes the time of all sources on: at most one clock in a tick of the target, and in a second."""
        pause_s = max(self._target.tick_s, 1.0)
        is_due = time.monotonic() - self._passed_s >= pause_s
        said = tuple(times.values())
        fed = FedTime.of(said)
        if said == self._passed or not (is_due or fed.has_ended):
            return
        with self._log.locked():
            notes = {query: query.note() for query in times}
            clock_us = max(note.passed_us for note in notes.values())
            if self._timed and fed.clock_us > clock_us:
                clock_us = fed.clock_us
                write_clock(self._log, clock_us, arrival_us=self._clock())
            ends = {q: times[q].ended for q, n in notes.items()}
            news = any(ends[q] > note.passed_end for q, note in notes.items())
            if fed.has_ended and news:
                write_end(self._log, arrival_us=self._clock())
                for query, note in notes.items():
                    query.write_note(replace(note, passed_end=ends[query]))
            place = self._own.written(self._log)
            self._write_note(self._own, place, passed_us=clock_us)
        self._passed, self._passed_s = said, time.monotonic()

    def _write_note(self, query: FeedingQuery, place: Place, **more: Any) -> None:
        """Notes that the log has a query's changes up to a place; the log is locked."""
        note = replace(
            query.note(),
            position=place[0],
            seq=place[1],
            segment=self._log.end(),
            **more,
        )
        is_own = query is self._own
        query.write_note(replace(note, time=self._time) if is_own else note)


def _read(
    queries: Sequence[FeedingQuery],
    notes: Mapping[FeedingQuery, Note],
    up_to_us: int,
) -> int:
    """Has queries read on up to a time; up to which time all of their records wait now, that time at most."""
    for query in queries:
        if not query.has_begun:
            query.begin(notes[query].place)
        query.read(up_to_us)
    return min(up_to_us, *(query.known_us for query in queries))


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


def _behind(records: Sequence[Record], place: Place) -> Sequence[Record]:
    """Those behind a place; records are in the order of their places."""
    return records[bisect_right(records, place, key=lambda record: record.place) :]


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
