"""What queries ask of the rows of others, compiled: queries alike share conditions, aggregates and names of columns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from st_common.operators.expressions.conditions import Conditions, compile_conditions
from st_common.operators.state.registered import Registered
from st_common.operators.turn.flags import counts_different, counts_nothing
from st_common.operators.turn.turn import Turn
from st_common.query.outer import Source, sources_of
from st_common.query.plan import Aggregate, Outer

Value = TypeVar("Value")

NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowLayout:
    """The columns of the rows of some queries, what each is, and what these queries ask of them.

    Attributes:
        sources: by name what of a row of changes a column is.
        conditions: the different conditions over them.
    """

    sources: tuple[tuple[str, Source], ...]
    conditions: Conditions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OuterSpecs:
    """What is asked of the rows of queries; arrays have a value for each query of the stream.

    Attributes:
        layouts: the different columns of rows.
        aggregates: the different aggregates over rows.
        layout: int64, the place of the query's among the layouts, `NONE` where nobody asks about its rows.
        condition: int64, the place of its condition among those of its layout, `NONE` without.
        aggregate: int64, the place of its aggregate, `NONE` where rows are told as they are.
        function: object, the name of the aggregate's function, None without.
        counts_nothing: bool, no rows have a value as well.
        counts_different: bool, different values are counted.
    """

    layouts: tuple[RowLayout, ...]
    aggregates: tuple[Aggregate, ...]
    layout: np.ndarray
    condition: np.ndarray
    aggregate: np.ndarray
    function: np.ndarray
    counts_nothing: np.ndarray
    counts_different: np.ndarray

    @property
    def grouped(self) -> np.ndarray:
        """Whether an aggregate stands above the rows of each query; bool[q]."""
        grouped: np.ndarray = self.aggregate != NONE
        return grouped

    def above(self, turn: Turn) -> Turn:
        """The run as aggregates see it that stand above rows: by their own functions."""
        known = replace(
            turn.known,
            function=self.function,
            counts_nothing=self.counts_nothing,
            counts_different=self.counts_different,
            holds_by_object=np.zeros(len(turn.queries), bool),
        )
        return replace(turn, known=known)


def compile_outer(queries: Sequence[Registered], numbers: np.ndarray) -> OuterSpecs:
    """What some queries (their numbers) ask of rows.

    Args:
        queries: all queries of the stream.
        numbers: int64, those with an `outer` query, dropped ones too.
    """
    asked = [
        (outer, tuple(sources_of(queries[number].plan).items()))
        for number in numbers.tolist()
        if (outer := queries[number].plan.outer) is not None
    ]
    outers = [outer for outer, _ in asked]
    layouts = _numbered(sources for _, sources in asked)
    layout = [layouts[sources] for _, sources in asked]
    conditions = _conditions(outers, layout, len(layouts))
    aggregates = _numbered(one.aggregate for one in outers if one.aggregate)
    made = _Columns(count=len(queries), rows=numbers)
    return OuterSpecs(
        layouts=tuple(
            RowLayout(sources=sources, conditions=compile_conditions(list(texts)))
            for sources, texts in zip(layouts, conditions, strict=True)
        ),
        aggregates=tuple(aggregates),
        layout=made.numbers(layout),
        condition=made.numbers(
            NONE if one.where is None else conditions[at][one.where]
            for one, at in zip(outers, layout, strict=True)
        ),
        aggregate=made.numbers(
            NONE if one.aggregate is None else aggregates[one.aggregate]
            for one in outers
        ),
        function=made.names(one.aggregate for one in outers),
        counts_nothing=made.flags(counts_nothing(one.aggregate) for one in outers),
        counts_different=made.flags(counts_different(one.aggregate) for one in outers),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Makes columns with a value for each of `count` queries, of values for those with the numbers `rows` alone."""

    count: int
    rows: np.ndarray

    def numbers(self, values: Iterable[int]) -> np.ndarray:
        """int64, `NONE` for all others."""
        out = np.full(self.count, NONE)
        out[self.rows] = list(values)
        return out

    def flags(self, values: Iterable[bool]) -> np.ndarray:
        """bool, false for all others."""
        out = np.zeros(self.count, bool)
        out[self.rows] = list(values)
        return out

    def names(self, aggregates: Iterable[Aggregate | None]) -> np.ndarray:
        """The functions of aggregates as objects, None for all others."""
        out = np.full(self.count, None, object)
        out[self.rows] = [one.function if one else None for one in aggregates]
        return out


def _numbered(values: Iterable[Value]) -> dict[Value, int]:
    """Different values, each with its place among them."""
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def _conditions(
    outers: Sequence[Outer], layout: Sequence[int], layouts: int
) -> list[dict[str, int]]:
    """By layout the different conditions, each with its place."""
    texts: list[dict[str, int]] = [{} for _ in range(layouts)]
    for outer, at in zip(outers, layout, strict=True):
        if outer.where is not None:
            texts[at].setdefault(outer.where, len(texts[at]))
    return texts
