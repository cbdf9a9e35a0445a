"""Expressions of a builder: read, checked and brought to their canonical text by the code that reads them in texts."""

from dataclasses import dataclass

from st_common.query.binding import BUILTINS
from st_common.query.builder.refusing import refuse_unless
from st_common.query.grammar.nodes import Refused
from st_common.query.grammar.statements import expression_of
from st_common.query.lowering.expression import Needs, Term, and_of, conjuncts, term_of
from st_common.query.lowering.scope import Scope
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
) -> Given:
    """The expression of a step.

    Raises:
        TextError: it is none that a query can have; the error points at the place in `text`.
    """
    read = _read(text, scope, step, needs=needs, partner=partner, parts=False)
    return Given(part=part, step=step, source=text, term=read)


def condition(text: str, scope: Scope, step: str, *, part: str = "where") -> Given:
    """The condition of a step; each part of what AND joins is looked at by itself, as after WHERE."""
    read = _read(text, scope, step, needs="boolean", partner=False, parts=True)
    return Given(part=part, step=step, source=text, term=read)


def _read(
    text: str, scope: Scope, step: str, *, needs: Needs, partner: bool, parts: bool
) -> Term:
    refuse_unless(isinstance(text, str), step, f"an expression is a text, not {text!r}")
    source = Source(text, step)
    try:
        text.encode()
        tree = expression_of(text)
        if not parts:
            return _checked(term_of(tree, scope, needs=needs, partner=partner))
        trees = list(conjuncts(tree))
        return and_of(
            [_checked(term_of(each, scope, needs=needs)) for each in trees], trees
        )
    except Refused as refused:
        span = refused.span if refused.span[1] else (0, len(text))
        raise TextError([source.problem(refused.message, span, refused.hint)]) from None
    except RecursionError:
        raise TextError([source.problem("nested too deeply", (0, len(text)))]) from None
    except UnicodeEncodeError:
        raise TextError(
            [source.problem("cannot be understood as an expression", (0, len(text)))]
        ) from None


def _checked(term: Term) -> Term:
    """The term, when its numbers with units stand beside what every fix has: a builder knows no attribute's unit."""
    others = [name for name, _ in term.columns if name.casefold() not in BUILTINS]
    if term.measures and others:
        hint = "give the number in the attribute's own unit, without a unit; a text converts it"
        raise Refused(
            f"a number with a unit beside the attribute {others[0]!r}",
            term.measures[0][2],
            hint,
        )
    return term
