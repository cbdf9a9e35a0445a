"""Speeds that tags of features say, by the rules of OpenStreetMap for `maxspeed`.

| tag | metres per second |
|---|---|
| `50`, `50 km/h`, `50 kmh`, `50 kph` | a number alone is km/h: 13.89 |
| `30 mph`, `10 knots` | 13.41, 5.14 |
| `none` | infinite: no speed is above |
| `walk` | 7 km/h: 1.94 |
| `signals`, `variable`, `DE:urban`, `50;70`, .. | none: NULL |

https://wiki.openstreetmap.org/wiki/Key:maxspeed
"""

import math
import re

_KMH = 1000.0 / 3600.0
_UNITS = {
    "": _KMH,
    "km/h": _KMH,
    "kmh": _KMH,
    "kph": _KMH,
    "mph": 1609.344 / 3600.0,
    "knots": 1852.0 / 3600.0,
}
_WORDS = {"none": math.inf, "walk": 7 * _KMH}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?: ?([a-z/]+))?")


def speed_of(tag: str | None) -> float | None:
    """The metres per second that a tag says; None where it says no one speed."""
    if tag is None or tag in _WORDS:
        return _WORDS.get(tag or "")
    match = _NUMBER.fullmatch(tag)
    per_unit = None if match is None else _UNITS.get(match[2] or "")
    return None if match is None or per_unit is None else float(match[1]) * per_unit
