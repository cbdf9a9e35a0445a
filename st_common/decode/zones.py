"""Local times to instants: what a clock on a wall showed, in microseconds UTC.

Europe/Berlin          local                    UTC
autumn 2025            02:30, comes twice       00:30: the first time that the clock showed it
spring 2025            02:30, never shown       none: it is no time
"""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from st_common.formats.numbers import Mask
from st_common.times import zone_of

Ints = NDArray[np.int64]

_US, _DAY_S = 1_000_000, 86_400
_QUARTER_US, _MOST_AHEAD_US = 900 * _US, 14 * 3600 * _US
_NEAR_US = 90 * _US  # what transport and clocks may add to a difference of zones


class LocalTimes(NamedTuple):
    """Local times as instants.

    Attributes:
        us: the instants, us UTC; of a time that comes twice the first, of one that never comes no instant.
        twice: bool[n], where the clock showed the time twice, because it was put back.
        never: bool[n], where it never showed it, because it was put forward.
    """

    us: Ints
    twice: Mask
    never: Mask


def utc_of(local_us: Ints, zone: str) -> LocalTimes:
    """The instants at which clocks of a zone showed some times.

    Args:
        local_us: what they showed, as microseconds since their own 1970-01-01T00:00.
        zone: a name such as `Europe/Berlin`, or a difference to UTC such as `+01:00`.
    """
    if not len(local_us):
        none = np.zeros(0, bool)
        return LocalTimes(local_us, none, none)
    first, last = (_year(one) for one in (local_us.min(), local_us.max()))
    at, offsets = _changes(zone, first - 1, last + 1)
    before, after = offsets[:-1], offsets[1:]
    # In front of the later of a change's two local times the old offset counts: that is the first showing.
    place = np.searchsorted(at + np.maximum(before, after), local_us, side="right")
    doubtful_from = np.append(at + np.minimum(before, after), np.iinfo(np.int64).max)
    is_doubtful = local_us >= doubtful_from[place]
    is_forward = np.append(after > before, False)[place]
    return LocalTimes(
        us=local_us - offsets[place],
        twice=is_doubtful & ~is_forward,
        never=is_doubtful & is_forward,
    )


def local_of(us: Ints, zone: str) -> Ints:
    """What clocks of a zone show at some instants, as microseconds since their own 1970-01-01T00:00.

    Args:
        us: the instants, us UTC.
        zone: as in `utc_of`.
    """
    if not len(us):
        return us
    first, last = (_year(one) for one in (us.min(), us.max()))
    at, offsets = _changes(zone, first, last)
    return np.asarray(us + offsets[np.searchsorted(at, us, side="right")], np.int64)


def quarters_ahead(ahead_us: Ints) -> float | None:
    """How many hours times are ahead of their arrivals, where that looks like another zone than UTC; else None.

        7,201 s, 7,198 s, 7,205 s   ->   2.0        3,000 s, 9,000 s   ->   None

    Args:
        ahead_us: event time minus arrival of some records; of records that are behind, negative.
    """
    if not len(ahead_us):
        return None
    middle = int(np.median(ahead_us))
    quarters = round(middle / _QUARTER_US)
    is_near = abs(middle - quarters * _QUARTER_US) <= _NEAR_US
    if quarters == 0 or not is_near or abs(middle) > _MOST_AHEAD_US + _NEAR_US:
        return None
    return quarters / 4


def _year(us: np.int64) -> int:
    return int(us.astype("datetime64[us]").astype("datetime64[Y]").astype(int)) + 1970


@lru_cache(maxsize=64)
def _changes(zone: str, first: int, last: int) -> tuple[Ints, Ints]:
    """When a zone's clocks changed in some years, and the offsets before the first and after each change; all in us."""
    changes = [one for year in range(first, last + 1) for one in _of_year(zone, year)]
    begin = datetime(first, 1, 1, tzinfo=UTC)
    offsets = [_offset_s(zone_of(zone), int(begin.timestamp()))]
    offsets += [offset for _, offset in changes]
    at = np.array([at for at, _ in changes], np.int64)
    return at * _US, np.array(offsets, np.int64) * _US


@lru_cache(maxsize=4096)
def _of_year(name: str, year: int) -> tuple[tuple[int, int], ...]:
    """The changes of one year: when (s UTC), and the offset from then on (s)."""
    zone = zone_of(name)
    begin, end = (
        int(datetime(y, 1, 1, tzinfo=UTC).timestamp()) for y in (year, year + 1)
    )
    days = range(begin, end + 1, _DAY_S)
    offsets = [_offset_s(zone, day) for day in days]
    return tuple(
        (_change(zone, day, day + _DAY_S, now), then)
        for day, now, then in zip(days[:-1], offsets[:-1], offsets[1:], strict=True)
        if now != then
    )


def _change(zone: tzinfo, low: int, high: int, offset: int) -> int:
    """The second from which on clocks have another offset than at `low`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if _offset_s(zone, middle) == offset else (low, middle)
        )
    return high


def _offset_s(zone: tzinfo, at_s: int) -> int:
    offset = datetime.fromtimestamp(at_s, zone).utcoffset() or timedelta()
    return round(offset.total_seconds())
