"""Speeds that tags of features say, by the rules of OpenStreetMap for `maxspeed`.

| tag | says |
|---|---|
| `50`, `50 km/h`, `50 kmh`, `50 kph` | 50 km/h: a number alone is in km/h |
| `30 mph`, `10 knots` | 30 miles or 10 nautical miles an hour |
| `none` | infinite: no speed is above |
| `walk` | 7 km/h |
| `signals`, `variable`, `DE:urban`, `50;70`, .. | none: NULL |

https://wiki.openstreetmap.org/wiki/Key:maxspeed
"""

import math
import re
from dataclasses import replace

from st_common.config.units import Measure, converted, unit_of

_UNITS = {"": "km/h", **{unit: unit for unit in ("km/h", "kmh", "kph", "mph", "knots")}}
_WALKING = "7 km/h"
# So many digits that a double has them all.
_NUMBER = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(?: ?([a-z/]+))?")


def speed_of(tag: str | None, unit: Measure) -> float | None:
    """The speed that a tag says, rounded once; None where it says no one speed.

    Args:
        tag: the text of the tag; None: there is none.
        unit: one of the unit of the result, a unit of speed.
    """
    if tag == "none":
        return math.inf
    match = _NUMBER.fullmatch(_WALKING if tag == "walk" else tag or "")
    said = None if match is None else unit_of(_UNITS.get(match[2] or "", ""))
    if match is None or said is None:
        return None
    return converted(replace(said, amount=float(match[1])), unit)
