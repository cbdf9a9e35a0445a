"""Texts to numbers: the same value as Python's `float`, and never an exception.

What has a type already (float64, int64, bool) is taken as it is where that is the type that is asked for, and as its
text else: so 5.0 is the whole number 5, and `true` is no number. null and NaN are missing, as an empty text is.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

_NUMBER = (
    r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))$"
)
_PLAIN = r"^-?[0-9]{1,18}(?:\.[0-9]{1,100})?$"  # what a cast takes for sure
_WHOLE = r"^-?[0-9]{1,18}$"
_LARGEST, _LEAST = "9223372036854775807", "-9223372036854775808"  # int64


@dataclass(frozen=True, slots=True)
class Parsed:
    """Values of texts. `missing` marks null and empty texts, `bad` those that are no such value; both hold no value."""

    values: NDArray[np.float64] | NDArray[np.int64] | Mask
    missing: Mask
    bad: Mask


def mask(array: pa.Array) -> Mask:
    """A boolean array as NumPy; null is False."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), bool)  # noqa: FBT003 - Arrow's argument


def is_missing(texts: pa.Array) -> Mask:
    """Where texts are null or hold nothing but blanks."""
    if texts.null_count == len(texts):
        return np.ones(len(texts), bool)
    return mask(texts.is_null()) | mask(pc.match_substring_regex(texts, r"^\s*$"))


def as_texts(values: pa.Array) -> pa.Array:
    """The texts of values: the shortest ones that give the same numbers, `true` and `false`; null for null and NaN."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return values if pa.types.is_string(values.type) else values.cast(pa.string())


def doubles(values: pa.Array) -> Parsed:
    """Decimal numbers as float64; blanks around texts do not matter, `nan` and `inf` are values there.

    Hexadecimal numbers, digits grouped by commas or underscores and the like are bad.
    """
    if pa.types.is_floating(values.type) or pa.types.is_integer(values.type):
        numbers = _float_values(values.cast(pa.float64(), safe=False))
        return Parsed(numbers, np.isnan(numbers), np.zeros(len(values), bool))
    texts = as_texts(values)
    try:
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return _doubles_one_by_one(texts)
    missing = mask(texts.is_null())
    return Parsed(_float_values(numbers), missing, np.zeros(len(texts), bool))


def longs(values: pa.Array) -> Parsed:
    """Whole numbers as int64; also those written as `5.0` or `1e3`, as far as float64 is exact for them."""
    if pa.types.is_integer(values.type):
        return _typed(values, long_values(values))
    texts = as_texts(values)
    if not _has_hex(texts):
        try:
            numbers = texts.cast(pa.int64())
        except pa.ArrowInvalid:
            pass
        else:
            return Parsed(
                long_values(numbers), mask(texts.is_null()), np.zeros(len(texts), bool)
            )
    return _longs_one_by_one(texts)


def bools(values: pa.Array) -> Parsed:
    """`true`, `t`, `yes`, `1` and `false`, `f`, `no`, `0`, in any case."""
    if pa.types.is_boolean(values.type):
        return _typed(values, mask(values))
    texts = as_texts(values)
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    true = mask(pc.is_in(lower, pa.array(["true", "t", "yes", "1"])))
    false = mask(pc.is_in(lower, pa.array(["false", "f", "no", "0"])))
    missing = is_missing(texts)
    return Parsed(true, missing, ~(true | false | missing))


def _typed(given: pa.Array, values: NDArray[np.int64] | Mask) -> Parsed:
    return Parsed(values, mask(given.is_null()), np.zeros(len(given), bool))


def _doubles_one_by_one(texts: pa.Array) -> Parsed:
    """The same for texts of which a cast refuses some: it takes the plain ones, Python's `float` the few others."""
    plain = pc.match_substring_regex(texts, _PLAIN)
    values = _float_values(pc.if_else(plain, texts, None).cast(pa.float64()))
    rest, others, missing = _rest(texts, mask(plain))
    numeric = mask(pc.match_substring_regex(others, _NUMBER))
    values[rest[numeric]] = (
        others.filter(pa.array(numeric))
        .to_numpy(zero_copy_only=False)
        .astype(np.float64)
    )
    bad = np.zeros(len(texts), bool)
    bad[rest[~numeric]] = True
    return Parsed(values, missing, bad & ~missing)


def _longs_one_by_one(texts: pa.Array) -> Parsed:
    """The same for texts of which a cast refuses some."""
    short = pc.match_substring_regex(texts, _WHOLE)
    values = long_values(pc.if_else(short, texts, None).cast(pa.int64()))
    rest, others, missing = _rest(texts, mask(short))
    fits = _fits_int64(others)
    values[rest] = long_values(pc.if_else(fits, others, None).cast(pa.int64()))
    decimals = doubles(others).values
    exact = np.abs(decimals) < 2.0**53
    exact[exact] = decimals[exact] == np.floor(decimals[exact])
    exact &= ~mask(fits)
    values[rest[exact]] = decimals[exact].astype(np.int64)
    bad = np.zeros(len(texts), bool)
    bad[rest] = ~(mask(fits) | exact)
    return Parsed(values, missing, bad & ~missing)


def _rest(texts: pa.Array, done: Mask) -> tuple[NDArray[np.int64], pa.Array, Mask]:
    """Where the texts are that are not done, those without the blanks around them, and which of all are missing."""
    rest = np.flatnonzero(~done)
    others = pc.utf8_trim_whitespace(texts.take(pa.array(rest)))
    missing = np.zeros(len(texts), bool)
    missing[rest] = is_missing(others)
    return rest, others, missing


def _fits_int64(texts: pa.Array) -> pa.Array:
    """Which texts are whole numbers that int64 holds; numerals of equal length order like their texts."""
    short = pc.match_substring_regex(texts, _WHOLE)
    above = pc.and_(
        pc.match_substring_regex(texts, r"^[0-9]{19}$"), pc.less_equal(texts, _LARGEST)
    )
    below = pc.and_(
        pc.match_substring_regex(texts, r"^-[0-9]{19}$"), pc.less_equal(texts, _LEAST)
    )
    return pc.or_(short, pc.or_(above, below))


def _float_values(numbers: pa.Array) -> NDArray[np.float64]:
    return np.array(
        pc.fill_null(numbers, np.nan).to_numpy(zero_copy_only=False), np.float64
    )


def long_values(numbers: pa.Array) -> NDArray[np.int64]:
    """Whole numbers as NumPy; null is 0."""
    return np.array(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), np.int64)


def _has_hex(texts: pa.Array) -> bool:
    """Whether an x may be in the texts: Arrow's cast would read 0x10 as 16."""
    data = texts.buffers()[2]
    return data is not None and bool(
        (np.frombuffer(data, np.uint8) | 0x20 == ord("x")).any()
    )
