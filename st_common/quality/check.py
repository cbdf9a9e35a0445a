"""Checks one closed day of one stream: the rules of its tables' contracts, and what happened to its records."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import TableError
from st_common.operations.days import is_closed, open_since
from st_common.quality.data_check import (
    NO_DATA_CHECK,
    DataCheck,
    check_data,
)
from st_common.quality.engines import LOCAL, Engine
from st_common.quality.finding import (
    CAN_BE_CHECKED,
    COUNTED,
    DAY_IS_CLOSED,
    Finding,
    data_label,
    found_of,
    unread,
)
from st_common.quality.table_check import check_table
from st_common.quality.tally import UNCOUNTED, Tally, tally

_BY_DAY = ("positions", "changes", "visits", "differences")
_BY_TIME = {"snapshots": "snapshot_ts", "latest": "event_ts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDay:
    """What was found for one stream on one day.

    Attributes:
        stream: the name of the stream.
        day: the day (UTC).
        tally: what happened to its records.
        findings: one per rule on the data, one per rule of the tables, then one per count.
        data: what the stream's own contract found.
    """

    stream: str
    day: date
    tally: Tally
    findings: tuple[Finding, ...]
    data: DataCheck = NO_DATA_CHECK

    @property
    def breaches(self) -> list[Finding]:
        """The rules of severity error that do not hold."""
        return [finding for finding in self.findings if finding.is_breach]


def check_day(
    home: Home, stream: StreamSettings, day: date, engine: Engine = LOCAL
) -> StreamDay:
    """Checks one day (UTC) of a stream: its data against its own contract, its tables against theirs.

    Nothing is written. Of `positions`, `changes`, `visits` and `differences` the rows of that day are looked at, of
    `rejects` what came then, of `snapshots` those whose time is in the day, of `latest` the objects that were last read
    in it. Tables that do not exist yet are left out.

    Args:
        home: where the tables lie.
        stream: the settings of the stream.
        day: it should be closed (`operations.days.is_closed`): of an open one the findings are of that moment.
        engine: reads and judges the rows.
    """
    name = stream.name
    of_tables = [
        finding
        for path, table, bounds in _tables(home, name, day)
        for finding in found_of(
            f"{table}/{name}",
            partial(check_table, path, table, f"{table}/{name}", bounds, engine),
        )
    ]
    closed = _closed(home, name, day)
    try:
        counted = tally(home, stream, day, engine)
        data = check_data(home, stream, day, counted, engine)
    except TableError as error:
        unchecked = unread(data_label(name), CAN_BE_CHECKED, error)
        findings = (closed, unchecked, *of_tables)
        return StreamDay(stream=name, day=day, tally=UNCOUNTED, findings=findings)
    findings = (closed, *data.findings, *of_tables, *_counts(counted, name))
    return StreamDay(stream=name, day=day, tally=counted, findings=findings, data=data)


def _closed(home: Home, stream: str, day: date) -> Finding:
    """Whether the stream's own clock has passed the day; where it has not, the day is looked at again when it has."""
    closed = is_closed(home, stream, day)
    since = open_since(home, stream)
    return Finding(
        table=data_label(stream),
        rule=DAY_IS_CLOSED,
        severity="warning",
        passed=closed,
        observed=float(not closed),
        expected="the stream's clock has passed the end of the day",
        rows=0,
        details="" if closed else f"open since {since or 'ever'}",
    )


def _tables(
    home: Home, stream: str, day: date
) -> Iterator[tuple[Path, str, list[tuple[str, str, Any]]]]:
    """Folder and name of each table of a stream, and which of its rows are of the day."""
    for name in _BY_DAY:
        yield home.table(name, stream), name, [("event_date", "=", day)]
    came = [("ingest_date", "=", day), ("stream", "=", stream)]
    yield home.table("rejects"), "rejects", came
    start = datetime.combine(day, time(), UTC)
    for name, column in _BY_TIME.items():
        bounds = [(column, ">=", start), (column, "<", start + timedelta(days=1))]
        yield home.table(name, stream), name, bounds


def _counts(counted: Tally, stream: str) -> list[Finding]:
    """The counts as rows of the table, so that they can be followed over days in SQL."""
    positions = {"late": counted.late, "double": counted.double}
    positions |= {f"filtered_{name}": n for name, n in counted.filtered.items()}
    rejects = {f"rejects_{reason}": count for reason, count in counted.rejects.items()}
    named = [(f"positions/{stream}", *each) for each in positions.items()]
    named += [(f"rejects/{stream}", *each) for each in rejects.items()]
    return [
        Finding(
            table=table,
            rule=rule,
            severity="info",
            passed=True,
            observed=float(count),
            expected=COUNTED,
            rows=counted.fixes,
        )
        for table, rule, count in named
    ]
