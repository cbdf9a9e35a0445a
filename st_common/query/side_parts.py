"""A condition on a pair, cut where AND joins it: `sides` imports this where a condition names the other object."""

from collections.abc import Sequence

from sqlglot import exp

from st_common.query.grammar import words
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.lowering.expression import conjuncts
from st_common.query.pair_columns import is_of_pair, own_name


def side_parts(where: str) -> dict[str, str | None]:
    """The parts of a condition as canonical SQL, by the names of the attributes of `Sides`; None for no such part.

    Args:
        where: canonical SQL.
    """
    first, other, both = list[exp.Expr](), list[exp.Expr](), list[exp.Expr]()
    beside = list[exp.Expr]()
    for part in conjuncts(expression_of(where)):
        names = [column.name for column in part.find_all(exp.Column)]
        if not any(is_of_pair(name) for name in names):
            first.append(part)
            continue
        beside.append(part.copy())
        if all(own_name(name) is not None for name in names):
            other.append(_as_own(part))
        else:
            both.append(part)
    parts = {"first": first, "other": other, "both": both, "beside": beside}
    return {name: _joined(of_side) for name, of_side in parts.items()}


def _as_own(part: exp.Expr) -> exp.Expr:
    """A condition on the other object as it would say it of itself."""
    for column in part.find_all(exp.Column):
        name = own_name(column.name) or column.name
        column.set("this", exp.to_identifier(name, quoted=not words.is_plain(name)))
    return part


def _joined(parts: Sequence[exp.Expr]) -> str | None:
    several = len(parts) > 1
    texts = [
        f"({text_of(part)})" if several and isinstance(part, exp.Or) else text_of(part)
        for part in parts
    ]
    return " AND ".join(texts) or None
