"""HAVING: which groups are told, by their values and keys. It asks about the rows of the groups (SPEC G9).

SELECT line, COUNT(*) AS n .. GROUP BY line HAVING COUNT(*) > 3
SELECT * FROM (SELECT line, COUNT(*) AS n .. GROUP BY line) WHERE n > 3      is the same
"""

from collections.abc import Iterator

from sqlglot import exp

from st_common.query.binding import PARTNER
from st_common.query.grammar.located import at
from st_common.query.grammar.nodes import Refused, span_of
from st_common.query.lowering.expression import is_same
from st_common.query.lowering.scope import Scope
from st_common.query.lowering.several import is_call, term_like_key, value_of
from st_common.query.pair_columns import names_pair
from st_common.query.plan import AS_JSON, Aggregate, Value, has_value

_WHOLE = (
    exp.Column,
    exp.Anonymous,
    exp.Binary,
    exp.Case,
    exp.Cast,
    exp.Extract,
    exp.AtTimeZone,
)
"""What a key may be."""


def of_rows(condition: exp.Expr, aggregate: Aggregate | None, scope: Scope) -> exp.Expr:
    """The condition of a HAVING over the columns of the groups' rows.

    Args:
        condition: the tree, which stays as it is.
        aggregate: that of the query; None: there is none.
        scope: what names in it mean.

    Raises:
        Refused: it asks for what is neither a value nor a key, or beside LIMIT for a value that is no number.
    """
    if aggregate is None:
        hint = "SELECT line, COUNT(*) .. GROUP BY line HAVING COUNT(*) > 3"
        message = "HAVING needs an aggregate after SELECT"
        raise Refused(message, span_of(condition), hint)
    tree: exp.Expr = condition.copy().transform(
        lambda node: _replaced(node, aggregate, scope), copy=False
    )
    if aggregate.top is not None:
        _refuse_others(tree, aggregate)
    return tree


def _refuse_others(tree: exp.Expr, aggregate: Aggregate) -> None:
    """Beside LIMIT groups are chosen by what they are found from: numbers and keys, and no values as JSON."""
    others = {one.name for one in aggregate.values if one.function in AS_JSON}
    for column in tree.find_all(exp.Column):
        if column.name in others:
            message = f"{column.name} is no number, and HAVING beside LIMIT asks about numbers and keys"
            hint = (
                "WHERE around FROM (SELECT .. LIMIT 3) asks about those that are told"
            )
            raise Refused(message, span_of(column), hint)


def _replaced(node: exp.Expr, aggregate: Aggregate, scope: Scope) -> exp.Expr:
    """The column that has a value or a key, in the place of what says it; else the node itself."""
    if is_call(node):
        return _column(_name_of_value(node, aggregate, scope), node)
    if not isinstance(node, _WHOLE) or any(map(is_call, node.walk())):
        return node
    name = _name_of_key(node, aggregate, scope)
    if name is not None:
        return _column(name, node)
    if isinstance(node, exp.Column):
        return _column(_name_of_column(node, aggregate), node)
    return node


def _column(name: str, instead_of: exp.Expr) -> exp.Expr:
    made = exp.Column(this=at(exp.to_identifier(name), instead_of, instead_of))
    return at(made, instead_of, instead_of)


def _name_of_value(call: exp.Expr, aggregate: Aggregate, scope: Scope) -> str:
    """The column that has the value of a call."""
    asked = value_of(call.copy(), scope).value
    if aggregate.function != "several" and _is_same(asked, aggregate):
        return "value"
    for value in aggregate.values:
        if _is_same(asked, value):
            return value.name
    message, hint = "HAVING asks about values that are selected", "name it after SELECT"
    raise Refused(message, span_of(call), hint)


def _is_same(asked: Value, value: Value | Aggregate) -> bool:
    if isinstance(value, Value) and asked.share != value.share:
        return False
    if asked.function != value.function or asked.argument is None:
        return (asked.function, asked.argument) == (value.function, value.argument)
    return value.argument is not None and is_same(asked.argument, value.argument)


def _name_of_key(node: exp.Expr, aggregate: Aggregate, scope: Scope) -> str | None:
    """The column that has a key, if this is one."""
    names = [name for name, _ in aggregate.keys] or ["object"]
    keys = dict(zip(aggregate.grouped_by, names, strict=False))
    if not keys or (isinstance(node, exp.Column) and _is_other(node, keys, scope)):
        return None
    text = term_like_key(node.copy(), scope).text
    return next((name for key, name in keys.items() if is_same(key, text)), None)


def _is_other(column: exp.Column, keys: dict[str, str], scope: Scope) -> bool:
    """Whether a column is of what is joined, where the groups are by no feature."""
    has_feature = PARTNER in keys or any(map(names_pair, keys))
    return scope.is_other(column) and not has_feature


def _name_of_column(column: exp.Column, aggregate: Aggregate) -> str:
    """A column by the name that a value or a key has."""
    for name in _names(aggregate):
        if not column.table and column.name.casefold() == name.casefold():
            return name
    message = f"{column.name} is no value and no key of the groups"
    known = ", ".join(_names(aggregate))
    raise Refused(message, span_of(column), f"HAVING asks about {known}")


def _names(aggregate: Aggregate) -> Iterator[str]:
    yield from (name for name, _ in aggregate.keys)
    yield from (value.name for value in aggregate.values)
    if has_value(aggregate):
        yield "value"
