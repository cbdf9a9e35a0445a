"""The greatest groups of a query, or of each of its keys (SPEC G9).

ORDER BY n DESC LIMIT 2 PER line

group         n
["7","a"]     5        told
["7","b"]     3        told: of the same value, before c
["7","c"]     3
["9","a"]     1        told
"""

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.ranked import ranks_of_texts
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.state.intern import Interner
from st_common.operators.turn.flags import Several
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
    by_name, key = ranks_of_texts(names)[code], _keys(spec, names)[code]
    value = values[:, [one.name for one in spec.values].index(top.value)]
    wanted = -value if top.descending else value
    # NaN is last, whichever way the others go.
    order = np.lexsort((by_name, wanted, key, cell))
    rank = ranks_of(is_first(cell[order], key[order]))
    return np.sort(order[rank < top.limit])


def _keys(spec: Several, names: pa.Array) -> np.ndarray:
    """By names of groups which of them are alike in the key of the limit; int64[n], 0 for all without one."""
    if spec.top is None or spec.top.per is None:
        return np.zeros(len(names), np.int64)
    place = [name for name, _ in spec.keys].index(spec.top.per)
    text = f"json_extract_string(name, '$[{place}]')"
    (key,) = expressions.evaluated([text], pa.table({"name": names}))
    codes = key.cast(pa.string()).dictionary_encode().indices.fill_null(-1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)
