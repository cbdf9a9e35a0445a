"""Dates before 1990, when no receiver was there to write them, or beyond tomorrow: a question to people, not a fault.

A date may be odd and right (an archive of 1974), or come from a clock that never knew the time, from a column that is
none of times, or from seconds that are read as milliseconds. Nobody can tell by the record alone, so records are not
rejected one by one: where most are odd, nothing is proposed or replayed until somebody has answered.

    time_unit  first time              most are odd
    iso        1970-01-01T00:00:12Z    a question
    ms         1970-01-20T16:14Z       a question: in s it is 2024
    s          0, 10, 20, ..           a clock that begins at 0, as simulations have: check says so
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from st_common.config.stream import StreamSettings
from st_common.times import COUNTED_PER_S

EARLIEST_US = 631_152_000_000_000
"""1990-01-01: what is dated before comes from no receiver."""
_DAY_US = 86_400_000_000
_MICROS = 1_000_000
_ANSWER = (
    'is it the column of times, and the clock right? max_jump_s = "off" in the settings of the stream believes every '
    "clock, as for an archive from before 1990"
)

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OddDates:
    """What is odd about the times of some fixes.

    Attributes:
        count: how many fixes have an odd date.
        fixes: of how many.
        first_us: the first such time (us UTC).
        unit: the unit in which they would not be odd; None: there is none.
        is_count: whether they count from 0 in the stream's unit, as clocks of simulations do.
    """

    count: int
    fixes: int
    first_us: int
    unit: str | None
    is_count: bool

    @property
    def is_question(self) -> bool:
        """Whether somebody has to say that they are right before they are read."""
        return 2 * self.count > self.fixes and not self.is_count

    @property
    def said(self) -> str:
        """What is odd."""
        if self.is_count:
            return f"times count from {_shown(self.first_us)}, as a clock does that begins at 0: they are no dates"
        some = "" if self.is_question else "; where leaves them out"
        return (
            f"{self.count:,} of {self.fixes:,} fixes are dated before 1990 or beyond tomorrow, "
            f"such as {_shown(self.first_us)}{some}"
        )

    @property
    def mend(self) -> str:
        """What is likely to mend it, and what answers that they are right."""
        if self.unit is not None:
            return f'time_unit = "{self.unit}" makes times of today of them'
        return _ANSWER


def odd_dates(
    fixes: Sequence[pa.Table], stream: StreamSettings, *, arrival_us: int
) -> OddDates | None:
    """What is odd about the dates of fixes; None: nothing, or the settings believe every clock.

    Args:
        fixes: tables with `event_ts` (us UTC).
        stream: the settings by which they were read.
        arrival_us: when they came.
    """
    if stream.columns.event_ts is None or stream.max_jump_s is None:
        return None
    parts = [one["event_ts"].to_numpy() for one in fixes if len(one)]
    times = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    latest_us = arrival_us + _DAY_US
    odd = times[(times < EARLIEST_US) | (times > latest_us)]
    if not len(odd):
        return None
    unit = _other_unit(odd, stream.time_unit, latest_us)
    counts = stream.time_unit in COUNTED_PER_S and len(odd) == len(times)
    return OddDates(
        count=len(odd),
        fixes=len(times),
        first_us=int(odd[0]),
        unit=unit,
        is_count=counts and unit is None and int(odd.max()) < EARLIEST_US,
    )


def _other_unit(times: Ints, unit: str, latest_us: int) -> str | None:
    """The unit of counted times in which most of them would be dates that are not odd."""
    if unit not in COUNTED_PER_S:
        return None
    numbers = times / _MICROS * COUNTED_PER_S[unit]
    for other, per_s in COUNTED_PER_S.items():
        read = numbers / per_s * _MICROS
        fits = (read >= EARLIEST_US) & (read <= latest_us)
        if other != unit and 2 * int(fits.sum()) > len(times):
            return other
    return None


def _shown(us: int) -> str:
    return f"{np.datetime64(us, 'us').astype('datetime64[s]')}Z"
