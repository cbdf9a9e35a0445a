"""Places that a query selects: of groups, which have none of their own, the values `x` and `y`.

object  fields             x     y           shown
a       {"x":1,"y":2}      3     4           (3, 4): where the object was
*       {"x":1.5,"y":2}    null  null        (1.5, 2): such as AVG(x) AS x, AVG(y) AS y
*       {"n":3}            null  null        nothing
"""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def place_of(fields: str | None) -> tuple[float, float] | None:
    """The place among the columns that a query selects; None where it selects none."""
    if fields is None or '"x"' not in fields:
        return None
    values = json.loads(fields)
    x, y = values.get("x"), values.get("y")
    if not (_is_number(x) and _is_number(y)):
        return None
    return float(x), float(y)


def with_group_places(rows: pa.Table) -> pa.Table:
    """Changes whose `x` and `y` are those of their values, where they have no place of their own.

    Args:
        rows: with the columns of the contract `changes`.
    """
    may_have = pc.and_(rows["x"].is_null(), rows["fields"].is_valid())
    at = np.flatnonzero(may_have.to_numpy())
    if not len(at):
        return rows
    places = np.full((len(rows), 2), np.nan)
    for place, text in zip(
        at, rows["fields"].take(pa.array(at)).to_pylist(), strict=True
    ):
        places[place] = place_of(text) or (np.nan, np.nan)
    for number, name in enumerate("xy"):
        told = pa.array(places[:, number], from_pandas=True)
        column = rows.schema.get_field_index(name)
        rows = rows.set_column(column, name, pc.coalesce(rows[name], told))
    return rows


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
