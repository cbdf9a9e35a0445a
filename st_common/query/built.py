"""A query that was built by steps, or read from JSON, as a statement: its text is printed for people, and not parsed.

Its expressions are terms since a step took them. What is wrong with one of them is shown where it stands in what the
step was given; what is wrong with another part is told by the step, or by the part of the JSON.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from st_common.errors import QueryError
from st_common.query.builder.expressions import Given
from st_common.query.builder.step import Step
from st_common.query.grammar.nodes import Span
from st_common.query.lowering.expression import shifted
from st_common.query.plan_expressions import expressions_of
from st_common.query.printed import to_text
from st_common.query.problem import Problem, Source
from st_common.query.text import NAME_HINT, Statement, is_name

_PARTS: dict[str, tuple[str, ...]] = {
    "select": ("columns", "aggregate"),
    "group": ("aggregate",),
    "layer": ("join", "pairs"),
    "knn": ("neighbours",),
    "detect": ("fence",),
    "lasting": ("incident",),
    "until": ("incident",),
    "using": ("transforms",),
    "options": ("order", "fence", "incident", "frame"),
    "emit": ("valid_until", "emit", "incident"),
}
"""The parts of a plan that a clause says, where they are not called as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built(Statement):
    """A statement without a text of its writer's; `places` say for parts of the plan who made them.

    `given` are its expressions as they were given. Spans of its terms count through all of them, from the first on:

        where("speed > 3")  select("line")
               0      9             9  13
    """

    places: Mapping[str, str]
    given: tuple[Given, ...]

    def problem(
        self, message: str, *, at: str | Span = "name", hint: str = ""
    ) -> Problem:
        """See `Statement`."""
        if isinstance(at, str):
            place = next(self._places_of(at), None)
            return Problem(
                message=message, hint=hint, file=place, line=0, column=0, snippet=""
            )
        one, start = self._at(at)
        source = Source(one.source, one.step)
        return source.problem(message, (at[0] - start, at[1] - start), hint)

    def written(self, span: Span) -> str:
        """See `Statement`."""
        one, start = self._at(span)
        return one.source[span[0] - start : span[1] - start]

    def _places_of(self, clause: str) -> Iterator[str]:
        """Who made the parts that a clause says."""
        parts = _PARTS.get(clause, (clause,))
        return (self.places[part] for part in parts if part in self.places)

    def _at(self, span: Span) -> tuple[Given, int]:
        """The expression that a span is in, and where it begins."""
        starts = _starts(self.given)
        number = bisect_right(starts, span[0]) - 1
        return self.given[number], starts[number]


def statement_of(
    built: Step,
    name: str,
    *,
    op: Literal["register", "replace"] = "register",
    places: Mapping[str, str] | None = None,
) -> Built:
    """The statement that registers what was built, or puts it in the place of a query.

    `places` are what errors call the parts of the plan, and of its aggregate the `group`; without them they are called
    by the steps that made them.

    Raises:
        QueryError: this is no name for a query.
    """
    if not is_name(name):
        raise QueryError(f"{name[:128]!r} is no name for a query", hint=NAME_HINT)
    given = tuple(built.given[one] for one in expressions_of(built.plan))
    if places is not None:
        given = tuple(replace(one, step=places[one.part]) for one in given)
    terms = zip(given, _starts(given), strict=True)
    return Built(
        op=op,
        name=name,
        plan=built.plan,
        text=to_text(built.plan, name, op=op),
        line=1,
        column=1,
        terms=tuple(shifted(one.term, start) for one, start in terms),
        places=built.steps if places is None else places,
        given=given,
    )


def _starts(given: tuple[Given, ...]) -> list[int]:
    """Where each expression begins when they stand behind each other, each with a place behind its end."""
    lengths = [len(one.source) + 1 for one in given]
    return list(accumulate(lengths[:-1], initial=0)) if given else []
