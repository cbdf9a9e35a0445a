"""Comparisons of columns with each other and a number: what they ask of the difference of the columns (SPEC X13).

    speed > limit + 3                 the column speed - limit: 3 and more
    limit + 3 <= speed - 2            the same column: 5 and more

Where many conditions compare the same columns the difference is computed once, and they are found by its values. It is
asked loosely, for doubles are rounded: what is computed is a little more than the difference. All ranges are open
upwards, where what is no number stands: of it nothing is known but what the condition itself says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from st_common.operators.expressions.atom import Atom
from st_common.operators.expressions.shapes import cut
from st_common.operators.expressions.stood_in import (
    FIRST,
    read_numbers_alike,
    with_literals,
)
from st_common.query.grammar.statements import text_of

_SLACK = 1e-9
"""How much more is computed than the difference, in the size of its parts: far more than rounding moves it."""
_FEWEST = 2  # of one column ranges follow


@dataclass(frozen=True, slots=True)
class _Difference:
    """What is computed, with stand-ins for literals, and the literals below it, each with its sign and place."""

    computed: str
    least: tuple[tuple[int, int], ...]


def difference_atom(part: str) -> Atom | None:
    """What a part of a condition asks of the difference of columns; None where it is no such comparison.

    Args:
        part: canonical SQL, without AND.
    """
    key, literals = cut(part)
    known = _difference_of(key)
    if known is None:
        return None
    least = [sign * float(literals[place]) for sign, place in known.least]
    low = sum(least) - _SLACK * sum(map(abs, least))
    column = with_literals(known.computed, literals)
    return Atom(column=column, low=f"{low:.12g}", is_computed=True, loose=True)


@lru_cache(maxsize=4096)
def _difference_of(key: str) -> _Difference | None:
    tree = read_numbers_alike(key)
    if not isinstance(tree, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return None
    sides = tree.this, tree.expression
    greater, less = sides if isinstance(tree, exp.GT | exp.GTE) else sides[::-1]
    terms = [*_terms(greater, 1), *_terms(less, -1)]
    columns = [(sign, node) for sign, node in terms if node.find(exp.Column)]
    numbers = [(sign, node) for sign, node in terms if not node.find(exp.Column)]
    are_literals = all(isinstance(node, exp.Literal) for _, node in numbers)
    if len(columns) < _FEWEST or not numbers or not are_literals:
        return None
    return _Difference(
        computed=_text_of(columns),
        least=tuple((-sign, int(node.name) - FIRST) for sign, node in numbers),
    )


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


def _text_of(terms: Sequence[tuple[int, exp.Expr]]) -> str:
    """The sum of some terms, and a little more; as doubles, so that no whole number is too large."""
    texts = sorted((sign, text_of(node)) for sign, node in terms)
    whole = " ".join(
        f"{'+' if sign > 0 else '-'} 1e0 * ({text})" for sign, text in texts
    )
    sizes = " + ".join(f"ABS(1e0 * ({text}))" for _, text in texts)
    return f"0 {whole} + {_SLACK!r} * ({sizes})"
