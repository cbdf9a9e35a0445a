"""Which files of a table can hold rows that filters look for."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.tables.files import clamped

Filters = list[tuple[str, str, Any]]
_OF_VALUES = frozenset({"=", "==", "<", "<=", ">", ">=", "in"})
# Statistics name no year before 1 and after 9999; in microseconds:
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


def keep(actions: pa.Table, filters: Filters) -> pa.Table:
    """Drops the files that cannot hold a row that keeps all filters, by their partitions and statistics.

    A file whose bounds are not known is kept. Bounds are taken as wide as any writer may have meant them: closed,
    instants cut to milliseconds, infinities cut to the largest number.

        x from 0 to 5 and from 8 to 9, filter ("x", ">", 6)   ->   the second file

    Args:
        actions: add actions, flattened: columns `min.NAME` and `max.NAME`, or `partition.NAME`; a file a row.
        filters: (column, operator, value), which must all hold; an operator that is not known here keeps every file.

    Returns:
        The rows of `actions` that are left, in their order.
    """
    kept = np.ones(len(actions), bool)
    for name, operator, value in filters:
        # A partition's column is both ends of its files: they hold one value.
        for end in ("min", "max"):
            column = (
                f"partition.{name}"
                if f"partition.{name}" in actions.column_names
                else f"{end}.{name}"
            )
            if column in actions.column_names:
                kept &= _possible(actions.column(column), end, operator, value)
        if (nulls := f"null_count.{name}") in actions.column_names:
            kept &= ~_is_all_null(actions, nulls) | (operator not in _OF_VALUES)
    return actions.filter(kept)


def _is_all_null(actions: pa.Table, nulls: str) -> np.ndarray:
    """Per file whether a column holds nothing but nulls, of which no comparison is true."""
    is_all = pc.equal(actions[nulls], actions["num_records"])
    return np.asarray(is_all.fill_null(False))  # noqa: FBT003, the value


def _possible(
    bound: pa.ChunkedArray, end: str, operator: str, value: Any
) -> np.ndarray:
    """Per file whether a bound allows the operator to hold."""
    if operator == "in":
        each = [_possible(bound, end, "=", one) for one in value]
        return np.logical_or.reduce(each) if each else np.zeros(len(bound), bool)
    is_nan = isinstance(value, float) and np.isnan(value)
    if operator == "not in" or value is None or is_nan:
        return np.ones(len(bound), bool)
    if pa.types.is_timestamp(bound.type):
        value = min(max(pa.scalar(value, bound.type).value, _FIRST), _LAST)
        bound = bound.cast(pa.int64())
        bound = pc.add(bound, 999) if end == "max" else bound
    elif isinstance(value, float):
        value = clamped(value)
    if end == "min" and operator in ("=", "==", "<", "<="):
        possible = pc.less_equal(bound, value)
    elif end == "max" and operator in ("=", "==", ">", ">="):
        possible = pc.greater_equal(bound, value)
    else:
        return np.ones(len(bound), bool)
    return np.asarray(possible.fill_null(True))  # noqa: FBT003, the value
