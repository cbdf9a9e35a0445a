"""Two streams into the log of a joint one: all fixes of both in one order, decided once (docs/adr/0036).

    cars     12:00  12:04  12:05         cars and police      12:00 c   12:01 p   12:04 c   and then the clock 12:04
    police   12:01  clock 12:04          waits                12:05 c, for the clock of police

The order is by `due_us` (`joint_fixes`), then by stream, then by place in its log. What stands in the joint log says of
each fix where it came from: so whoever goes on after a kill writes each once, and a note only says from where to look.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.home import JOINS_FILE, Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock
from st_common.delivery.joint_fixes import DUE, POSITION, JointFixes, Place
from st_common.formats.arrow_rows import packed
from st_common.log.control import control_rows, write_clock, write_end
from st_common.log.control import has_ended as has_ended_
from st_common.log.log import SEGMENT_LIMIT
from st_common.log.reader import pieces
from st_common.log.record_settings import log_for
from st_common.operations.awaited import write_awaited
from st_common.operations.records import read_record, write_record
from st_common.operators.events.timeline import LAST
from st_common.operators.state.fixes import NEVER
from st_common.position import start_of
from st_common.replay.files import wall_clock

NAME, OBJECT = "stream_name", "stream_object"
_POLL_S, _NOTE_S = 0.05, 1.0
_MOST_WAITING = 200_000  # fixes of a stream that is ahead
_ROWS = 50_000  # of a segment


def note_of(home: Home, joint: str) -> Path:
    """The file that says how far a joint stream has come in its streams, and for which it waits."""
    return home.stream(joint) / JOINS_FILE


class JointFeed:
    """Writes the fixes of two streams into the log of a joint stream, from where that ended before.

    None is written before its time has come in both: a stream that falls behind holds the other one back, and
    `waits_for` names it. A stream whose log ends with an end mark holds nobody back. The clock of the joint stream is
    that of the one furthest behind; it ends when both have.

    Args:
        home: the home folder of all three.
        joint: the settings of the joint stream.
        streams: those of all streams, by name.
        clock: the time that stamps arrivals, us UTC.

    Attributes:
        records: how many fixes it wrote.
        waits_for: the stream that is behind fixes that wait; "" while none do.

    Raises:
        ConfigError: there is no such stream.
        LogError: a log is damaged.
    """

    def __init__(
        self,
        home: Home,
        joint: StreamSettings,
        streams: Mapping[str, StreamSettings],
        *,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self.records, self.waits_for = 0, ""
        self._home, self._joint, self._clock = home, joint, clock
        self._begins = joint.joined
        self._streams = [stream_of(streams, name) for name in self._begins]
        self._log = log_for(home, joint)
        self._since_us: int | None = None
        self._noted: dict[str, Any] = {}
        self._noted_s = self._passed_s = -_NOTE_S
        self._open()

    @property
    def late(self) -> int:
        """How many fixes were left out, because they came behind the clock of their stream."""
        return sum(one.late for one in self._fixes)

    @property
    def position(self) -> int:
        """The first row of the joint log that is not written yet, less one."""
        return start_of(self._end) - 1

    def poll(self) -> int | None:
        """Writes what may be written by now, and gives how many fixes that were; None: there is nothing new."""
        end = self._log.end()
        news = [one.read(end) for one in self._fixes if not self._is_ahead(one)]
        written = self._write()
        if written or any(news):
            self._note()
            return written
        self._wait()
        self._pass_on()
        self._note()
        return None

    def run(self, *, follow: bool = False, seconds: float | None = None) -> None:
        """Writes what there is, and with `follow` also what comes, for some seconds or until it is interrupted."""
        end_s = None if seconds is None else time.monotonic() + seconds
        while end_s is None or time.monotonic() < end_s:
            written = self.poll()
            if written is None and not follow:
                break
            if written is None:
                time.sleep(_POLL_S)
        self.close()

    def close(self) -> None:
        """Notes how far it is."""
        self._note(force=True)

    def _open(self) -> None:
        """Finds out how far the joint log has come, by the note and what was written since."""
        with self._log.locked():
            note = read_record(note_of(self._home, self._joint.name)) or {}
            places = {
                name: Place(**note["streams"][name]) if note else Place()
                for name in self._begins
            }
            start = min(place.written for place in places.values())
            self._high_us = note.get("high_us", NEVER)
            written = self._written(max(start, self._log.purged_before()))
            self._end = self._log.end()
        self._fixes = [
            JointFixes(
                self._home,
                stream,
                begins=self._begins[stream.name],
                place=places[stream.name],
                written=written[stream.name],
            )
            for stream in self._streams
        ]

    def _written(self, start: int) -> dict[str, np.ndarray]:
        """The positions of fixes that the joint log has from a segment on, by stream; its time is noted as well."""
        rows = []
        for piece in pieces(self._log, self._log.segments(start), self._joint):
            if piece.part is not None:
                fixes = piece.part.decoded.fixes
                rows.append(fixes.select([NAME, POSITION]))
                self._pass(pc.max(fixes["event_ts"]).as_py())
            for control in piece.segments if piece.part is None else ():
                for _, row in chosen(control_rows(self._log, control), Clock):
                    self._pass(row.ts_us)
        if not rows:
            return dict.fromkeys(self._begins, np.empty(0, np.int64))
        table = pa.concat_tables(rows)
        return {
            name: table.filter(pc.equal(table[NAME], name))[POSITION].to_numpy()
            for name in self._begins
        }

    def _pass(self, us: int | None) -> None:
        """Notes that the joint log says this time."""
        self._high_us = max(self._high_us, NEVER if us is None else us)

    def _is_ahead(self, one: JointFixes) -> bool:
        """Whether enough of a stream waits for the other one."""
        is_first = one.clock_us > min(each.clock_us for each in self._fixes)
        return is_first and len(one.waiting or ()) >= _MOST_WAITING

    def _bound(self) -> tuple[int, int]:
        """Up to which time fixes may be written, and of that time those of which streams: up to this number."""
        going = [
            (one.clock_us, number)
            for number, one in enumerate(self._fixes)
            if not one.is_over
        ]
        return min(going, default=(LAST, len(self._fixes)))

    def _write(self) -> int:
        """Appends the fixes that nothing can come before any more, in their order."""
        up_to_us, last = self._bound()
        ready = []
        for number, one in enumerate(self._fixes):
            due = (
                np.empty(0, np.int64)
                if one.waiting is None
                else one.waiting[DUE].to_numpy()
            )
            ready.append((due < up_to_us) | ((due == up_to_us) & (number <= last)))
        if not any(mask.any() for mask in ready):
            return 0
        rows = self._rows(ready)
        with self._log.locked():
            if self._another_wrote():
                self._open()
                return 0
            self._append_all(rows)
            self._end = self._log.end()
        for one, mask in zip(self._fixes, ready, strict=True):
            one.let_go(mask)
        self.records += len(rows)
        return len(rows)

    def _another_wrote(self) -> bool:
        """Whether another process has written fixes or clocks since; the log is locked."""
        return any(
            segment.clock or not segment.control
            for segment in self._log.segments(self._end)
        )

    def _rows(self, ready: Sequence[np.ndarray]) -> pa.Table:
        """Fixes of both as records of the joint stream, in their order, with `DUE`."""
        tables = [
            _records(one.waiting.filter(pa.array(mask)), one.stream.name, self._joint)
            for one, mask in zip(self._fixes, ready, strict=True)
            if one.waiting is not None
        ]
        number = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        rows = pa.concat_tables(tables)
        order = np.lexsort((rows[POSITION].to_numpy(), number, rows[DUE].to_numpy()))
        return rows.take(pa.array(order))

    def _append_all(self, rows: pa.Table) -> None:
        """Appends rows by and by: before one that is due later than all before it say, the log gets that time."""
        due, ts = rows[DUE].to_numpy(), rows["event_ts"].to_numpy()
        bare = rows.drop_columns([DUE])
        start = 0
        while start < len(rows):
            said = np.maximum.accumulate(np.concatenate([[self._high_us], ts[start:]]))
            later = np.flatnonzero(due[start:] > said[1:])
            stop = start + int(later[0]) if len(later) else len(rows)
            self._append(bare.slice(start, stop - start))
            self._pass(int(said[stop - start]))
            if stop < len(rows):
                self._append_clock(int(due[stop]))
                self._pass(int(due[stop]))
            start = stop

    def _append(self, rows: pa.Table) -> None:
        for start in range(0, len(rows), _ROWS):
            part = rows.slice(start, _ROWS)
            payload = b"".join(packed(part))
            if len(payload) >= SEGMENT_LIMIT:
                half = len(part) // 2
                self._append(part.slice(0, half))
                self._append(part.slice(half))
                continue
            self._log.append(payload, arrival_us=self._clock())

    def _append_clock(self, us: int) -> None:
        write_clock(self._log, us, arrival_us=self._clock())

    def _wait(self) -> None:
        """Says for which stream fixes wait, and asks streams that are live and quiet to come to the next time."""
        heads = [pc.min(one.waiting[DUE]).as_py() for one in self._fixes if one.waiting]
        up_to_us, _ = self._bound()
        behind = [
            one for one in self._fixes if not one.is_over and one.clock_us == up_to_us
        ]
        waits_for = behind[0].stream.name if heads and behind else ""
        if waits_for != self.waits_for:
            self._since_us = self._clock() if waits_for else None
        self.waits_for = waits_for
        for one in behind if heads else ():
            folder = self._home.stream(one.stream.name)
            # Of this very time it may still have fixes.
            write_awaited(folder, self._joint.name, min(heads) + 1)

    def _pass_on(self) -> None:
        """Passes on the clock of the stream furthest behind, once a second at most, and the end of both."""
        up_to_us, _ = self._bound()
        has_ended = up_to_us == LAST
        if has_ended:
            up_to_us = max(one.place.newest_us for one in self._fixes)
        is_due = time.monotonic() - self._passed_s >= max(self._joint.tick_s, 1.0)
        is_later = up_to_us > self._high_us and (is_due or has_ended)
        if not (is_later or (has_ended and self._high_us != NEVER)):
            return
        with self._log.locked():
            if self._another_wrote():
                self._open()
                return
            if is_later:
                self._append_clock(up_to_us)
                self._pass(up_to_us)
                self._passed_s = time.monotonic()
            if has_ended and not has_ended_(self._log):
                write_end(self._log, arrival_us=self._clock())
            self._end = self._log.end()

    def _note(self, *, force: bool = False) -> None:
        """Notes how far both have come, once a second at most."""
        if not force and time.monotonic() - self._noted_s < _NOTE_S:
            return
        note = {
            "streams": {
                one.stream.name: asdict(one.resumes_at()) for one in self._fixes
            },
            "high_us": self._high_us,
            "waits_for": self.waits_for,
            "since_us": self._since_us,
        }
        if note != self._noted:
            write_record(note_of(self._home, self._joint.name), note)
        self._noted, self._noted_s = note, time.monotonic()


def _records(fixes: pa.Table, name: str, joint: StreamSettings) -> pa.Table:
    """Fixes of a stream as records of a joint one."""
    count = len(fixes)
    gone = fixes["gone"].combine_chunks()
    columns = {
        NAME: pa.array(np.full(count, name, object), pa.string()),
        OBJECT: fixes["object"].cast(pa.string()),
        "event_ts": fixes["event_ts"],
        "x": pc.if_else(gone, None, fixes["x"]),
        "y": pc.if_else(gone, None, fixes["y"]),
        "gone": gone,
        POSITION: fixes[POSITION],
        DUE: fixes[DUE],
    }
    for attribute in joint.attributes:
        if attribute not in columns:
            has_it = attribute in fixes.column_names
            values = (
                fixes[attribute]
                if has_it
                else pa.nulls(count, _TYPES[joint.attributes[attribute]])
            )
            columns[attribute] = values
    return pa.table(columns)


_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "double": pa.float64(),
    "long": pa.int64(),
    "bool": pa.bool_(),
}
"""Of attributes, as decoded fixes have them."""
