"""Ranges in which columns must lie for a condition about arithmetic with them, a little wider than they are (SPEC X13).

    ABS(load - 3) <= 2                 load from 1 to 5
    2 * load + 1 > 7                   load from 3 on
    ABS(x - 5) + ABS(y - 8) < 2        x from 3 to 7, y from 6 to 10, for neither part is below 0
    load * x > 7                       nothing

Whoever satisfies a condition is found by such a range, and the condition itself is asked still: that is the database's.
Sums and products of doubles are rounded, so each step back from the condition to a column widens the range by far more.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import add, mul, sub, truediv

from sqlglot import exp

from st_common.operators.expressions.shapes import cut
from st_common.operators.expressions.stood_in import (
    FIRST,
    NUMBER,
    read_numbers_alike,
    with_literals,
)
from st_common.query.grammar.statements import text_of

Range = tuple[float, float]
Numbers = Sequence[float]
Step = Callable[[Range, Numbers], Range]
"""The range of a part of an expression, by that of the whole and by the literals."""
ColumnRange = tuple[str, float, float]
"""A column, and the least and the greatest value that it may have."""

_SLACK = 1e-9
_EVERYTHING = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class _Way:
    """From a condition to a column: the range of the compared expression, then the steps down to the column.

    With `is_computed` it leads to an expression, with stand-ins for literals, that no way leads out of.
    """

    column: str
    is_computed: bool
    compared: Callable[[Numbers], Range]
    steps: tuple[Step, ...]


def loose_ranges(condition: str) -> list[ColumnRange]:
    """The ranges that the values of columns lie in where a condition holds, perhaps wider than need be.

    Args:
        condition: canonical SQL, without AND but in BETWEEN.

    Returns:
        Nothing of a condition that says no such thing, or is a simple comparison itself.
    """
    key, literals = cut(condition)
    ways = [way for way in _ways_of(key) if not way.is_computed]
    return list(_ranges_of(ways, literals))


def loose_expressions(condition: str) -> list[ColumnRange]:
    """As `loose_ranges`, of expressions in arithmetic with constants: `load * x` in `ABS(load * x - 7) < 2`."""
    key, literals = cut(condition)
    ways = [way for way in _ways_of(key) if way.is_computed]
    ranges = _ranges_of(ways, literals)
    return [(with_literals(text, literals), low, high) for text, low, high in ranges]


def _ranges_of(ways: Sequence[_Way], literals: Sequence[str]) -> Iterator[ColumnRange]:
    numbers = [float(one) for one in literals] if ways else []
    ranges = (_range_of(way, numbers) for way in ways)
    yield from (one for one in ranges if one is not None)


def _range_of(way: _Way, numbers: Numbers) -> ColumnRange | None:
    """The range at the end of a way; None where everything, or nothing, is in it."""
    slack = _SLACK * sum(map(abs, numbers))
    try:
        low, high = compared = way.compared(numbers)
        for step in way.steps:
            low, high = step((low, high), numbers)
            # Wider by far more than rounding may move its ends.
            low -= slack + _SLACK * abs(low)
            high += slack + _SLACK * abs(high)
    except (ArithmeticError, ValueError):
        return None
    # To the database what is no number is greater than every number, and stands at the upper end of a column.
    may_be_none = compared[1] == math.inf and high < math.inf
    is_some = -math.inf < low <= high or low <= high < math.inf
    return (way.column, low, high) if is_some and not may_be_none else None


@lru_cache(maxsize=4096)
def _ways_of(key: str) -> tuple[_Way, ...]:
    """The ways of all conditions that are read alike (see `shapes.cut`)."""
    tree = read_numbers_alike(key)
    return () if tree is None else tuple(_traced(tree))


def _traced(tree: exp.Expr) -> Iterator[_Way]:
    """The ways from a comparison with a constant down to the columns in it."""
    if isinstance(tree, exp.Between):
        low, high = number_of(tree.args["low"]), number_of(tree.args["high"])
        if low is not None and high is not None:
            yield from _ways(tree.this, lambda numbers: (low(numbers), high(numbers)))
        return
    if type(tree) not in _RANGES:
        return
    of_range = _RANGES[type(tree)], _RANGES[_TURNED[type(tree)]]
    sides = (tree.this, tree.expression), (tree.expression, tree.this)
    for (one, other), range_of in zip(sides, of_range, strict=True):
        constant = number_of(other)
        if constant is not None:
            yield from _ways(one, _composed(range_of, constant))


def _composed(
    of_range: Callable[[float], Range], constant: Callable[[Numbers], float]
) -> Callable[[Numbers], Range]:
    return lambda numbers: of_range(constant(numbers))


def _ways(node: exp.Expr, compared: Callable[[Numbers], Range]) -> Iterator[_Way]:
    for end, steps in _down(node):
        if steps:
            is_column = isinstance(end, exp.Column)
            name = end.name if is_column else text_of(end)
            yield _Way(name, not is_column, compared, steps)


def _down(node: exp.Expr) -> Iterator[tuple[exp.Expr, tuple[Step, ...]]]:
    """The columns below a part of an expression, or what of it no way leads out of, each with the steps to it."""
    below = [] if isinstance(node, exp.Column) else list(_below(node))
    if not below and node.find(exp.Column):
        yield node, ()
    for part, step in below:
        for end, steps in _down(part):
            yield end, (step, *steps)


def _below(node: exp.Expr) -> Iterator[tuple[exp.Expr, Step]]:
    """The parts of an expression of whose range something follows from that of the whole."""
    if isinstance(node, exp.Paren):
        yield node.this, lambda range_, _: range_
    elif isinstance(node, exp.Neg):
        yield node.this, lambda range_, _: (-range_[1], -range_[0])
    elif isinstance(node, exp.Anonymous):
        if len(node.expressions) == 1 and node.name.upper() in _CALLS:
            yield node.expressions[0], _CALLS[node.name.upper()]
    else:
        yield from _of_operator(node)


def _of_operator(node: exp.Expr) -> Iterator[tuple[exp.Expr, Step]]:
    """As `_below`, of a square, a sum of parts that are not below 0, and arithmetic with a constant."""
    alike = _positive_where(node)
    if alike is not None and isinstance(node, exp.Mul):
        yield node.this, _where_alike(alike, lambda r: (-_root(r[1]), _root(r[1])))
    elif alike is not None:
        of_a_part = _where_alike(alike, lambda r: (-math.inf, r[1]))
        yield from ((side, of_a_part) for side in (node.this, node.expression))
    elif type(node) in _BACK:
        sides = (node.this, node.expression), (node.expression, node.this)
        for (part, beside), back in zip(sides, _BACK[type(node)], strict=True):
            constant = number_of(beside)
            if constant is not None and back is not None:
                yield part, _step(constant, back)


def _positive_where(node: exp.Expr) -> list[tuple[int, int]] | None:
    """Which literals must be alike for an expression never to be below 0, by their places; None: it may be.

    (x - 1) * (x - 2)      0 and 1: it is a square where both literals are alike
    """
    if isinstance(node, exp.Paren):
        return _positive_where(node.this)
    if isinstance(node, exp.Add):
        both = _positive_where(node.this), _positive_where(node.expression)
        return None if both[0] is None or both[1] is None else [*both[0], *both[1]]
    if isinstance(node, exp.Anonymous):
        return [] if node.name.upper() in ("ABS", "SQRT") else None
    if not isinstance(node, exp.Mul) or not node.find(exp.Column):
        return None
    shapes = [NUMBER.sub("?", side.sql()) for side in (node.this, node.expression)]
    if shapes[0] != shapes[1]:
        return None
    places = [_places_in(side) for side in (node.this, node.expression)]
    return list(zip(*places, strict=True))


def _places_in(node: exp.Expr) -> list[int]:
    """The places of the literals of a part, in their order."""
    return [int(one) - FIRST for one in NUMBER.findall(node.sql())]


def _where_alike(
    places: Sequence[tuple[int, int]], of: Callable[[Range], Range]
) -> Step:
    """A step that says nothing where literals at some places differ."""

    def step(range_: Range, numbers: Numbers) -> Range:
        is_alike = all(numbers[one] == numbers[other] for one, other in places)
        return of(range_) if is_alike else _EVERYTHING

    return step


def _root(value: float) -> float:
    return math.sqrt(value) if value > 0 else 0.0


def _step(
    constant: Callable[[Numbers], float], back: Callable[[Range, float], Range]
) -> Step:
    return lambda range_, numbers: back(range_, constant(numbers))


def number_of(node: exp.Expr) -> Callable[[Numbers], float] | None:
    """How the value of a part without a column follows from the literals; None of anything else."""
    if isinstance(node, exp.Paren):
        return number_of(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        place = int(node.name) - FIRST
        return lambda numbers: numbers[place]
    if isinstance(node, exp.Neg):
        value = number_of(node.this)
        return None if value is None else lambda numbers: -value(numbers)
    of = _ARITHMETIC.get(type(node))
    if of is None:
        return None
    one, other = number_of(node.this), number_of(node.expression)
    if one is None or other is None:
        return None
    return lambda numbers: of(one(numbers), other(numbers))


def _scaled(range_: Range, factor: float) -> Range:
    """A range times a factor; everything where nothing follows from it."""
    if not factor or not math.isfinite(factor):
        return _EVERYTHING
    ends = range_[0] * factor, range_[1] * factor
    return min(ends), max(ends)


_ARITHMETIC: Mapping[type[exp.Expr], Callable[[float, float], float]] = {
    exp.Add: add,
    exp.Sub: sub,
    exp.Mul: mul,
    exp.Div: truediv,
}
_RANGES: Mapping[type[exp.Expr], Callable[[float], Range]] = {
    exp.EQ: lambda value: (value, value),
    exp.GT: lambda value: (value, math.inf),
    exp.GTE: lambda value: (value, math.inf),
    exp.LT: lambda value: (-math.inf, value),
    exp.LTE: lambda value: (-math.inf, value),
}
_TURNED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}
_CALLS: Mapping[str, Step] = {
    "ABS": lambda range_, _: (-range_[1], range_[1]),
    "SQRT": lambda range_, _: (-math.inf, max(range_[1], 0.0) ** 2),
    **dict.fromkeys(
        ("FLOOR", "CEIL", "ROUND"), lambda range_, _: (range_[0] - 1, range_[1] + 1)
    ),
}
_Back = Callable[[Range, float], Range]
_BACK: Mapping[type[exp.Expr], tuple[_Back | None, _Back | None]] = {
    exp.Add: (lambda r, c: (r[0] - c, r[1] - c), lambda r, c: (r[0] - c, r[1] - c)),
    exp.Sub: (lambda r, c: (r[0] + c, r[1] + c), lambda r, c: (c - r[1], c - r[0])),
    exp.Mul: (lambda r, c: _scaled(r, 1 / c), lambda r, c: _scaled(r, 1 / c)),
    exp.Div: (_scaled, None),
}
"""By operator the steps to its first and to its second side, with the constant on the other one."""
