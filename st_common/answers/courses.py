"""How many were in each answer, minute by minute, over the last hour of a stream's event time.

minutes of event time     .. 11:58  11:59  12:00 (now)
changes that are stored        +2     -1     +1
who is in at their ends   ..    3      2      3   <- the sum of all signs; earlier ones by going back from it
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.tallies import Tallies
from st_common.config.home import Home
from st_common.history.snapshots import snapshots

MINUTES = 60
_MINUTE_US = 60_000_000
_STEPS = (5, 15, 30, MINUTES)
"""How many minutes back the table is read at first, one step after the other while there is time."""
_BUDGET_S = 1.0
_NEVER = 253_402_300_740_000_000 // _MINUTE_US
"""The last minute of the year 9999."""
_NETS = pa.schema([("query", pa.string()), ("minute", pa.int64()), ("net", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The last hour of a stream.

    Attributes:
        until_us: the newest event time, us since 1970; the last minute is the one that it lies in, and not over yet.
        counts: by query, how many were in at the end of each of the last `MINUTES` minutes, in the last one now; None
            where that is not known. A query that is not in it had no change in any minute that is known.
        known: how many of the minutes are known, counted from the last one.
    """

    until_us: int
    counts: dict[str, list[int | None]]
    known: int


@dataclass(slots=True)
class Courses:
    """The net changes of a stream by query and minute: each look reads what was committed since the one before.

    The first looks read the hour back, as much as a second of reading gives, so that nobody waits long for a large
    table; what is not read yet is not known.
    """

    _position: int = -1
    _nets: pa.Table = field(default_factory=_NETS.empty_table)
    _first: int = _NEVER  # all changes since this minute have been read, no others

    def look(
        self, home: Home, stream: str, tallies: Tallies, newest_us: int
    ) -> Course | None:
        """The last hour as of what tallies have counted; None: nothing is committed yet.

        Args:
            home: the home folder.
            stream: the name of the stream.
            tallies: of the stream, just looked at: they say who is in now.
            newest_us: the newest event time of the stream, us since 1970.

        Raises:
            FairwayError: the table cannot be read.
        """
        upto, last = tallies.position, newest_us // _MINUTE_US
        if upto < self._position:  # the stream was reset
            self._position, self._nets, self._first = -1, _NETS.empty_table(), _NEVER
        if upto < 0:
            return None
        oldest = last - MINUTES + 1
        self._first = max(self._first, oldest)
        if upto > self._position:
            behind, since = ("position", ">", self._position), _at(self._first)
            if self._first < _NEVER:
                self._add(home, stream, upto, behind, ("event_ts", ">=", since))
            self._position = upto
        self._read_back(home, stream, last, _kept_from(home, stream))
        is_recent = pc.greater_equal(self._nets["minute"], oldest)
        self._nets = self._nets.filter(is_recent)
        return self._course(tallies, newest_us)

    def _read_back(self, home: Home, stream: str, last: int, kept_from: int) -> None:
        """Reads the minutes before those that are known, while there is time."""
        end_s = time.monotonic() + _BUDGET_S
        for minutes in _STEPS:
            first = max(last - minutes + 1, kept_from)
            if first >= self._first:
                continue
            since = ("event_ts", ">=", _at(first))
            until = ("event_ts", "<", _at(self._first))
            self._add(home, stream, self._position, since, until)
            self._first = first
            if time.monotonic() > end_s:
                return

    def _add(
        self, home: Home, stream: str, upto: int, *bounds: tuple[str, str, object]
    ) -> None:
        rows = tables.read(
            home.table("changes", stream),
            columns=["query", "sign", "event_ts"],
            filters=[*bounds, ("position", "<=", upto)],
        )
        begun = pc.floor_temporal(rows["event_ts"], unit="minute").cast(pa.int64())
        minute = pc.divide(begun, _MINUTE_US)
        fresh = pa.table(
            [rows["query"], minute, rows["sign"].cast(pa.int64())], schema=_NETS
        )
        both = pa.concat_tables([self._nets, fresh]).group_by(["query", "minute"])
        summed = both.aggregate([("net", "sum")]).rename_columns(_NETS.names)
        self._nets = summed.select(_NETS.names).cast(_NETS)

    def _course(self, tallies: Tallies, newest_us: int) -> Course:
        last = newest_us // _MINUTE_US
        known = min(max(last + 1 - self._first, 0), MINUTES)
        coded = self._nets["query"].combine_chunks().dictionary_encode()
        names = coded.dictionary.to_pylist()
        nets = np.zeros((len(names), MINUTES), np.int64)
        # A change later than the newest fix counts as one of the last minute.
        place = self._nets["minute"].to_numpy() - (last - MINUTES + 1)
        place = np.clip(place, 0, MINUTES - 1)
        np.add.at(nets, (coded.indices.to_numpy(), place), self._nets["net"].to_numpy())
        now = np.array([tallies.members[one] for one in names], np.int64)
        counts = _back_from(now, nets)
        unknown: list[int | None] = [None] * (MINUTES - known)
        return Course(
            until_us=newest_us,
            counts={
                name: unknown + row[MINUTES - known :].tolist()
                for name, row in zip(names, counts, strict=True)
            },
            known=known,
        )


def _back_from(
    now: npt.NDArray[np.int64], nets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """How many were in at the end of each minute: now, less what came after it."""
    after = np.cumsum(nets[:, ::-1], axis=1)[:, ::-1]
    counts = np.empty_like(nets)
    counts[:, -1] = now
    counts[:, :-1] = now[:, None] - after[:, 1:]
    return counts


def _kept_from(home: Home, stream: str) -> int:
    """The first minute at whose end it is known who was in: changes before it may have been purged."""
    purged = tables.purged_before(home.table("changes", stream))
    if not purged:
        return -_NEVER
    serving = [one for one in snapshots(home, stream) if one.position >= purged]
    if not serving:
        return _NEVER
    # All that happens after this time is in the table.
    return int(serving[0].from_ts.timestamp() * 1e6) // _MINUTE_US + 1


def _at(minute: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
