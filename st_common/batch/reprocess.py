"""Closed days of a stream processed again: their fixes in the order of event time, late ones too, into `visits`."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.batch.borders import Border, Borders
from st_common.batch.days import Again, DayAgain, check_closed
from st_common.batch.folding import Fold, Interval, fold_here
from st_common.batch.ordered import Ordered, fixes_of_days
from st_common.batch.processed import Processed, note_processed
from st_common.batch.reconcile import (
    Late,
    differences,
    late_fixes,
)
from st_common.batch.trial import Trial, trial_table
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import Contract, load_contract
from st_common.controls.rows import Clock
from st_common.controls.writing import to_bytes
from st_common.engine.local import layers_of
from st_common.engine.packets import step_settings
from st_common.engine.statements import Reached, statements, us_of
from st_common.engine.topology import frozen, topology_of
from st_common.errors import ConfigError
from st_common.history.purged import require_all
from st_common.history.told import begin_of, is_told, told_visits
from st_common.history.visits import MEMBERS, fold_visits, members_at_end
from st_common.log.log import Log
from st_common.operations.history import days_of
from st_common.operators.events.packet import Packet, control_packet
from st_common.operators.matching.layer import LayerOf
from st_common.operators.runtime.failed import Failure
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.stages import step
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.operators.turn.part import Counters

_DAY = timedelta(days=1)


def reprocess(
    home: Home,
    stream: StreamSettings,
    since: date,
    until: date,
    trial: Trial | None = None,
    *,
    fold: Fold = fold_here,
    put: "Put" = tables.replace,
) -> Again:
    """Processes closed days again, and puts their visits into the place of those that are there.

    It runs the step of the engines over the archived fixes in the order of their event times, with the statements of
    the log where they count, from the newest border before the first day. Nothing is delivered, `changes` stays as it
    is, and an engine may run beside it. A second run with the same inputs finds the same rows, and writes nothing.

    Args:
        home: where log and tables lie.
        stream: the settings of the stream.
        since: the first day (UTC).
        until: the end, not in it.
        trial: other queries or layers, whose visits go into a table of their own; None: those of the log.
        fold: who folds a day: this process, or Spark; the rows are the same.
        put: who puts a day's rows into a table: this process, or Spark.

    Raises:
        ConfigError: the interval is empty, one of its days is still open, or the stream never ran.
        StateError: the stream was begun with other settings.
        LogError: a segment is missing or damaged.
        FairwayError: fixes that the days follow from were purged, and no border behind them is kept.
    """
    started_s = time.monotonic()
    check_closed(home, stream.name, since, until)
    arm = replace(BatchArm.of(home, stream, trial), fold=fold, put=put)
    border = arm.first_border(since)
    began, before = (border.day, border.fixes) if border else (None, 0)
    days: list[DayAgain] = []
    while border is not None and border.day < until:
        day, border = arm.run_day(border, write=border.day >= since)
        days += [day] if day.day >= since else []
    return Again(
        stream=stream.name,
        began=began,
        days=tuple(days),
        fixes=border.fixes - before if border else 0,
        seconds=round(time.monotonic() - started_s, 3),
    )


class Put(Protocol):
    """Puts rows into the place of those of a table that keep a predicate, in one commit; see `tables.replace`."""

    def __call__(
        self, path: Path, data: pa.Table, contract: Contract, *, predicate: str
    ) -> object:
        """Puts them there.

        Raises:
            ContractError: the rows or the table are not what the contract says.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told of an interval.

    Attributes:
        since: its beginning.
        until: its end, which does not belong to it.
        changes: those with event times in it.
        failures: queries that cannot be judged any more.
        counters: what the step counted on the way to them; None where shards folded the fixes.
    """

    since: datetime
    until: datetime
    changes: pa.Table
    failures: tuple[Failure, ...]
    counters: Counters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """What the rows of an interval come to: the state behind them, the changes on the way."""

    state: State
    reached: Reached
    changes: tuple[pa.Table, ...] = ()
    failures: tuple[Failure, ...] = ()
    counters: Counters | None = None


@dataclass(frozen=True)
class BatchArm:
    """Runs the step over a stream's days.

    Args:
        home: where log and tables lie.
        stream: the settings, with the stream's key of ids.
        trial: other queries or layers than those of the log; None: those.
        fold: who folds a day.
        put: who puts its rows into a table.
    """

    home: Home
    stream: StreamSettings
    trial: Trial | None = None
    fold: Fold = fold_here
    put: Put = tables.replace

    @staticmethod
    def of(
        home: Home, stream: StreamSettings, trial: Trial | None = None
    ) -> "BatchArm":
        """The batch arm of a stream that has run.

        Raises:
            ConfigError: it never ran.
            StateError: it was begun with other settings.
        """
        topology = topology_of(home, stream.name)
        if topology is None:
            raise ConfigError(
                f"stream {stream.name!r} never ran",
                hint=f"`fairway run {stream.name}` first",
            )
        begun = frozen(home, stream, engine=topology.engine, shards=topology.shards)
        return BatchArm(home, begun, trial)

    @cached_property
    def _settings(self) -> Settings:
        return step_settings(self.stream)

    @cached_property
    def _layer_of(self) -> LayerOf:
        return layers_of(self.home, self.stream)

    @cached_property
    def _log(self) -> Log:
        return Log(self.home.log(self.stream.name))

    @cached_property
    def _borders(self) -> Borders:
        return Borders(self.home, self.stream.name, self._told, self.trial)

    @cached_property
    def _told(self) -> str:
        """The settings that decide answers, as text without secrets."""
        attributes = sorted(self.stream.attributes.items())
        trial = "" if self.trial is None else f" {self.trial.described()}"
        return f"{replace(self._settings, id_key='')} {attributes}{trial}"

    @property
    def settings_digest(self) -> str:
        """What tells settings that decide other answers from these."""
        return hashlib.sha256(self._told.encode()).hexdigest()[:12]

    def first_border(self, since: date) -> Border | None:
        """Where a run begins that is to know all before a day; None where the stream has no fixes.

        Raises:
            FairwayError: there is no border that counts, and fixes of the stream's first day were purged.
        """
        return self._borders.newest(since) or self.beginning()

    def beginning(self) -> Border | None:
        """Where a run begins that reads all fixes; None where the stream has none.

        Raises:
            FairwayError: some were purged.
        """
        days = days_of(self.home.table("positions", self.stream.name))
        if not days:
            return None
        require_all(self.home, self.stream.name)
        return self.border_at(days[0])

    def border_at(self, day: date) -> Border:
        """Where a run begins that knows nothing of the days before one but the statements of the log."""
        return Border(
            day=day,
            state=self._first_state(),
            members=MEMBERS.empty_table(),
            reached=Reached(),
            fixes=0,
            late=0,
        )

    def _first_state(self) -> State:
        """The state before all fixes; of a trial its queries are registered there."""
        rows = b"" if self.trial is None else self.trial.registrations(self.home)
        if not rows:
            return State()
        first = control_packet(0, rows, stream=self.stream.name)
        return step(State(), [first], self._settings, self._layer_of).state

    def run_day(self, border: Border, *, write: bool) -> tuple[DayAgain, Border]:
        """Runs one day, and keeps what is known behind it.

        Args:
            border: what is known when the day begins.
            write: whether its visits go into the table.
        """
        since, until = begin_of(border.day), begin_of(border.day + _DAY)
        # Before any is read: one that comes meanwhile may be missed, and must not be counted as seen.
        counts = fixes_of_days(self.home, self.stream.name)
        of_day = counts.get(border.day, 0)
        fed, changes = self.changes(border, since, until)
        fixes = border.fixes + of_day
        late = self._late(since, until)
        run = self._run_name(border.day, fixes, fed.reached)
        visits = fold_visits(changes, border.members, since=since, until=until, run=run)
        replaced = write and self._write("visits", border.day, visits)
        told = self._reconciled(border, visits, late, run) if write else None
        after = Border(
            day=until.date(),
            state=self.retired(fed.state),
            members=members_at_end(visits, until),
            reached=fed.reached,
            fixes=fixes,
            late=border.late + late.count,
        )
        self._borders.keep(after)
        if write and self.trial is None:
            self._note(after, border.day, counts)
        return DayAgain(
            day=border.day,
            run=run,
            fixes=of_day,
            late=late.count,
            visits=len(visits),
            differs=0 if told is None else len(told),
            unexplained=0 if told is None else _count_unexplained(told),
            replaced=replaced,
            compared=told is not None,
            failed=tuple(f"{one.query}: {one.why}" for one in fed.failures),
        ), after

    def _note(self, after: Border, day: date, counts: Mapping[date, int]) -> None:
        """Notes that a day was written, behind its tables and its border.

        Args:
            after: what is known behind it.
            day: the day.
            counts: how many fixes each day had when it was begun.
        """
        is_open = after.reached.clock_us < us_of(begin_of(after.day)) and (
            max(counts, default=day) <= day
        )
        processed = Processed(
            fixes=after.fixes,
            of_day=counts.get(day, 0),
            settings=self.settings_digest,
            open_from=after.reached.segment if is_open else None,
        )
        note_processed(self.home, self.stream.name, day, processed)

    def told(self, border: Border, edges: Sequence[datetime]) -> Iterator[Told]:
        """What is told from one edge to the next, each going on from the state of the one before; nothing is kept.

        Args:
            border: what is known at the first edge.
            edges: times, rising.
        """
        for since, until in pairwise(edges):
            fed, changes = self.changes(border, since, until)
            yield Told(
                since=since,
                until=until,
                changes=changes,
                failures=fed.failures,
                counters=fed.counters,
            )
            state = self.retired(fed.state)
            border = replace(border, state=state, reached=fed.reached)

    def retired(self, state: State) -> State:
        """A state without what no answer needs any more."""
        return retired(state, self._settings, least=LEAST)

    def _run_name(self, day: date, fixes: int, reached: Reached) -> str:
        told = f"{self.stream.name} {self._told} {day} {fixes} {reached}"
        return f"batch-{hashlib.sha256(told.encode()).hexdigest()[:12]}"

    def _late(self, since: datetime, until: datetime) -> Late:
        """Which fixes of a day came too late."""
        return late_fixes(
            self.home, self.stream.name, since, until, self._settings.lateness_us
        )

    def changes(
        self, border: Border, since: datetime, until: datetime
    ) -> tuple["Fed", pa.Table]:
        """What the rows of a day come to, and the changes of the day.

        With lateness, some are told only when the clock has passed the day by as much: the step goes on so far, and
        what it comes to then is used for these changes alone. So the state does not hang on where days are cut.

            fixes    | day ............... | lateness |
            state    --------------------> kept
            changes  ---------------------------------> those of the day
        """
        since_us, until_us = us_of(since), us_of(until)
        late_us = until_us + self._settings.lateness_us
        day = self._fed(border.state, border.reached, since_us, until_us, self.fold)
        held = self._fed(day.state, day.reached, until_us, late_us, fold_here)
        last = step(
            held.state, [_clock(held.state, late_us)], self._settings, self._layer_of
        )
        told = settled([*day.changes, *held.changes, last.changes])
        of_day = pc.and_(
            pc.greater_equal(told["event_ts"], since), pc.less(told["event_ts"], until)
        )
        counters = None
        if day.counters is not None and held.counters is not None:
            counters = day.counters + held.counters + last.counters
        return replace(day, counters=counters), told.filter(of_day)

    def _fed(
        self, state: State, reached: Reached, since_us: int, until_us: int, fold: Fold
    ) -> "Fed":
        """What the rows of an interval come to."""
        if since_us == until_us:
            return Fed(state=state, reached=reached, counters=Counters())
        placed, behind = statements(
            self.home,
            self._log,
            self.stream.name,
            reached,
            since_us=since_us,
            until_us=until_us,
        )
        interval = Interval(
            ordered=Ordered(self.home, self.stream, self._log, self.trial),
            placed=placed,
            reached=reached,
            since_us=since_us,
            until_us=until_us,
        )
        folded = fold(interval, state)
        return Fed(
            state=folded.state,
            reached=behind,
            changes=folded.changes,
            failures=folded.failures,
            counters=folded.counters,
        )

    def _reconciled(
        self, border: Border, visits: pa.Table, late: Late, run: str
    ) -> pa.Table | None:
        """In what the visits of a day differ from what was told, which goes into its table; None: nothing tells.

        A trial asks what nobody told, and of other days changes may be purged.
        """
        day = border.day
        if self.trial is not None or not is_told(self.home, self.stream.name, day):
            return None
        told = told_visits(self.home, self.stream.name, day, day + _DAY)
        is_late = border.late + late.count > 0
        rows = differences(told, visits, late, is_late=is_late, run=run)
        self._write("differences", border.day, rows)
        return rows

    def _write(self, table: str, day: date, rows: pa.Table) -> bool:
        """Puts a day's rows into a table, unless they are there already."""
        path, contract = self.home.table(table, self.stream.name), load_contract(table)
        if self.trial is not None:
            path = trial_table(self.home, self.stream.name, self.trial.name)
        there = rows.slice(0, 0)
        if tables.exists(path):
            of_day = [("event_date", "=", day)]
            there = tables.read(path, filters=of_day, contract=contract)
        order = [(name, "ascending") for name in rows.column_names]
        if there.sort_by(order).equals(rows.sort_by(order)):
            return False
        self.put(path, rows, contract, predicate=f"event_date = DATE'{day}'")
        return True


def _clock(state: State, at_us: int) -> Packet:
    """A packet by which the clock comes to a time."""
    return control_packet(state.next_segment, to_bytes(Clock(ts_us=at_us)))


def _count_unexplained(differences: pa.Table) -> int:
    """How many differences have no reason."""
    count = pc.sum(pc.equal(differences["why"], "unexplained")).as_py()
    return count or 0
