"""FOR and UNTIL: how long a condition holds before it is an incident, what ends one, its worst value (SPEC X8)."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from st_common.query.grammar.nodes import Emit, Holding, Refused, Until, span_of
from st_common.query.incident import Extreme, Incident, Worst, name_of_worst
from st_common.query.lowering.expression import Term, and_of, conjuncts, term_of
from st_common.query.lowering.functions import AGGREGATES
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.options import Chosen, in_a_row
from st_common.query.lowering.quantity import duration
from st_common.query.lowering.scope import Scope

_LIKE = "WHERE speed > 50 km/h FOR 30 s"
_EXTREMES: dict[str, Extreme] = {"MAX": "max", "MIN": "min"}


def incident_of(
    select: exp.Expr, chosen: Chosen, gathered: Gathered
) -> Incident | None:
    """The incident of FOR without its expressions; None without FOR. What needs one and has none is gathered."""
    holding: Holding | None = select.args.get("lasting")
    emit: Emit | None = select.args.get("emit")
    interval = emit.args.get("interval") if emit is not None else None
    if holding is None:
        _refuse_without_for(select.args.get("until"), interval, gathered)
        return None
    lasting = gathered.attempt(
        lambda: in_a_row(holding, holding.expressions, "FOR 30 s, or FOR 3 fixes"), None
    )
    every_s = gathered.attempt(
        lambda: None if interval is None else duration(interval, "an interval"), None
    )
    if lasting is None:
        return None
    return Incident(lasting=lasting, max_gap_s=chosen.max_gap_s, every_s=every_s)


def _refuse_without_for(
    until: Until | None, interval: exp.Expr | None, gathered: Gathered
) -> None:
    if until is not None:
        message = "UNTIL ends what FOR begins, and there is no FOR"
        gathered.found.append(Refused(message, span_of(until), _LIKE))
    if interval is not None:
        message = "EMIT EVERY has an interval with FOR alone"
        hint = "EMIT EVERY tells each fix of a member"
        gathered.found.append(Refused(message, span_of(interval), hint))


def ending_of(select: exp.Expr, scope: Scope, gathered: Gathered) -> Term | None:
    """The condition of UNTIL, None without one; it is about the fix alone."""
    until: Until | None = select.args.get("until")
    if until is None:
        return None
    return gathered.attempt(lambda: _condition(until.this, scope), None)


def _condition(tree: exp.Expr, scope: Scope) -> Term:
    """A condition on the fix alone, each part of what AND joins by itself, as after WHERE."""
    parts = list(conjuncts(tree))
    return and_of([term_of(part, scope, needs="boolean") for part in parts], parts)


def with_expressions(
    incident: Incident | None, until: Term | None, worst: Worst | None
) -> Incident | None:
    """The incident with the condition that ends it, and its worst value."""
    if incident is None:
        return None
    ending = None if until is None else until.text
    return replace(incident, until=ending, worst=worst)


def worst_of(call: exp.Expr, scope: Scope) -> tuple[Worst, Term]:
    """The worst value that MAX or MIN asks for, and its argument.

    Raises:
        Refused: another function, or not one argument that is a number.
    """
    bare = call.this if isinstance(call, exp.Alias) else call
    name = bare.name.upper()
    if name not in _EXTREMES:
        hint = f"MAX or MIN is its worst value; {name} is of queries without FOR"
        raise Refused(f"{name} is not told of an incident", span_of(bare), hint)
    if len(bare.expressions) != 1 or not _is_value(bare.expressions[0]):
        raise Refused(f"{name} takes one number", span_of(bare), f"{name}(speed)")
    term = term_of(bare.expressions[0], scope, needs="number")
    function = _EXTREMES[name]
    named = call.args["alias"].name if isinstance(call, exp.Alias) else ""
    shown = named or name_of_worst(function, term.text)
    return Worst(function=function, argument=term.text, name=shown), term


def is_aggregate(item: exp.Expr) -> bool:
    """Whether an item after SELECT is an aggregate, with or without a name of its own."""
    call = item.this if isinstance(item, exp.Alias) else item
    return isinstance(call, exp.Anonymous) and call.name.upper() in AGGREGATES


def only_worst(calls: Sequence[exp.Expr]) -> exp.Expr | None:
    """The one aggregate among the items after SELECT, None for none.

    Raises:
        Refused: there are several.
    """
    if len(calls) > 1:
        hint = "register a second query for it"
        raise Refused("an incident has one worst value", span_of(calls[1]), hint)
    return calls[0] if calls else None


def _is_value(argument: exp.Expr) -> bool:
    return not isinstance(argument, exp.Star | exp.Distinct)
