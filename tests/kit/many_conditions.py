"""Any number of different conditions, simple ones and others: SQL for the engine, and what it means, in Python."""

from collections.abc import Iterator
from math import floor as floor_of
from random import Random
from typing import Any

from tests.kit.oracle_rows import Meaning, Reading

Parts = dict[str, Meaning]
"""What AND joins in a condition, by its text."""
_KINDS = ("taxi", "bus", "van")


def many_conditions(
    rng: Random, count: int
) -> tuple[tuple[str, ...], dict[str, Meaning]]:
    """About so many different conditions; and the meanings of these and of what AND joins in them, by their text."""
    drawn = {" AND ".join(parts): parts for parts in _conditions(rng, count)}
    wholes = {text: _all(parts) for text, parts in drawn.items()}
    alone = {text: told for parts in drawn.values() for text, told in parts.items()}
    return tuple(wholes), alone | wholes


def _conditions(rng: Random, count: int) -> Iterator[Parts]:
    """Conditions, each as the parts that AND joins in it."""
    for _ in range(count):
        low, width = rng.randint(-2, 16) / 2, rng.randint(0, 10) / 2
        kinds = tuple(rng.sample(_KINDS, rng.randint(1, 2)))
        number, other = rng.choice(("load", "x", "y")), rng.choice(("x", "y"))
        yield rng.choice(
            (
                *_of_numbers(number, low, low + width),
                *_of_kinds(kinds, number, low),
                *_of_both(kinds[0], other, low, width),
                *_of_expressions(kinds, other, low, width),
                *_of_columns(kinds[0], other, low, low + width),
            )
        )


def _all(parts: Parts) -> Meaning:
    """What all of some conditions mean together; none of those drawn here is ever null."""
    return lambda reading, partner: all(
        told(reading, partner) for told in parts.values()
    )


def _of_numbers(number: str, low: float, high: float) -> tuple[Parts, ...]:
    """Conditions about one number."""
    above: Parts = {
        f"{number} > {low}": lambda r, _: (
            _in(r, number, low, float("inf")) and _value(r, number) != low
        )
    }
    between: Parts = {
        f"{number} BETWEEN {low} AND {high}": lambda r, _: _in(r, number, low, high)
    }
    return above, between


def _of_kinds(kinds: tuple[str, ...], number: str, high: float) -> tuple[Parts, ...]:
    """Conditions about texts, and about a text and a number."""
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    some: Parts = {f"kind IN ({listed})": lambda r, _: _value(r, "kind") in kinds}
    below: Parts = {
        f"{number} <= {high}": lambda r, _: _in(r, number, -float("inf"), high)
    }
    return some, _is(kinds[0]) | below


def _of_both(kind: str, other: str, low: float, width: float) -> tuple[Parts, ...]:
    """Conditions that only the database can judge, alone and beside a text."""
    near: Parts = {
        f"abs({other} - {low}) <= {width}": lambda r, _: (
            abs(_value(r, other) - low) <= width
        )
    }
    like: Parts = {
        f"kind LIKE '{kind[:2]}%'": lambda r, _: _value(r, "kind") == kind,
        f"{other} * 2 > {low}": lambda r, _: _value(r, other) * 2 > low,
    }
    return near, _is(kind) | near, like


def _of_expressions(
    kinds: tuple[str, ...], other: str, low: float, width: float
) -> tuple[Parts, ...]:
    """Conditions about one expression that many compare, and about a way through two columns."""
    upper = ", ".join(f"'{kind.upper()}'" for kind in kinds)
    called: Parts = {
        f"upper(kind) IN ({upper})": lambda r, _: _value(r, "kind") in kinds
    }
    floor: Parts = {
        f"floor({other} / 2) >= {int(low)}": lambda r, _: (
            floor_of(_value(r, other) / 2) >= int(low)
        )
    }
    near: Parts = {
        f"abs(x - {low}) + abs(y - {low + 1}) <= {width}": lambda r, _: (
            abs(_value(r, "x") - low) + abs(_value(r, "y") - low - 1) <= width
        )
    }
    either: Parts = {
        f"(kind = '{kinds[0]}' OR {other} < {low})": lambda r, _: (
            _value(r, "kind") == kinds[0] or _value(r, other) < low
        )
    }
    return called, floor, near, called | floor, either


def _of_columns(kind: str, other: str, low: float, high: float) -> tuple[Parts, ...]:
    """Conditions about two columns and a number, with NOT, and about the end of a text."""
    apart: Parts = {
        f"x > y + {low - 4}": lambda r, _: _value(r, "x") > _value(r, "y") + low - 4
    }
    no_end: Parts = {
        f"NOT ({other} > {low} OR kind = '{kind}')": lambda r, _: (
            _value(r, other) <= low and _value(r, "kind") not in (None, kind)
        )
    }
    outside: Parts = {
        f"NOT {other} BETWEEN {low} AND {high}": lambda r, _: (
            not _in(r, other, low, high)
        )
    }
    ends: Parts = {f"kind LIKE '%{kind[-2:]}'": lambda r, _: _value(r, "kind") == kind}
    equal: Parts = {
        f"x = y + {low - 4}": lambda r, _: _value(r, "x") == _value(r, "y") + low - 4
    }
    both: Parts = {
        f"abs(x * y - {low}) <= 2": lambda r, _: (
            abs(_value(r, "x") * _value(r, "y") - low) <= 2
        )
    }
    return apart, no_end, outside, ends, equal, both, _is(kind) | apart, *_like(kind)


def _like(kind: str) -> tuple[Parts, ...]:
    """Conditions about what is inside of a text."""
    inside: Parts = {
        f"kind LIKE '%{kind[1]}%'": lambda r, _: kind[1] in (_value(r, "kind") or "")
    }
    folded: Parts = {
        f"kind ILIKE '_%{kind[1:].upper()}'": lambda r, _: _value(r, "kind") == kind
    }
    return inside, folded


def _is(kind: str) -> Parts:
    """That the kind is one."""
    return {f"kind = '{kind}'": lambda r, _: _value(r, "kind") == kind}


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
