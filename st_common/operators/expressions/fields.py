"""The columns that queries select, as JSON objects beside their changes (SPEC G9)."""

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.readings import Readings
from st_common.operators.state.intern import Interner
from st_common.operators.state.registered import Queries
from st_common.query.plan import Plan

_STREAMS = ("istream", "dstream", "rstream")


def shown_columns(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The columns that changes of a query show; those of streams and fences have the place as well (W6, X3)."""
    shows_place = plan.fence is not None or plan.emit in _STREAMS
    if not shows_place or plan.aggregate is not None:
        return plan.columns
    known = {name.lower() for name, _ in plan.columns}
    return plan.columns + tuple(
        (name, name) for name in ("x", "y") if name not in known
    )


def fields_of(
    queries: Queries,
    objects: Interner,
    *,
    query: np.ndarray,
    reading: np.ndarray,
    wanted: np.ndarray,
    readings: Readings,
    space: Space,
) -> pa.Array:
    """The selected columns of rows of changes, as JSON.

    Args:
        queries: all queries of the shard.
        objects: the ids of objects.
        query: int64[n], the number of each row's query.
        reading: int64[n], the place of its reading among `readings`.
        wanted: bool[n], whether the row shows columns at all.
        readings: fixes as expressions see them. Objects that ended are where they were last, with the attributes of
            then.
        space: by which distances and directions are measured.

    Returns:
        string[n], such as `{"speed_mps":3.5}`; null where none is wanted.
    """
    readings, rows = readings.placed(), np.flatnonzero(wanted)
    out = np.full(len(query), None, object)
    numbers, at = np.unique(query[rows], return_inverse=True)
    selected = [shown_columns(queries[n].plan) for n in numbers]
    for columns in dict.fromkeys(selected):
        mine = rows[np.array([columns == other for other in selected])[at]]
        table = readings.take(reading[mine]).table(objects.ids, space=space)
        texts = [text for _, text in columns]
        (found,) = expressions.evaluated(
            [expressions.objects_of(columns)], table, of=[texts]
        )
        out[mine] = found.to_numpy(zero_copy_only=False)
    return pa.array(out, pa.string())
