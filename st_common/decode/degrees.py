"""Coordinates as the world writes them: with decimal commas, letters, minutes and seconds, or as whole numbers.

A text that is a plain number is that number, whatever else this module reads.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.numbers import Mask, Parsed, as_texts, doubles, is_missing, mask

_LETTERS = {"x": ("E", "W"), "y": ("N", "S")}
_SCALES = {"e5": 1e5, "e6": 1e6, "e7": 1e7}
_PLAIN_FORMS = (  # many characters that look the same, as one
    (r"[°º˚]", "°"),
    ("[\u2032\u2019\u00b4\u2018`]", "'"),
    ("[\u2033\u201d\u201c]|''", '"'),
    ("\u2212", "-"),
    (r"[\s\p{Zs}]*([°'\":])[\s\p{Zs}]*", r"\1"),
    (r"[\s\p{Zs}]+", " "),
)
_NUMBER = r"(?:\.[0-9]+)?"
_DEGREES = (
    rf"^(?P<before>[NSEW])? ?(?P<sign>[+-])?(?P<d>[0-9]{{1,3}}{_NUMBER})"
    rf"(?:(?:(?P<mark>°)|[: ])(?:(?P<m>[0-9]{{1,2}}{_NUMBER})"
    rf"(?:[': ](?:(?P<s>[0-9]{{1,2}}{_NUMBER})\"?)?)?)?)? ?(?P<after>[NSEW])?$"
)
_NMEA = (
    rf"^(?P<before>[NSEW])? ?(?P<sign>[+-])?(?P<d>[0-9]{{0,3}})(?P<m>[0-9]{{2}}{_NUMBER})"
    r" ?(?P<after>[NSEW])?$"
)
_ONE_DIGIT = r"^([NSEW]? ?[+-]?)([0-9](?:[. ]|$))"  # of minutes: what a number loses that was a text
_LIKELY = r"[0-9][\s\p{Zs}]*[NSEWnsew°º˚]|[NSEWnsew][\s\p{Zs}]*[0-9]"
_COMMA = r"^[^.,]*,[^.,]*$"
_GROUPED = r"^([+-]?[0-9]{1,3})((?:\.[0-9]{3})+),([0-9]+)$"


def with_point(values: pa.Array, decimal: str) -> pa.Array:
    """Texts of numbers with a decimal point.

        decimal ","     60,17 -> 60.17      3.453.123,45 -> 3453123.45      60.17 -> 60,17, which is no number

    Args:
        values: texts; what has a type already stays as it is.
        decimal: what stands in front of decimals.
    """
    if decimal == "." or not pa.types.is_string(values.type):
        return values
    grouped = pc.match_substring_regex(values, _GROUPED)
    if pc.any(grouped).as_py():
        values = pc.if_else(grouped, pc.replace_substring(values, ".", ""), values)
    comma = pc.match_substring_regex(values, _COMMA)
    exchanged = pc.replace_substring(values, ".", ",")
    return pc.if_else(comma, pc.replace_substring(values, ",", "."), exchanged)


def coordinates_of(values: pa.Array, axis: str, form: str) -> Parsed:
    """The degrees of coordinates.

        degrees   60.17, 60.17N, N 60.17, 60°10'12"N, 60 10.2 N      a number, also with a letter or a degree sign
        nmea      6010.2, 6010.2 N                                   degrees and minutes in one
        e7        601700000                                          ten-millionths of a degree

    Args:
        values: numbers or texts, with a decimal point.
        axis: `x` or `y`; the letters of the other one are bad.
        form: `degrees`, `e5`, `e6`, `e7` or `nmea`.
    """
    if form == "nmea":
        texts = pc.replace_substring_regex(as_texts(values), _ONE_DIGIT, r"\10\2")
        return _by_pattern(texts, axis, _NMEA)
    numbers = doubles(values)
    if form in _SCALES:
        return Parsed(numbers.values / _SCALES[form], numbers.missing, numbers.bad)
    if not numbers.bad.any():
        return numbers
    at = np.flatnonzero(numbers.bad)
    texts = as_texts(values).take(pa.array(at))
    # Most of what is no number has none of these, and is not worth a closer look.
    likely = pc.match_substring_regex(texts, _LIKELY)
    at = at[mask(likely)]
    if not len(at):
        return numbers
    read = _by_pattern(texts.filter(likely), axis, _DEGREES)
    known, bad = numbers.values.copy(), numbers.bad.copy()
    known[at], bad[at] = read.values, read.bad
    return Parsed(known, numbers.missing, bad)


def _by_pattern(texts: pa.Array, axis: str, pattern: str) -> Parsed:
    """Degrees of texts with a hemisphere or a sign, and with minutes and seconds."""
    missing = is_missing(texts)
    plain = pc.utf8_upper(pc.utf8_trim_whitespace(texts))
    for some, one in _PLAIN_FORMS:
        plain = pc.replace_substring_regex(plain, some, one)
    parts = pc.extract_regex(pc.utf8_trim_whitespace(plain), pattern)
    good = mask(parts.is_valid())
    texts_of = {
        field.name: pc.fill_null(parts.field(field.name), "") for field in parts.type
    }
    degrees, whole = _sum(texts_of)
    letter = pc.binary_join_element_wise(texts_of["before"], texts_of["after"], "")
    ahead, behind = _LETTERS[axis]
    signed = mask(pc.not_equal(texts_of["sign"], ""))
    is_told = mask(pc.is_in(letter, pa.array([ahead, behind])))
    good &= whole & (is_told | mask(pc.equal(letter, ""))) & ~(is_told & signed)
    if pattern is _DEGREES:  # a number without either has been read as such
        good &= is_told | mask(pc.equal(texts_of["mark"], "°"))
    negative = mask(pc.equal(letter, behind)) | mask(pc.equal(texts_of["sign"], "-"))
    values = np.where(good, np.where(negative, -degrees, degrees), np.nan)
    return Parsed(values, missing, ~(good | missing))


def _sum(parts: dict[str, pa.Array]) -> tuple[NDArray[np.float64], Mask]:
    """Degrees, minutes and seconds in degrees, and where only the last of them has decimals and none is too large."""
    amounts: dict[str, NDArray[np.float64]] = {}
    good = np.ones(len(parts["d"]), bool)
    for name, finer in (("d", "m"), ("m", "s"), ("s", "")):
        if name not in parts:
            continue
        amounts[name] = np.nan_to_num(doubles(parts[name]).values.astype(np.float64))
        good &= (name == "d") | (amounts[name] < 60)
        if finer in parts:
            has_decimals = mask(pc.match_substring(parts[name], "."))
            good &= ~(has_decimals & mask(pc.not_equal(parts[finer], "")))
    degrees = amounts["d"]
    seconds = amounts["m"] * 60 + amounts.get("s", np.zeros(len(degrees)))
    return np.where(seconds == 0, degrees, (degrees * 3600 + seconds) / 3600), good
