"""What queries make of rows: which satisfy their conditions, and what each counts for in which group."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate import several
from st_common.operators.aggregate.relational import ALL
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.general import Source
from st_common.operators.expressions.truth import Truth
from st_common.operators.outer.columns import RowPoints, typed_rows, without_types
from st_common.operators.outer.remembered import OuterRows, behind
from st_common.operators.outer.signed import Signed
from st_common.operators.outer.specs import NONE, OuterSpecs, RowLayout
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.turn import Turn
from st_common.query.plan import Aggregate

_NOBODY = pa.array([], pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which rows with signs count from their instant on, and as what.

    Attributes:
        place: int64[m], ascending, places of rows that come and satisfy what is asked.
        rows: m rows, in the same order.
    """

    place: np.ndarray
    rows: OuterRows


def asked(turn: Turn, specs: OuterSpecs, rows: Signed) -> Asked:
    """The rows that come and satisfy the conditions of their queries; expressions are evaluated for all at once.

    Args:
        turn: the run.
        specs: what is asked.
        rows: the rows with signs.
    """
    comes = np.flatnonzero(rows.weight > 0)
    layout, parts = specs.layout[rows.query[comes]], list[Asked]()
    for number in np.unique(layout).tolist():
        of_layout = comes[layout == number]
        told = rows.rows.take(pa.array(of_layout))
        for places, table in typed_rows(specs.layouts[number], told):
            parts += _of_table(
                turn, specs, specs.layouts[number], rows, of_layout[places], table
            )
    place = np.concatenate([np.empty(0, np.int64), *(part.place for part in parts)])
    order = np.argsort(place)
    return Asked(
        place=place[order], rows=behind([part.rows for part in parts]).take(order)
    )


def _of_table(
    turn: Turn,
    specs: OuterSpecs,
    layout: RowLayout,
    rows: Signed,
    place: np.ndarray,
    table: pa.Table,
) -> Iterator[Asked]:
    """Rows of one layout with columns of the same types: those that satisfy their conditions, by aggregate."""
    holds = _holding(turn, layout, specs.condition[rows.query[place]], table)
    place, table = place[holds], table.take(pa.array(holds)).combine_chunks()
    aggregate = specs.aggregate[rows.query[place]]
    for number in np.unique(aggregate).tolist():
        mine = np.flatnonzero(aggregate == number)
        target = rows.target[place[mine]]
        if number == NONE:
            told = rows.rows.take(pa.array(place[mine]))
            yield Asked(place=place[mine], rows=_as_told(turn, target, told))
            continue
        some = table.take(pa.array(mine)).combine_chunks()
        counted = _counted(turn, specs.aggregates[number], target, some)
        yield Asked(place=place[mine], rows=counted)


def _holding(
    turn: Turn, layout: RowLayout, condition: np.ndarray, table: pa.Table
) -> np.ndarray:
    """The places of rows that satisfy the condition beside each (int64[n], `NONE` holds)."""
    if not len(table) or (condition == NONE).all():
        return np.arange(len(table))
    points = RowPoints(rows=table)
    source = Source(
        readings=points.take,
        ids=_NOBODY,
        space=turn.settings.space,
        size=len(table),
        dense=lambda texts: expressions.masks(texts, table),
        spent_us={},
    )
    truth = Truth(layout.conditions, points, source)
    return np.flatnonzero(truth.pairs(condition, np.arange(len(table))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Rows as several values ask about them; see `several.Asked`."""

    rows: pa.Table

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, text: str) -> np.ndarray:
        return expressions.numbers([text], self.rows)[0]

    def known(self, text: str) -> np.ndarray:
        known: np.ndarray = expressions.known([text], self.rows)[0]
        return known

    def texts(self, text: str) -> tuple[np.ndarray, pa.Array]:
        (texts,) = expressions.values_as_text([text], self.rows)
        encoded = texts.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes.astype(np.int64), encoded.dictionary


def _counted(
    turn: Turn, spec: Aggregate, target: np.ndarray, table: pa.Table
) -> OuterRows:
    """What rows count for by one aggregate; `aggregate.relational` says what the columns mean."""
    numbering, rows = turn.numbering, _Table(rows=table)
    count, function, argument = len(table), spec.function, spec.argument
    value, text = np.ones(count), np.full(count, NO_PARTNER)
    if function == "several":
        columns = several.columns_of(spec.values, rows)
        packed = several.packed_texts(columns, np.arange(count))
        text = numbering.partners_of(packed)
    elif function == "count_distinct":
        (texts,) = expressions.values_as_text([argument or "object"], table)
        is_known = texts.is_valid().to_numpy(zero_copy_only=False)
        value = np.where(is_known, 1.0, np.nan)
        text[is_known] = numbering.partners_of(texts.filter(pa.array(is_known)))
    elif function == "count" and argument is not None:
        value = np.where(expressions.known([argument], table)[0], 1.0, np.nan)
    elif argument is not None:
        (value,) = expressions.numbers([argument], table)
    return OuterRows(
        target=target,
        group=_groups(numbering, spec, table),
        text=text,
        value=value,
        fields=pa.nulls(count, pa.string()),
    )


def _groups(numbering: Numbering, spec: Aggregate, table: pa.Table) -> np.ndarray:
    """The numbers of the groups' names; that of null is named NULL."""
    keys = spec.grouped_by
    if not keys:
        return np.full(len(table), numbering.partner_of(ALL))
    if len(keys) > 1:
        every = np.arange(len(table))
        return several.names_of_groups(numbering, keys, _Table(rows=table), every, None)
    (names,) = expressions.groups(keys, table)
    return numbering.partners_of(names.fill_null("NULL"))


def _as_told(turn: Turn, target: np.ndarray, told: pa.Table) -> OuterRows:
    """Rows that are told as they are."""
    numbers = turn.numbering
    return OuterRows(
        target=target,
        group=_partners(numbers, told["object"]),
        text=_partners(numbers, told["partner"]),
        value=told["value"].to_numpy(zero_copy_only=False),
        fields=without_types(told["fields"].combine_chunks()),
    )


def _partners(numbering: Numbering, texts: pa.ChunkedArray) -> np.ndarray:
    """The numbers of texts as partners; `NO_PARTNER` of null."""
    is_known = texts.is_valid().to_numpy()
    out = np.full(len(texts), NO_PARTNER)
    known = texts.filter(pa.array(is_known)).cast(pa.string()).combine_chunks()
    out[is_known] = numbering.partners_of(known)
    return out
