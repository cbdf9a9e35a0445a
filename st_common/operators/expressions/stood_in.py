"""Conditions with stand-ins for their literals: those that are read alike are read once."""

import re
from collections.abc import Sequence

from sqlglot import exp

from st_common.operators.expressions.drafts import tree_of

FIRST = 900_001
"""What stands for the first literal while a condition is read, the next number for the second, and so on."""
NUMBER = re.compile(r"\b9\d{5}\b")
"""Finds what stands for a literal in a text."""
_STAND_IN = re.compile(r"'(9\d{5})'|\b(9\d{5})\b|\"(?:[^\"]|\"\")*\"")


def read_alike(key: str) -> exp.Expr | None:
    """The tree of the conditions with a key (see `shapes.cut`), with numbers for their numbers, and texts for texts.

    Returns:
        None of what cannot be read.
    """
    kinds = key.partition("\x00")[0]
    numbers = range(FIRST, FIRST + len(kinds))
    stand_ins = [
        f"'{number}'" if kind == "t" else str(number)
        for kind, number in zip(kinds, numbers, strict=True)
    ]
    return tree_of(key, stand_ins)


def read_numbers_alike(key: str) -> exp.Expr | None:
    """As `read_alike`; None where there is a text among the literals."""
    return None if "t" in key.partition("\x00")[0] else read_alike(key)


def with_literals(text: str, literals: Sequence[str]) -> str:
    """A text with the literals in the place of what stands for them; quoted names stay as they are."""

    def literal(match: re.Match[str]) -> str:
        number = match[1] or match[2]
        return literals[int(number) - FIRST] if number else match[0]

    return _STAND_IN.sub(literal, text)
