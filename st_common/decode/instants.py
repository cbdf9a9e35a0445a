"""Texts and numbers to instants: int64 microseconds since 1970, UTC, and never an exception.

An instant outside 1970 to 2199 is bad: it comes from a broken clock or a missing value, and would poison a stream's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.decode.instant_formats import (
    Read,
    by_format,
    by_iso,
    by_rfc2822,
    digits,
)
from st_common.decode.zones import utc_of
from st_common.formats.numbers import (
    Mask,
    Parsed,
    as_texts,
    doubles,
    is_missing,
    long_values,
    longs,
    mask,
)
from st_common.times import (
    COUNTED_PER_S,
    EXCEL_EPOCH_DAYS,
    NO_ZONE,
    letters_of,
    zone_of,
)

LATEST_US = 7_258_118_400_000_000  # 2200-01-01
_DECIMAL = r"^(?P<whole>[0-9]{1,16})\.(?P<fraction>[0-9]*)$"
_US = pa.timestamp("us")
_DAY_US = 86_400_000_000
_LAST_DAY = LATEST_US // _DAY_US
_EXCEL = r"^(?P<day>[0-9]{1,6})(?:\.(?P<day_part>[0-9]*))?(?:[ ]+0*\.(?P<part>[0-9]+)|[ ]+0+)?$"
_ZONED = (
    r"^(?P<time>.*[0-9Mm.]) ?\[?(?P<zone>[A-Z][A-Za-z_]+(?:/[A-Za-z0-9_+-]+){1,2})\]?$"
)
_LETTERED = r"^(?P<time>.*[0-9Mm.]) ?\(?(?P<zone>[A-Z]{3,5})\)?$"


@dataclass(frozen=True, slots=True)
class Instants(Parsed):
    """Instants of texts or numbers.

    Attributes:
        twice: bool[n], local times that clocks showed twice, as they were put back: the first one is taken.
        never: bool[n], local times that they never showed, as they were put forward; they are bad.
    """

    twice: Mask
    never: Mask


def instants(
    values: pa.Array, time_unit: str, time_zone: str | None = None
) -> Instants:
    """The instants that values give in a stream's time unit.

    Numbers may have fractions; digits below a microsecond are cut off, Excel's days are rounded to milliseconds.
    int64 and float64 are such numbers; timestamps in us are instants, or local times, whatever the unit is. A name of a
    zone behind a text (`Europe/Berlin`) counts for that text.

    Args:
        values: texts, numbers or timestamps.
        time_unit: `s`, `ms`, `us`, `ns` since 1970, `excel`, `excel1904`, `iso`, `rfc2822`, or a strptime format.
        time_zone: where clocks stood that showed times without a zone; None: in UTC.
    """
    if pa.types.is_timestamp(values.type):
        missing = mask(values.is_null())
        known = long_values(values.cast(_stored(values.type)).view(pa.int64()))
        is_local = np.full(len(values), values.type.tz is None)
        read = Read(known, ~missing & _within(known), is_local)
        return _in_range(read, missing, time_zone)
    if time_unit in _COUNTED:
        return _plain(_COUNTED[time_unit](values))
    texts = as_texts(values)
    missing = is_missing(texts)
    texts = pc.utf8_trim_whitespace(pc.fill_null(texts, ""))
    read = _READERS.get(time_unit, lambda some: by_format(some, time_unit))(texts)
    found = _in_range(read, missing, time_zone)
    if not found.bad.any():
        return found
    found = _by_named_zones(texts, time_unit, found)
    return _by_letters(texts, time_unit, time_zone, found)


def _stored(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz)


def _plain(parsed: Parsed) -> Instants:
    none = np.zeros(len(parsed.missing), bool)
    return Instants(parsed.values, parsed.missing, parsed.bad, none, none)


def _by_named_zones(texts: pa.Array, time_unit: str, found: Instants) -> Instants:
    """The same with those read that name their zone: `2025-11-24 08:00 Europe/Berlin`."""
    parts = pc.extract_regex(texts, _ZONED)
    at = np.flatnonzero(found.bad & mask(parts.is_valid()))
    if not len(at):
        return found
    parts = parts.take(pa.array(at))
    names = parts.field("zone").dictionary_encode()
    which = np.asarray(names.indices)
    for number, name in enumerate(names.dictionary.to_pylist()):
        if not _is_zone(name):
            continue
        mine = np.flatnonzero(which == number)
        own = instants(parts.field("time").take(pa.array(mine)), time_unit, name)
        for whole, part in zip(_arrays(found), _arrays(own), strict=True):
            whole[at[mine]] = part
    return found


def _by_letters(
    texts: pa.Array, time_unit: str, time_zone: str | None, found: Instants
) -> Instants:
    """The same with those read that end in letters of the stream's own zone: `2025-11-24 08:00 CET` in Europe/Berlin.

    By themselves such letters say no zone: IST is one in India, in Ireland and in Israel.
    """
    if time_zone is None:
        return found
    own = pa.array(
        letters_of(time_zone),
        pa.binary() if pa.types.is_binary(texts.type) else pa.string(),
    )
    parts = pc.extract_regex(texts, _LETTERED)
    fits = mask(pc.is_in(parts.field("zone"), own))
    at = np.flatnonzero(found.bad & fits)
    if not len(at):
        return found
    own_times = parts.field("time").take(pa.array(at))
    read = instants(own_times, time_unit, time_zone)
    for whole, part in zip(_arrays(found), _arrays(read), strict=True):
        whole[at] = part
    return found


def _arrays(found: Instants) -> tuple[NDArray[Any], ...]:
    return found.values, found.missing, found.bad, found.twice, found.never


def _is_zone(name: str) -> bool:
    try:
        zone_of(name)
    except NO_ZONE:
        return False
    return True


def _by_number(numbers: pa.Array, factor: int) -> Parsed:
    whole = longs(numbers)
    good = ~(whole.bad | whole.missing)
    good &= (whole.values >= 0) & (whole.values < LATEST_US // factor)
    values = np.where(good, whole.values, 0) * factor
    if whole.bad.any():
        at = np.flatnonzero(whole.bad)
        decimals = as_texts(numbers.take(pa.array(at)))
        values[at], good[at] = _by_decimal(decimals, factor)
    return Parsed(values, whole.missing, ~(good | whole.missing))


def _by_decimal(texts: pa.Array, factor: int) -> tuple[NDArray[np.int64], Mask]:
    """Instants of numbers that are not whole: exact for `12.345`, to the precision of float64 for `1.2e9`."""
    parts = pc.extract_regex(pc.utf8_trim_whitespace(texts), _DECIMAL)
    decimal = mask(parts.is_valid())
    exact = digits(parts.field("whole")) * factor + digits(
        parts.field("fraction"), width=len(str(factor)) - 1
    )
    with np.errstate(invalid="ignore", over="ignore"):
        near = doubles(texts).values * factor
        good = (near >= 0) & (near < LATEST_US)
    rounded = np.floor(np.where(good, near, 0) + 0.5).astype(np.int64)
    return np.where(decimal & good, exact, rounded), good


def _by_nanoseconds(numbers: pa.Array) -> Parsed:
    """Whole nanoseconds exactly; other numbers to the precision of float64."""
    whole = longs(numbers)
    values = np.asarray(whole.values, np.int64) // 1000
    good = ~(whole.bad | whole.missing) & _within(values)
    if whole.bad.any():
        at = np.flatnonzero(whole.bad)
        near = doubles(as_texts(numbers.take(pa.array(at)))).values / 1000
        with np.errstate(invalid="ignore"):
            good[at] = (near >= 0) & (near < LATEST_US)
        values[at] = np.where(good[at], near, 0).astype(np.int64)
    return Parsed(np.where(good, values, 0), whole.missing, ~(good | whole.missing))


def _by_excel(texts: pa.Array, first: int) -> Read:
    """Days of a spreadsheet with parts of days, to the millisecond; a day and a part of one may stand apart.

    1970 begins with the day `first`.

    45985.3333333333   ->   2025-11-24 08:00:00        45985 0.25   ->   06:00
    """
    parts = pc.extract_regex(texts, _EXCEL)
    day = digits(parts.field("day"))
    good = mask(parts.is_valid()) & (day >= first) & (day < first + _LAST_DAY)
    units = digits(parts.field("day_part"), width=_EXCEL_DIGITS) + digits(
        parts.field("part"), width=_EXCEL_DIGITS
    )
    ms = np.floor(units / 10**_EXCEL_DIGITS * _DAY_US / 1000 + 0.5).astype(np.int64)
    us = np.where(good, day - first, 0) * _DAY_US + ms * 1000
    return Read(us, good, np.ones(len(us), bool))


_EXCEL_DIGITS = 15


def _within(us: NDArray[np.int64]) -> Mask:
    return np.asarray((us >= 0) & (us < LATEST_US), bool)


def _in_range(read: Read, missing: Mask, time_zone: str | None) -> Instants:
    us, good = read.us, read.good & ~missing
    twice, never = np.zeros(len(us), bool), np.zeros(len(us), bool)
    if time_zone is not None and (local := good & read.local & _within(us)).any():
        moved = utc_of(us[local], time_zone)
        us = us.copy()
        us[local], twice[local], never[local] = moved
        good = good & ~never
    good = good & _within(us)
    return Instants(np.where(good, us, 0), missing, ~(good | missing), twice, never)


_COUNTED: dict[str, Callable[[pa.Array], Parsed]] = {
    "ns": _by_nanoseconds,
    **{
        unit: partial(_by_number, factor=1_000_000 // per_s)
        for unit, per_s in COUNTED_PER_S.items()
        if unit != "ns"
    },
}
_READERS: dict[str, Callable[[pa.Array], Read]] = {
    "iso": by_iso,
    "rfc2822": by_rfc2822,
    **{
        unit: partial(_by_excel, first=first)
        for unit, first in EXCEL_EPOCH_DAYS.items()
    },
}
