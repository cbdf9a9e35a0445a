"""`rank()` and `distance()`: a member's place among the nearest, as expressions of plans call it."""

from sqlglot import exp

from st_common.query.grammar.nodes import span_of
from st_common.query.near_columns import CALLS


def is_of_place(node: exp.Expr) -> bool:
    """Whether a node is `rank()` or `distance()`, without arguments."""
    is_call = isinstance(node, exp.Anonymous) and node.name.upper() in CALLS
    return is_call and not node.expressions


def with_places(root: exp.Expr) -> exp.Expr:
    """The tree of an expression, changed in place, with a column for each such call."""
    held = exp.Paren(this=root)
    for call in list(held.find_all(exp.Anonymous)):
        if is_of_place(call):
            call.replace(_column(call))
    changed: exp.Expr = held.this
    return changed


def _column(call: exp.Expr) -> exp.Column:
    name = CALLS[call.name.upper()]
    column = exp.Column(this=exp.Identifier(this=name, quoted=True))
    start, end = span_of(call)
    column.meta.update(start=start, end=end - 1)
    return column
