"""Both coordinates in one text: `60.17, 24.94`, `60.17N 24.94E`, or a point of GeoJSON.

Of two plain numbers the setting `place_order` says which is which; letters and GeoJSON say it themselves.
"""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.decode.degrees import coordinates_of, with_point
from st_common.formats.numbers import Parsed, doubles, mask

_OPEN, _CLOSE = r"^[\s\p{Zs}(\[\"']*", r"[\s\p{Zs})\]\"']*$"
_BETWEEN = r"[\s\p{Zs},;/|]*"
_NS, _EW = "[NSns]", "[EWew]"
_POINT = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_COMMA = r"[+-]?[0-9]+(?:,[0-9]+)?"
_APART = r"(?:[\s\p{Zs}]*[,;/|][\s\p{Zs}]*|[\s\p{Zs}]+)"
_APART_FROM_COMMAS = r"(?:[\s\p{Zs}]*[;/|][\s\p{Zs}]*|,?[\s\p{Zs}]+)"
_GEOJSON = (
    r'^\s*\{[^{}]*"coordinates"\s*:\s*\[\s*'
    rf"(?P<first>{_POINT})\s*,\s*(?P<second>{_POINT})\s*(?:,\s*{_POINT}\s*)?\][^{{}}]*\}}\s*$"
)
_OF_GEOJSON = r'"type"\s*:\s*"Point"'


def pairs_of(
    texts: pa.Array, *, order: str | None, decimal: str, letters: bool = True
) -> tuple[Parsed, Parsed]:
    """The coordinates of texts; where one is no such pair, `bad` is set in both.

    Args:
        texts: none of which is missing.
        order: `lat lon` or `lon lat`, of two numbers; None: nobody has said, so that two numbers are no pair.
        decimal: what stands in front of decimals.
        letters: whether letters and GeoJSON can give them: x and y are degrees.
    """
    x, y = np.full(len(texts), np.nan), np.full(len(texts), np.nan)
    for first, pattern in _forms(order, decimal, letters=letters):
        at = np.flatnonzero(np.isnan(x))
        if not len(at):
            break
        parts = pc.extract_regex(texts.take(pa.array(at)), pattern)
        if pattern == _GEOJSON:
            is_point = pc.match_substring_regex(texts.take(pa.array(at)), _OF_GEOJSON)
            parts = pc.if_else(is_point, parts, pa.scalar(None, parts.type))
        fits = mask(parts.is_valid())
        one, two = (
            with_point(parts.field(name).filter(pa.array(fits)), decimal)
            if pattern != _GEOJSON
            else parts.field(name).filter(pa.array(fits))
            for name in ("first", "second")
        )
        own_x, own_y = (two, one) if first == "y" else (one, two)
        values_x, values_y = _values(own_x, "x"), _values(own_y, "y")
        known = ~(values_x.bad | values_y.bad)
        place = at[fits][known]
        x[place], y[place] = values_x.values[known], values_y.values[known]
    bad, missing = np.isnan(x), np.zeros(len(x), bool)
    return Parsed(x, missing, bad), Parsed(y, missing, bad)


def _values(texts: pa.Array, axis: str) -> Parsed:
    numbers = doubles(texts)
    return coordinates_of(texts, axis, "degrees") if numbers.bad.any() else numbers


def _forms(order: str | None, decimal: str, *, letters: bool) -> list[tuple[str, str]]:
    """Which coordinate comes first in texts of a pattern."""
    number, apart = (_POINT, _APART) if decimal == "." else (_COMMA, _APART_FROM_COMMAS)
    forms = [("x", _GEOJSON), *_lettered(decimal)] if letters else []
    if order is not None:
        pair = rf"{_OPEN}(?P<first>{number}){apart}(?P<second>{number})(?:{apart}{number})?{_CLOSE}"
        forms.append(("y" if order == "lat lon" else "x", pair))
    return forms


@cache
def _lettered(decimal: str) -> tuple[tuple[str, str], ...]:
    """The same of coordinates with letters, in front of both or behind both."""
    some = "[^NSEWnsew,;/|]+" if decimal == "." else "(?:[^NSEWnsew,;/|]|,[0-9])+"
    return tuple(
        (first, rf"{_OPEN}(?P<first>{head}){_BETWEEN}(?P<second>{tail}){_CLOSE}")
        for first, one, two in (("y", _NS, _EW), ("x", _EW, _NS))
        for head, tail in (
            (some + one, some + two),
            (one + some, two + some),
        )
    )
