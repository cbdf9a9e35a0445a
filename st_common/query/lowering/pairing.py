"""Columns of the other object of a pair, and what is measured between the two, as expressions of plans call them."""

from collections.abc import Callable

from sqlglot import exp

from st_common.query.grammar.located import quoted_column
from st_common.query.grammar.nodes import Refused, Span, span_of
from st_common.query.lowering.scope import Scope
from st_common.query.pair_columns import (
    BEARING,
    MEASURES,
    OF_FEATURES,
    OF_OBJECTS,
    is_of_pair,
    of_other,
)


def measured(root: exp.Expr, scope: Scope) -> exp.Expr:
    """The tree of an expression with a column in the place of each call such as `distance(a, b)`, of a feature too.

    Raises:
        Refused: a call is not about the two of the pair.
    """

    def column_of(node: exp.Expr) -> exp.Expr:
        is_call = isinstance(node, exp.Anonymous) and node.name.upper() in MEASURES
        return _measure(node, scope) if is_call else node

    return replaced(root, column_of)


def replaced(root: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with some nodes changed, in place; the root may be another one."""
    for node in list(root.walk()):
        new = change(node)
        if new is node:
            continue
        if node is root:
            return new
        node.replace(new)
    return root


def _measure(call: exp.Expr, scope: Scope) -> exp.Expr:
    name, span = call.name.upper(), span_of(call)
    if scope.joined == "layer" and name not in OF_FEATURES:
        message = f"{name} is of two objects, and a feature may lie all around"
        raise Refused(message, span, "distance(a, b) is of an object and a feature too")
    if scope.joined != "layer" and name not in OF_OBJECTS:
        message = f"{name} is of an object and a feature, and another object is a point"
        raise Refused(
            message, span, f"{scope.other_label or 'b'}.x, {scope.other_label or 'b'}.y"
        )
    sides = [_side(each, scope) for each in call.expressions]
    like = f"{name.lower()}({scope.label}, {scope.other_label})"
    is_turned = sides == ["other", "first"]
    if sides != ["first", "other"] and not (is_turned and MEASURES[name] != BEARING):
        message = f"{name} is of the two of a pair, in this order"
        raise Refused(message, span, like)
    return quoted_column(MEASURES[name], call)


def _side(node: exp.Expr, scope: Scope) -> str:
    """Which of the two a name means; "" for neither."""
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return ""
    name = node.name.casefold()
    return "first" if name in scope.own else "other" if name in scope.other else ""


def as_of_pair(column: exp.Column, scope: Scope) -> bool:
    """Calls a column of a pair as plans do; whether it is one.

    Raises:
        Refused: the first object has a column that is called like one of the pair.
    """
    if column.args.get("table") is None:
        return is_of_pair(column.name)
    if not scope.is_other(column):
        _refuse_confusing(column, span_of(column))
        return False
    name = exp.to_identifier(of_other(column.name), quoted=True)
    column.set("this", name)
    column.set("table", None)
    return True


def _refuse_confusing(column: exp.Column, span: Span) -> None:
    if is_of_pair(column.name):
        message = f"in a pair {column.name!r} means a column of the pair"
        raise Refused(message, span, "give the attribute another name in the settings")
