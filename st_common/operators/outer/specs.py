"""What queries ask of the rows of others, compiled: queries alike share conditions, aggregates and names of columns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from st_common.operators.arrays.numbered import numbered
from st_common.operators.expressions.conditions import Conditions, compile_conditions
from st_common.operators.state.registered import Queries
from st_common.operators.turn.flags import counted_flags, flags_of
from st_common.operators.turn.turn import Turn
from st_common.query.outer import Source, sources_of
from st_common.query.plan import Aggregate, Outer

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
        several: object, its several values, None where it has one.
        counts_nothing: bool, no rows have a value as well.
        counts_different: bool, different values are counted.
        retelling: bool, the whole answer is told again where it changed (`RSTREAM`).
        lasting_us: int64, how long rows are there before they count, in microseconds; -1 where they count at once.
        window_us: int64, how long rows count on after they left, in microseconds; -1 where they go at once.
    """

    layouts: tuple[RowLayout, ...]
    aggregates: tuple[Aggregate, ...]
    layout: np.ndarray
    condition: np.ndarray
    aggregate: np.ndarray
    function: np.ndarray
    several: np.ndarray
    counts_nothing: np.ndarray
    counts_different: np.ndarray
    retelling: np.ndarray
    lasting_us: np.ndarray
    window_us: np.ndarray

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
            several=self.several,
            counts_nothing=self.counts_nothing,
            counts_different=self.counts_different,
            retelling=self.retelling,
            holds_by_object=np.zeros(len(turn.queries), bool),
        )
        return replace(turn, known=known)


def outer_of(queries: Queries) -> OuterSpecs:
    """What queries ask of the rows of others; found once, and kept with the queries.

    Args:
        queries: all queries of the stream.
    """
    kept: OuterSpecs | None = queries.derived.get(OuterSpecs)
    if kept is None:
        numbers = np.flatnonzero(flags_of(queries).nested)
        kept = queries.derived[OuterSpecs] = _compiled(queries, numbers)
    return kept


def _compiled(queries: Queries, numbers: np.ndarray) -> OuterSpecs:
    """What the queries with these numbers (int64) ask, dropped ones too."""
    asked = [
        (outer, tuple(sources_of(queries[number].plan).items()))
        for number in numbers.tolist()
        if (outer := queries[number].plan.outer) is not None
    ]
    outers = [outer for outer, _ in asked]
    layouts = numbered(sources for _, sources in asked)
    layout = [layouts[sources] for _, sources in asked]
    conditions = _conditions(outers, layout, len(layouts))
    condition = _condition(outers, layout, conditions)
    asked_for = [one.aggregate for one in outers]
    aggregates = numbered(one for one in asked_for if one)
    aggregate = [aggregates[one] if one else NONE for one in asked_for]
    column = partial(_column, len(queries), numbers)
    known = counted_flags(asked_for, nested=[False] * len(asked_for), of_rows=True)
    none = counted_flags([None], nested=[False])
    return OuterSpecs(
        layouts=tuple(
            RowLayout(sources=sources, conditions=compile_conditions(list(texts)))
            for sources, texts in zip(layouts, conditions, strict=True)
        ),
        aggregates=tuple(aggregates),
        layout=column(layout, nothing=NONE),
        condition=column(condition, nothing=NONE),
        aggregate=column(aggregate, nothing=NONE),
        retelling=column(_retells(queries, numbers), nothing=False),
        lasting_us=column(map(_lasting_us, outers), nothing=NONE),
        window_us=column(map(_window_us, outers), nothing=NONE),
        **{name: column(part, nothing=none[name][0]) for name, part in known.items()},
    )


def _retells(queries: Queries, numbers: np.ndarray) -> list[bool]:
    """Whether each of these queries tells its whole answer again where it changed."""
    return [queries[number].plan.emit == "rstream" for number in numbers.tolist()]


def _condition(
    outers: Sequence[Outer], layout: Sequence[int], conditions: list[dict[str, int]]
) -> list[int]:
    """The place of each query's condition among those of its layout, `NONE` without."""
    return [
        NONE if one.where is None else conditions[at][one.where]
        for one, at in zip(outers, layout, strict=True)
    ]


def _window_us(outer: Outer) -> int:
    """How long rows count on after they left, in microseconds; `NONE` where they go at once."""
    seconds = None if outer.window is None else outer.window.seconds
    return NONE if seconds is None else round(seconds * 1e6)


def _lasting_us(outer: Outer) -> int:
    """How long rows are there before they count, in microseconds; `NONE` where they count at once."""
    return NONE if outer.lasting_s is None else round(outer.lasting_s * 1e6)


def _column(
    count: int, rows: np.ndarray, values: Iterable[Any], *, nothing: object
) -> np.ndarray:
    """A value for each of `count` queries: of those with the numbers `rows` these, of all others `nothing`."""
    column = np.full(count, nothing)
    column[rows] = list(values)
    return column


def _conditions(
    outers: Sequence[Outer], layout: Sequence[int], layouts: int
) -> list[dict[str, int]]:
    """By layout the different conditions, each with its place."""
    texts: list[dict[str, int]] = [{} for _ in range(layouts)]
    for outer, at in zip(outers, layout, strict=True):
        if outer.where is not None:
            texts[at].setdefault(outer.where, len(texts[at]))
    return texts
