"""Numbers with units beside attributes: in the unit that the stream's settings declare for the attribute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from st_common.config.units import WHAT, Measure, converted, unit_of
from st_common.query.fix_columns import BUILTINS
from st_common.query.grammar.nodes import Refused
from st_common.query.lowering.expression import COMPARISONS, Term
from st_common.query.pair_columns import own_name
from st_common.query.problem import Problem

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings
    from st_common.query.text import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A number with a unit in a tree, and what was written."""

    literal: exp.Expr
    measure: Measure
    span: tuple[int, int]


def measured(term: Term, tree: exp.Expr) -> Sequence[Placed]:
    """Where the term's numbers with units stand in a tree of its text."""
    literals = list(tree.find_all(exp.Literal, bfs=False)) if term.measures else []
    return [
        Placed(literal=literals[at], measure=measure, span=span)
        for at, measure, span in term.measures
    ]


def fit_units(
    statement: "Statement", places: Sequence[Placed], stream: "StreamSettings"
) -> list[Problem]:
    """Brings numbers with units into the units of the attributes beside them, in place; what cannot be is a problem."""
    problems = (
        _fit(statement, place, stream.attributes, stream.units) for place in places
    )
    return [problem for problem in problems if problem is not None]


def _fit(
    statement: "Statement",
    place: Placed,
    attributes: Mapping[str, str],
    units: Mapping[str, str],
) -> Problem | None:
    side, around = _around(place.literal)
    columns = (column.name for column in around.find_all(exp.Column))
    named = {own_name(name) or name for name in columns} & (
        set(attributes) - set(BUILTINS)
    )
    if not named:
        return None  # metres, seconds and metres per second, as what every fix has
    sides = [each.unnest() for each in around.iter_expressions()]
    alone = [each for each in sides if isinstance(each, exp.Column)]
    is_compared = isinstance(around, COMPARISONS) and side in sides
    if not (is_compared and len(alone) == len(named) == 1):
        return _beside_more(statement, place)
    (name,) = named
    unit = unit_of(units.get(name, ""))
    if unit is None:
        return _without_unit(statement, place, name, attributes[name])
    if unit.domain != place.measure.domain:
        wrong = expected(place, unit, f"{name} is in {units[name]}")
        return statement.problem(wrong.message, at=wrong.span, hint=wrong.hint)
    put(place, unit)
    return None


def put(place: Placed, unit: Measure) -> None:
    """Brings a number into a unit of its domain, in place."""
    place.literal.set("this", repr(converted(place.measure, unit)).removesuffix(".0"))


def expected(place: Placed, unit: Measure, hint: str) -> Refused:
    """What is wrong with a number that is in no unit of this domain."""
    message = f"expected {WHAT[unit.domain]}, not {WHAT[place.measure.domain]}"
    return Refused(message, place.span, hint)


def _beside_more(statement: "Statement", place: Placed) -> Problem:
    return statement.problem(
        "a number with a unit beside more than an attribute",
        at=place.span,
        hint="compare one attribute with it, or leave the unit out: attribute > 60 km/h",
    )


def _without_unit(
    statement: "Statement", place: Placed, name: str, type_name: str
) -> Problem:
    shown = statement.written(place.span)
    says_it = f'attributes = {{ {name} = "{type_name} {_like(shown)}" }}'
    return statement.problem(
        f"attribute {name!r} has no unit to compare {shown} with",
        at=place.span,
        hint=f"{says_it} says it; a number alone is as it is",
    )


def _around(literal: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """The comparison that a number stands in, or else the whole expression, and the side of it that holds the number.

    The side is the number itself when nothing but a sign or parentheses is around it.
    """
    side = literal
    while (
        isinstance(side.parent, exp.Neg | exp.Paren) and side.parent.parent is not None
    ):
        side = side.parent
    around = side.parent or side
    while not isinstance(around, COMPARISONS) and around.parent is not None:
        around = around.parent
    return side.unnest(), around


def _like(shown: str) -> str:
    """The unit of a number as it was written."""
    return shown.lstrip("0123456789.+-eE ") or "m/s"
