"""Which closed days of a stream are due: those that were never processed, and those of which more is known since.

    processed                   05-01  05-02  05-03
    came since                         12 fixes          05-04 closed
    due                                05-02  05-03      05-04

An answer that goes on past midnight hangs on the days before, so from the first day that is due on all are.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta

from st_common.batch.ordered import fixes_of_days
from st_common.batch.processed import (
    Processed,
    fixes_before,
    last_purged,
    processed_days,
)
from st_common.batch.reprocess import BatchArm
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.statements import Reached, statements, us_of
from st_common.errors import FairwayError
from st_common.history.told import begin_of
from st_common.log.log import Log
from st_common.operations.days import open_since

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Days of a stream that are due.

    Attributes:
        since: the first day.
        until: the end, not in it.
        why: for people, such as `12 late fixes came for 2024-03-09`.
        has_late: late fixes came for days that were processed.
    """

    since: date
    until: date
    why: str
    has_late: bool = False


def due_days(home: Home, stream: StreamSettings) -> Due | None:
    """The closed days of a stream that are due, from the first to the last; None: none is, or none is closed.

    Days before the first that was ever processed are never due: they are for who names them. Where none ever was, the
    newest closed day is. No data file is read, but where a log has its end mark.

    Args:
        home: the home folder.
        stream: the settings of the stream.

    Raises:
        StateError: the stream was begun with other settings.
        FairwayError: a table or the log cannot be read.
    """
    until = open_since(home, stream.name)
    counts = fixes_of_days(home, stream.name)
    if until is None or not counts or until <= min(counts):
        return None
    processed = processed_days(home, stream.name)
    purged = last_purged(processed, counts)
    kept = {
        day: one for day, one in processed.items() if purged is None or day > purged
    }
    if not kept:
        why = "no day was processed before"
        return Due(since=until - _DAY, until=until, why=why)
    return _due_since(home, stream, kept, counts, until)


def _due_since(
    home: Home,
    stream: StreamSettings,
    processed: Mapping[date, Processed],
    counts: Mapping[date, int],
    until: date,
) -> Due | None:
    """What is due of a stream of which days were processed, one at least whose fixes are all there."""
    settings = BatchArm.of(home, stream).settings_digest
    first, last = min(processed), max(processed)
    before = fixes_before(home, stream.name, first, counts)
    stale, fixes = None, before
    for day in _days(first, until):
        fixes += counts.get(day, 0)
        one = processed.get(day)
        if one is None or (one.fixes, one.settings) != (fixes, settings):
            stale = day
            break
    why: list[str] = []
    is_last_fresh = last < until and (stale is None or stale > last)
    if is_last_fresh and _has_statements(home, stream.name, last, processed[last]):
        stale, why = last, [f"queries came or went on {last} since"]
    if stale is None:
        return None
    known = {day: one for day, one in processed.items() if day < until}
    late = _late(known, counts, before)
    why += late
    if any(one.settings != settings for one in known.values()):
        why.append("its settings are others now")
    why += _missing([day for day in _days(stale, until) if day not in known])
    why = why or [f"fixes of {stale} or days before it are gone"]
    return Due(since=stale, until=until, why="; ".join(why), has_late=bool(late))


def late_days(home: Home, streams: Mapping[str, StreamSettings]) -> dict[str, str]:
    """The streams with late fixes for days that were processed, each with what came in words; see `due_days`.

    Args:
        home: the home folder.
        streams: their settings by name; one that cannot be looked at is left out, for its run says what is wrong.
    """
    late: dict[str, str] = {}
    for name, stream in streams.items():
        with suppress(FairwayError, OSError):
            due = due_days(home, stream)
            if due is not None and due.has_late:
                late[name] = due.why
    return late


def _days(since: date, until: date) -> list[date]:
    return [since + number * _DAY for number in range((until - since).days)]


def _late(
    processed: Mapping[date, Processed], counts: Mapping[date, int], before: int
) -> list[str]:
    """How many fixes came since for days that were processed, or for days before, in words; nothing where none did.

    Args:
        processed: by day, one at least.
        counts: how many fixes each day has now.
        before: how many fixes there are now before the first of the days.
    """
    first = min(processed)
    seen = processed[first].fixes - processed[first].of_day
    came = {f"days before {first}": before - seen}
    came |= {
        str(day): counts.get(day, 0) - one.of_day for day, one in processed.items()
    }
    late = {where: count for where, count in came.items() if count > 0}
    if not late:
        return []
    count, others = sum(late.values()), " and later days" if len(late) > 1 else ""
    fixes = f"{count:,} late fix{'es' * (count != 1)}"
    return [f"{fixes} came for {next(iter(late))}{others}"]


def _missing(days: list[date]) -> list[str]:
    """Which days were never processed, in words; nothing for none."""
    if not days:
        return []
    which = (
        f"{days[0]} was"
        if len(days) == 1
        else f"{len(days)} days from {days[0]} on were"
    )
    return [f"{which} not processed before"]


def _has_statements(home: Home, stream: str, day: date, processed: Processed) -> bool:
    """Whether a day that an end mark closed has statements that it had not seen."""
    if processed.open_from is None:
        return False
    since_us, until_us = (us_of(begin_of(one)) for one in (day, day + _DAY))
    reached = Reached(segment=processed.open_from)
    placed, _ = statements(
        home,
        Log(home.log(stream)),
        stream,
        reached,
        since_us=since_us,
        until_us=until_us,
    )
    return bool(placed)
