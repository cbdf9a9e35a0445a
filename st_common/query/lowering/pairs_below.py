"""Aggregates about the other object of a pair: they are asked of the rows of the pairs (SPEC X12).

SELECT b.line, AVG(distance(a, b)) AS m FROM buses a JOIN buses b ON .. GROUP BY b.line

SELECT "b.line", AVG("distance(a, b)") AS m
FROM (SELECT b.line AS "b.line", distance(a, b) AS "distance(a, b)" FROM buses a JOIN buses b ON ..)
GROUP BY "b.line"                                                                     is the same
"""

from collections.abc import Iterator

from sqlglot import exp

from st_common.query.grammar.located import quoted_column
from st_common.query.grammar.nodes import Rows, span_of
from st_common.query.grammar.statements import text_of
from st_common.query.lowering.several import is_call
from st_common.query.pair_columns import MEASURES

_ABOVE = ("expressions", "group", "having", "top", "kind", "distinct", "emit")
"""What is said of the rows; all else is about the pairs."""


def with_pairs_below(select: exp.Expr) -> exp.Expr:
    """A SELECT with its pairs in parentheses, where an aggregate or a key is about the other object; else as it is."""
    other = _other_of(select)
    if other is None:
        return select
    asked = list(_asked(select))
    if not any(_is_of_other(node, other) for node in asked):
        return select
    named = {text_of(node.copy()): node for node in asked if node.find(exp.Column)}
    inner = select.copy()
    for clause in _ABOVE:
        inner.set(clause, None)
    columns = [_aliased(node, name) for name, node in named.items()]
    selection = exp.Tuple(expressions=columns)
    selection.meta.update(select.expressions[0].meta)
    inner.set("expressions", [selection])
    outer = select.copy()
    for clause in [*outer.args]:
        if clause not in _ABOVE:
            outer.set(clause, None)
    outer = outer.transform(lambda node: _of_rows(node, named), copy=False)
    rows = Rows(this=inner)
    rows.meta.update(select.args["from_"].this.meta)
    outer.set("from_", exp.From(this=rows))
    return outer


def _other_of(select: exp.Expr) -> str | None:
    """What the other object is called, in small letters; None where a stream is not joined with itself."""
    source, joins = select.args["from_"].this, select.args.get("joins") or []
    if len(joins) != 1 or joins[0].args.get("kind"):
        return None
    other = joins[0].this
    is_itself = other.name.casefold() == source.name.casefold()
    return other.alias_or_name.casefold() if is_itself else None


def _asked(select: exp.Expr) -> Iterator[exp.Expr]:
    """What aggregates and DISTINCT are of, and what groups are by."""
    if select.args.get("distinct"):
        yield from select.expressions[0].expressions
    for item in select.expressions[0].expressions:
        for call in item.find_all(exp.Anonymous):
            if is_call(call):
                yield from (one for one in call.expressions if not _is_bare(one))
    group = select.args.get("group")
    yield from () if group is None else group.expressions


def _is_bare(node: exp.Expr) -> bool:
    """Whether an argument is no expression over a row: *, or a number such as the share of a quantile."""
    return isinstance(node, exp.Star | exp.Literal)


def _is_of_other(node: exp.Expr, other: str) -> bool:
    for part in node.walk():
        if isinstance(part, exp.Column) and part.table.casefold() == other:
            return True
        if isinstance(part, exp.Anonymous) and part.name.upper() in MEASURES:
            return True
    return False


def _aliased(node: exp.Expr, name: str) -> exp.Expr:
    column = exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True))
    start, end = span_of(node)
    column.meta.update(start=start, end=end - 1)
    return column


def _of_rows(node: exp.Expr, named: dict[str, exp.Expr]) -> exp.Expr:
    """The column of the rows in the place of what it says; else the node itself."""
    if isinstance(node, exp.Column | exp.Anonymous | exp.Binary | exp.Paren):
        name = text_of(node.copy())
        if name in named:
            return quoted_column(name, node)
    return node
