"""`rank()` and `distance()`: a member's place among the nearest, as expressions of plans call it."""

from sqlglot import exp

from st_common.query.grammar.located import quoted_column
from st_common.query.lowering.pairing import replaced
from st_common.query.near_columns import CALLS


def is_of_place(node: exp.Expr) -> bool:
    """Whether a node is `rank()` or `distance()`, without arguments."""
    is_call = isinstance(node, exp.Anonymous) and node.name.upper() in CALLS
    return is_call and not node.expressions


def with_places(root: exp.Expr) -> exp.Expr:
    """The tree of an expression, changed in place, with a column for each such call."""

    def column_of(node: exp.Expr) -> exp.Expr:
        if not is_of_place(node):
            return node
        return quoted_column(CALLS[node.name.upper()], node)

    return replaced(root, column_of)
