"""Which days want a check: those that are closed, and by the wall clock also those on which nothing came."""

from collections.abc import Mapping
from datetime import date, timedelta

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_stream_contract
from st_common.errors import ContractError
from st_common.operations.days import open_since
from st_common.operations.history import days_of
from st_common.quality.finding import DAY_IS_CLOSED, data_label
from st_common.quality.shape import US_PER_DAY, day_start_us


class Due:
    """Which days of streams want a check; what says so is read once, and holds for the run that asks.

    Args:
        home: where the tables lie.
        streams: the settings by name.
        now_us: now, us since 1970.
    """

    def __init__(
        self, home: Home, streams: Mapping[str, StreamSettings], *, now_us: int
    ) -> None:
        self._now_us = now_us
        self._open_since = {name: open_since(home, name) for name in streams}
        self._daily = {name for name in streams if _is_daily(home, name)}
        self._rejected = _reject_days(home)
        self._stored = {
            name: set(days_of(home.table("positions", name))) for name in streams
        }
        self._checked = _checked(home)

    def is_due(self, stream: str, day: date) -> bool:
        """Whether a day (UTC) of a stream can be judged.

        A day that the stream's clock has passed can. Of one that only the wall clock has passed, what should have come
        or has come by the wall clock can be judged: the data of a stream that promises some each day, and rejects.
        """
        if self._is_closed(stream, day):
            return True
        is_over = day_start_us(day) + US_PER_DAY <= self._now_us
        came = day in self._rejected.get(stream, ())
        return is_over and (stream in self._daily or came)

    def unchecked_days(self) -> list[date]:
        """The days that are due and were not checked yet for some stream, or were open then and are closed now.

        Returns:
            Oldest first, each once.
        """
        return sorted(
            {
                day
                for name in self._open_since
                for day in self._days(name)
                if self.is_due(name, day) and not self._is_done(name, day)
            }
        )

    def said_open(self) -> str:
        """Since when each stream is open, for people."""
        return "; ".join(
            f"{name}: open since {since or 'ever'}"
            for name, since in self._open_since.items()
        )

    def _is_closed(self, stream: str, day: date) -> bool:
        since = self._open_since[stream]
        return since is not None and day < since

    def _is_done(self, stream: str, day: date) -> bool:
        was_closed = self._checked.get((day, data_label(stream)))
        return was_closed is not None and (
            was_closed or not self._is_closed(stream, day)
        )

    def _days(self, stream: str) -> set[date]:
        """The days that have fixes or rejects of a stream; of a daily one all since its first that are over."""
        days = self._stored[stream] | self._rejected.get(stream, set())
        if days and stream in self._daily:
            first = min(days)
            over = (self._now_us - day_start_us(first)) // US_PER_DAY
            days |= {first + timedelta(days=each) for each in range(over)}
        return days


def _checked(home: Home) -> dict[tuple[date, str], bool]:
    """Whether a day was closed when it was checked last, by day and label of the stream."""
    path = home.table("quality")
    if not tables.exists(path):
        return {}
    rows = tables.read(
        path,
        columns=["date", "table", "passed"],
        filters=[("rule", "=", DAY_IS_CLOSED)],
    )
    return {(row["date"], row["table"]): row["passed"] for row in rows.to_pylist()}


def _is_daily(home: Home, stream: str) -> bool:
    """Whether a stream's contract promises data on each day; a contract that cannot be read is judged as if it did."""
    try:
        contract = load_stream_contract(stream, home.root)
    except ContractError:
        return True
    return contract is not None and contract.is_daily


def _reject_days(home: Home) -> dict[str, set[date]]:
    """The days (UTC) of the wall clock on which rejects came, by stream."""
    path = home.table("rejects")
    if not tables.exists(path):
        return {}
    rows = tables.dataset(path).to_table(columns=["stream", "ingest_date"])
    days: dict[str, set[date]] = {}
    pairs = rows.group_by(["stream", "ingest_date"]).aggregate([])
    for stream, day in zip(*(column.to_pylist() for column in pairs), strict=True):
        days.setdefault(stream, set()).add(day)
    return days
