"""Expressions about the place of a member among the nearest as they are written: `rank()`, `distance()`."""

from sqlglot import exp

from st_common.query.grammar.statements import expression_of
from st_common.query.lowering.expression import text_of
from st_common.query.near_columns import CALLS

_FUNCTIONS = {column: name.lower() for name, column in CALLS.items()}


def with_calls(text: str) -> str:
    """An expression of a plan with a call in the place of each such column."""
    tree = exp.Paren(this=expression_of(text))
    for column in list(tree.find_all(exp.Column)):
        if column.name in _FUNCTIONS:
            column.replace(exp.Anonymous(this=_FUNCTIONS[column.name], expressions=[]))
    return text_of(tree.this)
