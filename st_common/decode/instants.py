"""Texts to instants: int64 microseconds since 1970, UTC, and never an exception.

An instant outside 1970 to 2199 is bad: it comes from a broken clock or a missing value, and would poison a stream's.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.decode.instant_formats import by_format, by_iso, digits
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

LATEST_US = 7_258_118_400_000_000  # 2200-01-01
_DECIMAL = r"^(?P<whole>[0-9]{1,16})\.(?P<fraction>[0-9]*)$"
_US = pa.timestamp("us")
_US_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}


def instants(values: pa.Array, time_unit: str) -> Parsed:
    """The instants that texts give in a stream's time unit: `s`, `ms`, `us` since 1970, `iso`, or a strptime format.

    Numbers may have fractions; a time without a zone is UTC; digits below a microsecond are cut off. int64 and float64
    are such numbers; timestamps in us are instants whatever the unit is.
    """
    if pa.types.is_timestamp(values.type):
        missing = mask(values.is_null())
        known = long_values(values.cast(_US).view(pa.int64()))
        return _in_range(known, missing, ~missing)
    if time_unit in _US_PER_UNIT:
        return _by_number(values, _US_PER_UNIT[time_unit])
    texts = as_texts(values)
    missing = is_missing(texts)
    texts = pc.utf8_trim_whitespace(pc.fill_null(texts, ""))
    values, good = by_iso(texts) if time_unit == "iso" else by_format(texts, time_unit)
    return _in_range(values, missing, good & ~missing)


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
    near = doubles(texts).values * factor
    with np.errstate(invalid="ignore"):
        good = (near >= 0) & (near < LATEST_US)
    rounded = np.floor(np.where(good, near, 0) + 0.5).astype(np.int64)
    return np.where(decimal & good, exact, rounded), good


def _in_range(values: NDArray[np.int64], missing: Mask, good: Mask) -> Parsed:
    good = good & (values >= 0) & (values < LATEST_US)
    return Parsed(np.where(good, values, 0), missing, ~(good | missing))
