"""Which days are closed: nothing that is still to come changes them, so that maintenance may touch them."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from st_common.config.home import Home
from st_common.log.control import has_ended
from st_common.log.stored_log import StoredLog
from st_common.operations.status import StreamStatus, read_all_status, read_status
from st_common.position import position_of, segment_of

_US_PER_DAY = 86_400_000_000


def open_since(home: Home, stream: str) -> date | None:
    """The oldest day (UTC) that is still open; every day before it is closed.

    A day is closed when the clock of every job that writes the stream's tables has passed its end. So the slowest
    clock counts:

        engine 2024-01-03 00:10, archive 2024-01-02 23:50   ->   2024-01-02

    Where the log has its end mark, and every job has come to it, the last day is closed too, until more records come.

    Returns:
        None, and no day is closed, while a job has no clock yet or none has ever reported.
    """
    return _open_since(home, stream, read_all_status(home.stream(stream)))


def engine_open_since(home: Home, stream: str) -> date | None:
    """The oldest day (UTC) that is open to the engine alone: those before it close when the archive has come past them.

    Returns:
        None while the engine has no clock yet, or has never reported.
    """
    status = read_status(home.stream(stream))
    return _open_since(home, stream, [] if status is None else [status])


def archive_behind(home: Home, stream: str) -> int:
    """How many segments the engine has read that are not archived yet, as both have reported; 0 without either."""
    folder = home.stream(stream)
    engine, others = read_status(folder), read_all_status(folder)
    places = [segment_of(one.position) for one in others if one.job != "engine"]
    if engine is None or not places:
        return 0
    return max(segment_of(engine.position) - min(places), 0)


def _open_since(
    home: Home, stream: str, statuses: Sequence[StreamStatus]
) -> date | None:
    slowest_us = _slowest(statuses)
    if slowest_us is None:
        return None
    day = datetime.fromtimestamp(slowest_us // _US_PER_DAY * 86_400, UTC).date()
    is_over = _is_over(StoredLog(home.log(stream)), statuses)
    return day + timedelta(days=1) if is_over else day


def _is_over(log: StoredLog, statuses: Sequence[StreamStatus]) -> bool:
    """Whether all jobs have come to the end of a log that has its end mark."""
    end = position_of(log.end(), 0)
    return all(status.position >= end for status in statuses) and has_ended(log)


def slowest_clock(home: Home, stream: str) -> int | None:
    """The event time (us UTC) that every job has come to which writes the stream's tables.

    Returns:
        None while a job has no clock yet or none has ever reported.
    """
    return _slowest(read_all_status(home.stream(stream)))


def _slowest(statuses: Sequence[StreamStatus]) -> int | None:
    clocks = [status.now_ts for status in statuses]
    if not clocks or None in clocks:
        return None
    return min(clock for clock in clocks if clock is not None)


def is_closed_before(home: Home, stream: str, until: date) -> bool:
    """Whether every day before `until` (UTC) is closed."""
    since = open_since(home, stream)
    return since is not None and until <= since


def is_closed(home: Home, stream: str, day: date) -> bool:
    """Whether the clock of every job of the stream has passed the end of `day` (UTC)."""
    since = open_since(home, stream)
    return since is not None and day < since
