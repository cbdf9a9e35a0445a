"""The time of a stream, passed on to the streams that its queries feed: clocks and end marks (SPEC S1).

A stream that is fed has no time but that of its sources: its clock is that of the one furthest behind, and it has ended
when all of them have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from st_common.config.home import Home
from st_common.controls.reading import chosen
from st_common.controls.rows import End
from st_common.log.control import control_rows, write_clock, write_end
from st_common.log.log import Log
from st_common.operations.status import read_status
from st_common.operators.state.fixes import NEVER
from st_common.position import segment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTime:
    """How far time has come in a source, as far as its changes are committed.

    Attributes:
        clock_us: its clock, us UTC; `NEVER` before the first fix.
        ended: the segment of its newest end mark; -1 without one.
        seen: the segment up to which end marks were looked for.
    """

    clock_us: int = NEVER
    ended: int = -1
    seen: int = 0

    @staticmethod
    def of_note(note: dict[str, Any]) -> "SourceTime":
        """What was passed on already, as a feed's note says; the beginning, where it says nothing."""
        return SourceTime(
            **{
                name: note[name]
                for name in SourceTime.__dataclass_fields__
                if name in note
            }
        )


def time_now(home: Home, stream: str, before: SourceTime) -> SourceTime:
    """How far time has come in a stream by now; all changes up to then are in its table. It never goes back.

    Args:
        home: the home folder.
        stream: the source.
        before: what was known last; only the log after it is looked at.
    """
    status = read_status(home.stream(stream))
    if status is None:
        return before
    log, end = Log(home.log(stream)), segment_of(status.position)
    ended = before.ended
    for segment in log.control_segments(before.seen) if end > before.seen else []:
        rows = control_rows(log, segment) if segment.number < end else ()
        ended = segment.number if any(chosen(rows, End)) else ended
    clock_us = (
        before.clock_us
        if status.now_ts is None
        else max(before.clock_us, status.now_ts)
    )
    return SourceTime(clock_us=clock_us, ended=ended, seen=max(end, before.seen))


def pass_on(
    log: Log,
    *,
    before: SourceTime,
    now: SourceTime,
    others: Sequence[SourceTime],
    timed: bool,
    arrival_us: int,
) -> None:
    """Writes into the log of a fed stream what is new of one source's time, next to its other sources.

    The clock of the fed stream is that of the source that is furthest behind, and it ends when all have ended:

        clocks 10, 20 become 15, 20   ->   clock 15          clocks 10, 20 become 30, 20   ->   clock 20

    Args:
        log: of the stream that is fed; locked.
        before: what was passed on of this source.
        now: what is to be passed on now.
        others: what was passed on of the other sources.
        timed: the stream has event times; else it goes by arrivals, and no other clock is its own.
        arrival_us: when the rows arrive, us UTC.
    """
    clocks = [other.clock_us for other in others]
    clock_us = min([now.clock_us, *clocks])
    if timed and clock_us > min([before.clock_us, *clocks]):
        write_clock(log, clock_us, arrival_us=arrival_us)
    if now.ended > before.ended and all(other.ended >= 0 for other in others):
        write_end(log, arrival_us=arrival_us)
