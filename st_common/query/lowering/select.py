"""SELECT and GROUP BY: everything, columns, distinct values, or aggregates with their groups (SPEC G9)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from sqlglot import exp

from st_common.query.grammar.nodes import Refused, Span, span_of
from st_common.query.incident import Worst
from st_common.query.lowering.expression import Term, is_same, term_of
from st_common.query.lowering.functions import STAMPS
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.incident import is_aggregate, only_worst, worst_of
from st_common.query.lowering.nearness import is_of_place
from st_common.query.lowering.scope import Scope
from st_common.query.lowering.several import (
    FUNCTIONS,
    SINGLE,
    check_of_stream,
    function_of,
    hint_of,
    key_of,
    several_of,
)
from st_common.query.lowering.top import top_of
from st_common.query.pair_columns import MEASURES
from st_common.query.plan import OF_WAYS, Aggregate, Function, Top

_Column = tuple[str, Term, Span]
_STAMPS = (
    "x",
    "y",
    "event_ts",
)  # the spatial and the temporal stamp of a fix (SPEC W7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """What a query gives: columns beside the key of a change, or an aggregate; neither for `SELECT *`.

    Beside the columns of an incident stands its worst value.
    """

    aggregate: Aggregate | None = None
    worst: Worst | None = None
    columns: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] = ()


def selected_of(select: exp.Expr, scope: Scope, gathered: Gathered) -> Selected:
    """What SELECT and GROUP BY ask for; columns that are wrong are gathered."""
    items: Sequence[exp.Expr] = select.expressions[0].expressions
    group = select.args.get("group")
    starred = isinstance(items[0], exp.Star)
    calls = [item for item in items if is_aggregate(item)]
    if select.args.get("top") is not None:
        return _greatest(items, calls, select, scope)
    if select.args.get("having") is not None and scope.joined == "rows" and calls:
        grouped = _keys_of(calls, group, scope)
        several, terms = several_of(items, grouped, scope)
        return Selected(aggregate=replace(several, top=Top()), terms=terms)
    if select.args.get("distinct"):
        return _distinct(items, group, scope)
    is_incident = select.args.get("lasting") is not None and scope.joined != "rows"
    if calls and is_incident and group is None:
        return _of_incident(items, calls, scope, gathered)
    if calls:
        return _aggregate(items, calls, group, scope)
    if group is not None:
        hint = "SELECT COUNT(*) FROM ... GROUP BY ..."
        raise Refused("GROUP BY needs an aggregate after SELECT", span_of(group), hint)
    return Selected() if starred else _columns(items, scope, gathered)


def _greatest(
    items: Sequence[exp.Expr],
    calls: Sequence[exp.Expr],
    select: exp.Expr,
    scope: Scope,
) -> Selected:
    """Several values, also where there is one, of the groups that are the greatest or the least."""
    top, group = select.args["top"], select.args.get("group")
    if not calls or select.args.get("distinct"):
        hint = "SELECT line, COUNT(*) AS n .. GROUP BY line ORDER BY n DESC LIMIT 3"
        raise Refused("ORDER BY needs an aggregate after SELECT", span_of(top), hint)
    grouped = _keys_of(calls, group, scope)
    several, terms = several_of(items, grouped, scope)
    several = replace(several, top=top_of(top, several, scope))
    return Selected(aggregate=several, terms=terms)


def _of_incident(
    items: Sequence[exp.Expr],
    calls: Sequence[exp.Expr],
    scope: Scope,
    gathered: Gathered,
) -> Selected:
    """The columns of an incident, and its worst value, which is shown behind them."""
    selected = _columns([item for item in items if item not in calls], scope, gathered)
    call = only_worst(calls)
    if call is None:
        return selected
    worst, term = worst_of(call, scope)
    if worst.name in dict(selected.columns):
        message = f"two columns are called {worst.name!r}"
        hint = "give one of them another name: ... AS name"
        raise Refused(message, span_of(call), hint)
    return replace(selected, worst=worst, terms=(*selected.terms, term))


def _distinct(
    items: Sequence[exp.Expr], group: exp.Expr | None, scope: Scope
) -> Selected:
    if (
        isinstance(items[0], exp.Star)
        or len(items) > 1
        or isinstance(items[0], exp.Alias)
    ):
        at = items[1] if len(items) > 1 else items[0]
        raise Refused(
            "expected one expression after DISTINCT",
            span_of(at),
            "SELECT DISTINCT kind FROM ...",
        )
    if group is not None:
        raise Refused("DISTINCT and GROUP BY exclude each other", span_of(group))
    term = _group_term(items[0], scope)
    return Selected(
        aggregate=Aggregate(function="distinct", group=term.text), terms=(term,)
    )


def _aggregate(
    items: Sequence[exp.Expr],
    calls: Sequence[exp.Expr],
    group: exp.Expr | None,
    scope: Scope,
) -> Selected:
    """One value of each group, or several; one that has a name of its own stands where several do."""
    bare = calls[0].unalias()
    if len(calls) == 1 and bare is calls[0] and bare.name.upper() == "AVGSPD":
        return _speed(items, bare, group, scope)
    grouped = _keys_of(calls, group, scope)
    is_named = any(isinstance(item, exp.Alias) for item in items)
    is_single = bare.name.upper() in SINGLE and not is_named
    if len(calls) > 1 or len(grouped) > 1 or not is_single:
        several, terms = several_of(items, grouped, scope)
        return Selected(aggregate=several, terms=terms)
    key = grouped[0] if grouped else None
    for item in items:
        if item is not bare:
            _check_beside(item, key, scope)
    function, argument = function_of(bare, scope)
    made = Aggregate(
        function=cast("Function", function),  # one of `SINGLE`
        argument=argument.text if argument else None,
        group=key.text if key else None,
    )
    return Selected(
        aggregate=made, terms=tuple(term for term in (argument, key) if term)
    )


def _keys_of(
    calls: Sequence[exp.Expr], group: exp.Expr | None, scope: Scope
) -> list[Term]:
    """What stands after GROUP BY; without one the object where something of ways is asked for, else nothing."""
    if group is not None:
        return [_group_term(one, scope) for one in group.expressions]
    of_ways = [
        one for one in calls if FUNCTIONS.get(one.unalias().name.upper()) in OF_WAYS
    ]
    return [
        Term(text="object", needs="any", span=span_of(one), columns=())
        for one in of_ways[:1]
    ]


def _speed(
    items: Sequence[exp.Expr], call: exp.Expr, group: exp.Expr | None, scope: Scope
) -> Selected:
    """AVGSPD of the stream: one value for each object, whatever words stand beside it."""
    if group is not None:
        raise Refused(
            "AVGSPD and GROUP BY exclude each other",
            span_of(group),
            "it is told for each object",
        )
    check_of_stream(call, scope)
    terms = [_beside_speed(item, scope) for item in items if item is not call]
    return Selected(aggregate=Aggregate(function="avgspd"), terms=tuple(terms))


def _beside_speed(item: exp.Expr, scope: Scope) -> Term:
    """A literal, or a word: `object`, or a text that is no column (SPEC W8)."""
    _refuse_alias(item, "the object of a change is whose speed it is")
    if not isinstance(item.unnest(), exp.Literal | exp.Column):
        span = span_of(item)
        raise Refused(
            "beside AVGSPD stand literals and the object alone",
            span,
            "SELECT object, AVGSPD(*)",
        )
    return term_of(item, scope)


def _check_beside(item: exp.Expr, grouped: Term | None, scope: Scope) -> None:
    """Beside an aggregate stands what it is grouped by, and nothing else."""
    term = key_of(item, scope)
    if grouped is None or not is_same(term.text, grouped.text):
        hint = hint_of([] if grouped is None else [grouped])
        raise Refused("expected what the query is grouped by", term.span, hint)


def _refuse_alias(item: exp.Expr, hint: str) -> None:
    if isinstance(item, exp.Alias):
        raise Refused("this needs no name", span_of(item.args["alias"]), hint)


def _group_term(node: exp.Expr, scope: Scope) -> Term:
    if isinstance(node.unnest(), exp.Literal | exp.Tuple):
        raise Refused(
            "expected an expression to group by",
            span_of(node),
            "GROUP BY kind, or GROUP BY lower(kind)",
        )
    term = key_of(node, scope)
    names = {name for name, _ in term.columns}
    if scope.joined != "rows" and term.text != "partner" and "partner" in names:
        span = next(span for name, span in term.columns if name == "partner")
        raise Refused(
            "the feature stands alone in a group",
            span,
            f"GROUP BY {scope.other_label}.fid",
        )
    return term


def _columns(items: Sequence[exp.Expr], scope: Scope, gathered: Gathered) -> Selected:
    columns: dict[str, str] = {}
    terms: list[Term] = []
    for item in items:
        for name, term, span in gathered.attempt(partial(_column, item, scope), ()):
            if name in columns:
                hint = "give one of them another name: ... AS name"
                gathered.found.append(
                    Refused(f"two columns are called {name!r}", span, hint)
                )
            columns[name] = term.text
            terms.append(term)
    return Selected(columns=tuple(columns.items()), terms=tuple(terms))


def _column(item: exp.Expr, scope: Scope) -> Sequence[_Column]:
    """The name, the term and the place of a column; of STAMPS(*) those of three (SPEC W7)."""
    alias = item.args["alias"] if isinstance(item, exp.Alias) else None
    bare = item.this if isinstance(item, exp.Alias) else item
    if isinstance(bare, exp.Anonymous) and bare.name.upper() == STAMPS:
        return _stamps(bare, alias)
    name = _name(bare)
    term = term_of(bare, scope, of_pair=True, of_near=True)
    if alias is not None:
        return [(alias.name, term, span_of(alias))]
    return [(name or term.text, term, term.span)]


def _stamps(call: exp.Expr, alias: exp.Expr | None) -> Sequence[_Column]:
    span = span_of(call)
    if alias is not None:
        raise Refused(
            "this needs no name",
            span_of(alias),
            f"it gives the columns {', '.join(_STAMPS)}",
        )
    if len(call.expressions) != 1 or not isinstance(call.expressions[0], exp.Star):
        raise Refused(
            f"expected {STAMPS}(*)", span, "it gives where and when a fix was"
        )
    terms = [
        Term(text=name, needs="any", span=span, columns=((name, span),))
        for name in _STAMPS
    ]
    return [(name, term, span) for name, term in zip(_STAMPS, terms, strict=True)]


def _name(node: exp.Expr) -> str | None:
    """The name of a column without AS: its own, or of what is measured; None: its text."""
    bare = node.unnest()
    if isinstance(bare, exp.Column):
        return bare.name
    is_measure = isinstance(bare, exp.Anonymous) and bare.name.upper() in MEASURES
    return bare.name.lower() if is_measure or is_of_place(bare) else None
