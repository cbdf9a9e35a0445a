"""The greatest groups of a query, or of each of its keys, among those of which HAVING holds (SPEC G9).

ORDER BY n DESC LIMIT 2 PER line

group         n
["7","a"]     5        told
["7","b"]     3        told: of the same value, before c
["7","c"]     3
["9","a"]     1        told
"""

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate.several import keys_of_names
from st_common.operators.arrays.ranked import ranks_of_texts
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.state.intern import Interner
from st_common.operators.turn.flags import Several
from st_common.query.plan import AS_JSON, COUNTS, Value
from st_common.runs import is_first, ranks_of


def told_groups(
    partners: Interner,
    spec: Several,
    cell: np.ndarray,
    group: np.ndarray,
    values: np.ndarray,
) -> np.ndarray:
    """The groups that are told.

    Args:
        partners: the names of groups.
        spec: the aggregate.
        cell: int64[n], the query, or the query and tick, of each group.
        group: int64[n], the number of its name.
        values: float64[n, v], what it has, NaN for null.

    Returns:
        Their places, int64, ascending; all of them without a limit.
    """
    top = spec.top
    if top is None:
        return np.arange(len(cell))
    numbers, code = np.unique(group, return_inverse=True)
    names = partners.ids.take(pa.array(numbers)).cast(pa.string())
    keys = keys_of_names(spec, names)
    among = _chosen(spec, [key.take(pa.array(code)) for key in keys], values)
    if top.limit is None or top.value is None:
        return among
    by_name, key = ranks_of_texts(names)[code][among], _alike(spec, keys)[code][among]
    value = values[among, [one.name for one in spec.values].index(top.value)]
    wanted = -value if top.descending else value
    # NaN is last, whichever way the others go.
    order = np.lexsort((by_name, wanted, key, cell[among]))
    rank = ranks_of(is_first(cell[among][order], key[order]))
    return np.sort(among[order[rank < top.limit]])


def _chosen(spec: Several, keys: list[pa.Array], values: np.ndarray) -> np.ndarray:
    """The places of groups of which HAVING holds; all without one. What is not finite is null, as it is told.

    Args:
        spec: the aggregate.
        keys: string[n], of each key that of each group.
        values: float64[n, v], NaN for null.
    """
    if spec.top is None or spec.top.having is None:
        return np.arange(len(values))
    named = zip((name for name, _ in spec.keys), keys, strict=True)
    columns: dict[str, pa.Array] = dict(named)
    for place, value in enumerate(spec.values):
        if value.function not in AS_JSON:
            columns[value.name] = _numbers(value, values[:, place])
    if len(spec.values) == 1 and "value" not in {name.casefold() for name in columns}:
        columns["value"] = _numbers(spec.values[0], values[:, 0]).cast(pa.float64())
    (holds,) = expressions.masks([spec.top.having], pa.table(columns))
    return np.flatnonzero(holds)


def _numbers(value: Value, amounts: np.ndarray) -> pa.Array:
    """A value of groups as conditions see it; counts are whole numbers."""
    known = pa.array(amounts, mask=~np.isfinite(amounts))
    return known.cast(pa.int64()) if value.function in COUNTS else known


def _alike(spec: Several, keys: list[pa.Array]) -> np.ndarray:
    """Which groups are alike in the key of the limit, by the texts of all keys; int64[n], 0 for all without one."""
    if spec.top is None or spec.top.per is None:
        return np.zeros(len(keys[0]), np.int64)
    key = keys[[name for name, _ in spec.keys].index(spec.top.per)]
    codes = key.dictionary_encode().indices.fill_null(-1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)
