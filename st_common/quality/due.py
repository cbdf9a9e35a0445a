"""Which days want a check: those that are closed, and by the wall clock also those on which nothing came."""

from collections.abc import Mapping
from datetime import date, timedelta

import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_stream_contract
from st_common.errors import ContractError, TableError
from st_common.log.log import Log
from st_common.operations.days import open_since
from st_common.operations.history import days_of
from st_common.quality.finding import DAY_IS_CLOSED, data_label
from st_common.quality.shape import US_PER_DAY, day_start_us

_EPOCH = date(1970, 1, 1)
_LIVE_DAYS = 3  # from a day's begin: so late fixes of a live stream may come
_RECENT = timedelta(days=30)


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
        self._home = home
        self._now_us = now_us
        self._open_since = {name: open_since(home, name) for name in streams}
        self._weekdays = {name: _promised_weekdays(home, name) for name in streams}
        self._rejected = _reject_days(home)
        self._stored = {name: self._days_stored(name) for name in streams}
        self._checked = _checked(home)

    def _days_stored(self, stream: str) -> set[date]:
        """The days that have fixes; where the table is refused the newest closed one, whose report says so."""
        try:
            return set(days_of(self._home.table("positions", stream)))
        except TableError:
            since = self._open_since[stream]
            return set() if since is None else {since - timedelta(days=1)}

    def is_due(self, stream: str, day: date) -> bool:
        """Whether a day (UTC) of a stream can be judged.

        A day that the stream's clock has passed can. Of one that only the wall clock has passed, what should have come
        or has come by the wall clock can be judged: the data of a stream that promises some each day, and rejects.
        """
        if self._is_closed(stream, day):
            return True
        is_over = day_start_us(day) + US_PER_DAY <= self._now_us
        came = day in self._rejected.get(stream, ())
        return is_over and (day.weekday() in self._weekdays[stream] or came)

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
        """The days that have fixes or rejects of a stream, and those since its first that its contract promises.

        Of a live stream these go on until now, of a replay until its newest day.
        """
        stored = self._stored[stream]
        days = stored | self._rejected.get(stream, set())
        weekdays = self._weekdays[stream]
        if not days or not weekdays:
            return days
        first, today = min(days), _EPOCH + timedelta(days=self._now_us // US_PER_DAY)
        end = today
        if stored and not _is_live(self._home, stream, max(stored), today):
            # Its rejects came years after its fixes, perhaps.
            first, end = min(stored), max(stored)
        over = (first + timedelta(days=each) for each in range((end - first).days))
        return days | {each for each in over if each.weekday() in weekdays}


def _is_live(home: Home, stream: str, newest: date, today: date) -> bool:
    """Whether the first fixes of a stream's newest day arrived about when they were made; an old file's did not.

    Args:
        home: where table and log lie.
        stream: the stream.
        newest: the newest day (UTC) that has fixes.
        today: the day of the wall clock; where the log has lost these fixes, a month decides.
    """
    log = Log(home.log(stream))
    rows = tables.read(
        home.table("positions", stream),
        columns=["segment"],
        filters=[("event_date", "=", newest)],
    )
    segment = pc.min(rows["segment"]).as_py()
    if segment is None or not log.first() <= segment < log.end():
        return today - newest <= _RECENT
    late_us = log.segment(segment).arrival_us - day_start_us(newest)
    return late_us < _LIVE_DAYS * US_PER_DAY


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


def _promised_weekdays(home: Home, stream: str) -> frozenset[int]:
    """The weekdays on which a stream's contract promises data; one that cannot be read is judged as if it were all."""
    try:
        contract = load_stream_contract(stream, home.root)
    except ContractError:
        return frozenset(range(7))
    return contract.weekdays if contract is not None else frozenset()


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
