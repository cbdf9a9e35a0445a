"""The driver of tasks that stay: plans parts of the log, has tasks step them, and tells what they answer (ADR 81)."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.engine.archive_queue import ArchiveQueue
from st_common.engine.committing import APP, Committing
from st_common.engine.cross_shard import (
    NOBODY,
    Asking,
    Shards,
    asked_by,
    changes_kind,
    everybody,
)
from st_common.engine.local import BASE_S
from st_common.engine.owner import Owner
from st_common.engine.pace import Pace
from st_common.engine.packets import step_settings
from st_common.engine.suspension import tell_failures
from st_common.engine.timekeeper import Heard, Timekeeper
from st_common.log.control import control_rows
from st_common.log.log import Segment
from st_common.operators.skeleton.cache_counts import from_json, summed
from st_common.operators.state.fixes import NEVER
from st_common.operators.turn.part import Counters
from st_common.position import position_of, segment_of
from st_common.spark.exchange.crew import Crew, Plan
from st_common.spark.exchange.decoded import handed_over
from st_common.spark.exchange.eras import (
    Era,
    begin_era,
    era_at,
    era_of,
    knows_guests,
    states_of,
    wider,
)
from st_common.spark.exchange.results import Told
from st_common.spark.shard import Ints, failures_in, foreign_in, read_result
from st_common.spark.task_settings import TaskSettings, tasks_folder
from st_common.storage import make_folder

BATCH_BYTES = 16 << 20
_SHARDS_OF_A_BATCH, _MOST_BATCHES = 4, 4
_MUCH_LESS = 4
_MANY = 4
"""Queries are dealt anew by place once more than a quarter of those that could be are not."""
RENEW_S = 3600.0
"""How long a task stays, where others can take its shards: what it has gathered in memory ends with it."""
FILES_FROM_BYTES, FILES_FROM_ROWS = 2 << 20, 100_000
"""From so many bytes of the log on, and so many rows of changes of a shard, it writes them into files by itself: a file
takes some 50 ms, however small.
"""


def batch_bytes(shards: int) -> int:
    """How much of a backlog a plan takes: what each of many shards gets of it should be worth the step's fixed 4 ms.

    Example:
        1 to 7 shards: 16 MiB; 8: 32; 16 and more: 64
    """
    times = min(max(shards // _SHARDS_OF_A_BATCH, 1), _MOST_BATCHES)
    return BATCH_BYTES * times


class ResidentEngine(Committing):
    """Plans parts of the log, has tasks step them, and tells what they answer; see `Committing`.

    Args:
        home: the home folder.
        feed: the stream, and its shards.
        crew: the tasks, or who listens for them.
        owner: of the stream's lease; without one (in tests) no commit is fenced.
        check: raises when no more tasks will come.
        end: the log ends before this segment; None: where it ends.
        sink: given what tasks decoded and filtered, for the archive beside the engine, which was made before it.
    """

    def __init__(
        self,
        home: Home,
        feed: TaskSettings,
        crew: Crew,
        owner: Owner | None = None,
        *,
        check: Callable[[], None] = lambda: None,
        end: int | None = None,
        sink: ArchiveQueue | None = None,
    ) -> None:
        super().__init__(home, feed.stream, owner)
        self.settings = step_settings(feed.stream)
        self._feed, self._sink = feed, sink
        make_folder(tasks_folder(home, feed.stream.name))
        self.next_segment = self._first()
        if sink is not None:
            sink.begin(self.next_segment)
        self.committed_event = self._max_event = NEVER
        self._wanted_us: int | None = None
        self._timekeeper = Timekeeper(
            self.log,
            feed.stream,
            start=self.next_segment,
            folder=home.stream(feed.stream.name),
        )
        self._pace, self._plans = Pace(), 0
        self._based_s = time.monotonic()
        self._is_storing = False
        self._crew, self._check_tasks, self._end = crew, check, end
        if owner is not None:
            owner.helpers = crew.workers
        upto = min(self.committed, self.end)
        self.era = era_of(home, feed, committed=upto)
        self.open()

    def _first(self) -> int:
        """The segment to begin with: where the table ends, or the archive, if each shard has a state from before that.

        Where one has none the archive reads what lies between by itself.
        """
        done = max(segment_of(self.committed + 1), self._feed.start)
        if self._sink is None or not self._feed.start <= self._sink.archived < done:
            return done
        archived, name = self._sink.archived, self._feed.stream.name
        upto = position_of(archived, 0) - 1
        era = era_at(self._home, self._feed, upto=upto)
        for shard in range(self._feed.shards):
            states = states_of(self._home, name, era, shard)
            states.needed = archived
            begins = states.begins() or self._feed.start
            if not max(self.log.purged_before(), 1) <= begins <= archived:
                return done
        return archived

    def _check_all(self) -> None:
        """Raises when another process owns the stream by now, or no more tasks will come."""
        self._check()
        self._check_tasks()

    def take_at_most(self, segments: int) -> None:
        """Lets a batch take no more than so many segments, until its pace says otherwise."""
        self._pace = Pace(segments=segments)

    @property
    def end(self) -> int:
        """The last position that all shards have stepped."""
        return position_of(self.next_segment, 0) - 1

    def batch(self) -> bool:
        """Has the next part of the log stepped, and tells its changes by the journal; False when there is nothing new.

        Raises:
            FairwayError: the log or a state cannot be used.
        """
        self._relieve()
        begun_s, start = time.monotonic(), self.next_segment
        ends = [n for n in (self._end, self.counted_until(start)) if n is not None]
        segments = self.log.segments(
            start,
            max_bytes=batch_bytes(self._feed.shards),
            max_segments=self._pace.segments,
            end=min(ends, default=None),
        )
        if not segments:
            self._crew.listen()
            return False
        self.log.sync(segments)  # what is told follows from rows that are durable
        segments = self._in_one_era(segments)
        end = segments[-1].number + 1
        metas = self._follow(segments)
        self._timekeeper.saw(segments, [Heard(**one) for one in metas[0]["heard"]])
        if self.end > self.committed:
            self._count(metas, segments=end - start)
        self._leave_others(metas, are_coming=segments[-1].statement)
        self._pace = self._pace.after(end - start, time.monotonic() - begun_s)
        return True

    def _follow(self, segments: list[Segment]) -> list[dict[str, Any]]:
        """Has some segments stepped, and tells what they make; what shards say beside that."""
        start, end = segments[0].number, segments[-1].number + 1
        plan = self._plan(start, end, untold=self._rows_for_files(segments))
        blobs = self._crew.step(plan, self._check_all)
        self._hand_over(plan, segments, blobs)
        results = [read_result(blob) for blob in blobs]
        metas = [meta for _, meta in results]
        if failures := failures_in(metas):
            tell_failures(self._home, failures)
        told = [table for table, _ in results]
        kept = [shard for shard, meta in enumerate(metas) if meta["is_kept"]]
        if kept:
            self._tell_kept(plan, kept, told, foreign_in(blobs))
            return metas
        if self.has_files:
            self.commit()  # what is told by the journal stands behind them
        self.next_segment = end
        self.tell(told)
        return metas

    def _hand_over(
        self, plan: Plan, segments: list[Segment], blobs: list[bytes]
    ) -> None:
        """Puts what tasks decoded and filtered into the sink of the archive."""
        if self._sink is not None and not plan.is_archived:
            stream = self._feed.stream
            self._sink.put(*handed_over(blobs, segments, self.log, stream))

    def _tell_kept(
        self, plan: Plan, shards: list[int], told: list[pa.Table], foreign: Ints
    ) -> None:
        """Tells what a plan made: some shards write it into files, but for what is told at positions of several."""
        if not tables.exists(self._table):
            with tables.locked(self._table):
                tables.create(self._table, self._contract)
        shared = foreign[:0] if self._is_alone else foreign
        blobs = self._crew.tell(plan, shards, shared.tobytes(), self._check_all)
        written = [Told.from_blob(blob) for blob in blobs]
        self.next_segment = plan.end
        self.tell_by_files(
            [file for one in written for file in one.files],
            [*told, *(one.rest for one in written)],
            rows=sum(one.rows for one in written),
        )

    def _relieve(self) -> None:
        """Gives what the driver steps while Spark starts to the tasks, once they have come: with all that it knows."""
        if self._crew.can_relieve:
            if self.next_segment > self._feed.start:
                self._store_here()
            self._crew.relieve()

    def _plan(self, start: int, end: int, *, untold: int | None = None) -> Plan:
        """The next plan: some segments."""
        self._plans += 1
        return Plan(
            number=self._plans,
            start=start,
            end=end,
            committed=self.committed,
            era=self.era.to_json(),
            untold=untold,
            is_archived=self._sink is None or end <= self._sink.archived,
        )

    def _rows_for_files(self, segments: list[Segment]) -> int | None:
        """From how many changes on a shard keeps what segments make, to write it into files; None: it does not.

        It does where they are a backlog, and it follows its own objects alone.
        """
        size = sum(segment.size for segment in segments)
        return FILES_FROM_ROWS if size >= FILES_FROM_BYTES else None

    def _in_one_era(self, segments: list[Segment]) -> list[Segment]:
        """The segments before the first one that has more shards follow all objects; an era begins if it is first."""
        if not self._feed.stream.moving or self._is_alone:
            return segments
        for at, segment in enumerate(segments):
            if segment.statement and (following := self._following_for(segment)):
                if at:
                    return segments[:at]
                self._begin_era(following, by_reach=self.era.by_reach)
        return segments

    def _following_for(self, segment: Segment) -> Shards:
        """The shards that must follow all objects once a segment has registered queries; nobody: as it is will do."""
        rows, shards = control_rows(self.log, segment), self._feed.shards
        asked = asked_by(rows, shards)
        if self.era.by_reach and changes_kind(rows):
            # Whose the query is that becomes another one is known to shards alone.
            return (
                everybody(shards) if self.era.following != everybody(shards) else NOBODY
            )
        must = asked.anywhere if self.era.by_reach else asked.all
        lacking = must - self.era.following
        return wider(self.era, lacking, shards=shards) if lacking else NOBODY

    @property
    def _is_alone(self) -> bool:
        """Whether one shard has all objects, whatever the era."""
        return self._feed.shards == 1

    def _leave_others(self, metas: list[dict[str, Any]], *, are_coming: bool) -> None:
        """Begins an era in which fewer shards follow all objects, or know guests instead, once that does.

        Not on the way to an export, whose states are of the era that it ends in. Guests are known, and queries dealt
        anew by place, once no more queries come.
        """
        if self._end is not None or self._is_alone or not self._feed.stream.moving:
            return
        meta, era = metas[0], self.era
        asking = Asking(frozenset(meta["asking"]), frozenset(meta["needed"]))
        by_reach = knows_guests(era, asking, shards=len(metas))
        if are_coming and by_reach and not era.by_reach:
            by_reach = False
        needed = asking.anywhere if by_reach else asking.all
        is_much_less = era.following and _MUCH_LESS * len(needed) <= len(era.following)
        undealt, nearby = meta["undealt"]
        is_scattered = by_reach and not are_coming and _MANY * undealt > nearby
        if is_much_less or is_scattered or by_reach != era.by_reach:
            self._begin_era(needed, by_reach=by_reach)

    def _begin_era(self, following: Shards, *, by_reach: bool) -> None:
        """Has these shards follow all objects from here on, and the others their own, and guests if that is said."""
        by_reach &= following != everybody(self._feed.shards)
        if self.next_segment > self._feed.start:
            self._store_here()
        era = Era(start=self.next_segment, following=following, by_reach=by_reach)
        needed = None if self._sink is None else self._sink.archived
        self.era = begin_era(self._home, self._feed, self.era, era, needed=needed)

    def _store_here(self) -> None:
        """Commits, and has all shards store their states at this very place, whoever breaks off meanwhile."""
        place, stored = self.next_segment, None
        while stored != place:
            # Nothing is stepped: but each shard is with a task, here.
            self._crew.step(self._plan(place, place), self._check_all)
            self.store()
            until_s = time.monotonic() + BASE_S
            while stored != place and time.monotonic() < until_s:
                self._check_all()
                stored = self._crew.stored()
                time.sleep(0.002)
        self._is_storing = False

    def _count(self, metas: list[dict[str, Any]], *, segments: int) -> None:
        """Adds what a batch did to the totals."""
        totals = self.totals
        for meta in metas:
            totals.counters += Counters(**meta["counters"])
            totals.caches = summed((totals.caches, from_json(meta["caches"])))
        totals.segments += segments
        totals.rejects += metas[0]["rejects"]
        totals.nulled.update(Counter(metas[0]["nulled"]))
        totals.filtered_out.update(Counter(metas[0]["filtered_out"]))
        self._max_event = max(meta["max_event"] for meta in metas)
        waits = [meta["wanted"] for meta in metas if meta["wanted"] is not None]
        self._wanted_us = min(waits, default=None)

    def keep_time(self) -> bool:
        """See `LocalEngine.keep_time`. What shards wait for is not known after a start: so something is taken to."""
        if self._end is not None:
            return False
        is_known = self._max_event != NEVER
        highest = self._timekeeper.feed.delays.highest_us
        return self._timekeeper.write_if_due(
            lambda: self._wanted_us if is_known else NEVER,
            self._check,
            max_event=self._max_event if is_known else highest,
        )

    def _has_committed(self) -> None:
        self.committed_event = self._max_event

    def commit_if_due(self) -> None:
        """Commits once a second, and has states stored every ten."""
        self._check_all()
        if self.is_due:
            self.commit()
        self._let_go()
        if time.monotonic() - self._based_s >= BASE_S and not self._is_storing:
            self.store()

    def store(self) -> None:
        """Commits, and has the tasks store their states, which then have seen nothing that the table does not hold."""
        self.commit()
        self._crew.store(None if self._sink is None else self._sink.archived)
        self._based_s, self._is_storing = time.monotonic(), True

    def _let_go(self) -> None:
        """Lets go of the log up to where all states are stored."""
        begins = self._crew.begins() if self._is_storing else None
        if begins is not None:
            # Else a start takes states of an era before: what it needs was said then.
            if self._sink is None or self._sink.archived >= self.era.start:
                self.log.publish(APP, begins)
            self._is_storing = False
            self._crew.renew(after_s=RENEW_S)  # now that others find all that it knows
        elif time.monotonic() - self._based_s >= 6 * BASE_S:
            self._is_storing = False  # a task broke off on the way: once more

    def close(self) -> None:
        """Commits, and waits for states that are stored: the next start reads less of the log."""
        self.store()
        until_s = time.monotonic() + BASE_S
        while self._is_storing and self._crew.is_whole and time.monotonic() < until_s:
            self._let_go()
            time.sleep(0.01)

    def abandon(self) -> None:
        """Lets the tasks end without a commit."""
        self._crew.close()
        self._journal.close()
