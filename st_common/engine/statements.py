"""Control rows in event time: where each stands among fixes that are sorted by their own times."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.controls.reading import chosen
from st_common.controls.rows import Clock
from st_common.controls.writing import to_bytes
from st_common.history.stored import archived_end
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.log.segment import Segment
from st_common.operators.state.fixes import NEVER
from st_common.position import segment_of, start_of
from st_common.tables.handle import newest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A segment of control rows, and the time that the stream had come to where it stands.

    Attributes:
        segment: its header.
        at_us: the largest event time in the log before it, of fixes and of clock rows; `NEVER` before the first.
        clock_us: that time where only a clock row has told it, else None.
    """

    segment: Segment
    at_us: int
    clock_us: int | None

    @property
    def position(self) -> int:
        """The place of its first row in the log."""
        return start_of(self.segment.number)

    def payload(self, log: Log) -> bytes:
        """Its rows as bytes, behind a clock row where only one has told the time."""
        told = b"" if self.clock_us is None else to_bytes(Clock(ts_us=self.clock_us))
        return told + log.read(self.segment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How far statements were read, to go on from there.

    Attributes:
        segment: the first segment that may hold statements that were not read.
        clock_us: the largest time that clock rows before it told; `NEVER` for none.
    """

    segment: int = 0
    clock_us: int = NEVER


def statements(
    home: Home, log: Log, stream: str, reached: Reached, *, since_us: int, until_us: int
) -> tuple[list[Statement], Reached]:
    """The statements of an interval of event time, in the order of the log, which is that of their times.

        log         a 10:00   register q   a 09:58   b 10:05   drop q   c 11:00
        statements            10:00                            10:05

    Args:
        home: where the table of positions lies.
        log: the log of the stream.
        stream: its name.
        reached: behind the statements with times before `since_us`; all of those were read.
        since_us: the beginning of the interval.
        until_us: the time to stop before; the archive has come past it.

    Returns:
        The statements, and how far they were read.

    Raises:
        LogError: a segment is missing or damaged.
    """
    end = first_segment(home, stream, until_us)
    segments = log.control_segments(reached.segment, clocks=True, end=end)
    fixes_us = _heights(home, stream, segments, since_us=since_us, end=end)
    placed: list[Statement] = []
    clock_us = reached.clock_us
    for segment, height_us in zip(segments, fixes_us.tolist(), strict=True):
        if segment.clock:
            clock_us = max(clock_us, *_clocks(log, segment))
            continue
        at_us = max(height_us, clock_us)
        if at_us >= until_us:
            return placed, Reached(segment=segment.number, clock_us=clock_us)
        told = clock_us if clock_us > height_us else None
        placed.append(Statement(segment=segment, at_us=at_us, clock_us=told))
    return placed, Reached(segment=end, clock_us=clock_us)


def _clocks(log: Log, segment: Segment) -> Iterator[int]:
    yield NEVER  # a segment that is passed over has no rows
    for _, row in chosen(control_rows(log, segment), Clock):
        yield row.ts_us


def _heights(
    home: Home, stream: str, segments: list[Segment], *, since_us: int, end: int
) -> np.ndarray:
    """The largest event time of all fixes in front of each segment, as far as it is in the interval; else `NEVER`."""
    numbers = np.array([one.number for one in segments], np.int64)
    bounds = [("segment", "<", end), ("event_ts", ">=", time_of(since_us))]
    path = home.table("positions", stream)
    if not len(numbers) or not tables.exists(path):
        return np.full(len(numbers), NEVER)
    rows = tables.read(path, columns=["segment", "event_ts"], filters=bounds)
    of_segment = rows["segment"].to_numpy()
    order = np.argsort(of_segment, kind="stable")
    event_us = rows["event_ts"].cast(pa.int64()).to_numpy()[order]
    highest = np.maximum.accumulate(np.append(NEVER, event_us))
    return np.asarray(highest[np.searchsorted(of_segment[order], numbers)])


def first_segment(home: Home, stream: str, since_us: int) -> int:
    """The first segment with a fix of this time or a later one; where there is none, the first that is not archived.

    Args:
        home: where the table of positions lies.
        stream: the name of the stream.
        since_us: the time, us UTC.
    """
    path, since = home.table("positions", stream), time_of(since_us)
    archived = segment_of(archived_end(home, stream))
    table = newest(path)
    if table is None:
        return archived
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    later = [
        one["min.segment"]
        for one in files
        if one["partition.event_date"] > since.date()
    ]
    bounds = [("event_date", "=", since.date()), ("event_ts", ">=", since)]
    same_day = tables.read(path, columns=["segment"], filters=bounds)["segment"]
    first: int = min([*later, *same_day.unique().to_pylist(), archived])
    return first


def time_of(us: int) -> datetime:
    """The time of so many microseconds, UTC; of those before the year 1 that year's beginning."""
    first_us = -62_135_596_800_000_000
    seconds, micros = divmod(max(us, first_us), 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)


def us_of(time: datetime) -> int:
    """The microseconds from 1970 to a time with a zone."""
    return (time - _EPOCH) // timedelta(microseconds=1)
