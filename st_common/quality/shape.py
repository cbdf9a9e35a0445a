"""How the fixes of a day are spread over its hours and its objects, and the values of an attribute."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.runs import firsts, is_first

US_PER_DAY = 86_400_000_000
_US_PER_HOUR = 3_600_000_000
_HOURS = np.arange(24)
_OUTERMOST = (0.01, 0.99)  # of values, that count in no level


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
        counts: of each object, its fixes; int64[m].
        moves: of each object, those at another place than the one before; int64[m].
        moves_by_hour: of all objects, the same by hour; int64[24].
        last_us: the last event time, us since 1970; None without fixes.
    """

    fixes: int
    by_hour: np.ndarray
    longest_gap_s: float
    names: pa.Array
    gap_s: np.ndarray
    counts: np.ndarray
    moves: np.ndarray
    moves_by_hour: np.ndarray
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
    # Fixes come nearly in the order of time, and codes are few: two stable sorts are faster than one of both.
    rows = np.argsort(ts_us, kind="stable")
    few = code.astype(np.min_scalar_type(len(objects.dictionary)))
    rows = rows[np.argsort(few[rows], kind="stable")]
    return Ordered(
        rows=rows, code=code[rows], ts_us=ts_us[rows], names=objects.dictionary
    )


def moved(order: Ordered, fixes: pa.Table) -> np.ndarray:
    """Whether a fix is at another place than the one before of its object, to the last digit; bool[n], in that order.

    Args:
        order: the fixes.
        fixes: the same with `x` and `y`, in which a fix without a place has NaN.
    """
    x, y = (fixes[name].to_numpy()[order.rows] for name in ("x", "y"))
    is_moved = order.has_before
    is_moved[1:] &= (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    is_placed = ~np.isnan(x)
    is_moved &= is_placed
    is_moved[1:] &= is_placed[:-1]
    return is_moved


def shape_of(day: date, order: Ordered, is_moved: np.ndarray) -> Shape:
    """How the fixes of a day are spread.

    Args:
        day: the day (UTC) of all of them.
        order: the fixes.
        is_moved: as `moved` says.
    """
    start_us = day_start_us(day)
    hours = (order.ts_us - start_us) // _US_PER_HOUR
    stamps = np.sort(order.ts_us)
    edges = np.concatenate(([start_us], stamps, [start_us + US_PER_DAY]))
    m = len(order.names)
    return Shape(
        fixes=len(stamps),
        by_hour=np.bincount(hours, minlength=len(_HOURS)),
        longest_gap_s=float(np.diff(edges).max()) / 1e6,
        names=order.names,
        gap_s=_longest_gaps_s(order),
        counts=np.bincount(order.code, minlength=m),
        moves=np.bincount(order.code[is_moved], minlength=m),
        moves_by_hour=np.bincount(hours[is_moved], minlength=len(_HOURS)),
        last_us=int(stamps[-1]) if len(stamps) else None,
    )


def _longest_gaps_s(order: Ordered) -> np.ndarray:
    if not len(order.code):
        return np.zeros(0)
    gaps_us = np.diff(order.ts_us, prepend=order.ts_us[0])
    gaps_us[~order.has_before] = 0
    return np.maximum.reduceat(gaps_us, firsts(order.code)) / 1e6


@dataclass(frozen=True, slots=True)
class Level:
    """Where the values of an attribute lie.

    Attributes:
        mean: their mean.
        spread: their standard deviation.
        low: the least of them.
    """

    mean: float
    spread: float
    low: float


def level_of(values: pa.ChunkedArray) -> Level | None:
    """The level of values of which the outermost hundredths are left out; None where there are none.

    Args:
        values: numbers; nulls, NaN and infinities are left out.
    """
    numbers = pc.drop_null(values).to_numpy().astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return None
    low, high = np.quantile(numbers, _OUTERMOST)
    inner = numbers[(numbers >= low) & (numbers <= high)]
    return Level(mean=float(inner.mean()), spread=float(inner.std()), low=float(low))
