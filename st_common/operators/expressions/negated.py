"""NOT of conditions, as what then holds: who satisfies it is found by that (SPEC X13).

NOT (speed > 3 OR kind = 'bus')       speed <= 3, and more that says nothing of where columns lie
NOT load BETWEEN 3 AND 5              load < 3 OR load > 5
"""

from collections.abc import Mapping
from functools import lru_cache

from sqlglot import exp

from st_common.operators.expressions.shapes import cut
from st_common.operators.expressions.stood_in import read_alike, with_literals
from st_common.query.grammar.statements import text_of

_TURNED: Mapping[type[exp.Expr], type[exp.Binary]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.NEQ: exp.EQ,
}
"""What holds where a comparison does not; what is no number is greater than all numbers to the database."""


def negated(part: str) -> str | None:
    """What holds of columns where a part of a condition does, which is a NOT; it may say less than the part.

    Args:
        part: canonical SQL, without AND but in BETWEEN or parentheses.

    Returns:
        None where it is no NOT, or nothing is known of who satisfies it.
    """
    if "NOT " not in part:
        return None
    key, literals = cut(part)
    alike = _negated_alike(key)
    return None if alike is None else with_literals(alike, literals)


@lru_cache(maxsize=4096)
def _negated_alike(key: str) -> str | None:
    """What holds where the conditions with a key do, with stand-ins for their literals."""
    tree = read_alike(key)
    while isinstance(tree, exp.Paren):
        tree = tree.this
    holds = _holds(tree.this, is_not=True) if isinstance(tree, exp.Not) else None
    return None if holds is None else text_of(holds)


def _holds(node: exp.Expr, *, is_not: bool) -> exp.Expr | None:
    """What holds where a condition does, or does not; None where nothing is known."""
    if isinstance(node, exp.Paren):
        return _holds(node.this, is_not=is_not)
    if isinstance(node, exp.Not):
        return _holds(node.this, is_not=not is_not)
    if isinstance(node, exp.And | exp.Or):
        return _joined(node, is_not=is_not)
    if not is_not:
        return node.copy()
    if isinstance(node, exp.Between):
        one, low, high = node.this, node.args["low"], node.args["high"]
        below = exp.LT(this=one.copy(), expression=low.copy())
        above = exp.GT(this=one.copy(), expression=high.copy())
        return exp.Paren(this=exp.Or(this=below, expression=above))
    turned = _TURNED.get(type(node))
    if turned is None:
        return None
    return turned(this=node.this.copy(), expression=node.expression.copy())


def _joined(node: exp.Expr, *, is_not: bool) -> exp.Expr | None:
    """AND and OR, which NOT turns into each other; one side of AND alone says something, too."""
    sides = [_holds(side, is_not=is_not) for side in (node.this, node.expression)]
    known = [side for side in sides if side is not None]
    if len(known) < len(sides):
        is_all = isinstance(node, exp.Or) == is_not
        return known[0] if known and is_all else None
    joining = exp.And if isinstance(node, exp.Or) == is_not else exp.Or
    return exp.Paren(this=joining(this=known[0], expression=known[1]))
