"""Where objects were when an answer changed: x and y of the fix behind each change, from where they are kept.

A query that selects x and y tells them (`fields`); of all others the fix is looked up in the table of positions, by its
object and its time.

    object  cause   fix_ts  fields          place
    a       enter   12:00   {"x":1,"y":2}   (1, 2)
    a       leave   12:05                   that of the fix of a at 12:05
    b       gone    12:07                   that of the last fix of b before: the record of 12:07 has none
    *       value   12:08   {"n":3}         none: it is about a group
"""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.asking import asking
from st_common.home import Home
from st_common.levels.stored import FILTERED, has_filtered
from st_common.query.lookup import history
from st_common.query.plan import Plan

_DAY = timedelta(days=1)
_POSITIONS = ("object", "event_ts", "x", "y", "gone", "segment", "row")
# Of several fixes of one time the first in the log counted.
_FIND = """
WITH fixes AS (
    SELECT object, event_ts, first(x ORDER BY segment, "row") AS x, first(y ORDER BY segment, "row") AS y
    FROM positions WHERE NOT gone GROUP BY object, event_ts
)
SELECT w.number, f.x, f.y FROM wanted w ASOF JOIN fixes f ON w.object = f.object AND w.fix_ts >= f.event_ts"""


def with_places(home: Home, stream: str, rows: pa.Table) -> pa.Table:
    """Changes of a stream with two columns more, `x` and `y`: where the object was by the fix that the change shows.

    Args:
        home: where the tables lie.
        stream: the stream.
        rows: its changes, with the columns of the contract `changes`.

    Returns:
        The rows in their order; `x` and `y` (float64) are null of groups, and where the fix is not archived (yet).
    """
    x, y = _told(rows["fields"].to_pylist())
    of_objects = np.flatnonzero(np.isnan(x) & _about_objects(home, rows))
    if len(of_objects):
        found_x, found_y = _looked_up(home, stream, rows.take(pa.array(of_objects)))
        x[of_objects], y[of_objects] = found_x, found_y
    for name, values in (("x", x), ("y", y)):
        rows = rows.append_column(name, pa.array(values, from_pandas=True))
    return rows


def place_of(fields: str | None) -> tuple[float, float] | None:
    """The place among the columns that a query selects; None where it selects none."""
    if fields is None or '"x"' not in fields:
        return None
    values = json.loads(fields)
    x, y = values.get("x"), values.get("y")
    if not (_is_number(x) and _is_number(y)):
        return None
    return float(x), float(y)


def is_about_objects(plan: Plan) -> bool:
    """Whether what a query tells is about objects, and not about groups of them."""
    outer = plan.outer
    return plan.aggregate is None and (outer is None or outer.aggregate is None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _told(fields: list[str | None]) -> tuple[np.ndarray, np.ndarray]:
    places = [place_of(text) or (np.nan, np.nan) for text in fields]
    both = np.array(places, np.float64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def _about_objects(home: Home, rows: pa.Table) -> np.ndarray:
    """Of which rows the object is one of the stream's: that of an aggregate is the name of a group."""
    made = pc.binary_join_element_wise(
        rows["query_version"].cast(pa.string()), rows["query"], "/"
    )
    grouped = [
        f"{row.version}/{row.name}"
        for name in pc.unique(rows["query"]).to_pylist()
        for row in history(home, name)
        if row.plan is not None and not is_about_objects(row.plan)
    ]
    of_group = pc.is_in(made, value_set=pa.array(grouped, pa.string()))
    about: np.ndarray = ~of_group.to_numpy()
    return about


def _looked_up(
    home: Home, stream: str, rows: pa.Table
) -> tuple[np.ndarray, np.ndarray]:
    """The places of the fixes that changes show, NaN where there is none; day after day."""
    x, y = (np.full(len(rows), np.nan) for _ in range(2))
    path = home.table("positions", stream)
    if not tables.exists(path):
        return x, y
    days = pc.floor_temporal(rows["fix_ts"], unit="day")
    for day in pc.unique(days.drop_null()).to_pylist():
        places = np.flatnonzero(
            pc.is_in(days, value_set=pa.array([day], days.type)).to_numpy()
        )
        wanted = pa.table(
            {
                "number": places,
                "object": rows["object"].take(pa.array(places)),
                "fix_ts": rows["fix_ts"].take(pa.array(places)),
            }
        )
        # The record that says that an object is gone has no place: its last fix may be of the day before.
        for since in (day, day - _DAY):
            numbers, found = _of_days(home, stream, wanted, since, day + _DAY)
            x[numbers], y[numbers] = found["x"], found["y"]
            wanted = wanted.filter(pa.array(np.isnan(x[wanted["number"].to_numpy()])))
            if not len(wanted):
                break
    return x, y


def _of_days(
    home: Home, stream: str, wanted: pa.Table, since: datetime, until: datetime
) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    """The numbers of those whose last fix is of some days, and where that was."""
    path = home.table("positions", stream)
    filtered = [FILTERED] if has_filtered(path) else []
    objects = pc.unique(wanted["object"]).to_pylist()
    positions = tables.read(
        path,
        columns=[*_POSITIONS, *filtered],
        filters=[
            ("event_date", "in", _dates(since, until)),
            ("event_ts", "<=", pc.max(wanted["fix_ts"]).as_py()),
            ("object", "in", objects),
        ],
    )
    if filtered:
        positions = positions.filter(positions[FILTERED].is_null())
    with asking() as connection:
        connection.register("positions", positions)
        connection.register("wanted", wanted)
        found = connection.sql(_FIND).to_arrow_table()
    numbers: np.ndarray = found["number"].to_numpy()
    return numbers, {name: found[name].to_numpy() for name in "xy"}


def _dates(since: datetime, until: datetime) -> list[date]:
    first = since.astimezone(UTC).date()
    return [first + _DAY * number for number in range((until - since).days)]
