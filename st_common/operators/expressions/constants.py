"""What constants are worth: types and values as DuckDB has them, remembered; plain literals need not be asked (X13)."""

import re
from collections.abc import Sequence
from typing import Any

from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.remembered import Remembered

_MOST_DIGITS = 15  # a decimal number of so many is read as a double without a doubt
_LARGEST = {"INTEGER": (1 << 31) - 1, "BIGINT": (1 << 63) - 1}
_TEXT = re.compile("'(?:[^']|'')*'")


def types_of(constants: Sequence[str]) -> dict[str, str | None]:
    """The type of each constant in DuckDB, by its text; None where it cannot be bound.

    Example:
        1, 'a'      INTEGER, VARCHAR: plain literals, of which DuckDB is not asked
    """
    return _TYPES.of(constants)


def values_of(constants: Sequence[str], kind: str) -> list[Any]:
    """The values of constants as values of a type, in their order.

    Args:
        constants: expressions without columns.
        kind: a type of DuckDB; of TIMESTAMP values are microseconds since 1970.

    Returns:
        None for a constant that has no value of that type.
    """
    keys = [(text, kind) for text in constants]
    values = _VALUES.of(keys)
    return [values[key] for key in keys]


def _plain_type(literal: str) -> str | None:
    """The type of a text or a whole number; None of other constants."""
    if _TEXT.fullmatch(literal):
        return "VARCHAR"
    if not (literal.isascii() and literal.isdecimal()):
        return None
    return next((kind for kind, most in _LARGEST.items() if int(literal) <= most), None)


def _plain_value(constant: tuple[str, str]) -> Any:
    """The value of a literal without a sign; None of other constants, and where the type is not the usual one."""
    literal, kind = constant
    if kind == "VARCHAR" and _TEXT.fullmatch(literal):
        return literal[1:-1].replace("''", "'")
    digits = literal.replace(".", "", 1)
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > _MOST_DIGITS:
        return None
    if kind == "DOUBLE":
        return float(literal)
    return int(literal) if kind == "BIGINT" and literal == digits else None


def _asked_values(constants: Sequence[tuple[str, str]]) -> Sequence[Any]:
    """The values of constants, as DuckDB says; all are values of the type of the first."""
    if not constants:
        return []
    _, kind = constants[0]
    return expressions.values_of_constants([text for text, _ in constants], kind)


_TYPES: Remembered[str, str | None] = Remembered(
    _plain_type, expressions.types_of_constants
)
_VALUES: Remembered[tuple[str, str], Any] = Remembered(_plain_value, _asked_values)
