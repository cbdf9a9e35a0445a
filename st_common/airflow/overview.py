"""What is within reach of Airflow's page: how streams are, the newest alerts, reports; from files alone, no tables."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from st_common.answers.stream_state import state_of
from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.operations.alerts import Alert, read_alerts
from st_common.operations.judged import STOPPED
from st_common.operations.records import read_record
from st_common.operations.status import StreamStatus

_ALERTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of a stream: what it says of itself.

    Attributes:
        status: its last beat.
        age_s: how long ago that was.
    """

    status: StreamStatus
    age_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The page's content.

    Attributes:
        looked_s: how long ago the supervisor looked at streams; None: it never did.
        streams: by name, how each is, and its jobs.
        deliveries: by name, how each is.
        alerts: the newest ones, newest first, without secrets, each with its time in UTC.
        reports: their paths below the folder of reports, by folder.
    """

    looked_s: int | None
    streams: dict[str, tuple[str, list[Job]]]
    deliveries: dict[str, str]
    alerts: list[tuple[str, Alert]]
    reports: dict[str, list[str]]


def overview(home: Home, *, now_us: int) -> Overview:
    """What is known of a home without opening a table.

    Args:
        home: the home folder.
        now_us: now, us since 1970.
    """
    judged = read_record(home.judged) or {}
    healths = judged.get("streams", {})
    looked = judged.get("ts")
    names = sorted({*healths, *_folders(home.root / "streams")})
    return Overview(
        looked_s=None if looked is None else _seconds(now_us - int(looked)),
        streams={
            name: _stream(home, name, str(healths.get(name)), now_us) for name in names
        },
        deliveries=judged.get("deliveries", {}),
        alerts=[_told(one) for one in read_alerts(home)[: -_ALERTS - 1 : -1]],
        reports=_reports(home.reports),
    )


def _stream(home: Home, name: str, judged: str, now_us: int) -> tuple[str, list[Job]]:
    state = state_of(home, name, wanted=judged != STOPPED, now_us=now_us)
    ages_s = (_seconds(now_us - job.beat_ts) for job in state.jobs)
    jobs = zip(state.jobs, ages_s, strict=True)
    return state.health, [Job(status=job, age_s=age_s) for job, age_s in jobs]


def _told(alert: Alert) -> tuple[str, Alert]:
    """When an alert was told, to the second, and the alert without secrets."""
    when = datetime.fromtimestamp(alert.ts // 1_000_000, UTC)
    return f"{when:%F %T}", replace(alert, text=redacted(alert.text))


def _reports(folder: Path) -> dict[str, list[str]]:
    pages: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*/*.html"), reverse=True):
        pages.setdefault(path.parent.name, []).append(
            path.relative_to(folder).as_posix()
        )
    return pages


def _folders(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        yield from (path.name for path in folder.iterdir() if path.is_dir())


def _seconds(duration_us: int) -> int:
    return max(round(duration_us / 1e6), 0)
