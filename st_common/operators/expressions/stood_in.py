"""Conditions with stand-ins for their literals: those that are read alike are read once."""

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from st_common.query.grammar.nodes import Refused
from st_common.query.grammar.statements import expression_of

FIRST = 900_001
"""What stands for the first literal while a condition is read, the next number for the second, and so on."""
NUMBER = re.compile(r"\b9\d{5}\b")
"""Finds what stands for a literal in a text."""


def read_alike(key: str) -> exp.Expr | None:
    """The tree of the conditions with a key (see `shapes.cut`), with stand-ins for their literals, which are numbers.

    Returns:
        None of a condition with a text in it, of a constant, and of what cannot be read.
    """
    kinds, *between = key.split("\x00")
    if "t" in kinds or len(between) != len(kinds) + 1:
        return None
    pieces = [between[0]]
    for place, text in enumerate(between[1:]):
        pieces += [str(FIRST + place), text]
    try:
        return expression_of("".join(pieces))
    except (Refused, SqlglotError):
        return None
