"""The columns of points that conditions name, as numbers and as places of texts.

condition       speed > 5 AND kind IN ('taxi', 'bus')
fixes           speed 7, kind bus; speed null, kind van
numbers         speed: 7, NaN
texts           kind: 1, -1                                 bus is the second text that is asked for
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.space import Space
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.conditions import Conditions
from st_common.operators.expressions.grams import find_parts
from st_common.operators.expressions.readings import Points

_EXACT = 1 << 53  # from here on a double is not every whole number


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The columns of n points that conditions name, by their place among `Conditions.columns`.

    Attributes:
        numbers: float64[columns, n]; null is NaN, and what is no number is infinite, for DuckDB orders it so.
        texts: int64[columns, n], places among the names that conditions ask for, -1 for others and for null.
        parts: by column of whose texts parts are looked for, two int64 arrays: the points, ascending, that have parts,
            and the places of these among the names.
        fits: bool[atoms], whether the column has values that can be compared so.
    """

    numbers: np.ndarray
    texts: np.ndarray
    fits: np.ndarray
    parts: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)


def seen_of(
    conditions: Conditions, readings: Points, ids: pa.Array, *, space: Space
) -> Seen:
    """The columns of some points that conditions name."""
    columns = _columns_of(conditions, readings, ids, space=space)
    shape = (len(columns), len(readings))
    numbers, texts = np.full(shape, np.nan), np.full(shape, -1, np.int64)
    parts = dict[int, tuple[np.ndarray, np.ndarray]]()
    for place, values in enumerate(columns):
        if values is None:
            continue
        if pa.types.is_floating(values.type):
            numbers[place] = _decimals(values)
        elif pa.types.is_integer(values.type):
            numbers[place] = values.cast(pa.float64(), safe=False).to_numpy(
                zero_copy_only=False
            )
        elif pa.types.is_string(values.type) and place in conditions.parts:
            parts[place] = find_parts(values, conditions.names[place])
        elif pa.types.is_string(values.type):
            at = pc.index_in(values, value_set=conditions.names[place])
            texts[place] = at.fill_null(-1).to_numpy(zero_copy_only=False)
    fits = _fits(conditions, columns)
    return Seen(numbers=numbers, texts=texts, parts=parts, fits=fits)


def fits_of(
    conditions: Conditions, readings: Points, ids: pa.Array, *, space: Space
) -> np.ndarray:
    """Whether the columns of some points have values that can be compared so; bool[atoms].

    Whole numbers fit only beside whole constants or loose ones, and while doubles tell them apart.

    Args:
        conditions: the conditions.
        readings: the points; there may be none, but for attributes.
        ids: string, the ids of all objects.
        space: by which distances and speeds are measured.
    """
    return _fits(conditions, _columns_of(conditions, readings, ids, space=space))


def _columns_of(
    conditions: Conditions, readings: Points, ids: pa.Array, *, space: Space
) -> list[pa.Array | None]:
    """The values of each column, None where the points have none; expressions are evaluated in one statement."""
    columns = [
        None
        if place in conditions.computed
        else readings.column(name, ids, space=space)
        for place, name in enumerate(conditions.columns)
    ]
    places = sorted(conditions.computed)
    if places:
        texts = [conditions.columns[place] for place in places]
        table = readings.table(ids, space=space, texts=texts)
        for place, values in zip(
            places, expressions.computed(texts, table), strict=True
        ):
            columns[place] = values
    return columns


def _fits(conditions: Conditions, columns: Sequence[pa.Array | None]) -> np.ndarray:
    kinds = np.zeros((3, len(columns)), bool)  # decimal numbers, whole numbers, texts
    for place, values in enumerate(columns):
        if values is not None:
            whole = pa.types.is_integer(values.type) and _are_exact(values)
            kinds[:, place] = (
                pa.types.is_floating(values.type),
                whole,
                pa.types.is_string(values.type),
            )
    decimal, whole, text = kinds[:, conditions.column]
    fits: np.ndarray = np.where(
        conditions.is_text,
        text,
        decimal | (whole & (conditions.whole | conditions.loose)),
    )
    return fits


def _are_exact(values: pa.Array) -> bool:
    """Whether doubles tell these whole numbers from each other."""
    ends = pc.min_max(values).as_py()
    return all(end is None or -_EXACT < end < _EXACT for end in ends.values())


def _decimals(values: pa.Array) -> np.ndarray:
    """As doubles: NaN for null. What is no number is greater than every number, as DuckDB has it."""
    decimals: np.ndarray = (
        values.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    )
    if values.null_count < np.count_nonzero(np.isnan(decimals)):
        decimals[
            np.isnan(decimals) & values.is_valid().to_numpy(zero_copy_only=False)
        ] = np.inf
    return decimals
