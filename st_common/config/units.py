"""Units of length, time and speed: how many metres, seconds and metres per second each of them is (SPEC P4)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Domain = Literal["space", "time", "speed"]

METRES = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
    **dict.fromkeys(
        ("km", "kms", "kilometre", "kilometres", "kilometer", "kilometers"), 1000.0
    ),
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
TIME_UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Microseconds of the units in which streams count times since 1970."""
TUPLES = ("tuple", "tuples")
SHOWN = {
    "space": "m, km, ft, mi, nmi",
    "time": "ms, s, min, hours, days",
    "speed": "km/h, kn, m/s, mph",
}
WHAT = {"space": "a distance", "time": "a time", "speed": "a speed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """An amount of a unit, which is `times` metres, seconds or metres per second, divided by `per`.

        10 kn   ->   domain speed, times 1852.0, per 3600.0, amount 10.0: 10 * 1852 / 3600 m/s

    Attributes:
        domain: what is measured.
        times: so many of the base unit; kept apart from `per`, so that nothing is rounded before the end.
        per: divides it; 1 but for speeds.
        amount: how many of the unit.
    """

    domain: Domain
    times: float
    per: float = 1.0
    amount: float = 1.0


def unit_of(text: str) -> Measure | None:
    """One of a unit such as `km`, `kn` or `km/h`; None for another text.

    Args:
        text: in any case, with blanks around the stroke or not.
    """
    length, stroke, time = (part.strip().lower() for part in text.partition("/"))
    if stroke:
        known = length in METRES and time in SECONDS
        return (
            Measure(domain="speed", times=METRES[length], per=SECONDS[time])
            if known
            else None
        )
    if length in SPEEDS:
        return Measure(domain="speed", times=SPEEDS[length][0], per=SPEEDS[length][1])
    domain = domain_of(length)
    return (
        Measure(domain=domain, times=(METRES if domain == "space" else SECONDS)[length])
        if domain
        else None
    )


def converted(measure: Measure, unit: Measure) -> float:
    """How many of a unit an amount is, rounded once: 10 kn are 18.52 km/h.

    Args:
        measure: the amount.
        unit: one of the unit; of the same domain.
    """
    # Decimals as they are written, exactly: 0.3048 is no binary fraction.
    amount, times, per = (
        Fraction(repr(value)) for value in (measure.amount, measure.times, measure.per)
    )
    return float(
        amount * times / per * Fraction(repr(unit.per)) / Fraction(repr(unit.times))
    )


def domain_of(unit: str) -> Domain | None:
    """What a unit measures; None for an unknown one."""
    word = unit.lower()
    return (
        "space"
        if word in METRES
        else "time"
        if word in SECONDS
        else "speed"
        if word in SPEEDS
        else None
    )
