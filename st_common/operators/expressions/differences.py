"""Comparisons of columns with each other and a number: what they ask of the difference of the columns (SPEC X13).

    speed > limit + 3                 the column speed - limit: 3 and more
    limit + 3 <= speed - 2            the same column: 5 and more
    speed = limit + 2 * 3             the same column, computed otherwise: about 6

Where many conditions compare the same columns the difference is computed once, and they are found by its values. It is
asked loosely, for doubles are rounded: what is computed is a little more than the difference. Ranges of these are open
upwards, where what is no number stands: of it nothing is known but what the condition itself says. What is equal is
found where the difference is; where that cannot be told, of large numbers and of what is none, all are asked.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from st_common.operators.expressions.atom import Atom
from st_common.operators.expressions.loosened import number_of
from st_common.operators.expressions.shapes import cut
from st_common.operators.expressions.stood_in import (
    read_numbers_alike,
    with_literals,
)
from st_common.query.grammar.statements import text_of

_SLACK = 1e-9
"""How much more is computed than the difference, in the size of its parts: far more than rounding moves it."""
_LARGE = 1e10
"""The size up to which a difference is told to within `_NEAR`, which is some hundred times what doubles leave out."""
_NEAR = 1e-4
_FEWEST = 2  # of one column ranges follow


@dataclass(frozen=True, slots=True)
class _Difference:
    """What is computed, with stand-ins for literals, and how the numbers beside it follow from these."""

    computed: str
    numbers: tuple[Callable[[Sequence[float]], float], ...]
    is_equal: bool


def difference_atom(part: str) -> Atom | None:
    """What a part of a condition asks of the difference of columns; None where it is no such comparison.

    Args:
        part: canonical SQL, without AND.
    """
    key, literals = cut(part)
    known = _difference_of(key)
    if known is None:
        return None
    values = [float(literal) for literal in literals]
    try:
        terms = [of(values) for of in known.numbers]
    except ArithmeticError:
        return None
    # Also of numbers that are added up to little: all that a sum was made of may be rounded.
    slack = _SLACK * (sum(map(abs, terms)) + sum(map(abs, values)))
    column = with_literals(known.computed, literals)
    if not known.is_equal:
        low = f"{sum(terms) - slack:.12g}"
        return Atom(column=column, low=low, is_computed=True, loose=True)
    return _equal(column, sum(terms), slack + _NEAR)


def _equal(column: str, value: float, slack: float) -> Atom | None:
    """That a difference is about a value, or that there is no saying what it is."""
    if not abs(value) <= _LARGE:
        return None
    return Atom(
        column=column,
        low=f"{value - slack:.12g}",
        high=f"{value + slack:.12g}",
        is_computed=True,
        loose=True,
        or_unknown=True,
    )


@lru_cache(maxsize=4096)
def _difference_of(key: str) -> _Difference | None:
    tree = read_numbers_alike(key)
    if not isinstance(tree, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ):
        return None
    sides = tree.this, tree.expression
    is_less = isinstance(tree, exp.LT | exp.LTE)
    greater, less = sides[::-1] if is_less else sides
    terms = [*_terms(greater, 1), *_terms(less, -1)]
    columns = [(sign, node) for sign, node in terms if node.find(exp.Column)]
    numbers = [
        (sign, number_of(node)) for sign, node in terms if not node.find(exp.Column)
    ]
    if len(columns) < _FEWEST or not numbers or not all(of for _, of in numbers):
        return None
    is_equal = isinstance(tree, exp.EQ)
    if is_equal and tree.find(exp.Cast):
        return None  # as of FLOAT, which rounds by more
    return _Difference(
        computed=_exactly(columns) if is_equal else _and_more(columns),
        numbers=tuple(_signed(-sign, of) for sign, of in numbers if of),
        is_equal=is_equal,
    )


def _signed(
    sign: int, of: Callable[[Sequence[float]], float]
) -> Callable[[Sequence[float]], float]:
    return lambda values: sign * of(values)


def _terms(node: exp.Expr, sign: int) -> Iterator[tuple[int, exp.Expr]]:
    """What is added up in an expression, each with its sign."""
    if isinstance(node, exp.Paren):
        yield from _terms(node.this, sign)
    elif isinstance(node, exp.Neg):
        yield from _terms(node.this, -sign)
    elif isinstance(node, exp.Add | exp.Sub):
        yield from _terms(node.this, sign)
        yield from _terms(node.expression, -sign if isinstance(node, exp.Sub) else sign)
    else:
        yield sign, node


def _and_more(terms: Sequence[tuple[int, exp.Expr]]) -> str:
    """The sum of some terms, and a little more."""
    return f"{_sum(terms)} + {_SLACK!r} * ({' + '.join(_sizes(terms))})"


def _exactly(terms: Sequence[tuple[int, exp.Expr]]) -> str:
    """The sum of some terms; null where one is too large or no number, and far below all where one is null."""
    texts = [text_of(node) for _, node in terms]
    is_null = " OR ".join(sorted(f"({text}) IS NULL" for text in texts))
    are_small = " AND ".join(f"{size} <= {_LARGE!r}" for size in _sizes(terms))
    return f"CASE WHEN {is_null} THEN -1e300 WHEN {are_small} THEN {_sum(terms)} END"


def _sum(terms: Sequence[tuple[int, exp.Expr]]) -> str:
    """The sum of some terms as doubles, so that no whole number is too large."""
    texts = sorted((sign, text_of(node)) for sign, node in terms)
    signed = [f"{'+' if sign > 0 else '-'} 1e0 * ({text})" for sign, text in texts]
    return f"0 {' '.join(signed)}"


def _sizes(terms: Sequence[tuple[int, exp.Expr]]) -> list[str]:
    """How large each of some terms is."""
    return [
        f"ABS(1e0 * ({text}))" for text in sorted(text_of(node) for _, node in terms)
    ]
