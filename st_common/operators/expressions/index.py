"""Queries without a region, found by what their conditions ask of a column: few points and queries are tested.

A point looks for the texts of its columns, and for the ranges that its numbers lie in (SPEC P8, X13).
"""

from dataclasses import dataclass

import numpy as np

from st_common.geometry.grid import BoxIndex
from st_common.operators.arrays.keys import MASK, SHIFT, packed, unique
from st_common.operators.expressions.conditions import Conditions
from st_common.operators.expressions.truth import Truth
from st_common.runs import ranges

_OVERLAP = 8  # one of so many ranges with two ends is met, until somebody knows better

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """Queries by the text that they ask for in a column: `code` ascending, its place among the names of the column.

    With `are_parts` it is a part of the text.
    """

    column: int
    are_parts: bool
    code: np.ndarray
    query: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranges:
    """Queries by the range that they ask for in a column, and those that ask for points without a value as well."""

    column: int
    index: BoxIndex
    query: np.ndarray
    or_unknown: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionIndex:
    """Queries with a simple condition, each found by one of its columns.

    Attributes:
        queries: int64, ascending, their numbers.
        may_repeat: some are found by several atoms.
        texts: those that are found by a text, by column.
        numbers: those that are found by a range, by column.
    """

    queries: np.ndarray
    may_repeat: bool
    texts: tuple[_Texts, ...]
    numbers: tuple[_Ranges, ...]


def index_conditions(
    conditions: Conditions, queries: np.ndarray, condition: np.ndarray
) -> ConditionIndex | None:
    """An index of some queries by their conditions; None where none of them has a simple one.

    A query is found by that atom of its condition which the fewest others share, by an estimate; one whose condition is
    about alternatives by each of these.

    Args:
        conditions: the conditions.
        queries: int64[q], numbers of queries.
        condition: int64[q], the place of each one's condition, -1 without.
    """
    atoms = [
        np.append(of, -1)[condition] for of in (_chosen(conditions), *conditions.either)
    ]
    atom, queries = np.concatenate(atoms), np.tile(queries, len(atoms))
    queries, atom = queries[atom >= 0], atom[atom >= 0]
    if not len(queries):
        return None
    texts, numbers = [], []
    for column in np.unique(conditions.column[atom]).tolist():
        mine = conditions.column[atom] == column
        text, number = mine & conditions.is_text[atom], mine & ~conditions.is_text[atom]
        if text.any():
            texts.append(_texts(conditions, column, queries[text], atom[text]))
        if number.any():
            numbers.append(_ranges(conditions, column, queries[number], atom[number]))
    return ConditionIndex(
        queries=unique(queries),
        may_repeat=bool(conditions.either),
        texts=tuple(texts),
        numbers=tuple(numbers),
    )


def find_pairs(index: ConditionIndex, truth: Truth, chosen: np.ndarray) -> Pairs:
    """Pairs of a point and a query that may be satisfied, each once; the whole condition is still to be tested.

    Args:
        index: the queries.
        truth: the points, with their columns.
        chosen: int64, places of the points that are asked about.

    Returns:
        Two int64 arrays: places of points, numbers of queries.
    """
    none = np.empty(0, np.int64)
    points, queries = [none], [none]
    for part in index.texts:
        who, code = _codes(part, truth, chosen)
        start = np.searchsorted(part.code, code, side="left")
        count = np.searchsorted(part.code, code, side="right") - start
        points.append(np.repeat(who, count))
        queries.append(part.query[ranges(start, count)])
    for of in index.numbers:
        value = truth.column(of.column)[0][chosen]
        point, row = of.index.probe(value, np.zeros(len(chosen)))
        unknown = chosen[np.isnan(value)] if len(of.or_unknown) else none
        points += [chosen[point], np.repeat(unknown, len(of.or_unknown))]
        queries += [of.query[row], np.tile(of.or_unknown, len(unknown))]
    point, query = np.concatenate(points), np.concatenate(queries)
    if index.may_repeat:
        pairs = unique(packed(point, query))
        point, query = pairs >> SHIFT, pairs & MASK
    return point, query


def _codes(part: _Texts, truth: Truth, chosen: np.ndarray) -> Pairs:
    """Points among the chosen, and the places of the texts that they have, or of the parts of these."""
    if not part.are_parts:
        return chosen, truth.column(part.column)[1][chosen]
    point, code = truth.parts(part.column)
    mine = np.isin(point, chosen)
    return point[mine], code[mine]


def _chosen(conditions: Conditions) -> np.ndarray:
    """The atom by which each condition is found, or -1: that which shares what it asks for with the fewest others."""
    crowd = _crowds(conditions)
    best, least = (
        np.full(len(conditions.texts), -1),
        np.full(len(conditions.texts), np.inf),
    )
    for atoms in conditions.rounds:
        of = np.where(atoms >= 0, np.append(crowd, np.inf)[atoms], np.inf)
        better = of < least
        best, least = np.where(better, atoms, best), np.where(better, of, least)
    return best


def _crowds(conditions: Conditions) -> np.ndarray:
    """About how many conditions are met together with each atom: f64[a]."""
    total = float(len(conditions.texts))
    names = np.array([max(len(of), 1) for of in conditions.names], float)
    asked = np.bincount(
        conditions.column[conditions.asked >> SHIFT], minlength=len(names)
    )
    two_ends = np.isfinite(conditions.low) & np.isfinite(conditions.high)
    of_range = np.where(two_ends, total / _OVERLAP, total)
    return np.where(conditions.is_text, (asked / names)[conditions.column], of_range)


def _texts(
    conditions: Conditions, column: int, queries: np.ndarray, atom: np.ndarray
) -> _Texts:
    start = np.searchsorted(conditions.asked, atom << SHIFT)
    count = np.searchsorted(conditions.asked, (atom + 1) << SHIFT) - start
    code, query = (
        conditions.asked[ranges(start, count)] & MASK,
        np.repeat(queries, count),
    )
    order = np.argsort(code, kind="stable")
    return _Texts(
        column=column,
        are_parts=column in conditions.parts,
        code=code[order],
        query=query[order],
    )


def _ranges(
    conditions: Conditions, column: int, queries: np.ndarray, atom: np.ndarray
) -> _Ranges:
    one = np.ones(len(atom))
    # Ranges as boxes that all hold y = 0: the grid that finds regions finds them as well.
    boxes = np.stack([conditions.low[atom], -one, conditions.high[atom], one], axis=1)
    return _Ranges(
        column=column,
        index=BoxIndex(boxes),
        query=queries,
        or_unknown=queries[conditions.or_unknown[atom]],
    )
