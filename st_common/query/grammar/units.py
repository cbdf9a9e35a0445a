"""Units of length, time and speed: how many metres, seconds and metres per second each of them is (SPEC P4)."""

from typing import Literal

Domain = Literal["space", "time", "speed"]

METRES = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
    **dict.fromkeys(("km", "kms", "kilometre", "kilometres", "kilometer", "kilometers"), 1000.0),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
    **dict.fromkeys(("mi", "mile", "miles"), 1609.344),
    **dict.fromkeys(("nmi", "nmis"), 1852.0),
}
SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
}
SPEEDS = {  # metres in so many seconds; others are a length, a stroke and a time
    **dict.fromkeys(("kn", "kt", "knot", "knots"), (1852.0, 3600.0)),
    "mph": (1609.344, 3600.0),
    **dict.fromkeys(("kmh", "kph"), (1000.0, 3600.0)),
}
TUPLES = ("tuple", "tuples")
SHOWN = {
    "space": "m, km, ft, mi, nmi",
    "time": "ms, s, min, hours, days",
    "speed": "km/h, kn, m/s, mph",
}
WHAT = {"space": "a distance", "time": "a time", "speed": "a speed"}


def domain_of(unit: str) -> Domain | None:
    """What a unit measures; None for an unknown one."""
    word = unit.lower()
    return "space" if word in METRES else "time" if word in SECONDS else "speed" if word in SPEEDS else None
