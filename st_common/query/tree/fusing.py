"""From a tree of operators to the one plan that the shared kernels run: chains of operators are fused (SPEC P8)."""

from typing import Any

from st_common.errors import QueryError
from st_common.query.plan import Plan
from st_common.query.tree.node import Node, complaints_of_tree, walk
from st_common.query.tree.relational import Source


def plan_of(tree: Node) -> Plan:
    """The plan that a tree is run as.

    Raises:
        QueryError: an operator stands above one that it cannot stand above, or there are two of a kind, which no
            kernel runs in one go.
    """
    fields: dict[str, Any] = {}
    for complaint in complaints_of_tree(tree):
        raise QueryError(complaint.message, hint=complaint.hint)
    for node in walk(tree):
        for name, value in node.fields().items():
            if name in fields and not isinstance(node, Source):
                raise QueryError(
                    f"one query has {node.noun} once",
                    hint="register one query for each",
                )
            fields[name] = value
    return Plan(**fields)
