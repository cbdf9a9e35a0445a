"""A parsed SELECT as a plan, with what is still to be checked and where it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from sqlglot import exp

from st_common.query.grammar.nodes import Emit, Lasting, Options, Refused, Span, span_of
from st_common.query.lowering.condition import condition_of
from st_common.query.lowering.expression import Term
from st_common.query.lowering.join import layer_join_of, pair_join_of
from st_common.query.lowering.quantity import TUPLES, seconds, whole
from st_common.query.lowering.scope import Scope, scope_of
from st_common.query.lowering.select import selected_of
from st_common.query.lowering.space import neighbours_of, region_of
from st_common.query.plan import Emit as EmitMode
from st_common.query.plan import LayerJoin, Order, PairJoin, Plan, Window
from st_common.query.problem import did_you_mean

_PLAN = "plan"
_CLAUSES = ("where", "group", "inside", "knn", "window", "emit", "options")
_MOST_TUPLES = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A plan, the expressions in it, and the offsets of its clauses in the text."""

    plan: Plan
    terms: tuple[Term, ...]
    spans: Mapping[str, Span]


def lowered(select: exp.Expr) -> Lowered:
    """The plan of a parsed SELECT.

    Raises:
        Refused: at the first thing that a continuous query cannot have.
    """
    source, joins = _sources(select)
    scope = scope_of(source, joins[0] if joins else None)
    where = select.args.get("where")
    kinds, condition = condition_of(where, scope) if where else ((), None)
    join, pairs, keys = _joined(joins, scope, kinds)
    selected = selected_of(select, scope)
    inside, knn, window, emit, options = (select.args.get(key) for key in _CLAUSES[2:])
    plan = Plan(
        stream=source.name,
        inside=region_of(inside) if inside else None,
        neighbours=neighbours_of(knn) if knn else None,
        join=join,
        pairs=pairs,
        where=condition.text if condition else None,
        window=_window(window) if window else None,
        aggregate=selected.aggregate,
        columns=selected.columns,
        valid_until=bool(emit and emit.args.get("valid_until")),
        order=_order(options),
        emit=_mode(emit),
    )
    conditions = (condition,) if condition else ()
    return Lowered(plan=plan, terms=(*conditions, *keys, *selected.terms), spans=_spans(select, source, joins))


def _sources(select: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
    joins = select.args.get("joins") or []
    if len(joins) > 1:
        raise Refused("a query joins one layer, or its own stream", span_of(joins[1]))
    return select.args["from_"].this, joins


def _joined(
    joins: Sequence[exp.Expr], scope: Scope, kinds: tuple[str, ...]
) -> tuple[LayerJoin | None, PairJoin | None, tuple[Term, ...]]:
    if scope.joined == "layer":
        join, keys = layer_join_of(joins[0], scope, kinds)
        return join, None, keys
    if scope.joined == "stream":
        pairs, keys = pair_join_of(joins[0], scope)
        return None, pairs, keys
    return None, None, ()


def _spans(select: exp.Expr, source: exp.Expr, joins: list[exp.Expr]) -> dict[str, Span]:
    spans = {"stream": span_of(source.this), "select": span_of(select.expressions[0])}
    if joins:
        spans["layer"] = span_of(joins[0].this.this)
    for clause in _CLAUSES:
        node = select.args.get(clause)
        if node is not None:
            spans[clause] = span_of(node)
    return spans


def _mode(emit: Emit | None) -> EmitMode:
    return "every" if emit and emit.this.name == "every" else "changes"


def _window(lasting: Lasting) -> Window:
    quantity = lasting.this
    if quantity.args["unit"].name.lower() in TUPLES:
        quantity.set("unit", None)
        return Window(tuples=whole(quantity, "the number of tuples", _MOST_TUPLES))
    return Window(seconds=seconds(quantity))


def _order(options: Options | None) -> Order:
    order: Order = "auto"
    seen = False
    for option in options.expressions if options else ():
        name, text = option.this, option.expression
        if name.name.lower() != _PLAN or seen:
            hint = did_you_mean(name.name, (_PLAN,)) if not seen else ""
            raise Refused(
                f"unknown option {name.name!r}" if not seen else "there is a plan already", span_of(name), hint
            )
        known = get_args(Order)
        if text.this not in known:
            hint = did_you_mean(text.this, known) or f"one of {', '.join(known)}"
            raise Refused(f"unknown plan {text.this!r}", span_of(text), hint)
        order, seen = next(each for each in known if each == text.this), True
    return order
