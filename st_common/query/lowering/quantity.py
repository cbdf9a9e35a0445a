"""Numbers, distances and times as a text says them."""

import math
from collections.abc import Sequence

from sqlglot import exp

from st_common.query.grammar.nodes import Quantity, Refused, span_of
from st_common.query.problem import did_you_mean

METRES = {"m": 1.0, "km": 1000.0, "ft": 0.3048, "mi": 1609.344, "nmi": 1852.0}
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
}
TUPLES = ("tuple", "tuples")
_LONGEST_S = 3.2e9  # a hundred years: microseconds of it still fit


def plain(part: exp.Expr) -> float:
    """The number of a part without a unit."""
    if not isinstance(part, Quantity):
        raise Refused(f"expected a number, not {shown(part)}", span_of(part))
    if part.args.get("unit") is not None:
        raise Refused("expected a number without a unit", span_of(part), "coordinates have none")
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
    unit = part.args.get("unit")
    if unit is not None and unit.name.lower() not in METRES:
        hint = did_you_mean(unit.name, METRES) or f"one of {', '.join(METRES)}"
        raise Refused(f"unknown unit {unit.name!r}", span_of(unit), hint)
    value = _finite(part.this) * (METRES[unit.name.lower()] if unit is not None else 1.0)
    if not 0 <= value < math.inf:
        raise Refused(f"{what} is 0 or more, and finite", span_of(part.this))
    return abs(value)  # no -0.0


def seconds(part: Quantity) -> float:
    """A time with its unit, in seconds: above 0."""
    unit = part.args["unit"]
    if unit.name.lower() not in _SECONDS:
        known = (*_SECONDS, *TUPLES)
        hint = did_you_mean(unit.name, known) or "s, min, hours, days, or TUPLES"
        raise Refused(f"unknown unit {unit.name!r}", span_of(unit), hint)
    value = _finite(part.this) * _SECONDS[unit.name.lower()]
    if not 1e-6 <= value <= _LONGEST_S:
        raise Refused("a window is at least a microsecond and at most a hundred years", span_of(part))
    return value


def expect(parts: Sequence[exp.Expr], count: int, like: str) -> None:
    """Refuses another number of parts."""
    if len(parts) != count:
        things = "number" if all(isinstance(part, Quantity) for part in parts) else "part"
        message = f"expected {count} {things}{'s' if count > 1 else ''}, not {len(parts)}"
        raise Refused(message, span_of(parts[0]) if len(parts) == 1 else _span_of_all(parts), like)


def is_moving(parts: Sequence[exp.Expr]) -> bool:
    """Whether the parts begin with the papers' flag 'M' of a moving query."""
    first = parts[0]
    return isinstance(first, exp.Identifier | exp.Literal) and first.name.strip().upper() == "M"


def object_id(part: exp.Expr) -> str:
    """The id of a focal object: a text, or a number as it is written."""
    if isinstance(part, exp.Literal) and part.this:
        return str(part.this)
    if isinstance(part, Quantity) and part.args.get("unit") is None and isinstance(part.this, exp.Literal):
        return str(part.this.this)
    hint = f"'{part.name}'" if isinstance(part, exp.Identifier) else "('M', 'id', ...)"
    raise Refused("expected the id of an object in single quotes", span_of(part), hint)


def shown(part: exp.Expr) -> str:
    """A part as an error shows it."""
    return repr(part.name) if isinstance(part, exp.Identifier | exp.Literal) else "(...)"


def _finite(node: exp.Expr) -> float:
    value = -float(node.this.this) if isinstance(node, exp.Neg) else float(node.this)
    if not math.isfinite(value):
        raise Refused("the number is too large", span_of(node))
    return value


def _span_of_all(parts: Sequence[exp.Expr]) -> tuple[int, int]:
    return span_of(parts[0])[0], span_of(parts[-1])[1]
