"""What constants are worth: types and values as DuckDB has them, remembered; plain literals need not be asked (X13)."""

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from st_common.operators.expressions import evaluation as expressions

_MOST_KNOWN = 1 << 18
_MOST_DIGITS = 15  # a decimal number of so many is read as a double without a doubt
_LARGEST = {"INTEGER": (1 << 31) - 1, "BIGINT": (1 << 63) - 1}
_TEXT = re.compile("'(?:[^']|'')*'")
_K = TypeVar("_K", bound=Hashable)

_types: dict[str, str | None] = {}
_values: dict[tuple[str, str], Any] = {}


def types_of(constants: Sequence[str]) -> dict[str, str | None]:
    """The type of each constant in DuckDB, by its text; None where it cannot be bound."""
    return _known(_types, constants, _plain_type, expressions.types_of_constants)


def values_of(constants: Sequence[str], kind: str) -> list[Any]:
    """The values of constants as values of a type, None where one has none; times in microseconds."""

    def asked(keys: Sequence[tuple[str, str]]) -> list[Any]:
        return expressions.values_of_constants([text for text, _ in keys], kind)

    keys = [(text, kind) for text in constants]
    by_key = _known(_values, keys, lambda key: _plain_value(*key), asked)
    return [by_key[key] for key in keys]


def _known(
    known: dict[_K, Any],
    keys: Sequence[_K],
    plain: Callable[[_K], Any],
    asked: Callable[[Sequence[_K]], Sequence[Any]],
) -> dict[_K, Any]:
    """What is known of some keys, and of those that were not: plain ones at once, the others asked for together."""
    if len(known) > _MOST_KNOWN:
        known.clear()
    new = [key for key in dict.fromkeys(keys) if key not in known]
    known.update((key, value) for key in new if (value := plain(key)) is not None)
    rest = [key for key in new if key not in known]
    known.update(zip(rest, asked(rest), strict=True))
    return {key: known[key] for key in keys}


def _plain_type(literal: str) -> str | None:
    """The type of a text or a whole number; None of other constants."""
    if _TEXT.fullmatch(literal):
        return "VARCHAR"
    if not (literal.isascii() and literal.isdecimal()):
        return None
    return next((kind for kind, most in _LARGEST.items() if int(literal) <= most), None)


def _plain_value(literal: str, kind: str) -> Any:
    """The value of a literal without a sign; None of other constants, and where the type is not the usual one."""
    if kind == "VARCHAR" and _TEXT.fullmatch(literal):
        return literal[1:-1].replace("''", "'")
    digits = literal.replace(".", "", 1)
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > _MOST_DIGITS:
        return None
    if kind == "DOUBLE":
        return float(literal)
    return int(literal) if kind == "BIGINT" and literal == digits else None
