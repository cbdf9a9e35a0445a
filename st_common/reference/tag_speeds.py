"""Speeds that tags say (https://wiki.openstreetmap.org/wiki/Key:maxspeed), read word by word."""

_MPS_OF = {"km/h": 3.6, "kmh": 3.6, "kph": 3.6}
"""How many of the unit are a metre per second."""
_METRES_AN_HOUR = {"mph": 1609.344, "knots": 1852.0}


def metres_per_second(tag: object) -> float | None:
    """The speed that a tag says; no limit is infinite, and what is no one number is None."""
    if not isinstance(tag, str):
        return None
    if tag == "none":
        return float("inf")
    if tag == "walk":
        return 7 / 3.6
    number = tag
    for unit, times in _MPS_OF.items():
        if tag.endswith(unit):
            return _number(tag.removesuffix(unit).removesuffix(" "), 1 / times)
    for unit, metres in _METRES_AN_HOUR.items():
        if tag.endswith(unit):
            number = tag.removesuffix(unit).removesuffix(" ")
            return _number(number, metres / 3600)
    return _number(number, 1 / 3.6)


def _number(text: str, times: float) -> float | None:
    whole, point, decimals = text.partition(".")
    digits = whole.isascii() and whole.isdigit()
    if point:
        digits = digits and decimals.isascii() and decimals.isdigit()
    return float(text) * times if digits else None
