"""Control rows in a log: those of a segment, typed, and rows about the log itself.

What is said of a segment in its header decides who looks into it: clocks are passed over by who wants statements, and
how records are read is found by it. So a segment that holds other rows than its header says is refused.
"""

from collections.abc import Sequence

from st_common.controls.reading import row_at, rows_of
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import Clock, ControlRow, End, Export, Reading
from st_common.controls.writing import to_bytes
from st_common.errors import LogError
from st_common.log.log import Log
from st_common.log.segment import Segment
from st_common.log.stored_log import StoredLog


def control_rows(log: StoredLog, segment: Segment) -> Sequence[ControlRow]:
    """The rows of a control segment in their order; none where a segment is passed over.

    Args:
        log: the log, from which the payload is read.
        segment: a segment with `control`.

    Raises:
        LogError: the segment is missing or damaged; a row that this version does not know (see `rows_of`), or that the
            header does not announce.
    """
    rows = rows_of(log.read(segment), stream=log.stream, segment=segment.number)
    check_announced(rows, segment, stream=log.stream)
    return rows


def control_row(log: StoredLog, segment: Segment, number: int) -> ControlRow | None:
    """One row of a control segment.

    Args:
        log: the log, from which the payload is read.
        segment: any segment.
        number: the row, counted from 0.

    Returns:
        None where there is no such row, or the segment holds records.

    Raises:
        LogError: the segment is missing or damaged; the row is one that this version does not know.
    """
    if not segment.control:
        return None
    return row_at(log.read(segment), number, stream=log.stream, segment=segment.number)


def check_announced(
    rows: Sequence[ControlRow], segment: Segment, *, stream: str
) -> None:
    """Makes sure that the header of a control segment announces its rows as readers rely on it.

    Readers who look for statements pass over segments of clocks unread, and those who decode look for readings by the
    header alone: a row that the header hides would be missed by some of them.

    Args:
        rows: the rows of the segment.
        segment: its header.
        stream: the name of the stream, for errors.

    Raises:
        LogError: a segment of clocks has other rows, or one that does not say how records are read has a row about it.
    """
    if isinstance(rows, Rectangles) and not (segment.clock or segment.reading):
        return
    for number, row in enumerate(rows):
        is_clock, is_reading = isinstance(row, Clock), isinstance(row, Reading)
        if (segment.clock and not is_clock) or segment.reading is not is_reading:
            raise LogError(
                f"segment {segment.number} of stream {stream}: row {number + 1} says {row.op!r}, "
                "which the header of the segment does not announce",
                hint="restore the segment from a copy",
            )


def write_clock(
    log: Log, ts: int, *, arrival_us: int, delay_us: int | None = None
) -> Segment:
    """Appends a clock row: an event time has come, though no fix said so, because the feed is quiet (docs/adr/0013).

    Args:
        log: the log of the stream.
        ts: the event time, us UTC.
        arrival_us: now, us UTC.
        delay_us: the delay of the feed by which an engine that owns the stream found the time; None when another says
            the time.
    """
    row = Clock(ts_us=ts, delay_us=delay_us)
    return log.append(to_bytes(row), arrival_us=arrival_us, clock=True)


def write_end(log: Log, *, arrival_us: int) -> Segment:
    """Appends an end mark: a finite stream has ended, and fixes held for the sake of lateness are released."""
    return log.append(to_bytes(End()), arrival_us=arrival_us, control=True)


def write_export(log: Log, *, arrival_us: int) -> Segment:
    """Appends a row that asks the shards of an engine for their states right after it; it changes no answer."""
    return log.append(to_bytes(Export()), arrival_us=arrival_us, control=True)


def has_ended(log: StoredLog) -> bool:
    """Whether no record came behind the log's last end mark.

    Raises:
        LogError: a control segment at its end is missing or damaged.
    """
    number = log.end() - 1
    while number >= 0 and (segment := log.segment(number)).control:
        if any(isinstance(row, End) for row in control_rows(log, segment)):
            return True
        number -= 1
    return False
