"""Any number of different conditions, simple ones and others: SQL for the engine, and what it means, in Python."""

from random import Random
from typing import Any

from st_common.testing.oracle_expressions import Meaning
from st_common.testing.oracle_readings import Reading

_KINDS = ("taxi", "bus", "van")


def many_conditions(rng: Random, count: int) -> dict[str, Meaning]:
    """About so many conditions by their text."""
    return dict(_condition(rng) for _ in range(count))


def _condition(rng: Random) -> tuple[str, Meaning]:
    low, width = rng.randint(-2, 16) / 2, rng.randint(0, 10) / 2
    kinds = tuple(rng.sample(_KINDS, rng.randint(1, 2)))
    number, other = rng.choice(("load", "x", "y")), rng.choice(("x", "y"))
    return rng.choice(
        (
            *_of_numbers(number, low, low + width),
            *_of_kinds(kinds, number, low),
            *_of_both(kinds[0], other, low, width),
        )
    )


def _of_numbers(
    number: str, low: float, high: float
) -> tuple[tuple[str, Meaning], ...]:
    """Conditions about one number."""
    return (
        (
            f"{number} > {low}",
            lambda r, _: _in(r, number, low, float("inf")) and _value(r, number) != low,
        ),
        (
            f"{number} BETWEEN {low} AND {high}",
            lambda r, _: _in(r, number, low, high),
        ),
    )


def _of_kinds(
    kinds: tuple[str, ...], number: str, high: float
) -> tuple[tuple[str, Meaning], ...]:
    """Conditions about texts, and about a text and a number."""
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    return (
        (f"kind IN ({listed})", lambda r, _: _value(r, "kind") in kinds),
        (
            f"kind = '{kinds[0]}' AND {number} <= {high}",
            lambda r, _: (
                _value(r, "kind") == kinds[0] and _in(r, number, -float("inf"), high)
            ),
        ),
    )


def _of_both(
    kind: str, other: str, low: float, width: float
) -> tuple[tuple[str, Meaning], ...]:
    """Conditions that only the database can judge, alone and beside a text."""
    return (
        (
            f"abs({other} - {low}) <= {width}",
            lambda r, _: abs(_value(r, other) - low) <= width,
        ),
        (
            f"kind = '{kind}' AND abs({other} - {low}) <= {width}",
            lambda r, _: (
                _value(r, "kind") == kind and abs(_value(r, other) - low) <= width
            ),
        ),
        (
            f"kind LIKE '{kind[:2]}%' AND {other} * 2 > {low}",
            lambda r, _: _value(r, "kind") == kind and _value(r, other) * 2 > low,
        ),
    )


def _value(reading: Reading, name: str) -> Any:
    return (
        getattr(reading.fix, name)
        if name in ("x", "y")
        else reading.fix.attributes.get(name)
    )


def _in(reading: Reading, name: str, low: float, high: float) -> bool:
    """Whether a column is in a range; null is in none."""
    value = _value(reading, name)
    return value is not None and low <= value <= high
