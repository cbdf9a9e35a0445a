"""All that the rules on the data of a day look at, read once."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.log.log import Log
from st_common.log.log_purging import arrived_before
from st_common.quality.shape import (
    US_PER_DAY,
    Level,
    Ordered,
    Shape,
    day_start_us,
    level_of,
    moved,
    ordered,
    shape_of,
)
from st_common.quality.tally import Tally
from st_common.quality.usual import Usual, usual_level, usual_of

_NEEDED = ("object", "event_ts", "x", "y", "segment", "row")
NO_FIXES = pa.schema(
    {
        "object": pa.string(),
        "event_ts": pa.timestamp("us", "UTC"),
        "x": pa.float64(),
        "y": pa.float64(),
        "segment": pa.int64(),
        "row": pa.int32(),
    }.items()
).empty_table()
"""The fixes of a stream that has stored none yet."""
_SAMPLED_SEGMENTS = 500
_ROUNDING_S = 1.0  # event times that are told to the second


@dataclass(frozen=True, kw_only=True)
class DayData:
    """One day (UTC) of one stream. What few rules look at is read when the first of them asks for it.

    Attributes:
        day: the day.
        home: where the tables and the log lie.
        stream: the settings of the stream.
        fixes: those with an event time in the day, with the columns that the contract names, as far as there are any.
        order: the same by object and event time.
        is_moved: whether each is at another place than the one before of its object; bool[n], in the order of `order`.
        shape: how they are spread.
        tally: what happened to the records.
        levels: those that rules asked for, by days and attribute.
    """

    day: date
    home: Home
    stream: StreamSettings
    fixes: pa.Table
    order: Ordered
    is_moved: np.ndarray
    shape: Shape
    tally: Tally
    levels: dict[tuple[tuple[date, ...], str], Level | None] = field(
        default_factory=dict
    )

    @cached_property
    def usual(self) -> Usual | None:
        """What is usual for such a day; None when nothing is known before it."""
        return usual_of(self.home, self.stream.name, self.day, self.shape)

    def level(self, column: str) -> Level | None:
        """The level of an attribute on the day; None without a value."""
        key = (self.day,), column
        if key not in self.levels:
            self.levels[key] = level_of(self.fixes[column])
        return self.levels[key]

    def usual_level(self, usual: Usual, column: str) -> Level | None:
        """What is usual of an attribute; read when a rule asks for it, as most rules ask for none."""
        key = usual.days, column
        if key not in self.levels:
            level = usual_level(self.home, self.stream.name, usual.days, column)
            self.levels[key] = level
        return self.levels[key]

    @cached_property
    def arrived(self) -> int | None:
        """How many fixes arrived on the day, whatever their event time; None when there is no log, or no longer.

        Raises:
            LogError: a segment of the log is missing or damaged.
        """
        path = self.home.table("positions", self.stream.name)
        return _arrived(self._log, path, self.day) if self._log.end() else None

    @cached_property
    def sampled(self) -> np.ndarray:
        """Segments in which fixes of the day arrived, evenly taken, at most 500; int64[k], ascending."""
        segments = np.unique(self.fixes["segment"].to_numpy())
        there = (segments >= self._log.first()) & (segments < self._log.end())
        return _evenly(segments[there], _SAMPLED_SEGMENTS)

    @cached_property
    def arrival_us(self) -> np.ndarray:
        """When each sampled segment arrived, us since 1970; int64[k].

        Raises:
            LogError: a segment of the log is missing or damaged.
        """
        arrivals = [self._log.segment(int(each)).arrival_us for each in self.sampled]
        return np.array(arrivals, np.int64)

    @cached_property
    def _log(self) -> Log:
        return Log(self.home.log(self.stream.name))

    @cached_property
    def implied_speeds_mps(self) -> np.ndarray:
        """How fast an object must have been since its fix before; float64[n], in the order of `order`.

        A second is granted, for event times that are rounded. NaN for the first fix of an object, and without a place.
        """
        space = self.stream.space
        x, y = (self.fixes[name].to_numpy()[self.order.rows] for name in ("x", "y"))
        rank = space.rank_about(x[:-1], y[:-1], x[1:], y[1:])
        way_m = space.measure(rank) * self.stream.unit_m
        passed_s = np.diff(self.order.ts_us) / 1e6 + _ROUNDING_S
        speeds: np.ndarray = np.full(len(x), np.nan)
        speeds[1:] = way_m / passed_s
        speeds[~self.order.has_before] = np.nan
        return speeds


def gather(
    home: Home, stream: StreamSettings, day: date, tally: Tally, fixes: pa.Table
) -> DayData:
    """The fixes in the order of the log, which decides between equal times; the rest is read when a rule asks for it.

    Args:
        home: where the tables and the log lie.
        stream: the settings of the stream.
        day: the day (UTC).
        tally: what happened to the day's records.
        fixes: those of the day in any order, with the columns of `columns_of`.
    """
    fixes = fixes.sort_by([("segment", "ascending"), ("row", "ascending")])
    order = ordered(fixes)
    is_moved = moved(order, fixes)
    return DayData(
        day=day,
        home=home,
        stream=stream,
        fixes=fixes,
        order=order,
        is_moved=is_moved,
        shape=shape_of(day, order, is_moved),
        tally=tally,
    )


def columns_of(path: Path, named: Iterable[str]) -> list[str]:
    """The columns of `positions` that measures need: those of any fix, and those that are named and there.

    Args:
        path: the table's folder.
        named: by rules, or the attributes of the stream.
    """
    there = tables.dataset(path).schema.names
    return [name for name in dict.fromkeys((*_NEEDED, *named)) if name in there]


def _arrived(log: Log, path: Path, day: date) -> int | None:
    """How many fixes arrived on a day: those of the segments that did, which are neighbours in the log.

    None where retention has taken segments that may have arrived then.
    """
    start_us, oldest = day_start_us(day), log.first()
    if oldest and log.segment(oldest - 1).arrival_us >= start_us:
        return None
    first, end = (
        arrived_before(log, bound_us) for bound_us in (start_us, start_us + US_PER_DAY)
    )
    if first == end or not tables.exists(path):
        return 0
    bounds = [("segment", ">=", first), ("segment", "<", end)]
    return len(tables.read(path, columns=["segment"], filters=bounds))


def _evenly(values: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the values, evenly taken, in their order."""
    places = np.linspace(0, len(values) - 1, min(most, len(values)))
    return values[np.unique(places.astype(np.int64))]
