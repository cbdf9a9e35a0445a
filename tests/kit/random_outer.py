"""Random queries about the rows of others: conditions, aggregates and groups over their columns."""

from dataclasses import replace
from random import Random

from st_common.query.plan import (
    AS_JSON,
    Aggregate,
    Function,
    Outer,
    Plan,
    Window,
    has_value,
)
from tests.kit.random_clauses import draw_several

_FUNCTIONS: tuple[Function, ...] = (
    *("count", "count_distinct", "sum"),
    *("avg", "min", "max"),
)
_UNASKED = ("stddev", "var", "quantile", *AS_JSON)
"""Functions whose last digits depend on how they are found, or that give no numbers: nobody asks about these."""
_TEXTS = ("kind", '"other.kind"')
"""Expressions of random columns that give texts; all others give numbers."""
_TEXT_CONDITIONS = ("{} <> 'a'", "{} IN ('b', 'bus')")
_NUMBER_CONDITIONS = ("{} > 1", "{} <= 4", "abs({}) > 2")


def draw_outer(rng: Random, below: Plan) -> Outer:
    """A query about the rows of a plan, of which some count on for a while after they left."""
    outer = _draw_outer(rng, below)
    if rng.random() < 0.25:
        return replace(outer, lasting_s=rng.choice((0.25, 0.5, 1.0, 2.5, 4.0)))
    if rng.random() < 0.3:
        return replace(
            outer, window=Window(seconds=rng.choice((0.25, 0.5, 1.0, 2.5, 4.0)))
        )
    return outer


def _draw_outer(rng: Random, below: Plan) -> Outer:
    texts, numbers = columns_of_rows(below)
    conditions = [one.format(name) for name in texts for one in _TEXT_CONDITIONS]
    conditions += [one.format(name) for name in numbers for one in _NUMBER_CONDITIONS]
    if not conditions:
        return Outer()
    where = rng.choice(conditions) if rng.random() < 0.6 else None
    if rng.random() < 0.3:
        return Outer(where=where)
    return Outer(where=where, aggregate=_draw_aggregate(rng, texts, numbers))


def columns_of_rows(plan: Plan) -> tuple[list[str], list[str]]:
    """The columns of the rows of a random plan that have texts, and those that have numbers."""
    grouped, texts, numbers = plan.aggregate, list[str](), list[str]()
    if grouped is None or grouped.grouped_by:
        texts.append("object")
    if grouped is None and plan.gives_pairs and plan.frame is None:
        texts.append("partner")
    first = grouped.values[0].function if grouped and grouped.values else ""
    if grouped is not None and has_value(grouped) and first not in _UNASKED:
        numbers.append("value")
    if grouped is not None:
        texts += [name for name, _ in grouped.keys]
        numbers += [v.name for v in grouped.values if v.function not in _UNASKED]
    for name, text in plan.columns:
        (texts if text in _TEXTS else numbers).append(name)
    return texts, numbers


def _draw_aggregate(rng: Random, texts: list[str], numbers: list[str]) -> Aggregate:
    arguments = [*numbers, *(f"{name} * 2" for name in numbers)]
    arguments += [f"length({name})" for name in texts]
    groups = [*texts, *numbers]
    if rng.random() < 0.2:
        return draw_several(rng, arguments, groups, of_fixes=False)
    group = rng.choice(groups) if rng.random() < 0.5 else None
    function = rng.choice(_FUNCTIONS)
    if rng.random() < 0.15:
        return Aggregate(function="distinct", group=rng.choice(groups))
    counts = function == "count" or (function == "count_distinct" and "object" in texts)
    if counts and rng.random() < 0.5:
        return Aggregate(function=function, group=group)
    return Aggregate(function=function, argument=rng.choice(arguments), group=group)
