"""Written dates and times to microseconds: ISO 8601, RFC 2822 and strptime formats.

Arrow's cast reads what nearly all ISO texts are. Texts in a format whose digits stand at known places are read as a
matrix of bytes. The rest is read by a regular expression.
"""

import calendar
import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.numbers import Mask, long_values, mask

Ints = NDArray[np.int64]
_Layout = tuple[
    Mapping[str, int], int, tuple[tuple[int, int], ...]
]  # places of fields, width, literals

_FRACTION = r"(?:[.,](?P<f>\d+))?"
_OFFSET = r"[+-]\d{2}(?::?\d{2})?"
_ZONE = rf"(?P<z>[Zz]|(?:UTC|GMT)?{_OFFSET}|UTC|GMT)?"
_GO = r"(?: [A-Z]{2,5}| [+-]\d{2,4})?(?: m=[+-][0-9.]+)?"  # what Go prints behind an offset
_ISO = (
    r"^(?P<Y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})"
    rf"(?:[Tt ](?P<H>\d{{2}}):?(?P<M>\d{{2}})(?::?(?P<S>\d{{2}}){_FRACTION})? ?{_ZONE})?$"
)
_OF_GO = (
    r"^(?P<Y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2}) (?P<H>\d{2}):(?P<M>\d{2}):(?P<S>\d{2})"
    rf"{_FRACTION} (?P<z>{_OFFSET}){_GO}$"
)
_BASIC = (
    r"^(?P<Y>\d{4})(?P<m>\d{2})(?P<d>\d{2})[Tt ](?P<H>\d{2})(?P<M>\d{2})"
    rf"(?:(?P<S>\d{{2}}){_FRACTION})? ?{_ZONE}$"
)
_RFC2822 = (
    r"^(?:[A-Za-z]{3,9},?\s+)?(?P<d>\d{1,2})[ -](?P<b>[A-Za-z]{3,9})[ -](?P<Y>\d{4})\s+"
    rf"(?P<H>\d{{1,2}}):(?P<M>\d{{2}})(?::(?P<S>\d{{2}}){_FRACTION})?\s*"
    r"(?P<z>[Zz]|(?:UTC|GMT)?[+-]\d{2}:?\d{2}|UTC|UT|GMT)?(?:\s*\([^()]*\))?$"
)
_JAVASCRIPT = (
    r"^[A-Z][a-z]{2} (?P<b>[A-Z][a-z]{2}) (?P<d>\d{2}) (?P<Y>\d{4}) (?P<H>\d{2}):(?P<M>\d{2}):(?P<S>\d{2}) "
    r"(?:GMT|UTC)(?P<z>[+-]\d{4})(?: \([^()]*\))?$"
)
_AMERICAN = {  # the zones that RFC 2822 knows by name
    f"{letter}{kind}": f"-{hours + (kind == 'ST'):02}00"
    for letter, hours in (("E", 4), ("C", 5), ("M", 6), ("P", 7))
    for kind in ("ST", "DT")
}
# What a cast takes for sure, which fails for a column by one bad text: days that all years have, in what int64 ns hold.
_SURE_DAY = (
    r"(?:19[7-9]\d|2[01]\d{2})-"
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_SURE = rf"^{_SURE_DAY}[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{{1,9}})?"
_SURE_KINDS = {
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
    "p": r"(?P<p>[AaPp]\.?\s?[Mm]\.?)",
    "z": r"(?P<z>[Zz]|[+-]\d{2}:?\d{2})",
    "Z": r"(?P<Z>UTC|GMT|Z)",
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


class Read(NamedTuple):
    """What texts say of times.

    Attributes:
        us: instants, us UTC; of a text without a zone what a clock showed, as if it were in UTC.
        good: bool[n], where there is one.
        local: bool[n], where the text says no zone.
    """

    us: Ints
    good: Mask
    local: Mask


def by_iso(texts: pa.Array) -> Read:
    """The times of ISO 8601 texts.

    A date alone is its midnight. `T` or a blank before the time; seconds, fraction and zone (`Z`, `+02`, `+0200`,
    `+02:00`, `UTC`) may be absent. `20251124T080000Z` and what Go prints are read too.
    """
    read = _unread(len(texts))
    for pattern, kind in _SURE_KINDS.items():
        if read.good.all():
            break
        sure = pc.match_substring_regex(texts, pattern)
        nanoseconds = pc.if_else(sure, texts, None).cast(kind).cast(pa.int64())
        np.add(read.us, long_values(nanoseconds) // 1000, out=read.us)
        np.logical_or(read.good, mask(sure), out=read.good)
        if kind.tz is None:
            read.local[mask(sure)] = True
    for pattern in (_ISO, _OF_GO, _BASIC):
        _rest_by_pattern(texts, pattern, read)
    return read


def by_rfc2822(texts: pa.Array) -> Read:
    """The times of texts as mails and HTTP have them, `Mon, 24 Nov 2025 08:00:00 +0100`, and as JavaScript prints them.

    That is `Mon Nov 24 2025 08:00:00 GMT+0100 (Central European Standard Time)`.
    """
    for name, offset in _AMERICAN.items():
        texts = pc.replace_substring_regex(texts, rf"\b{name}\b", offset)
    read = _unread(len(texts))
    for pattern in (_RFC2822, _JAVASCRIPT):
        _rest_by_pattern(texts, pattern, read)
    return read


def by_format(texts: pa.Array, time_format: str) -> Read:
    """The times of texts in a strptime format.

    Numbers may lack leading zeros; `%S` takes a fraction, too, and may be absent behind a colon; `%b` and `%B` are
    English, in any case.
    """
    for short, long in _SHORT.items():
        time_format = time_format.replace(short, long)
    read = _unread(len(texts))
    layout = _layout(time_format)
    if layout is not None:
        at = np.flatnonzero(
            pc.binary_length(texts).to_numpy(zero_copy_only=False) == layout[1]
        )
        read.us[at], read.good[at] = _laid_out(_matrix(texts, at, layout[1]), layout)
        read.local[at] = True
    _rest_by_pattern(texts, _pattern(time_format), read)
    return read


def _unread(count: int) -> Read:
    return Read(np.zeros(count, np.int64), np.zeros(count, bool), np.zeros(count, bool))


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


def _rest_by_pattern(texts: pa.Array, pattern: str, read: Read) -> None:
    """Fills in what nothing could read so far."""
    at = np.flatnonzero(~read.good)
    if len(at):
        parts = pc.extract_regex(texts.take(pa.array(at)), pattern)
        read.us[at], read.good[at], read.local[at] = _from_parts(parts)


def _from_parts(parts: pa.StructArray) -> Read:
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
    return _in_utc(values, is_read & real, texts)


def _in_utc(values: Ints, good: Mask, texts: Mapping[str, pa.Array]) -> Read:
    """The same with the zone that the texts say, if they say one."""
    if "Z" in texts:  # `%Z` takes names of UTC alone
        return Read(values, good, np.zeros(len(good), bool))
    if "z" not in texts:
        return Read(values, good, np.ones(len(good), bool))
    local = mask(pc.equal(texts["z"], ""))
    return Read(values - _zone_us(texts["z"]), good, local)


def digits(texts: pa.Array, *, width: int | None = None) -> Ints:
    """Texts of at most 18 digits as numbers, absent ones as 0; with `width` filled or cut at the right to so many."""
    texts = pc.fill_null(texts, "")
    if width is not None:
        texts = pc.utf8_slice_codeunits(pc.utf8_rpad(texts, width, "0"), 0, width)
    texts = pc.if_else(pc.equal(texts, ""), "0", texts)
    return np.asarray(texts.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _zone_us(zones: pa.Array) -> Ints:
    """Offsets from UTC (us) of `Z`, `+02`, `+0200`, `+02:00`, `UTC+02:00`; absent is 0."""
    offset = pc.replace_substring_regex(pc.fill_null(zones, ""), r"[^0-9]", "")
    minutes = digits(pc.utf8_slice_codeunits(offset, 0, 2)) * 60 + digits(
        pc.utf8_slice_codeunits(offset, 2, 4)
    )
    west = mask(pc.match_substring(pc.fill_null(zones, ""), "-"))
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
    """The regular expression of a strptime format; a blank in it stands for any blanks."""
    pieces: list[str] = []
    for directive, literal in re.findall(r"%(.)|([^%])", time_format, re.DOTALL):
        piece = _PATTERNS[directive] if directive else _literal(literal)
        group = piece[: piece.find(">") + 1]
        if group and any(
            group in earlier for earlier in pieces
        ):  # a directive given twice: the first counts
            piece = piece.replace(group, "(?:")
        if directive == "S":
            has_fraction = "%f" in time_format or "(?P<f>" in "".join(pieces)
            piece += "" if has_fraction else _FRACTION
            if pieces[-1:] == [":"]:
                pieces[-1], piece = "", f"(?::{piece})?"
        pieces.append(piece)
    return "^" + "".join(pieces) + "$"


def _literal(character: str) -> str:
    return r"[\s\p{Zs}]+" if character == " " else re.escape(character)
