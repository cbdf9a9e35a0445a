"""How the fixes of a day are spread over its hours and its objects."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

import numpy as np
import pyarrow as pa

from st_common.runs import firsts, is_first

US_PER_DAY = 86_400_000_000
_US_PER_HOUR = 3_600_000_000
_HOURS = np.arange(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """The fixes of a day by object and event time, n of them.

    Attributes:
        rows: place of each in the table that it comes from; int64[n].
        code: place of its object in `names`; int64[n], ascending.
        ts_us: its event time, us since 1970; int64[n], ascending for each object.
        names: the objects, m of them.
    """

    rows: np.ndarray
    code: np.ndarray
    ts_us: np.ndarray
    names: pa.Array

    @property
    def has_before(self) -> np.ndarray:
        """Whether a fix has an earlier one of its object; bool[n]."""
        return ~is_first(self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the fixes of a day are spread.

    Attributes:
        fixes: how many there are.
        by_hour: how many in each hour; int64[24].
        longest_gap_s: the longest time without any, the day's start and end counted as fixes.
        names: the objects, m of them.
        gap_s: of each object, the longest time between two of its fixes; 0 with one alone; float64[m].
        last_us: the last event time, us since 1970; None without fixes.
    """

    fixes: int
    by_hour: np.ndarray
    longest_gap_s: float
    names: pa.Array
    gap_s: np.ndarray
    last_us: int | None


def day_start_us(day: date) -> int:
    """The first microsecond of a day (UTC), us since 1970."""
    return round(datetime.combine(day, time(), UTC).timestamp()) * 1_000_000


def ordered(fixes: pa.Table) -> Ordered:
    """Puts fixes in order by object and event time.

    Args:
        fixes: with `object` (string) and `event_ts` (timestamp, us), in any order.
    """
    objects = fixes["object"].combine_chunks().dictionary_encode()
    code = objects.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    ts_us = fixes["event_ts"].cast(pa.int64()).to_numpy()
    rows = np.lexsort((ts_us, code))
    return Ordered(
        rows=rows, code=code[rows], ts_us=ts_us[rows], names=objects.dictionary
    )


def shape_of(day: date, order: Ordered) -> Shape:
    """How the fixes of a day are spread.

    Args:
        day: the day (UTC) of all of them.
        order: the fixes.
    """
    start_us = day_start_us(day)
    stamps = np.sort(order.ts_us)
    edges = np.concatenate(([start_us], stamps, [start_us + US_PER_DAY]))
    hours = (stamps - start_us) // _US_PER_HOUR
    return Shape(
        fixes=len(stamps),
        by_hour=np.bincount(hours, minlength=len(_HOURS)),
        longest_gap_s=float(np.diff(edges).max()) / 1e6,
        names=order.names,
        gap_s=_longest_gaps_s(order),
        last_us=int(stamps[-1]) if len(stamps) else None,
    )


def _longest_gaps_s(order: Ordered) -> np.ndarray:
    if not len(order.code):
        return np.zeros(0)
    gaps_us = np.diff(order.ts_us, prepend=order.ts_us[0])
    gaps_us[~order.has_before] = 0
    return np.maximum.reduceat(gaps_us, firsts(order.code)) / 1e6
