"""Numbers, and quantities such as "50 km", "10 minutes" or "100 rows": read and checked as in the language's texts."""

import math
import re
from typing import Any

from sqlglot import exp

from st_common.config.units import METRES, SECONDS, TUPLES, domain_of
from st_common.query.builder.refusing import refuse_unless, told_by
from st_common.query.frame import Extent
from st_common.query.grammar.nodes import Quantity
from st_common.query.lowering import quantity
from st_common.query.lowering.options import FIXES, MOST_FIXES
from st_common.query.problem import did_you_mean

Amount = float | str
"""A number, or a text with a number and perhaps a unit."""

_WRITTEN = re.compile(
    r"\s*([+-]?)(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*([^\W\d_]*)\s*"
)
_ROWS = ("row", "rows", *TUPLES)
_LIKE = '"50 km", "10 minutes" or "100 rows"'
_MOST_ROWS = 1_000_000_000


def number_of(value: Any, what: str, step: str) -> float:
    """A finite number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    refuse_unless(
        is_number and math.isfinite(value),
        step,
        f"{what} is a finite number, not {value!r}",
    )
    return float(value)


def whole_of(value: int, what: str, most: int, step: str) -> int:
    """A whole number from 1 to `most`."""
    with told_by(step):
        return quantity.whole(_read(value, what, step), what, most)


def metres_of(value: Amount, what: str, step: str) -> float:
    """A distance, 0 or more, in metres: a number is metres, a text says its unit."""
    part = _read(value, what, step)
    with told_by(step):
        return quantity.metres(part, what)


def seconds_of(value: Amount, what: str, step: str) -> float:
    """How long a window lasts, in seconds above 0: a number is seconds, a text says its unit."""
    part = _in_seconds(value, what, step)
    with told_by(step):
        return quantity.seconds(part)


def duration_of(value: Amount, what: str, step: str) -> float:
    """How long anything else lasts, in seconds above 0: a number is seconds, a text says its unit."""
    part = _in_seconds(value, what, step)
    with told_by(step):
        return quantity.duration(part, what)


def _in_seconds(value: Amount, what: str, step: str) -> Quantity:
    part = _read(value, what, step)
    if part.args.get("unit") is None:
        part.set("unit", exp.to_identifier("s"))
    return part


def fixes_of(value: Amount, step: str) -> int | None:
    """The number of a text such as "2 fixes"; None for another unit."""
    part = _read(value, "a row of fixes", step)
    unit = part.args.get("unit")
    if unit is None or unit.name.lower() not in FIXES:
        return None
    part.set("unit", None)
    with told_by(step):
        return quantity.whole(part, "a number of fixes", MOST_FIXES)


def rows_of(value: Amount, step: str) -> int | None:
    """The number of a text such as "100 rows", which the language also calls tuples; None for another unit."""
    part = _read(value, "an extent", step)
    if not _counts(part):
        return None
    part.set("unit", None)
    with told_by(step):
        return quantity.whole(part, "the number of rows", _MOST_ROWS)


def extent_of(value: str, what: str, step: str) -> Extent:
    """A length along an object's way, whose domain its unit says: space, time or rows."""
    refuse_unless(
        isinstance(value, str),
        step,
        f"{what} is a text with a unit, not {value!r}",
        _LIKE,
    )
    part = _read(value, what, step)
    unit = part.args.get("unit")
    refuse_unless(unit is not None, step, f"{what} needs a unit", _LIKE)
    name = unit.name if unit is not None else ""
    with told_by(step):
        if _counts(part):
            part.set("unit", None)
            return quantity.extent_of(part, "rows")
        measured = domain_of(name)
        known = measured in ("space", "time")
        refuse_unless(
            known,
            step,
            f"{name!r} is no unit of {what}",
            did_you_mean(name, (*METRES, *SECONDS)) or _LIKE,
        )
        return quantity.extent_of(part, "space" if measured == "space" else "time")


def _counts(part: Quantity) -> bool:
    unit = part.args.get("unit")
    return unit is not None and unit.name.lower() in _ROWS


def _read(value: Any, what: str, step: str) -> Quantity:
    """The language's node of a number or of a text."""
    is_text = isinstance(value, str)
    written = _WRITTEN.fullmatch(
        value if is_text else repr(number_of(value, what, step))
    )
    hint = 'such as "500 m"' if is_text else ""
    refuse_unless(
        written is not None,
        step,
        f"{what} is a number and perhaps a unit, not {value!r}",
        hint,
    )
    assert written is not None  # noqa: S101 - for the type checker: it was refused
    sign, digits, unit = written.groups()
    literal = exp.Literal.number(digits)
    node = exp.Neg(this=literal) if sign == "-" else literal
    return Quantity(this=node, unit=exp.to_identifier(unit) if unit else None)
