"""Numbers, distances and times as a text says them."""

import math
from collections.abc import Sequence
from typing import Literal

from sqlglot import exp

from st_common.config.units import (
    METRES,
    SECONDS,
    SHOWN,
    TUPLES,
    WHAT,
    Domain,
    domain_of,
)
from st_common.query.frame import Extent
from st_common.query.grammar.nodes import Lasting, Quantity, Refused, span_of
from st_common.query.plan import Window
from st_common.query.problem import did_you_mean

_LONGEST_S = 3.2e9  # a hundred years: microseconds of it still fit
_LONGEST_M = 1e12  # micrometres of it still fit
_MOST_ROWS = 1_000_000_000
_LEAST = 1e-6


def plain(part: exp.Expr) -> float:
    """The number of a part without a unit."""
    if not isinstance(part, Quantity):
        raise Refused(f"expected a number, not {shown(part)}", span_of(part))
    if part.args.get("unit") is not None:
        raise Refused(
            "expected a number without a unit", span_of(part), "coordinates have none"
        )
    return _finite(part.this)


def whole(part: exp.Expr, what: str, most: int) -> int:
    """A whole number from 1 to `most`."""
    value = plain(part)
    if not (value.is_integer() and 1 <= value <= most):
        raise Refused(f"{what} is a whole number from 1 to {most}", span_of(part))
    return int(value)


def metres(part: exp.Expr, what: str = "a distance") -> float:
    """A distance with its unit, in metres; without a unit it is metres already."""
    if not isinstance(part, Quantity):
        raise Refused(f"expected a number, not {shown(part)}", span_of(part))
    value = _finite(part.this) * _factor(part, "space")
    if not 0 <= value < math.inf:
        raise Refused(f"{what} is 0 or more, and finite", span_of(part.this))
    return abs(value)  # no -0.0


def seconds(part: Quantity) -> float:
    """A time with its unit, in seconds: above 0."""
    value = _finite(part.this) * _factor(part, "time", more=TUPLES)
    return _lasting(value, part, "a window")


def duration(part: Quantity, what: str, more: Sequence[str] = ()) -> float:
    """How long `what` lasts, in seconds: above 0, with its unit; `more` are units that could stand there as well."""
    if part.args.get("unit") is None:
        raise Refused("expected a time with its unit", span_of(part), "such as 5 min")
    return _lasting(_finite(part.this) * _factor(part, "time", more), part, what)


def _lasting(seconds: float, part: Quantity, what: str) -> float:
    """The seconds, where they are such that microseconds of them fit into an int64."""
    if not _LEAST <= seconds <= _LONGEST_S:
        raise Refused(
            f"{what} is at least a microsecond and at most a hundred years",
            span_of(part),
        )
    return seconds


def moment(part: Quantity) -> float:
    """Seconds since 1970, also before."""
    return _finite(part.this) * _factor(part, "time")


def extent_of(part: exp.Expr, by: Literal["space", "time", "rows"]) -> Extent:
    """How far a window reaches: metres, seconds or fixes, above 0."""
    if by == "rows":
        return Extent(by=by, amount=float(whole(part, "a number of fixes", _MOST_ROWS)))
    if part.args.get("unit") is None:
        example = "50 km" if by == "space" else "10 min"
        raise Refused(
            f"expected {WHAT[by]} with its unit", span_of(part), f"such as {example}"
        )
    amount = _finite(part.args["this"]) * _factor(part, by)
    if not _LEAST <= amount <= (_LONGEST_M if by == "space" else _LONGEST_S):
        least, most = (
            ("a micrometre", "a billion kilometres")
            if by == "space"
            else ("a microsecond", "a hundred years")
        )
        raise Refused(
            f"an extent is at least {least} and at most {most}", span_of(part)
        )
    return Extent(by=by, amount=amount)


def _factor(part: exp.Expr, domain: Domain, more: Sequence[str] = ()) -> float:
    """By what a number of this unit is multiplied; without a unit it is metres already, or seconds."""
    unit = part.args.get("unit")
    if unit is None:
        return 1.0
    known = METRES if domain == "space" else SECONDS
    if unit.name.lower() in known:
        return known[unit.name.lower()]
    listed = f"one of {SHOWN[domain]}{f', or {more[-1].upper()}' if more else ''}"
    other = domain_of(unit.name)
    if other is not None:
        message = f"expected {WHAT[domain]}, and {unit.name!r} is a unit of {WHAT[other].removeprefix('a ')}"
        raise Refused(message, span_of(unit), listed)
    raise Refused(
        f"unknown unit {unit.name!r}",
        span_of(unit),
        did_you_mean(unit.name, (*known, *more)) or listed,
    )


def expect(parts: Sequence[exp.Expr], count: int, like: str) -> None:
    """Refuses another number of parts."""
    if len(parts) != count:
        things = (
            "number" if all(isinstance(part, Quantity) for part in parts) else "part"
        )
        message = (
            f"expected {count} {things}{'s' if count > 1 else ''}, not {len(parts)}"
        )
        raise Refused(
            message, span_of(parts[0]) if len(parts) == 1 else _span_of_all(parts), like
        )


def is_moving(parts: Sequence[exp.Expr]) -> bool:
    """Whether the parts begin with the papers' flag 'M' of a moving query."""
    first = parts[0]
    return (
        isinstance(first, exp.Identifier | exp.Literal)
        and first.name.strip().upper() == "M"
    )


def object_id(
    part: exp.Expr, what: str = "of an object", like: str = "('M', 'id', ...)"
) -> str:
    """The id of a focal object, or `what`: a text, or a number as it is written."""
    if isinstance(part, exp.Literal) and part.this:
        return str(part.this)
    if (
        isinstance(part, Quantity)
        and part.args.get("unit") is None
        and isinstance(part.this, exp.Literal)
    ):
        return str(part.this.this)
    hint = f"'{part.name}'" if isinstance(part, exp.Identifier) else like
    raise Refused(f"expected the id {what} in single quotes", span_of(part), hint)


def shown(part: exp.Expr) -> str:
    """A part as an error shows it."""
    return (
        repr(part.name) if isinstance(part, exp.Identifier | exp.Literal) else "(...)"
    )


def _finite(node: exp.Expr) -> float:
    value = -float(node.this.this) if isinstance(node, exp.Neg) else float(node.this)
    if not math.isfinite(value):
        raise Refused("the number is too large", span_of(node))
    return value


def _span_of_all(parts: Sequence[exp.Expr]) -> tuple[int, int]:
    return span_of(parts[0])[0], span_of(parts[-1])[1]


def window_of(lasting: Lasting) -> Window:
    """What WINDOW says: a time, or a number of fixes."""
    quantity = lasting.this
    if quantity.args["unit"].name.lower() in TUPLES:
        quantity.set("unit", None)
        return Window(tuples=whole(quantity, "the number of tuples", _MOST_ROWS))
    return Window(seconds=seconds(quantity))
