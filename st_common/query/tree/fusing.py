"""From a tree of operators to the one plan that the shared kernels run: chains of operators are fused (SPEC P8)."""

from dataclasses import replace
from typing import Any

from st_common.errors import QueryError
from st_common.query.plan import Outer, Plan
from st_common.query.tree.node import Node, walk
from st_common.query.tree.relational import Source
from st_common.query.tree.rows import Rows


def plan_of(tree: Node) -> Plan:
    """The plan that a tree is run as; whether its operators may stand so is judged by `complaints_of_tree`.

    What stands above the rows of a query is the `outer` part of that query's plan.

    Raises:
        QueryError: there are two of a kind, which no kernel runs in one go.
    """
    rows = next(walk(tree))
    said = parts_of(tree)
    if not isinstance(rows, Rows):
        return Plan(**said)
    above = {
        name: said.get(name) for name in ("where", "aggregate", "window", "lasting_s")
    }
    outer = Outer(**above)
    emit = said.get("emit", "changes")
    return replace(plan_of(rows.input), outer=outer, emit=emit)


def parts_of(tree: Node) -> dict[str, Any]:
    """What the operators of a query say, by the parts of a plan.

    Raises:
        QueryError: two say the same part.
    """
    parts: dict[str, Any] = {}
    for node in walk(tree):
        said = node.fields()
        if not parts.keys().isdisjoint(said) and not isinstance(node, Source):
            message = f"one query has {node.noun} once"
            raise QueryError(message, hint="register one query for each")
        parts |= said
    return parts
