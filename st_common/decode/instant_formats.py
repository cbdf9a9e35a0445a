"""Written dates and times to microseconds: ISO 8601 and strptime formats.

Arrow's cast reads what nearly all ISO texts are. Texts in a format whose digits stand at known places are read as a
matrix of bytes. The rest is read by a regular expression.
"""

import calendar
import re
from collections.abc import Mapping
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.numbers import Mask, long_values, mask

Ints = NDArray[np.int64]
_Layout = tuple[
    Mapping[str, int], int, tuple[tuple[int, int], ...]
]  # places of fields, width, literals

_ISO_DAY = r"(?P<Y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})"
_FRACTION = r"(?:[.,](?P<f>\d+))?"
_ZONE = r"(?P<z>[Zz]|[+-]\d{2}(?::?\d{2})?)?"
_ISO = rf"^{_ISO_DAY}(?:[Tt ](?P<H>\d{{2}}):?(?P<M>\d{{2}})(?::?(?P<S>\d{{2}}){_FRACTION})? ?{_ZONE})?$"
# What a cast takes for sure, which fails for a column by one bad text: days that all years have, in what int64 ns hold.
_SURE_DAY = (
    r"(?:19[7-9]\d|2[01]\d{2})-"
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_SURE = rf"^{_SURE_DAY}[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{{1,9}})?"
_SURE_KINDS = {  # without a zone it is UTC
    rf"{_SURE}(?:Z|[+-](?:0\d|1[0-4]):?[0-5]\d)$": pa.timestamp("ns", "UTC"),
    rf"{_SURE}$": pa.timestamp("ns"),
}
_SHORT = {"%T": "%H:%M:%S", "%F": "%Y-%m-%d", "%R": "%H:%M"}
_WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_PATTERNS = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d{2})",
    "m": r"(?P<m>\d{1,2})",
    "b": r"(?P<b>[A-Za-z]{3,9})",
    "B": r"(?P<b>[A-Za-z]{3,9})",
    "d": r"(?P<d>\d{1,2})",
    "j": r"(?P<j>\d{1,3})",
    "H": r"(?P<H>\d{1,2})",
    "I": r"(?P<I>\d{1,2})",
    "M": r"(?P<M>\d{1,2})",
    "S": r"(?P<S>\d{1,2})",
    "f": r"(?P<f>\d+)",
    "p": r"(?P<p>[AaPp][Mm])",
    "z": r"(?P<z>[Zz]|[+-]\d{2}:?\d{2})",
    "Z": r"(?:UTC|GMT|Z)",
    "a": r"[A-Za-z]{3,9}",
    "A": r"[A-Za-z]{3,9}",
    "%": "%",
}
_MONTHS = pa.array(
    [
        name.lower()
        for names in (calendar.month_abbr, calendar.month_name)
        for name in names[1:]
    ]
)


def by_iso(texts: pa.Array) -> tuple[Ints, Mask]:
    """Instants (us) of ISO 8601 texts and where there is one.

    A date alone is its midnight. `T` or a blank before the time; seconds, fraction and zone (`Z`, `+02`, `+0200`,
    `+02:00`) may be absent.
    """
    values, good = np.zeros(len(texts), np.int64), np.zeros(len(texts), bool)
    for pattern, kind in _SURE_KINDS.items():
        if good.all():
            break
        sure = pc.match_substring_regex(texts, pattern)
        nanoseconds = pc.if_else(sure, texts, None).cast(kind).cast(pa.int64())
        values += long_values(nanoseconds) // 1000
        good |= mask(sure)
    return _rest_by_pattern(texts, _ISO, values, good)


def by_format(texts: pa.Array, time_format: str) -> tuple[Ints, Mask]:
    """Instants (us) of texts in a strptime format and where there is one.

    Numbers may lack leading zeros; `%S` takes a fraction, too; `%b` and `%B` are English, in any case.
    """
    for short, long in _SHORT.items():
        time_format = time_format.replace(short, long)
    values, good = np.zeros(len(texts), np.int64), np.zeros(len(texts), bool)
    layout = _layout(time_format)
    if layout is not None:
        at = np.flatnonzero(
            pc.binary_length(texts).to_numpy(zero_copy_only=False) == layout[1]
        )
        values[at], good[at] = _laid_out(_matrix(texts, at, layout[1]), layout)
    return _rest_by_pattern(texts, _pattern(time_format), values, good)


def _matrix(texts: pa.Array, at: Ints, width: int) -> NDArray[np.uint8]:
    """The bytes of the texts at `at`, which all have this width, a row each."""
    if len(at) != len(texts):
        texts = texts.take(pa.array(at))
    _, offsets, data = texts.buffers()
    if data is None:
        return np.zeros((len(at), width), np.uint8)
    start = int(np.frombuffer(offsets, np.int32)[texts.offset])
    return np.frombuffer(data, np.uint8)[start : start + len(at) * width].reshape(
        len(at), width
    )


@cache
def _layout(time_format: str) -> _Layout | None:
    """Where the fields of a format start, its width, its literals (place, byte); None if its width can vary."""
    fields: dict[str, int] = {}
    literals: list[tuple[int, int]] = []
    place = 0
    for directive, literal in re.findall(r"%(.)|([^%])", time_format, re.DOTALL):
        if (
            directive in fields
            or (directive and directive not in _WIDTHS)
            or not literal.isascii()
        ):
            return None
        if directive:
            fields[directive] = place
        else:
            literals.append((place, ord(literal)))
        place += _WIDTHS.get(directive, 1)
    return (
        (fields, place, tuple(literals)) if {"Y", "m", "d"} <= fields.keys() else None
    )


def _laid_out(matrix: NDArray[np.uint8], layout: _Layout) -> tuple[Ints, Mask]:
    """Instants of texts that follow a layout byte by byte, and which do."""
    fields, _, literals = layout
    good = np.ones(len(matrix), bool)
    for place, byte in literals:
        good &= matrix[:, place] == byte
    numbers: dict[str, Ints] = {}
    for name, place in fields.items():
        numbers[name], all_digits = _number(matrix, place, _WIDTHS[name])
        good &= all_digits
    values, real = _compose(numbers)
    return values, good & real


def _number(matrix: NDArray[np.uint8], place: int, width: int) -> tuple[Ints, Mask]:
    """The number that stands in `width` columns, and where all of them are digits."""
    value, all_digits = np.zeros(len(matrix), np.int64), np.ones(len(matrix), bool)
    for column in range(place, place + width):
        digit = matrix[:, column] - np.uint8(
            ord("0")
        )  # wraps around below "0", so one comparison is enough
        all_digits &= digit <= 9
        value = value * 10 + digit
    return value, all_digits


def _rest_by_pattern(
    texts: pa.Array, pattern: str, values: Ints, good: Mask
) -> tuple[Ints, Mask]:
    """Fills in what no layout could read."""
    at = np.flatnonzero(~good)
    if len(at):
        parts = pc.extract_regex(texts.take(pa.array(at)), pattern)
        values[at], good[at] = _from_parts(parts)
    return values, good


def _from_parts(parts: pa.StructArray) -> tuple[Ints, Mask]:
    is_read = mask(parts.is_valid())
    texts = {part.name: parts.field(part.name) for part in parts.type}
    numbers = {name: digits(texts[name]) for name in "YmdjHMSI" if name in texts}
    if "y" in texts:  # as POSIX has it: 69 to 99 are 1969 to 1999
        year = digits(texts["y"])
        numbers["Y"] = year + np.where(year < 69, 2000, 1900)
    if "b" in texts:
        place = pc.index_in(pc.utf8_lower(texts["b"]), _MONTHS)
        numbers["m"] = (
            np.asarray(pc.fill_null(place, -1).to_numpy(zero_copy_only=False), np.int64)
            % 12
            + 1
        )
        is_read &= mask(place.is_valid())
    if "I" in numbers:
        is_read &= (numbers["I"] >= 1) & (numbers["I"] <= 12)
        numbers["H"] = numbers["I"] % 12
    if "p" in texts:
        is_read &= numbers["H"] <= 12
        numbers["H"] = numbers["H"] % 12 + 12 * mask(
            pc.match_substring(pc.utf8_lower(texts["p"]), "p")
        )
    values, real = _compose(numbers)
    if "f" in texts:
        values += digits(texts["f"], width=6)
    return values - _zone_us(texts["z"]) if "z" in texts else values, is_read & real


def digits(texts: pa.Array, *, width: int | None = None) -> Ints:
    """Texts of at most 18 digits as numbers, absent ones as 0; with `width` filled or cut at the right to so many."""
    texts = pc.fill_null(texts, "")
    if width is not None:
        texts = pc.utf8_slice_codeunits(pc.utf8_rpad(texts, width, "0"), 0, width)
    texts = pc.if_else(pc.equal(texts, ""), "0", texts)
    return np.asarray(texts.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _zone_us(zones: pa.Array) -> Ints:
    """Offsets from UTC (us) of `Z`, `+02`, `+0200`, `+02:00`; absent is 0."""
    offset = pc.replace_substring_regex(pc.fill_null(zones, ""), r"[^0-9]", "")
    minutes = digits(pc.utf8_slice_codeunits(offset, 0, 2)) * 60 + digits(
        pc.utf8_slice_codeunits(offset, 2, 4)
    )
    west = mask(pc.starts_with(pc.fill_null(zones, ""), "-"))
    return np.where(west, -minutes, minutes) * 60_000_000


def _compose(numbers: Mapping[str, Ints]) -> tuple[Ints, Mask]:
    """Instants (us) of years, months, days (or days of the year), hours, minutes, seconds, and which of them exist."""
    year = numbers["Y"]
    zero = np.zeros(len(year), np.int64)
    hour, minute, second = (numbers.get(name, zero) for name in "HMS")
    month = zero + 1 if "j" in numbers else numbers["m"]
    first, following = (
        _month_start(year, month),
        _month_start(year, month + (12 if "j" in numbers else 1)),
    )
    day = numbers["j"] if "j" in numbers else numbers["d"]
    real = (month >= 1) & (month <= 12) & (day >= 1) & (day <= following - first)
    real &= (hour < 24) & (minute < 60) & (second < 60)
    return (
        (((first + day - 1) * 24 + hour) * 60 + minute) * 60 + second
    ) * 1_000_000, real


def _month_start(year: Ints, month: Ints) -> Ints:
    """The first day of a month, in days since 1970; month 13 is the next January."""
    months = (year - 1970) * 12 + month - 1
    days: Ints = months.astype("datetime64[M]").astype("datetime64[D]").view(np.int64)
    return days


@cache
def _pattern(time_format: str) -> str:
    """The regular expression of a strptime format."""
    pieces: list[str] = []
    for directive, literal in re.findall(r"%(.)|([^%])", time_format, re.DOTALL):
        piece = _PATTERNS[directive] if directive else re.escape(literal)
        group = piece[: piece.find(">") + 1]
        if group and any(
            group in earlier for earlier in pieces
        ):  # a directive given twice: the first counts
            piece = piece.replace(group, "(?:")
        pieces.append(piece)
        if directive == "S" and "%f" not in time_format and _FRACTION not in pieces:
            pieces.append(_FRACTION)
    return "^" + "".join(pieces) + "$"
