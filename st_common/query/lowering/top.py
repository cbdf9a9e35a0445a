"""ORDER BY .. LIMIT .. PER ..: the groups with the greatest values, or the least ones (SPEC G9).

SELECT line, state, COUNT(*) AS n .. GROUP BY line, state ORDER BY n DESC LIMIT 3           the 3 greatest of all
SELECT line, state, COUNT(*) AS n .. GROUP BY line, state ORDER BY n DESC LIMIT 3 PER line  of each line
"""

from sqlglot import exp

from st_common.query.grammar.nodes import Greatest, Refused, span_of
from st_common.query.lowering.expression import is_same, term_of
from st_common.query.lowering.quantity import whole
from st_common.query.lowering.scope import Scope
from st_common.query.lowering.several import is_call, value_of
from st_common.query.plan import AS_JSON, MOST_TOLD, Aggregate, Top, Value


def top_of(clause: Greatest, aggregate: Aggregate, scope: Scope) -> Top:
    """Which groups are told.

    Args:
        clause: what stands behind ORDER BY.
        aggregate: the values and keys of the query.
        scope: what names mean.

    Raises:
        Refused: it asks about no value or key, or about what has no order.
    """
    if not aggregate.keys:
        hint = "SELECT line, COUNT(*) AS n .. GROUP BY line ORDER BY n DESC LIMIT 3"
        raise Refused("ORDER BY needs a GROUP BY", span_of(clause), hint)
    value = _value_of(clause.this, aggregate, scope)
    if value.function in AS_JSON:
        message = f"{value.name} is no number, and groups are ordered by numbers"
        raise Refused(message, span_of(clause.this), "COUNT, SUM, AVG, MIN, MAX ..")
    per = clause.args.get("expression")
    return Top(
        value=value.name,
        limit=whole(clause.args["count"], "LIMIT", MOST_TOLD),
        descending=bool(clause.args.get("descending")),
        per=None if per is None else _key_of(per, aggregate, scope),
    )


def _value_of(node: exp.Expr, aggregate: Aggregate, scope: Scope) -> Value:
    """The value that groups are ordered by, by its name or as it is written after SELECT."""
    asked = value_of(node.copy(), scope).value if is_call(node) else None
    for value in aggregate.values:
        if asked is not None and _is_same(asked, value):
            return value
        if _is_name(node, value.name):
            return value
    names = ", ".join(value.name for value in aggregate.values)
    message = "groups are ordered by a value that is selected"
    raise Refused(message, span_of(node), f"one of {names}")


def _is_same(one: Value, other: Value) -> bool:
    if (one.function, one.share) != (other.function, other.share):
        return False
    if one.argument is None or other.argument is None:
        return one.argument is other.argument
    return is_same(one.argument, other.argument)


def _is_name(node: exp.Expr, name: str) -> bool:
    is_bare = isinstance(node, exp.Column) and not node.table
    return is_bare and node.name.casefold() == name.casefold()


def _key_of(node: exp.Expr, aggregate: Aggregate, scope: Scope) -> str:
    """The name of the key of which the greatest groups are told, each by itself."""
    if len(aggregate.keys) == 1:
        message = "PER needs a second key: of each group there is one"
        raise Refused(message, span_of(node), "GROUP BY line, state .. PER line")
    for name, _ in aggregate.keys:
        if _is_name(node, name):
            return name
    text = term_of(node.copy(), scope, partner=True).text
    for name, key in aggregate.keys:
        if is_same(key, text):
            return name
    keys = ", ".join(name for name, _ in aggregate.keys)
    raise Refused("PER names a key of the groups", span_of(node), f"one of {keys}")
