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
from st_common.log.control import control_rows, has_ended
from st_common.log.log import Log
from st_common.operations.status import read_status
from st_common.operators.events.timeline import LAST
from st_common.operators.state.fixes import NEVER
from st_common.position import segment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTime:
    """How far time has come in a source, as far as its changes are committed.

    Attributes:
        clock_us: its clock, us UTC; `NEVER` before the first fix.
        ended: the segment of its newest end mark; -1 without one.
        seen: the segment up to which end marks were looked for.
        position: the row of its log before which all its changes are in its table.
        over: no record came behind its newest end mark.
    """

    clock_us: int = NEVER
    ended: int = -1
    seen: int = 0
    position: int = 0
    over: bool = False

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
    return SourceTime(
        clock_us=clock_us,
        ended=ended,
        seen=max(end, before.seen),
        position=max(status.position, before.position),
        over=ended >= 0 and end >= log.end() and has_ended(log),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FedTime:
    """The time of a stream that is fed, by the times of its sources.

        clocks 10, 20             ->   up to 10, clock 10
        clocks 15, 20             ->   up to 15, clock 15
        clocks 15 (over), 20      ->   up to 20, clock 20            what is over holds nobody back
        clocks 15 and 20, over    ->   without end, clock 20, ended

    Attributes:
        up_to_us: up to here no source has anything that is not committed yet, us UTC; `LAST` when all are over.
        clock_us: its clock, once all of that is in its log; `NEVER` while a source has none.
        has_ended: it ends with the end marks that its sources have.
    """

    up_to_us: int
    clock_us: int
    has_ended: bool

    @staticmethod
    def of(sources: Sequence[SourceTime]) -> "FedTime":
        """The time by that of each source, of which there is at least one."""
        going = [source.clock_us for source in sources if not source.over]
        is_alone = len(sources) == 1
        return FedTime(
            up_to_us=min(going, default=LAST),
            clock_us=min(going or [max(source.clock_us for source in sources)]),
            # What one source goes on with behind its mark goes on there too.
            has_ended=not going or (is_alone and sources[0].ended >= 0),
        )
