"""The archive job: every fix into `positions`, every reject into `rejects`, exactly once (docs/architecture.md)."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.stream_values import FILTER_COLUMNS, LATE_COLUMNS
from st_common.contracts import load_contract
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock
from st_common.decode.batch import Part
from st_common.engine.archive_queue import ArchiveQueue, Marks, cut, end_of, together
from st_common.engine.damage import tell_damage
from st_common.engine.filter_decisions import FilterDecisions
from st_common.engine.levels import Levels
from st_common.engine.log_identity import ARCHIVE, log_note
from st_common.engine.owner import now_us
from st_common.engine.pace import Pace, taken
from st_common.engine.packets import step_settings
from st_common.engine.tidy import OPEN_MB, tidy
from st_common.history.stored import TOO_LATE
from st_common.log.control import control_rows
from st_common.log.log import Log, Segment
from st_common.log.packing import pack_when_due
from st_common.log.reader import Piece, pieces
from st_common.log.retention import remove_raw
from st_common.operations.alerts import tell
from st_common.partitioning.groups import require_stream_in
from st_common.partitioning.middles import middles
from st_common.partitioning.regions import Regions, assign
from st_common.partitioning.store import current
from st_common.position import position_of

READER = ARCHIVE
_DAY_US = 86_400_000_000
BATCH_BYTES = 64 << 20
TIDY_EVERY = 20  # commits: ten minutes of a stream that is archived each 30 s
_STAMP = pa.timestamp("us", tz="UTC")


@dataclass
class Archived:
    """What an archive did since it started.

    Attributes:
        segments: how many it read.
        fixes: how many it stored in `positions`.
        rejects: how many it stored in `rejects`.
    """

    segments: int = 0
    fixes: int = 0
    rejects: int = 0


class Archive:
    """Stores the log of one stream in `positions` and `rejects`, exactly once (docs/adr/0096).

    It takes what the engine beside it has decoded and filtered. What that began behind, and all of the log where no
    engine is, it reads by itself.

    Each table remembers by its app transaction, `archive-STREAM`, up to which segment it has everything. The two may
    differ after a crash between their commits: reading begins at the earlier one, and the other one leaves out what it
    has.

        positions up to segment 41, rejects up to 39   ->   reads from 40; positions takes rows from segment 42 on

    Attributes:
        log: the log of the stream.
        next_segment: the segment that is read next.
        max_event_us: the largest event time seen since the start, us UTC; None before the first.
        totals: what it did since the start.
        failure: what stopped its thread; see `check`.
        levels: the tables that are made from `positions`.
        sink: what the engine in this process has decoded; None: there is none.

    Args:
        home: the home folder.
        stream: the settings of the stream.
        sink: where an engine of this process puts what it has decoded; without one all of the log is decoded here.
    """

    def __init__(
        self, home: Home, stream: StreamSettings, sink: ArchiveQueue | None = None
    ) -> None:
        self._home, self._stream, self.log = home, stream, Log(home.log(stream.name))
        self._positions, self._rejects = (
            home.table("positions", stream.name),
            home.table("rejects"),
        )
        self._app = f"{READER}-{stream.name}"
        self.next_segment = min(self._done(self._positions), self._done(self._rejects))
        self.max_event_us: int | None = None
        self.totals = Archived()
        self.failure: Exception | None = None
        self.levels = Levels(home, stream)
        self.sink = sink
        if sink is not None:
            sink.archived = self.next_segment
        self._tail: FilterDecisions | None = None
        self._marks, self._is_filtered = Marks(), False
        self._pace = Pace()
        self._commits = 0

    def _done(self, table: Path) -> int:
        committed = tables.committed(table, self._app)
        return 0 if committed is None else committed + 1

    def batch(self) -> bool:
        """Archives what the log has, up to what fits into a batch (see `Pace`).

        Where fixes are filtered and lateness is set, a held fix waits until it is known what becomes of it: segments
        from it on are stored by a later batch.

        Returns:
            False when there is nothing new, or nothing yet that is decided.

        Raises:
            LogError: a segment is missing or damaged.
            ConfigError: the regions of the stream's group have other dimensions than its elements.
            ConflictError: a table went back to an older version, or another writer was quicker.
        """
        begun_s, start = time.monotonic(), self.next_segment
        known = self._known(start)
        if not known:
            return False
        self._notice(known)
        end = end_of(known[-1]) - 1
        self._store(known, end)
        self.next_segment = end + 1
        if self._tail is not None:
            self._tail.marks.forget(end + 1)
        if self.sink is not None:
            self.sink.forget(end + 1)
        self.log.publish(READER, self.next_segment)
        self.totals.segments += end + 1 - start
        self._pace = self._pace.after(end + 1 - start, time.monotonic() - begun_s)
        return True

    def _known(self, start: int) -> list[Piece]:
        """The next pieces of the log, as far as it is known which of their fixes are filtered: a batch at most."""
        sink = self.sink
        if sink is None or sink.start is None or start < sink.start:
            return self._read(start, end=None if sink is None else sink.start or 0)
        found = together(list(taken(sink.since(start), lambda piece: piece.rows)))
        self._tail, self._marks = None, sink.marks
        self._is_filtered = sink.is_filtered
        return found

    def _read(self, start: int, *, end: int | None) -> list[Piece]:
        """Pieces of the log that no engine hands over."""
        segments = self.log.segments(
            start, max_bytes=BATCH_BYTES, max_segments=self._pace.segments, end=end
        )
        read = pieces(self.log, segments, self._stream)
        return self._decided(list(taken(read, lambda piece: piece.rows)))

    def _notice(self, known: list[Piece]) -> None:
        """Takes on what the pieces say of time, and tells what is wrong with them."""
        self._see_clock_rows(known)
        for damage in (piece.damage for piece in known if piece.damage is not None):
            tell_damage(self._home, self._stream.name, damage)
        self._tell_raised([segment for piece in known for segment in piece.segments])

    def _store(self, known: list[Piece], end: int) -> None:
        """Appends the fixes and the rejects of pieces, up to a segment, to their tables."""
        # Read for each batch: new regions count from here on, and rows that are stored keep theirs.
        regions = current(self._home, self._stream.group)
        require_stream_in(regions, self._stream)
        decoded = [(piece, piece.part) for piece in known if piece.part]
        fixes = [self._fixes(piece, part, regions) for piece, part in decoded]
        rejects = [self._reject_rows(piece, part) for piece, part in decoded]
        self._append(self._positions, "positions", fixes, end)
        self._append(self._rejects, "rejects", rejects, end)
        self._tidy()
        self.totals.fixes += sum(map(len, fixes))
        self.totals.rejects += sum(map(len, rejects))

    def _tidy(self) -> None:
        """Joins the small files of its tables now and then: each commit brings one to each day that it has rows of."""
        self._commits += 1
        for path, name in ((self._positions, "positions"), (self._rejects, "rejects")):
            contract = load_contract(name)
            tidy(
                self._home,
                self._stream.name,
                path,
                contract,
                self._commits,
                every=TIDY_EVERY,
                target_mb=OPEN_MB,
            )

    def _decided(self, pieces: list[Piece]) -> list[Piece]:
        """The first of the pieces, as far as it is known which of their fixes are filtered."""
        if not pieces:
            return pieces
        if (tail := self._tail) is None:
            tail = FilterDecisions(
                self._home, self._stream, self.log, self.next_segment
            )
            self._tail, self._marks, self._is_filtered = tail, tail.marks, False
        tail.take(pieces)
        filters = (piece.stream.position_filter for piece in pieces)
        self._is_filtered |= any(one is not None for one in filters)
        if not self._is_filtered:
            return pieces
        tail.decide(end_of(pieces[-1]))
        return cut(pieces, self.next_segment, tail.decided)

    def _see_clock_rows(self, pieces: list[Piece]) -> None:
        """Time goes on by clock rows too: a day can close while the feed is quiet."""
        for segment in (
            one for piece in pieces if piece.part is None for one in piece.segments
        ):
            for _, row in chosen(control_rows(self.log, segment), Clock):
                self.max_event_us = max(row.ts_us, self.max_event_us or row.ts_us)

    def _append(
        self, path: Path, contract_name: str, parts: list[pa.Table], end: int
    ) -> None:
        contract = load_contract(contract_name)
        filtered = FILTER_COLUMNS if self._is_filtered else {}
        own = {**LATE_COLUMNS, **self._stream.attributes, **filtered}
        extra = own if contract.extendable else None
        none = _without_day(contract.arrow_schema(extra))
        rows = pa.concat_tables(
            [*parts, none], promote_options="default"
        )  # null where a reading has no such attribute
        done = self._done(path)
        if done > end:
            return
        if done > self.next_segment:
            rows = rows.filter(pa.compute.field("segment") >= done)
        after = (
            max(done, self.next_segment) - 1
        )  # a table that went back is an error, not a gap
        tables.append(
            path,
            rows,
            contract,
            app=self._app,
            version=end,
            after=after,
            notes=log_note(self.log, self._app, end),
        )

    def _tell_raised(self, segments: list[Segment]) -> None:
        """Alerts when the clock of who appended was set back: records without times of their own got later ones."""
        raised = [segment.number for segment in segments if segment.raised]
        if not raised:
            return
        what = f"segments from {raised[0]} to {raised[-1]} arrived before those in front of them ({len(raised)} in all)"
        tell(
            self._home,
            self._stream.name,
            f"{what}: a clock was set back; they count as arrived with them",
        )

    def _fixes(self, piece: Piece, part: Part, regions: Regions) -> pa.Table:
        fixes = part.decoded.fixes
        n = len(fixes)
        ts = fixes["event_ts"].to_numpy()
        if n:
            self.max_event_us = max(int(ts.max()), self.max_event_us or int(ts.max()))
        segment = piece.segments[0].number + part.fix_at.astype(np.int64)
        places = middles(fixes, piece.stream.columns, regions.dimensions)
        region = assign(regions, places)
        names = pa.array(regions.region_id, pa.string()).take(pa.array(region))
        columns = {
            "region_id": names,
            "region_version": pa.repeat(pa.scalar(regions.version, pa.int32()), n),
            "segment": pa.array(segment),
            "row": fixes["row"],
            "event_ts": fixes["event_ts"].cast(_STAMP),
            "x": fixes["x"],
            "y": fixes["y"],
            "object": fixes["object"].cast(pa.string()),
            "gone": fixes["gone"],
        }
        row = fixes["row"].to_numpy().astype(np.int64)
        position = np.asarray(position_of(segment, row))
        columns[TOO_LATE] = self._marks.too_late(position)
        columns |= {name: fixes[name] for name in piece.stream.attributes}
        if self._is_filtered:
            columns |= self._marks.columns(position)
        return pa.table(columns)

    def _reject_rows(self, piece: Piece, part: Part) -> pa.Table:
        rejects = part.decoded.rejects
        n = len(rejects)
        arrival = np.array(
            [segment.arrival_us for segment in piece.segments], np.int64
        )[part.reject_at]
        return pa.table(
            {
                "segment": pa.array(
                    piece.segments[0].number + part.reject_at.astype(np.int64)
                ),
                "row": rejects["row"],
                "arrival_ts": pa.array(arrival).cast(_STAMP),
                "stream": pa.array([self._stream.name] * n, pa.string()),
                "reason": rejects["reason"],
                "raw": rejects["raw"],
                "line": rejects["line"],
            }
        )

    def keep_house(self) -> None:
        """Packs segments that have lain for a while; removes raw bytes of packets that are older than `raw_days`."""
        pack_when_due(self.log, now_us=now_us())
        days = self._stream.raw_days
        if days is not None:
            remove_raw(self.log, before_us=now_us() - round(days * _DAY_US))

    def goal(self) -> int:
        """The segment before which all could be stored now."""
        if self.sink is None or self.sink.start is None:
            return self.log.end()
        return max(self.sink.start, self.sink.decided)

    @property
    def is_behind(self) -> bool:
        """Whether the engine had better wait for it: see `ArchiveQueue`."""
        return self.sink is not None and self.sink.is_full

    def check(self) -> None:
        """Raises what stopped the archive, if something did; engines ask before each batch."""
        if self.failure is not None:
            raise self.failure

    def clock_us(self) -> int | None:
        """The stream's clock as far as this archive saw it, us UTC; None before the first time.

        That is the largest event time less the lateness.
        """
        return (
            None
            if self.max_event_us is None
            else self.max_event_us - step_settings(self._stream).lateness_us
        )

    @property
    def stream_folder(self) -> Path:
        """The folder of the stream."""
        return self._home.stream(self._stream.name)

    def position(self) -> int:
        """The position after the last archived row: that of the first row of `next_segment`."""
        return position_of(self.next_segment, 0)


def _without_day(schema: pa.Schema) -> pa.Table:
    """No rows; the day that a row belongs to is added when a table is written."""
    return pa.schema(
        [field for field in schema if not field.name.endswith("_date")]
    ).empty_table()
