"""Which days are processed again, and what is said of them."""

from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any

from st_common.config.home import Home
from st_common.engine.topology import topology_of
from st_common.errors import ConfigError
from st_common.operations.days import (
    archive_behind,
    engine_open_since,
    is_closed_before,
    open_since,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayAgain:
    """One day that was processed again.

    Attributes:
        day: the day (UTC).
        run: the name of what made its visits, the same for the same inputs.
        fixes: how many it has, late ones too.
        late: how many of them came later than the lateness.
        visits: rows of the table `visits`.
        differs: rows of the table `differences`: visits that were told otherwise.
        unexplained: those among them that no late fix explains.
        replaced: whether the table had other rows of the day, or none; False: the same ones, and nothing was written.
        failed: queries that could not be judged, each with the reason.
        compared: whether its visits were compared with what was told; not those of trials, or of days of which
            changes were purged.
    """

    day: date
    run: str
    fixes: int
    late: int
    visits: int
    differs: int
    unexplained: int
    replaced: bool
    failed: tuple[str, ...] = ()
    compared: bool = True

    def to_json(self) -> dict[str, Any]:
        """The day as JSON values."""
        return asdict(self) | {"day": self.day.isoformat(), "failed": list(self.failed)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What a batch run did.

    Attributes:
        stream: the name of the stream.
        began: the day at which it began: of the newest border that it could use, or the stream's first.
        days: those that were asked for, in their order.
        fixes: how many fixes it read, those of days before the first that was asked for too.
        seconds: how long it took.
    """

    stream: str
    began: date | None
    days: tuple[DayAgain, ...]
    fixes: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The run as JSON values."""
        return asdict(self) | {
            "began": self.began and self.began.isoformat(),
            "days": [day.to_json() for day in self.days],
        }


@dataclass(frozen=True, slots=True)
class WholeDays:
    """The days (UTC) that an interval touches; visits are cut at days, and a day is one commit (docs/adr/0043).

    Attributes:
        since: the first day.
        until: the end, not in it.
        note: which days these are, for people; "" where the interval is these days.
    """

    since: date
    until: date
    note: str = ""


def whole_days(since: datetime, until: datetime) -> WholeDays:
    """The days that an interval touches.

        2024-05-01T10:00Z to 2024-05-01T12:00Z   ->   2024-05-01 to 2024-05-02
        2024-05-01T00:00Z to 2024-05-03T00:00Z   ->   2024-05-01 to 2024-05-03

    Args:
        since: its beginning, UTC.
        until: its end, not in it, UTC.

    Raises:
        ConfigError: nothing lies between them, or the last day has no end that can be named.
    """
    if since >= until:
        raise ConfigError(
            f"from {_said(since)} to {_said(until)} there is nothing (the end is not in it)",
            hint="the end of a day is the day behind it",
        )
    first, last = since.date(), (until - timedelta.resolution).date()
    if last == date.max:
        raise ConfigError(f"{last} is the last day there is", hint="an earlier end")
    days = WholeDays(first, last + timedelta(days=1))
    if since.time() == until.time() == time():
        return days
    which = f"{first}: the whole day"
    if first < last:
        which = f"{first} to {last}, this one too: the whole days"
    return replace(days, note=f"{_said(since)} to {_said(until)} lies in {which}")


def _said(at: datetime) -> str:
    """A time as people write it: to the minute where it is one."""
    is_minute = not (at.second or at.microsecond)
    text = at.isoformat(timespec="minutes" if is_minute else "auto")
    return text.replace("+00:00", "Z")


def check_closed(home: Home, stream: str, since: date, until: date) -> None:
    """Makes sure that there is a day from `since` to before `until`, and that all are closed.

    Raises:
        ConfigError: there is none, or one is open.
    """
    if since >= until:
        raise ConfigError(
            f"from {since} to {until} there is no closed day (the end is not in it)",
            hint="a day closes when engine and archive have come past its end",
        )
    if not is_closed_before(home, stream, until):
        still_open = open_since(home, stream)
        closed = f"open since {still_open}" if still_open else "no day is closed yet"
        why = "engine and archive must have come past the end of a day"
        passed = engine_open_since(home, stream)
        if passed is not None and passed >= until:
            why = behind_engine(archive_behind(home, stream))
        raise ConfigError(
            f"stream {stream!r}: {until - timedelta(days=1)} is not closed",
            hint=f"{closed}: {why}",
        )


def behind_engine(segments: int) -> str:
    """How far an archive is behind, for people."""
    return (
        f"the archive is {segments:,} segment{'s' * (segments != 1)} behind the engine"
    )


def engine_of(home: Home, stream: str, asked: str | None) -> str:
    """Which engine processes days of a stream again: the one that is asked for, else the one that it runs on.

    Returns:
        `spark` or `local`; `local` for a stream that never ran.
    """
    topology = topology_of(home, stream)
    return asked or (topology.engine if topology else "local")
