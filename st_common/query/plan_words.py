"""Words by which a plan chooses something. Of an unknown one operators would make the last that they know."""

from collections.abc import Iterator
from typing import get_args

from st_common.query.comparing import Kind
from st_common.query.frame import Domain
from st_common.query.neighbours import GroupNearest, Total
from st_common.query.plan import (
    Emit,
    Function,
    How,
    Order,
    Plan,
    Predicate,
    ValueFunction,
)

_EMITS, _ORDERS = frozenset(get_args(Emit)), frozenset(get_args(Order))
_PREDICATES, _FUNCTIONS = frozenset(get_args(Predicate)), frozenset(get_args(Function))
_HOWS = frozenset(get_args(How))
_OF_VALUES = frozenset(get_args(ValueFunction))
_TOTALS, _KINDS = frozenset(get_args(Total)), frozenset(get_args(Kind))
_DOMAINS = frozenset(get_args(Domain))


def check_words(plan: Plan) -> None:
    """Sees to it that every word in a plan is known, for plans that were not made by this version.

    Raises:
        ValueError: it names the word, and those that there are.
    """
    for word, known in _chosen(plan):
        if word not in known:
            raise ValueError(f"{word!r} is none of {', '.join(sorted(known))}")


def _chosen(plan: Plan) -> Iterator[tuple[str, frozenset[str]]]:
    """Each word of a plan with the words that are possible there."""
    yield plan.emit, _EMITS
    yield plan.order, _ORDERS
    yield from _of_joins(plan)
    outer = None if plan.outer is None else plan.outer.aggregate
    for aggregate in (plan.aggregate, outer):
        if aggregate is not None:
            yield aggregate.function, _FUNCTIONS
            yield from ((one.function, _OF_VALUES) for one in aggregate.values)
    if isinstance(plan.neighbours, GroupNearest):
        yield plan.neighbours.total, _TOTALS
    for step in plan.transforms:
        yield step.kind, _KINDS
    for window in plan.frame.sliding if plan.frame is not None else ():
        yield window.range.by, _DOMAINS
        if window.slide is not None:
            yield window.slide.by, _DOMAINS


def _of_joins(plan: Plan) -> Iterator[tuple[str, frozenset[str]]]:
    if plan.join is not None:
        yield plan.join.predicate, _PREDICATES
        yield plan.join.how, _HOWS
    if plan.pairs is not None:
        yield plan.pairs.how, _HOWS
