"""The quality reports that are due: which days, of which streams, written and recorded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError
from st_common.operations.alerts import tell_once
from st_common.quality.check import check_day
from st_common.quality.due import Due
from st_common.quality.engines import LOCAL, Engine
from st_common.quality.finding import Finding
from st_common.quality.home_check import check_heartbeats, check_now
from st_common.quality.index_page import write_index
from st_common.quality.record import record
from st_common.quality.report import write_report


@dataclass(frozen=True, slots=True, kw_only=True)
class DayReport:
    """One day's report.

    Attributes:
        day: the day (UTC).
        path: the HTML file.
        streams: the streams that were checked.
        rules: how many findings there are, counts included.
        breaches: how many rules of severity error are broken.
        sentences: what those on the data mean, each with its stream, for people.
    """

    day: date
    path: Path
    streams: tuple[str, ...]
    rules: int
    breaches: int
    sentences: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "day": self.day.isoformat(),
            "path": str(self.path),
            "streams": list(self.streams),
            "rules": self.rules,
            "breaches": self.breaches,
            "sentences": list(self.sentences),
        }


@contextmanager
def engine_of(home: Home, name: str) -> Iterator[Engine]:
    """An engine for as long as the block runs: `local`, or `spark` in a job's session.

    Raises:
        ConfigError: there is no Java or no jars, or a session that exists lacks Delta or Sedona.
    """
    if name == "local":
        yield LOCAL
        return
    from st_common.spark.quality import spark_engine

    with spark_engine(home) as engine:
        yield engine


def report_days(
    home: Home,
    streams: Mapping[str, StreamSettings],
    day: date | None,
    *,
    checked_us: int,
    begin: Callable[[], AbstractContextManager[Engine]] = lambda: nullcontext(LOCAL),
) -> list[DayReport]:
    """Checks days and writes their reports and results; doing it again replaces both.

    A day is reported for the streams for which it is due: see `Due.is_due`. Broken rules of severity error are alerts.

    Args:
        home: where the tables lie.
        streams: the settings by name.
        day: this day alone; None: every day that is due and was not checked yet, oldest first.
        checked_us: now, us UTC; stands beside the results.
        begin: begins what reads and judges the rows; called once there is something to check.

    Raises:
        ConfigError: `day` is due for no stream.
    """
    due = Due(home, streams, now_us=checked_us)
    days = [day] if day else due.unchecked_days()
    due_streams = {
        each: [one for name, one in streams.items() if due.is_due(name, each)]
        for each in days
    }
    for each, wanted in due_streams.items():
        if not wanted:
            raise ConfigError(
                f"{each} is not closed for any stream",
                hint=due.said_open() or "there is no stream",
            )
    reports: list[DayReport] = []
    if not days:
        return reports
    with begin() as engine:
        try:
            shared = check_now(home, engine)  # one look serves all days
            for each, wanted in due_streams.items():
                of_day = [*shared, *check_heartbeats(home, each, engine)]
                reports.append(
                    _report(
                        home, wanted, each, of_day, checked_us=checked_us, engine=engine
                    )
                )
        finally:
            if reports:
                write_index(home)
    return reports


def _report(
    home: Home,
    streams: Sequence[StreamSettings],
    day: date,
    shared: Sequence[Finding],
    *,
    checked_us: int,
    engine: Engine,
) -> DayReport:
    stream_days = [check_day(home, stream, day, engine) for stream in streams]
    findings = [*shared, *(one for each in stream_days for one in each.findings)]
    record(home, day, findings, checked_us=checked_us, engine=engine)
    path = write_report(home, day, stream_days, shared)
    for stream_day in stream_days:
        _alert(home, stream_day.stream, day, stream_day.findings, path)
    _alert(home, "home", day, shared, path)
    return DayReport(
        day=day,
        path=path,
        streams=tuple(stream.name for stream in streams),
        rules=len(findings),
        breaches=sum(finding.is_breach for finding in findings),
        sentences=tuple(
            f"{each.stream}: {finding.sentence}"
            for each in stream_days
            for finding in each.breaches
            if finding.sentence
        ),
    )


def _alert(
    home: Home, about: str, day: date, findings: Sequence[Finding], path: Path
) -> None:
    """Tells of a day's broken promises, once as long as they are the same."""
    broken = [finding for finding in findings if finding.is_breach]
    if broken:
        rules = ", ".join(finding.rule for finding in broken)
        meant = [f"{each.sentence}; " for each in broken if each.sentence]
        text = f"quality of {day}: {rules} broken; {''.join(meant)}see {path}"
        tell_once(home, about, text, level="error")
