"""What a query gives: columns or an aggregate, over what lasts how long, written how (SPEC G9, P5, W6, W7)."""

from dataclasses import replace
from typing import Literal, Self, get_args

from sqlglot import exp

from st_common.errors import QueryError
from st_common.query.builder.amounts import Amount, rows_of, seconds_of
from st_common.query.builder.expressions import Given, condition, having, term
from st_common.query.builder.grouping import Column, GroupingSteps
from st_common.query.builder.refusing import refuse_unless, text_of_user
from st_common.query.grammar.statements import expression_of
from st_common.query.pair_columns import plain_name
from st_common.query.plan import Aggregate, Emit, Function, Order, Window
from st_common.query.tree.growing import above_rows
from st_common.query.tree.node import complaints_of_tree
from st_common.query.tree.rows import Rows

StreamKind = Literal["istream", "dstream", "rstream"]


class AnswerSteps(GroupingSteps):
    """Expressions are SQL over the stream's attributes, as in texts."""

    __slots__ = ()

    def where(self, text: str) -> Self:
        """Only fixes that satisfy a condition such as "speed_mps > 3 AND state = 'free'"."""
        step = "where(..)"
        term = condition(text, self._scope_of_conditions, step)
        return self._next(step, given=[term], where=term.text)

    def select(self, *columns: Column, **named: str) -> Self:
        """What a change shows beside its key: `select("line", kmh="speed_mps * 3.6")`; without columns, nothing."""
        step = "select(..)"
        chosen: dict[str, Given] = {}
        for column in (*columns, *named.items()):
            name, term = self._column(column, step)
            refuse_unless(
                name not in chosen,
                step,
                f"two columns are called {name!r}",
                "give one another name",
            )
            chosen[name] = term
        texts = tuple((name, term.text) for name, term in chosen.items())
        return self._next(step, given=chosen.values(), columns=texts)

    def count(self, expression: str | None = None) -> Self:
        """How many there are, or how many values of an expression."""
        return self._aggregated("count(..)", "count", expression)

    def count_distinct(self, expression: str | None = None) -> Self:
        """How many different objects there are, or different values of an expression."""
        return self._aggregated("count_distinct(..)", "count_distinct", expression)

    def sum(self, expression: str) -> Self:
        """The sum of an expression; nulls do not count."""
        return self._aggregated("sum(..)", "sum", expression)

    def avg(self, expression: str) -> Self:
        """The mean of an expression; nulls do not count."""
        return self._aggregated("avg(..)", "avg", expression)

    def min(self, expression: str) -> Self:
        """The least value of an expression."""
        return self._aggregated("min(..)", "min", expression)

    def max(self, expression: str) -> Self:
        """The greatest value of an expression."""
        return self._aggregated("max(..)", "max", expression)

    def average_speed(self) -> Self:
        """AVGSPD: each object's way in its window, divided by the time, in metres per second."""
        return self._aggregated("average_speed()", "avgspd", None)

    def distinct(self, expression: str) -> Self:
        """SELECT DISTINCT: the different values of an expression."""
        step = "distinct(..)"
        group = self._group(expression, step)
        aggregate = Aggregate(function="distinct", group=group.text)
        return self._next(step, given=[group], aggregate=aggregate)

    def having(self, text: str) -> Self:
        """Only groups of which a condition on values and keys holds: `having("count(*) > 3 AND line <> '7'")`."""
        step = "having(..)"
        if self.plan.outer is not None:
            return self._among_groups(text, step)
        asked = having(text, self.plan.aggregate, self._scope, step)
        told = self.plan.emit
        chosen = self.emit_changes().rows().where(asked)
        if told == "changes":
            return chosen
        return chosen.emit_every() if told == "every" else chosen.as_stream(told)

    def rows(self) -> Self:
        """What follows asks about the rows of the query so far: `where`, aggregates, `group_by` and `distinct`.

        Its columns are `object`, `partner` and `value`, as in changes, and those that are selected.

        Raises:
            QueryError: what was said before has no rows that stay, or they are asked about already.
        """
        step = "rows()"
        asked = self.plan.outer is not None
        refuse_unless(not asked, step, "these are the rows of a query already", "once")
        tree = above_rows(Rows(input=self.tree), {})
        for complaint in complaints_of_tree(tree):
            raise QueryError(f"{step}: {complaint.message}", hint=complaint.hint)
        return replace(self, tree=tree, steps={**self.steps, "outer": step})

    def window(self, lasting: Amount) -> Self:
        """Fixes that qualified count for "1 hour" (a number is seconds), or until "100 tuples" newer ones did.

        After `rows()`: rows count on for so long after they left.
        """
        step = "window(..)"
        tuples = rows_of(lasting, step)
        seconds = None if tuples is not None else seconds_of(lasting, "a window", step)
        return self._next(step, window=Window(seconds=seconds, tuples=tuples))

    def valid_until(self, on: bool = True) -> Self:  # noqa: FBT001, FBT002 - a switch of the query
        """With each member the time until which it stays one, from its velocity."""
        return self._next("valid_until()", valid_until=bool(on))

    def emit_every(self) -> Self:
        """Every fix of a member is told, as BBoxDB tells it."""
        return self._emitting("emit_every()", "every")

    def emit_changes(self) -> Self:
        """Only what enters and what leaves is told, which is so without this."""
        return self._emitting("emit_changes()", "changes")

    def as_stream(self, kind: StreamKind) -> Self:
        """ISTREAM (what enters), DSTREAM (what leaves) or RSTREAM (all that is in, each time)."""
        step = "as_stream(..)"
        known = get_args(StreamKind)
        refuse_unless(
            kind in known, step, f"expected one of {', '.join(known)}, not {kind!r}"
        )
        return self._emitting(step, kind)

    def plan_order(self, order: Order) -> Self:
        """Whether the spatial operator stands below the condition ("space_first") or above it ("select_first")."""
        step = "plan_order(..)"
        refuse_unless(
            order in get_args(Order),
            step,
            f"expected one of {', '.join(get_args(Order))}, not {order!r}",
        )
        return self._next(step, order=order)

    def _emitting(self, step: str, emit: Emit) -> Self:
        return self._next(step, emit=emit)

    def _aggregated(
        self, step: str, function: Function, expression: str | None
    ) -> Self:
        if expression is None:
            return self._next(step, aggregate=Aggregate(function=function))
        argument = term(
            expression,
            self._scope,
            step,
            part="aggregate",
            needs="any" if function.startswith("count") else "number",
        )
        aggregate = Aggregate(function=function, argument=argument.text)
        if function.startswith("count") and argument.text.lower() == "object":
            aggregate = Aggregate(function="count_distinct")  # each object once
        return self._next(step, given=[argument], aggregate=aggregate)

    def _shown(self, text: str, step: str) -> Given:
        """The expression of a column."""
        return term(text, self._scope, step, part="columns", of_pair=True, of_near=True)

    def _column(self, column: Column, step: str) -> tuple[str, Given]:
        if isinstance(column, tuple):
            name, text = column
            called = text_of_user(name, "the name of a column", step)
            return called, self._shown(text, step)
        shown = self._shown(column, step)
        bare = expression_of(shown.text)
        is_column = isinstance(bare, exp.Column)
        return (plain_name(bare.name) if is_column else shown.text), shown
