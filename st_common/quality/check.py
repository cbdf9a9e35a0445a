"""Checks one closed day of one stream: the rules of its tables' contracts, and what happened to its records."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from st_common.home import Home
from st_common.ops.days import is_closed, open_since
from st_common.quality.data_check import (
    NO_DATA_CHECK,
    DataCheck,
    check_data,
)
from st_common.quality.finding import COUNTED, DAY_IS_CLOSED, Finding, data_label
from st_common.quality.table_check import check_table
from st_common.quality.tally import Tally, tally
from st_common.settings import StreamSettings

_BY_DAY = ("positions", "changes", "visits", "differences")


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


def check_day(home: Home, stream: StreamSettings, day: date) -> StreamDay:
    """Checks one day (UTC) of a stream: its data against its own contract, its tables against theirs.

    Nothing is written. Of `positions`, `changes`, `visits` and `differences` the rows of that day are looked at, of
    `rejects` what came then, of `snapshots` those whose time is in the day, of `latest` the objects that were last read
    in it. Tables that do not exist yet are left out.

    Args:
        home: where the tables lie.
        stream: the settings of the stream.
        day: it should be closed (`ops.days.is_closed`): of an open one the findings are of that moment.
    """
    counted = tally(home, stream, day)
    data = check_data(home, stream, day, counted)
    findings = [
        _closed(home, stream.name, day),
        *data.findings,
        *_of_day(home, stream.name, day),
        *_rejects(home, stream.name, day),
        *_timed(
            home.table("snapshots", stream.name),
            "snapshots",
            "snapshot_ts",
            stream.name,
            day,
        ),
        *_timed(
            home.table("latest", stream.name), "latest", "event_ts", stream.name, day
        ),
        *_counts(counted, stream.name),
    ]
    return StreamDay(
        stream=stream.name,
        day=day,
        tally=counted,
        findings=tuple(findings),
        data=data,
    )


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


def _of_day(home: Home, stream: str, day: date) -> list[Finding]:
    """The tables of which each row is of one day."""
    of_day = [("event_date", "=", day)]
    return [
        finding
        for name in _BY_DAY
        for finding in check_table(
            home.table(name, stream), name, f"{name}/{stream}", of_day
        )
    ]


def _timed(
    path: Path, contract_name: str, column: str, stream: str, day: date
) -> list[Finding]:
    start = datetime.combine(day, time(), UTC)
    return check_table(
        path,
        contract_name,
        f"{contract_name}/{stream}",
        [(column, ">=", start), (column, "<", start + timedelta(days=1))],
    )


def _rejects(home: Home, stream: str, day: date) -> list[Finding]:
    bounds = [("ingest_date", "=", day), ("stream", "=", stream)]
    return check_table(home.table("rejects"), "rejects", f"rejects/{stream}", bounds)


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
