"""Comparisons of an expression with constants, as what they ask of it: a column that is computed (SPEC X13).

    UPPER(kind) = 'BUS'                          the column UPPER(kind): one text
    H3_CELL(x, y, 9) IN ('891f..', '891e..')     the column H3_CELL(x, y, 9): two texts
    ROUND(load * 2, 1) BETWEEN 3 AND 5           the column ROUND(load * 2, 1): a range
    driver LIKE 'Ad%'                            the column LEFT(driver, 2): one text
    driver LIKE '%da'                            the column RIGHT(driver, 2): one text

Where many conditions compare the same expression it is evaluated once, and they are found by its values.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from st_common.operators.expressions.atom import Atom

_TOKEN = re.compile(
    r"""\s*(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")|\s*(?P<word>[A-Za-z_]\w*)"""
    r"|\s*(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|\s*(?P<compares><=|>=|=|<|>)|\s*(?P<sign>\|\||[-+*/%(),])"
)
_COMPARES = ("BETWEEN", "IN")
_NOT_BEFORE = frozenset(
    ("AND", "OR", "NOT", "IS", "LIKE", "ILIKE", "SIMILAR", "GLOB", "COLLATE", "END")
)
_SIDES = {
    "LEFT": re.compile(r"(.+) LIKE '((?:[^'_%\\]|'')+)%'", re.DOTALL),
    "RIGHT": re.compile(r"(.+) LIKE '%((?:[^'_%\\]|'')+)'", re.DOTALL),
}
"""Patterns of a text and then anything, and the other way round, by the function that gives the text."""
_STAND_IN = "computed"


def computed_atom(
    part: str, atoms_of: Callable[[str], tuple[Atom, ...]]
) -> Atom | None:
    """What a part of a condition asks of an expression, which is called by its text; None of another part.

    Args:
        part: canonical SQL, without AND but in BETWEEN.
        atoms_of: reads what is asked of a column.
    """
    end = _end_of_expression(part)
    if end is None:
        return _of_side(part)
    atoms = atoms_of(f"{_STAND_IN} {part[end:]}")
    if len(atoms) != 1 or atoms[0].column != _STAND_IN:
        return None
    return replace(atoms[0], column=part[:end].strip(), is_computed=True)


def _of_side(part: str) -> Atom | None:
    """What LIKE asks of the first or the last characters of a text, where its pattern says nothing of the others."""
    for function, pattern in _SIDES.items():
        match = pattern.fullmatch(part)
        if match is not None and is_expression(match[1]):
            text = match[2].replace("''", "'")
            column = f"{function}({match[1]}, {len(text)})"
            return Atom(column=column, texts=(text,), is_computed=True)
    return None


def is_expression(text: str) -> bool:
    """Whether a text is one expression that may be compared, and no condition with AND, OR, NOT or LIKE."""
    return _end_of_expression(f"{text} = ''") == len(text)


def _end_of_expression(part: str) -> int | None:
    """Where the expression ends that a part compares; None where it is no such comparison."""
    at, depth = 0, 0
    while at < len(part):
        token = _TOKEN.match(part, at)
        if token is None:
            return None
        said = token[0].strip().upper()
        depth += (said == "(") - (said == ")")
        if depth == 0 and (token["compares"] or said in _COMPARES):
            return at or None
        if depth == 0 and token["word"] and said in _NOT_BEFORE:
            return None
        at = token.end()
    return None
