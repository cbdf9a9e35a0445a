"""Which days are closed: nothing that is still to come changes them, so that maintenance may touch them."""

from datetime import UTC, date, datetime, timedelta

from st_common.config.home import Home
from st_common.log.control import has_ended
from st_common.log.stored_log import StoredLog
from st_common.operations.status import read_all_status
from st_common.position import position_of

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
    slowest_us = slowest_clock(home, stream)
    if slowest_us is None:
        return None
    day = datetime.fromtimestamp(slowest_us // _US_PER_DAY * 86_400, UTC).date()
    return day + timedelta(days=1) if _is_over(home, stream) else day


def _is_over(home: Home, stream: str) -> bool:
    """Whether every job has come to the end of a log that has its end mark."""
    log = StoredLog(home.log(stream))
    end = position_of(log.end(), 0)
    statuses = read_all_status(home.stream(stream))
    return all(status.position >= end for status in statuses) and has_ended(log)


def slowest_clock(home: Home, stream: str) -> int | None:
    """The event time (us UTC) that every job has come to which writes the stream's tables.

    Returns:
        None while a job has no clock yet or none has ever reported.
    """
    clocks = [status.now_ts for status in read_all_status(home.stream(stream))]
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
