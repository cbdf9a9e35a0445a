"""The columns that queries select, as JSON objects beside their changes (SPEC G9)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from st_common.geometry.space import Space
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.pair_readings import PairReadings
from st_common.operators.expressions.readings import Readings
from st_common.operators.state.intern import Interner
from st_common.operators.state.registered import Queries
from st_common.query.grammar.words import quoted
from st_common.query.outer import sources_of
from st_common.query.pair_columns import is_of_pair, names_pair
from st_common.query.plan import Plan

_STREAMS = ("istream", "dstream", "rstream")
STARTED, WORST = "incident: started", "incident: worst"
"""Columns beside those of a fix: when an incident began, and its worst value so far. No attribute is called so."""
TYPES = "rows: types"
"""Beside the columns of rows that another query asks about: their types, the last of all."""


def shown_columns(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The columns that changes of a query show.

    Those of streams, fences and incidents have the place as well, unless another column is called so (W6, X3). Those of
    incidents have their beginning, and the worst value (X8). Where another query asks about the rows, the types of the
    columns stand behind them.
    """
    if plan.outer is not None and plan.columns:
        return (*plan.columns, (TYPES, _types_of(plan)))
    shows_place = plan.tells_events or plan.emit in _STREAMS
    is_counted = plan.outer is not None or plan.aggregate is not None
    if not shows_place or is_counted:
        return plan.columns
    known = {name.lower() for name, _ in plan.columns}
    beside = [("x", "x"), ("y", "y"), *_of_incident(plan)]
    return plan.columns + tuple(
        (name, text) for name, text in beside if name.lower() not in known
    )


def _types_of(plan: Plan) -> str:
    """An expression for the names of the types that DuckDB gives to the selected columns, as a list.

    What is selected and is the key of the rows, such as `object`, has the type of that.
    """
    sources = sources_of(plan)
    types = (
        f"typeof({text})"
        for name, text in plan.columns
        if sources.get(name) == "selected"
    )
    return f"[{', '.join(types)}]"


def _of_incident(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The names and expressions of what is known of an incident beside its fix."""
    if plan.incident is None:
        return ()
    started, worst = ("started", quoted(STARTED)), plan.incident.worst
    return (started,) if worst is None else (started, (worst.name, quoted(WORST)))


def fields_of(
    queries: Queries,
    objects: Interner,
    *,
    query: np.ndarray,
    reading: np.ndarray,
    wanted: np.ndarray,
    readings: Readings,
    space: Space,
    beside: Mapping[str, pa.Array] | None = None,
    other: np.ndarray | None = None,
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
        beside: more columns that expressions may name, each with n values.
        other: int64[n], of a pair the place of the reading of its other object; None: nothing is about one.

    Returns:
        string[n], such as `{"speed_mps":3.5}`; null where none is wanted.
    """
    readings, rows = readings.placed(), np.flatnonzero(wanted)
    out = np.full(len(query), None, object)
    numbers, at = np.unique(query[rows], return_inverse=True)
    plans = [queries[n].plan for n in numbers]
    selected = [(shown_columns(plan), plan.join is not None) for plan in plans]
    # Queries that select the same share a statement; of a feature and of an object the same name is another column.
    for columns, has_feature in dict.fromkeys(selected):
        alike = [one == (columns, has_feature) for one in selected]
        mine = rows[np.array(alike)[at]]
        texts = [text for _, text in columns]
        others = None if other is None or has_feature else other[mine]
        some = _seen(readings, reading[mine], others, texts)
        table = some.table(objects.ids, space=space, texts=texts)
        for name, values in (beside or {}).items():
            if has_feature or not is_of_pair(name):
                table = _put(table, name, values.take(pa.array(mine)))
        (rendered,) = expressions.evaluated(
            [expressions.objects_of(columns)], table, of=[texts]
        )
        out[mine] = rendered.to_numpy(zero_copy_only=False)
    return pa.array(out, pa.string())


def _put(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """The table with a column, in the place of one that is called so."""
    known = [one for one in table.column_names if one.casefold() == name.casefold()]
    return table.drop_columns(known).append_column(name, values)


def _seen(
    readings: Readings,
    one: np.ndarray,
    other: np.ndarray | None,
    texts: Sequence[str],
) -> Readings | PairReadings:
    """Fixes by their places, each with that of the other object where expressions are about pairs."""
    some = readings.take(one)
    if other is None or not any(names_pair(text) for text in texts):
        return some
    return PairReadings(
        one=some, other=readings.take(np.maximum(other, 0)), has_other=other >= 0
    )
