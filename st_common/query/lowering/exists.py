"""EXISTS and NOT EXISTS among the conditions of WHERE: a join that chooses objects, and gives no pairs.

WHERE state = 'free' AND NOT EXISTS (SELECT 1 FROM parks p WHERE ST_Intersects(t, p) AND p.kind = 'forest')

join          parks p ON ST_Intersects(t, p) AND p.kind = 'forest', `anti`
others        state = 'free'
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from st_common.query.grammar.nodes import Exists, Refused, Span, span_of
from st_common.query.lowering.condition import (
    Conditions,
    conditions_of,
    parts_beside,
    parts_of,
)
from st_common.query.lowering.expression import Term, conjuncts
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.scope import Scope, scope_of
from st_common.query.pair_columns import is_of_pair
from st_common.query.plan import How


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a statement joins (None: nothing), what becomes of the pairs, and whether it stands in an EXISTS."""

    join: exp.Join | None = None
    how: How = "inner"
    in_exists: bool = False
    span: Span = (0, 0)

    def scope(self, source: exp.Expr) -> Scope:
        """What names mean in the join."""
        return scope_of(source, self.join)

    def around(self, source: exp.Expr) -> Scope:
        """What names mean where rows are shown: of a join that chooses nobody sees the features."""
        shows_both = self.how in ("inner", "left")
        return scope_of(source, self.join if shows_both else None)


def choice_of(select: exp.Expr, gathered: Gathered) -> Choice:
    """What a SELECT joins, behind FROM or in an EXISTS of its WHERE; more than one join is gathered."""
    choices = [*_behind_from(select), *_in_where(select)]
    if len(choices) > 1:
        message = "a query joins one layer, or its own stream, or asks one EXISTS"
        gathered.found.append(Refused(message, choices[1].span))
    return choices[0] if choices else Choice()


def _behind_from(select: exp.Expr) -> Iterator[Choice]:
    """The joins behind FROM."""
    for join in select.args.get("joins") or ():
        how: How = "left" if join.args.get("side") else "inner"
        yield Choice(join=join, how=how, span=span_of(join.this))


def _in_where(select: exp.Expr) -> Iterator[Choice]:
    """The joins in EXISTS and NOT EXISTS."""
    for part in _conditions(select):
        asked, how = _asked(part)
        if asked is not None:
            yield Choice(join=asked.this, how=how, in_exists=True, span=span_of(part))


def _conditions(select: exp.Expr) -> Iterator[exp.Expr]:
    """What WHERE joins by AND."""
    where = select.args.get("where")
    return conjuncts(where.this) if where is not None else iter(())


def _asked(condition: exp.Expr) -> tuple[Exists | None, Literal["semi", "anti"]]:
    """The EXISTS that a condition is, None for any other; and whether it must hold, or must not."""
    bare, how = condition.unnest(), _SEMI
    if isinstance(bare, exp.Not):
        bare, how = bare.this.unnest(), _ANTI
    return bare if isinstance(bare, Exists) else None, how


_SEMI: Literal["semi", "anti"] = "semi"
_ANTI: Literal["semi", "anti"] = "anti"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The conditions of a statement: those that join, and what all others say."""

    joining: tuple[exp.Expr, ...]
    conditions: Conditions


def said_of(
    select: exp.Expr, choice: Choice, source: exp.Expr, gathered: Gathered
) -> Said:
    """The conditions of WHERE, ON and EXISTS; where features choose, those on fixes come before those on both.

    Raises:
        Refused: nothing joins what is to be joined.
    """
    where, scope = select.args.get("where"), choice.scope(source)
    if choice.how == "left":
        return _of_left(select, choice, scope, gathered)
    if not choice.in_exists:
        parts = parts_of(choice.join, where, scope)
        chosen = conditions_of(parts.others, scope, gathered)
        return Said(joining=parts.joining, conditions=_sorted(chosen, choice))
    assert choice.join is not None  # noqa: S101 - it is what EXISTS asks about
    parts = parts_beside(choice.join, scope, "EXISTS")
    inside = conditions_of(parts.others, scope, gathered)
    if choice.how == "anti":
        _refuse_of_fixes(inside.terms, gathered)
    others = [part for part in _conditions(select) if _asked(part)[0] is None]
    around = conditions_of(others, choice.around(source), gathered)
    chosen = Conditions(
        kinds=inside.kinds,
        tags=inside.tags,
        terms=[*around.terms, *inside.terms],
        trees=[*around.trees, *inside.trees],
    )
    return Said(joining=parts.joining, conditions=_sorted(chosen, choice))


def _of_left(
    select: exp.Expr, choice: Choice, scope: Scope, gathered: Gathered
) -> Said:
    """The conditions of a LEFT JOIN: ON says what is joined with, and WHERE which objects there are.

    Raises:
        Refused: WHERE names what is joined, ON asks of the object alone, or no place joins.
    """
    assert choice.join is not None  # noqa: S101 - it is what the side is of
    parts = parts_beside(choice.join, scope, "ON of LEFT JOIN")
    other = scope.other_label
    inside = conditions_of(parts.others, scope, gathered)
    around = conditions_of(list(_conditions(select)), scope, gathered)
    for term in (term for term in inside.terms if not _names_pair(term)):
        message = f"in ON of LEFT JOIN a condition names {other}, and this does not"
        raise Refused(message, term.span, "say it in WHERE, of all objects")
    where = select.args.get("where")
    if around.kinds or around.tags or any(map(_names_pair, around.terms)):
        message = "in WHERE of LEFT JOIN a condition is about the object"
        hint = f"ON says what it is joined with: ON .. AND {other}.kind = 'park'"
        raise Refused(message, span_of(where), hint)
    chosen = Conditions(
        kinds=inside.kinds,
        tags=inside.tags,
        terms=[*around.terms, *inside.terms],
        trees=[*around.trees, *inside.trees],
    )
    return Said(joining=parts.joining, conditions=_sorted(chosen, choice))


def _sorted(chosen: Conditions, choice: Choice) -> Conditions:
    """The conditions, where features choose first those on the fix alone, as the canonical text has them."""
    if choice.how == "inner":
        return chosen
    pairs = sorted(
        zip(chosen.terms, chosen.trees, strict=True),
        key=lambda pair: _names_pair(pair[0]),
    )
    return Conditions(
        kinds=chosen.kinds,
        tags=chosen.tags,
        terms=[term for term, _ in pairs],
        trees=[tree for _, tree in pairs],
    )


def _refuse_of_fixes(terms: list[Term], gathered: Gathered) -> None:
    """What NOT EXISTS asks of the object alone: outside it means something else, inside a plan has no place for it."""
    for term in (term for term in terms if not _names_pair(term)):
        message = "in NOT EXISTS a condition names what is joined, and this does not"
        hint = "say it beside NOT EXISTS, of all objects"
        gathered.found.append(Refused(message, term.span, hint))


def _names_pair(term: Term) -> bool:
    return any(is_of_pair(name) for name, _ in term.columns)
