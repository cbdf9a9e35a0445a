"""Expressions of a builder: read, checked and brought to their canonical text by the code that reads them in texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from st_common.query import near_columns
from st_common.query.builder.refusing import refuse_unless
from st_common.query.fix_columns import BUILTINS
from st_common.query.grammar.nodes import Refused, span_of
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.lowering.expression import Needs, Term, and_of, conjuncts, term_of
from st_common.query.lowering.having import of_rows
from st_common.query.lowering.scope import Scope
from st_common.query.lowering.several import is_call, key_of, terms_of, value_of
from st_common.query.pair_columns import DISTANCE, own_name, speed_tag
from st_common.query.plan import Aggregate, Value
from st_common.query.problem import Source, TextError


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An expression as a step was given it (`source`), and what it is of a plan: a part, and the term."""

    part: str
    step: str
    source: str
    term: Term

    @property
    def text(self) -> str:
        """The expression as it stands in the plan."""
        return self.term.text


def term(
    text: str,
    scope: Scope,
    step: str,
    *,
    part: str,
    needs: Needs = "any",
    partner: bool = False,
    of_pair: bool = False,
    of_near: bool = False,
) -> Given:
    """The expression of a step.

    Raises:
        TextError: it is none that a query can have; the error points at the place in `text`.
    """
    tree = _tree(text, step)
    with _told_at(text, step):
        read = _checked(
            key_of(tree, scope)
            if partner
            else term_of(tree, scope, needs=needs, of_pair=of_pair, of_near=of_near)
        )
    return Given(part=part, step=step, source=text, term=read)


def value(
    text: str, scope: Scope, step: str, *, name: str = ""
) -> tuple[Value, tuple[Given, ...]]:
    """A value of a step such as "avg(speed)", and its argument.

    Raises:
        TextError: it is no aggregate; the error points at the place in `text`.
    """
    tree = _tree(text, step)
    with _told_at(text, step):
        if not is_call(tree):
            hint = "count(*), avg(speed_mps)"
            raise Refused("expected an aggregate", span_of(tree), hint)
        called = value_of(tree, scope, name=name)
        terms = [_checked(one) for one in terms_of([called])]
    return called.value, tuple(
        Given(part="aggregate", step=step, source=text, term=one) for one in terms
    )


def having(text: str, aggregate: Aggregate | None, scope: Scope, step: str) -> str:
    """The condition of a step about groups, over the columns of their rows."""
    tree = _tree(text, step)
    with _told_at(text, step):
        return text_of(of_rows(tree, aggregate, scope))


def condition_of_groups(
    text: str, aggregate: Aggregate, scope: Scope, step: str
) -> str:
    """The condition by which the greatest groups are chosen, over names of keys and numbers."""
    rows = Scope(label="rows", own=frozenset({"rows"}), joined="rows")
    asked = having(text, aggregate, scope, step)
    return condition(asked, rows, step).term.text


def condition(text: str, scope: Scope, step: str, *, part: str = "where") -> Given:
    """The condition of a step; each part of what AND joins is looked at by itself, as after WHERE."""
    trees = list(conjuncts(_tree(text, step)))
    of_pair = part == "where"
    with _told_at(text, step):
        terms = [term_of(one, scope, needs="boolean", of_pair=of_pair) for one in trees]
        read = and_of([_checked(one) for one in terms], trees)
    return Given(part=part, step=step, source=text, term=read)


def _tree(text: str, step: str) -> exp.Expr:
    """The tree of what a step was given."""
    refuse_unless(isinstance(text, str), step, f"an expression is a text, not {text!r}")
    with _told_at(text, step):
        text.encode()
        return expression_of(text)


@contextmanager
def _told_at(text: str, step: str) -> Iterator[None]:
    """Errors point into what the step was given."""
    source, whole = Source(text, step), (0, len(text))
    try:
        yield
    except Refused as refused:
        span = refused.span if refused.span[1] else whole
        raise TextError([source.problem(refused.message, span, refused.hint)]) from None
    except RecursionError:
        raise TextError([source.problem("nested too deeply", whole)]) from None
    except UnicodeEncodeError:
        message = "cannot be understood as an expression"
        raise TextError([source.problem(message, whole)]) from None


def _checked(term: Term) -> Term:
    """The term, when its numbers with units stand beside what every fix has: a builder knows no attribute's unit."""
    others = [name for name, _ in term.columns if not _is_of_every_fix(name.casefold())]
    if term.measures and others:
        hint = "give the number in the attribute's own unit, without a unit; a text converts it"
        raise Refused(
            f"a number with a unit beside the attribute {others[0]!r}",
            term.measures[0][2],
            hint,
        )
    return term


def _is_of_every_fix(name: str) -> bool:
    """Whether a column needs no declaration: it is of every fix, or measured, or the speed that a tag says."""
    own = own_name(name) or name
    measured = (DISTANCE, *near_columns.TYPES)
    return name in measured or speed_tag(name) is not None or own in BUILTINS
