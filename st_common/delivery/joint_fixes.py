"""The fixes of one stream as a joint stream takes them: in the order in which they count there (docs/adr/0036).

A fix counts at `due_us`: with lateness at its event time, once the clock of its stream has passed it; without, at its
own row, which is at the largest event time so far. Late fixes are left out where there is lateness; where there is
none the step finds them by their object, as in their own stream.

    lateness 0      event time   10   20   15        due   10   20   20
    lateness 5                   10   20   12   16   due   10   20   late   16, waits for the clock to pass it
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock, End
from st_common.engine.damage import tell_damage
from st_common.log.control import control_rows
from st_common.log.log import Log, Segment
from st_common.log.reader import Piece, pieces
from st_common.operators.state.fixes import NEVER
from st_common.position import position_of, start_of
from st_common.runs import is_last

POSITION, DUE = "stream_position", "due_us"
_SEGMENTS, _BYTES = 512, 16 << 20  # that are read before some fixes are written


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where reading a stream can begin: at a segment, with what was known of its time in front of it.

    Attributes:
        segment: the next one to read.
        high_us: the largest event time in front of it, by which its clock goes; `NEVER` when none.
        newest_us: the largest event time that fixes and clock rows say; behind an end mark `high_us` is larger.
        over: no record came behind its newest end mark.
        written: from which segment of the joint log on there may be fixes of this segment or of later ones.
    """

    segment: int = 0
    high_us: int = NEVER
    newest_us: int = NEVER
    over: bool = False
    written: int = 0


class JointFixes:
    """What a joint stream has read of one of its streams, and has not written yet.

    Args:
        home: the home folder.
        stream: the settings of the stream.
        begins: the segment from which on all fixes count; of what is before it the last fix of each object does.
        place: where it is read on.
        written: int64, positions behind that place whose fixes the joint log has already.

    Attributes:
        place: behind what was read.
        is_read: whether that was the end of the log.
        waiting: fixes, with their `POSITION` and `DUE`; None before the first.
        late: how many were left out because they came behind the clock.
    """

    def __init__(
        self,
        home: Home,
        stream: StreamSettings,
        *,
        begins: int,
        place: Place,
        written: np.ndarray,
    ) -> None:
        self.stream, self.place, self.is_read, self.late = stream, place, False, 0
        self.waiting: pa.Table | None = None
        self._log = Log(home.log(stream.name))
        self._begins, self._written = begins, written
        self._lateness_us = round(stream.lateness_s * 1e6)
        self._notice = partial(tell_damage, home, stream.name)
        self._places = [place]
        self._last: pa.Table | None = None

    @property
    def clock_us(self) -> int:
        """Its clock, `NEVER` before the first fix: what is still to come is not due before it."""
        high_us, newest_us = self.place.high_us, self.place.newest_us
        if high_us == NEVER or self.place.segment < self._begins:
            return NEVER  # also while last fixes are looked for: they are due before what was read
        return min(high_us - self._lateness_us, newest_us)

    @property
    def is_over(self) -> bool:
        """Whether nothing is to come: its log ends with an end mark."""
        return self.place.over and self.is_read

    def read(self, joint_end: int) -> bool:
        """Reads the next segments of the log; whether there were any.

        Args:
            joint_end: where the joint log ends now.

        Raises:
            LogError: a segment is missing or damaged.
        """
        start = max(self.place.segment, self._log.first(), self._log.purged_before())
        end = self._begins if start < self._begins else None
        segments = self._log.segments(
            start, max_segments=_SEGMENTS, max_bytes=_BYTES, end=end
        )
        self.is_read = not segments
        self._log.sync(segments)  # what is made of them must not outlive them
        for piece in pieces(self._log, segments, self.stream):
            if piece.damage is not None:
                self._notice(piece.damage)
            self._take(piece, joint_end)
        return bool(segments)

    def resumes_at(self) -> Place:
        """Where whoever goes on later has to read, to have all that waits here."""
        if self._last is not None:
            return self._places[0]
        if self.waiting is None or not len(self.waiting):
            self._places = [self.place]
            return self.place
        first = pc.min(self.waiting[POSITION]).as_py()
        while self._places[1:] and start_of(self._places[1].segment) <= first:
            del self._places[0]
        return self._places[0]

    def let_go(self, written: np.ndarray) -> None:
        """Forgets fixes that wait, by a mask."""
        if self.waiting is not None:
            self.waiting = self.waiting.filter(pa.array(~written))

    def _take(self, piece: Piece, joint_end: int) -> None:
        first, last = piece.segments[0], piece.segments[-1]
        here = replace(self.place, segment=first.number, written=joint_end)
        if self._places[-1].segment < first.number and self._last is None:
            self._places.append(here)
        if piece.part is None:
            self._take_controls(first)
        else:
            self._take_fixes(piece, is_all=first.number >= self._begins)
        self.place = replace(self.place, segment=last.number + 1, written=joint_end)
        if self._last is not None and last.number + 1 >= self._begins:
            fixes, self._last = self._last, None
            self._wait(fixes)

    def _take_controls(self, segment: Segment) -> None:
        rows = control_rows(self._log, segment)
        place = self.place
        for _, clock in chosen(rows, Clock):
            newest_us, high_us = max(place.newest_us, clock.ts_us), place.high_us
            place = replace(
                place, newest_us=newest_us, high_us=max(high_us, clock.ts_us)
            )
        if any(chosen(rows, End)):
            place = replace(place, over=True)
            if self._lateness_us and place.newest_us != NEVER:
                # Behind an end mark the clock is past all that came before.
                passed = place.newest_us + self._lateness_us + 1
                place = replace(place, high_us=max(place.high_us, passed))
        self.place = place

    def _take_fixes(self, piece: Piece, *, is_all: bool) -> None:
        assert piece.part is not None  # noqa: S101 - for the type
        fixes = piece.part.decoded.fixes
        segments = piece.segments[0].number + piece.part.fix_at.astype(np.int64)
        position = position_of(segments, fixes["row"].to_numpy().astype(np.int64))
        ts = fixes["event_ts"].to_numpy()
        high = np.maximum.accumulate(np.concatenate([[self.place.high_us], ts]))
        newest_us = int(ts.max(initial=self.place.newest_us))
        self.place = replace(
            self.place, high_us=int(high[-1]), newest_us=newest_us, over=False
        )
        due, is_late = high[1:], np.zeros(len(ts), bool)
        if self._lateness_us:
            known = high[:-1] != NEVER
            due, is_late = ts, known & (ts < high[:-1] - known * self._lateness_us)
        self.late += int(np.count_nonzero(is_late))
        fixes = fixes.drop_columns(["row"]).append_column(POSITION, pa.array(position))
        fixes = fixes.append_column(DUE, pa.array(due)).filter(pa.array(~is_late))
        if is_all:
            self._wait(fixes)
        else:
            self._last = _last_of(_joined(self._last, fixes))

    def _wait(self, fixes: pa.Table) -> None:
        if len(self._written):
            is_new = ~np.isin(fixes[POSITION].to_numpy(), self._written)
            fixes = fixes.filter(pa.array(is_new))
        self.waiting = _joined(self.waiting, fixes)


def _joined(before: pa.Table | None, fixes: pa.Table) -> pa.Table:
    return fixes if before is None else pa.concat_tables([before, fixes])


def _last_of(fixes: pa.Table) -> pa.Table:
    """The last fix of each object, due at its own time; of those of one time the first."""
    whole = fixes.unify_dictionaries().combine_chunks()
    code = whole["object"].chunk(0).indices.to_numpy() if len(whole) else np.array([])
    ts, position = whole["event_ts"].to_numpy(), whole[POSITION].to_numpy()
    by_object = np.lexsort((-position, ts, code))
    last = whole.take(pa.array(np.sort(by_object[is_last(code[by_object])])))
    return last.set_column(last.schema.get_field_index(DUE), DUE, last["event_ts"])
