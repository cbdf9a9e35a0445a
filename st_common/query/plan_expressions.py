"""The expressions in a plan, wherever they stand: what all of them are, and the plan with others in their place."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan


def expressions_of(plan: Plan) -> Iterator[tuple[str, str]]:
    """Each expression behind the part of the plan that it stands in, in the order in which statements have their terms.

    That of an aggregate's group stands behind `group`: the same text may be its argument too, and mean something else.
    """
    if plan.where is not None:
        yield "where", plan.where
    if plan.join is not None and plan.join.left is not None:
        yield "join", plan.join.left
    if plan.pairs is not None:
        yield from (("pairs", key) for key in plan.pairs.keys)
    if plan.aggregate is not None:
        yield from (("aggregate", text) for text in plan.aggregate.arguments)
        yield from (("group", text) for text in _groups(plan.aggregate))
    yield from (("columns", text) for _, text in plan.columns)
    if plan.incident is not None:
        yield from (("incident", text) for text in plan.incident.expressions)


def _groups(aggregate: Aggregate) -> tuple[str, ...]:
    """The expressions of its groups, as they were given: average speeds are of objects, whoever says so."""
    return () if aggregate.function == "avgspd" else aggregate.grouped_by


def with_expressions(plan: Plan, change: Callable[[str], str]) -> Plan:
    """The plan with each of its expressions changed; columns are called as before."""
    return replace(
        plan,
        where=_changed(plan.where, change),
        join=None if plan.join is None else _of_join(plan.join, change),
        pairs=None if plan.pairs is None else _of_pairs(plan.pairs, change),
        aggregate=None
        if plan.aggregate is None
        else _of_aggregate(plan.aggregate, change),
        incident=plan.incident and plan.incident.with_expressions(change),
        columns=tuple((name, change(text)) for name, text in plan.columns),
    )


def _of_join(join: LayerJoin, change: Callable[[str], str]) -> LayerJoin:
    return replace(join, left=_changed(join.left, change))


def _of_pairs(pairs: PairJoin, change: Callable[[str], str]) -> PairJoin:
    return replace(pairs, keys=tuple(change(key) for key in pairs.keys))


def _of_aggregate(aggregate: Aggregate, change: Callable[[str], str]) -> Aggregate:
    return replace(
        aggregate,
        argument=_changed(aggregate.argument, change),
        group=_changed(aggregate.group, change),
        values=tuple(
            replace(value, argument=_changed(value.argument, change))
            for value in aggregate.values
        ),
        keys=tuple((name, change(text)) for name, text in aggregate.keys),
    )


def _changed(text: str | None, change: Callable[[str], str]) -> str | None:
    return None if text is None else change(text)
