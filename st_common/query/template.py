"""A statement that was read, kept as a template: others that differ in names and literals are filled in.

    QUERY q1 AS SELECT * FROM taxis INSIDE BOX (1, 2, 3, 4)     was parsed, and is the template
          ^^                                    ^  ^  ^  ^      its literals, numbered from 0 on
    QUERY q2 AS SELECT * FROM taxis INSIDE BOX (5, 6, 7, 8)     is not: these are put in

The name and the literals are put into the tree, and what they decide is lowered again: regions and neighbours by the
same functions, conditions as text. What is refused on the way is left to the parser, which says why and where. How a
template is made is said in `learning`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

from sqlglot import exp

from st_common.query.areas import Areas
from st_common.query.grammar.nodes import Op, Refused, Span
from st_common.query.grammar.terminals import terminals
from st_common.query.lowering.expression import Term
from st_common.query.lowering.space import neighbours_of, region_of
from st_common.query.pieces import literals_of
from st_common.query.plan import Plan
from st_common.regions.registry import Box

Filled = tuple[str, Plan, tuple[Term, ...]]
"""The name, the plan and the terms of a statement."""


class Understood(Protocol):
    """A statement that was read."""

    @property
    def op(self) -> Op:
        """What it does."""

    @property
    def name(self) -> str:
        """Its query."""

    @property
    def conditional(self) -> bool:
        """Whether it is done only where its name is free."""

    @property
    def plan(self) -> Plan | None:
        """What the query means."""

    @property
    def text(self) -> str:
        """Its own text, without the semicolon."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """The expressions in it."""

    @property
    def spans(self) -> Mapping[str, Span]:
        """Where its parts stand in its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A statement that was read, and what of it may differ.

    Its name is the first of its literals, which stand at `bounds`. Others are numbered `nodes` of the tree, below the
    regions and neighbours of `select`; `corners` are those of a rectangle, each with its sign. Those of the condition
    (their numbers) have the parts of its text around them. All these are `varying`: statements that have the `pattern`
    differ in them alone. `behind` its text are so many characters of its piece. `fields` are those of its plan that are
    not default.
    """

    statement: Understood
    varying: frozenset[int]
    pattern: re.Pattern[str]
    bounds: tuple[Span, ...]
    select: exp.Expr
    nodes: tuple[tuple[int, exp.Expr], ...]
    corners: tuple[tuple[int, float], ...]
    chosen: tuple[int, ...]
    around: tuple[str, ...]
    behind: int
    fields: Mapping[str, Any]

    def filled(self, literals: Sequence[str], areas: Areas) -> Filled | None:
        """The name, the plan and the terms of the statement with these literals; None when something is refused."""
        name = literals[0].strip('"')
        if literals[0][0] != '"' and name.upper() in terminals().reserved:
            return None
        for number, node in self.nodes:
            node.args["this"] = literals[number].strip("'")
        try:
            plan = self._plan(literals, areas)
        except Refused:
            return None
        terms = self.statement.terms
        if terms:
            texts = (
                (plan.where, *(term.text for term in terms[1:]))
                if self.chosen
                else (term.text for term in terms)
            )
            terms = tuple(
                self._moved(term, text or "", literals)
                for term, text in zip(terms, texts, strict=True)
            )
        return name, plan, terms

    def place(self, offset: int, literals: Sequence[str]) -> int:
        """Where something of the template's statement stands in that with these literals."""
        pairs = zip(self.bounds, literals, strict=True)
        return offset + sum(
            len(literal) - (end - start)
            for (start, end), literal in pairs
            if end <= offset
        )

    def span(self, span: Span, literals: Sequence[str]) -> Span:
        """Where a part of the template's statement stands in that with these literals."""
        return self.place(span[0], literals), self.place(span[1], literals)

    def _plan(self, literals: Sequence[str], areas: Areas) -> Plan:
        inside, knn = self.select.args.get("inside"), self.select.args.get("knn")
        changed = dict(self.fields)
        if self.corners:
            changed["inside"] = Box.of_corners(
                *[sign * float(literals[number]) for number, sign in self.corners]
            )
        elif inside is not None:
            changed["inside"] = region_of(inside, areas)
        if knn is not None:
            changed["neighbours"] = neighbours_of(knn)
        if self.chosen:
            values = (literals[number] for number in self.chosen)
            pairs = zip(self.around, (*values, ""), strict=True)
            changed["where"] = "".join(chain.from_iterable(pairs))
        return Plan(**changed)

    def _moved(self, term: Term, text: str, literals: Sequence[str]) -> Term:
        columns = tuple(
            (name, self.span(span, literals)) for name, span in term.columns
        )
        measures = tuple(
            (at, measure, self.span(span, literals))
            for at, measure, span in term.measures
        )
        return replace(
            term,
            text=text,
            span=self.span(term.span, literals),
            columns=columns,
            measures=measures,
        )


class Spans(Mapping[str, Span]):
    """The spans of a statement that was made of a template; they are found when somebody asks."""

    __slots__ = ("_template", "_text")

    def __init__(self, template: Template, text: str) -> None:
        self._template, self._text = template, text

    def __getitem__(self, what: str) -> Span:
        return self._template.span(
            self._template.statement.spans[what], literals_of(self._text)[1]
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._template.statement.spans)

    def __len__(self) -> int:
        return len(self._template.statement.spans)
