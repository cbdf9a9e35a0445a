"""What the condition of a pair is about: its first object, the other one, or both; each is tested as soon as can be.

state = 'free' AND "other.state" = 'busy' AND speed_mps > "other.speed_mps"

first     state = 'free'                        who may come first
other     state = 'busy'                        who may be the other one
both      speed_mps > "other.speed_mps"         pairs that are near
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from st_common.query.grammar import words
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.lowering.expression import conjuncts
from st_common.query.pair_columns import is_of_pair, names_pair, own_name
from st_common.query.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The parts of a condition, each as canonical SQL; `other` in the names of the other object's own columns.

    None where there is no such part. All of them hold of the pairs of which the condition is true, and of no others.
    `beside` is what `other` and `both` say together in the names of the condition: what a fix and a feature are asked.
    """

    first: str | None = None
    other: str | None = None
    both: str | None = None
    beside: str | None = None


@lru_cache(maxsize=4096)
def sides_of(where: str | None) -> Sides:
    """The parts of a condition (canonical SQL, None for none), cut where AND joins them."""
    if where is None or not names_pair(where):
        return Sides(first=where)
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
    return Sides(
        first=_joined(first),
        other=_joined(other),
        both=_joined(both),
        beside=_joined(beside),
    )


def alone(plan: Plan) -> str | None:
    """What the condition of a plan asks of a fix alone, whatever it is joined with; None for nothing."""
    is_joined = plan.pairs is not None or plan.join is not None
    return sides_of(plan.where).first if is_joined else plan.where


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
