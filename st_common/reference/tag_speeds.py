"""Speeds that tags say (https://wiki.openstreetmap.org/wiki/Key:maxspeed), read word by word."""

from fractions import Fraction

_KM = Fraction(1000)
_METRES_AN_HOUR = {
    "km/h": _KM,
    "kmh": _KM,
    "kph": _KM,
    "mph": Fraction("1609.344"),
    "knots": Fraction(1852),
}


def speed_said(tag: object, metres: float, seconds: float) -> float | None:
    """The speed that a tag says, in units of so many metres in so many seconds.

    No limit is infinite, and what is no one number is None.
    """
    if tag == "none":
        return float("inf")
    said = 7 * _KM if tag == "walk" else _metres_an_hour(tag)
    unit = Fraction(repr(metres)) / Fraction(repr(seconds)) * 3600
    return None if said is None else float(said / unit)


def _metres_an_hour(tag: object) -> Fraction | None:
    if not isinstance(tag, str):
        return None
    for unit, metres in _METRES_AN_HOUR.items():
        if tag.endswith(unit):
            return _number(tag.removesuffix(unit).removesuffix(" "), metres)
    return _number(tag, _KM)


def _number(text: str, times: Fraction) -> Fraction | None:
    whole, point, decimals = text.partition(".")
    is_number = _are_digits(whole, 9) and (not point or _are_digits(decimals, 6))
    return Fraction(text) * times if is_number else None


def _are_digits(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= most
